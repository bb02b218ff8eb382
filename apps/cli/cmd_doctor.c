/* sluice doctor: what Sluice finds on this machine, and where every number comes from. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/byte_text.h"
#include "base/json_writer.h"
#include "base/status.h"
#include "commands.h"
#include "devices_report.h"
#include "os/os_cpu_quota.h"
#include "os/os_process.h"
#include "report.h"
#include "s2/placement.h"
#include "sluice/populate.h"
#include "sluice/ram.h"

typedef struct doctor_opts {
    const char *sysroot;
    uint64_t ram;
    bool json;
} doctor_opts;

static const opt_def defs[] = {
        {.name = "sysroot",
                .kind = OPT_STR,
                .offset = offsetof(doctor_opts, sysroot),
                .arg = "DIR",
                .help = "Look at a folder that stands for a machine (DIR/proc/meminfo, "
                        "DIR/proc/self/cgroup, DIR/proc/self/mountinfo, DIR/sys/fs/cgroup/...)."},
        {.name = "ram",
                .kind = OPT_BYTES,
                .offset = offsetof(doctor_opts, ram),
                .arg = "BYTES",
                .help = "A budget that replaces the derived one."},
        {.name = "json",
                .kind = OPT_FLAG,
                .offset = offsetof(doctor_opts, json),
                .help = "Write everything as one JSON object."},
};

const opt_command cmd_doctor_table = {
        .name = "doctor",
        .summary = "show what this machine leaves to Sluice, and why",
        .synopsis = "[--sysroot DIR] [--ram BYTES] [--json]",
        .about =
                "Derives the RAM budget (how many bytes of weights may be brought into memory "
                "before "
                "they are used) and shows every number with the file it comes from. Also shows the "
                "processors and versions, and what 'say' would use.",
        .opts = defs,
        .n_opts = sizeof defs / sizeof defs[0],
};

/* What was found. */
typedef struct finding {
    sl_ram_budget ram;
    unsigned n_cpus;    /* 0 for another machine */
    unsigned cpu_quota; /* 0 = none */
    const char *switched_off;
    sl_device_info *devices; /* none of another machine */
    size_t n_devices;
} finding;

static const char *best_device(const finding *f)
{
    return f->n_devices > 0 ? s2_devices_best(f->devices, f->n_devices) : NULL;
}

static void put_bound(sl__json *j, const sl_ram_bound *b)
{
    sl__json_object(j);
    sl__json_put_cstr(j, "kind", sl_ram_bound_name(b->kind));
    sl__json_put_cstr(j, "source", b->source);
    sl__json_put_u64(j, "limit_bytes", b->limit_bytes);
    sl__json_put_u64(j, "used_bytes", b->used_bytes);
    sl__json_put_u64(j, "reclaimable_bytes", b->reclaimable_bytes);
    sl__json_put_u64(j, "available_bytes", b->available_bytes);
    sl__json_put_u64(j, "reserve_bytes", b->reserve_bytes);
    sl__json_put_u64(j, "budget_bytes", b->budget_bytes);
    sl__json_end(j);
}

static void put_line(sl__json *j, const sl_ram_line *line)
{
    sl__json_object(j);
    sl__json_put_cstr(j, "source", line->source);
    sl__json_put_cstr(j, "text", line->text);
    sl__json_put_u64_or_null(j, "bytes", line->has_bytes, line->bytes);
    sl__json_put_bool(j, "warning", line->is_warning);
    sl__json_end(j);
}

static void put_ram(sl__json *j, const sl_ram_budget *ram)
{
    const sl_ram_bound *decided = sl_ram_decided(ram);
    sl__json_key(j, "ram");
    sl__json_object(j);
    sl__json_put_bool(j, "known", ram->is_known);
    sl__json_put_bool(j, "estimate", ram->is_estimate);
    sl__json_put_u64(j, "budget_bytes", ram->budget_bytes);
    sl__json_put_u64_or_null(j, "available_bytes", ram->is_known, ram->available_bytes);
    sl__json_put_u64_or_null(
            j, "limit_bytes", ram->limit_bytes != SL_RAM_NO_LIMIT, ram->limit_bytes);
    sl__json_put_u64_or_null(j, "total_bytes", ram->total_bytes > 0, ram->total_bytes);
    sl__json_put_cstr(j, "decided_by", decided ? sl_ram_bound_name(decided->kind) : NULL);
    sl__json_put_cstr(j, "source", decided ? decided->source : NULL);
    sl__json_key(j, "bounds");
    sl__json_array(j);
    for (size_t i = 0; i < ram->n_bounds; i++) {
        put_bound(j, &ram->bounds[i]);
    }
    sl__json_end(j);
    sl__json_key(j, "derivation");
    sl__json_array(j);
    for (size_t i = 0; i < ram->n_lines; i++) {
        put_line(j, &ram->lines[i]);
    }
    sl__json_end(j);
    sl__json_end(j);
}

static int print_json(const finding *f, const doctor_opts *opts, sl_error *reterr)
{
    sl__json j = {0};
    sl__json_object(&j);
    sl__json_put_cstr(&j, "version", SLUICE_VERSION);
    sl__json_put_cstr(&j, "ggml", SLUICE_GGML_VERSION);
    sl__json_put_cstr(&j, "sysroot", opts->sysroot);
    put_ram(&j, &f->ram);
    sl__json_put_bool(&j, "populate", !f->switched_off && f->ram.budget_bytes > 0);
    sl__json_put_cstr(&j, "populate_switched_off_by", f->switched_off);
    sl__json_put_u64_or_null(&j, "cpus", f->n_cpus > 0, f->n_cpus);
    sl__json_put_u64_or_null(&j, "cpu_quota", f->cpu_quota > 0, f->cpu_quota);
    sl__json_key(&j, "say");
    sl__json_object(&j);
    sl__json_put_u64_or_null(&j, "threads", f->n_cpus > 0, f->n_cpus);
    sl__json_put_cstr(&j, "device", best_device(f));
    sl__json_put_cstr(&j, "weights", "in place");
    sl__json_end(&j);
    sl__json_key(&j, "devices");
    devices_put_json(f->devices, f->n_devices, best_device(f), &j);
    sl__json_end(&j);
    return report_json(&j, reterr);
}

static void print_budget(const sl_ram_budget *ram)
{
    char size[32];
    const sl_ram_bound *decided = sl_ram_decided(ram);
    if (!decided) {
        printf("RAM budget    unknown, so nothing is populated unless you give --ram BYTES\n");
        return;
    }
    printf("RAM budget    %s (%" PRIu64 " bytes)%s, decided by %s (%s)\n",
            sl__byte_text(ram->budget_bytes, size, sizeof size), ram->budget_bytes,
            ram->is_estimate ? ", an estimate" : "", sl_ram_bound_name(decided->kind),
            decided->source);
}

static void print_bounds(const sl_ram_budget *ram)
{
    char text[6][32];
    printf("\n  %-28s %10s %10s %12s %10s %10s %10s\n", "bound", "limit", "used", "reclaimable",
            "available", "reserve", "budget");
    for (size_t i = 0; i < ram->n_bounds; i++) {
        const sl_ram_bound *b = &ram->bounds[i];
        const uint64_t values[] = {b->limit_bytes, b->used_bytes, b->reclaimable_bytes,
                b->available_bytes, b->reserve_bytes, b->budget_bytes};
        for (size_t k = 0; k < 6; k++) {
            sl__byte_text(values[k], text[k], sizeof text[k]);
        }
        printf("  %-28s %10s %10s %12s %10s %10s %10s\n", sl_ram_bound_name(b->kind), text[0],
                text[1], text[2], text[3], text[4], text[5]);
    }
}

static void print_derivation(const sl_ram_budget *ram)
{
    printf("\nDerivation\n");
    for (size_t i = 0; i < ram->n_lines; i++) {
        const sl_ram_line *line = &ram->lines[i];
        char number[24] = "";
        if (line->has_bytes) {
            snprintf(number, sizeof number, "%" PRIu64, line->bytes);
        }
        printf("  %15s  %s%s (%s)\n", number, line->is_warning ? "warning: " : "", line->text,
                line->source);
    }
}

static void print_text(const finding *f)
{
    print_budget(&f->ram);
    if (f->switched_off) {
        printf("Population    off: the environment has %s set\n", f->switched_off);
    } else {
        printf("Population    %s\n", f->ram.budget_bytes > 0 ? "on" : "nothing fits");
    }
    if (f->n_cpus > 0) {
        printf("Processors    %u, by the affinity of this process and the quota of its cgroup\n",
                f->n_cpus);
    }
    if (f->cpu_quota > 0) {
        printf("CPU quota     %u, from cgroups\n", f->cpu_quota);
    }
    printf("Versions      sluice %s, ggml %s\n", SLUICE_VERSION, SLUICE_GGML_VERSION);
    if (f->n_cpus > 0) {
        printf("say           %u threads, weights used in place\n", f->n_cpus);
    }
    if (f->ram.n_bounds > 0) {
        print_bounds(&f->ram);
    }
    print_derivation(&f->ram);
    if (f->n_devices > 0) {
        devices_print_text(f->devices, f->n_devices, best_device(f), stdout);
    }
}

static int check_sysroot(const char *dir, sl_error *reterr)
{
    char quoted[256];
    struct stat st;
    sl__quote(quoted, sizeof quoted, dir, strlen(dir));
    if (stat(dir, &st) != 0) {
        return sl__fail(reterr, SL_ENOENT,
                "--sysroot %s: not found, need a folder that stands for a machine", quoted);
    }
    if (!S_ISDIR(st.st_mode)) {
        return sl__fail(reterr, SL_EINVAL,
                "--sysroot %s: not a folder, need one that stands for a machine", quoted);
    }
    return 0;
}

static void show_warning(void *ud, sl_log_level level, const char *msg)
{
    (void)ud;
    if (level <= SL_LOG_WARN) {
        report_warning(cmd_doctor_table.name, "%s", msg);
    }
}

static int examine(const doctor_opts *opts, bool has_ram, finding *f, sl_error *reterr)
{
    const char *root = opts->sysroot ? opts->sysroot : "";
    sl_ram_opts ram = {.root = root, .has_given = has_ram, .given_bytes = opts->ram};
    int r = opts->sysroot ? check_sysroot(root, reterr) : 0;
    if (r < 0) {
        return r;
    }
    f->switched_off = sl_populate_switched_off();
    f->cpu_quota = sl__cpu_quota(root);
    f->n_cpus = opts->sysroot ? 0 : sl__n_cpus();
    if (!opts->sysroot) {
        const sl_logger log = {show_warning, NULL};
        r = s2_devices_list(&log, &f->devices, &f->n_devices, reterr);
    }
    return r < 0 ? r : sl_ram_budget_read(&ram, &f->ram, reterr);
}

int cmd_doctor(int argc, char **argv)
{
    doctor_opts opts = {0};
    opt_result line;
    finding f = {0};
    sl_error err = {0};
    int status = opt_parse(&cmd_doctor_table, argc, argv, &opts, &line);
    if (status != OPT_RUN) {
        return status;
    }
    int r = examine(&opts, opt_given(&line, "ram"), &f, &err);
    if (r >= 0 && opts.json) {
        r = print_json(&f, &opts, &err);
    } else if (r >= 0) {
        print_text(&f);
    }
    sl_ram_budget_done(&f.ram);
    s2_devices_free(f.devices);
    return r < 0 ? report_error(cmd_doctor_table.name, &err) : 0;
}
