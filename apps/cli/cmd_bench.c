/* sluice bench: what this machine reaches, measured. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte_text.h"
#include "base/mem.h"
#include "base/status.h"
#include "bench_report.h"
#include "bench_source.h"
#include "bench_transfer.h"
#include "commands.h"
#include "interrupt.h"
#include "option_value.h"
#include "os/os_process.h"
#include "report.h"
#include "s2/placement.h"
#include "sluice/ram.h"
#include "tty.h"

typedef struct bench_opts {
    const char *model;
    uint64_t size;
    const char *device;
    opt_list threads;
    int32_t runs;
    int32_t slots;
    uint64_t slot_bytes;
    bool cold;
    bool json;
    const char *csv;
    const char *machine;
} bench_opts;

static const opt_def defs[] = {
        {.name = "model",
                .short_name = 'm',
                .kind = OPT_STR,
                .offset = offsetof(bench_opts, model),
                .arg = "FILE",
                .help = "Move the tensors of this model."},
        {.name = "size",
                .kind = OPT_BYTES,
                .offset = offsetof(bench_opts, size),
                .arg = "BYTES",
                .help = "Move a file of noise of this size, made in $TMPDIR or /var/tmp and gone "
                        "when the program ends.",
                .def = "1G",
                .min = 1,
                .max = 1e15},
        {.name = "device",
                .kind = OPT_STR,
                .offset = offsetof(bench_opts, device),
                .arg = "NAME",
                .help = "Where to: auto, cpu, a device of 'sluice doctor' such as vulkan0 or "
                        "cuda0, or a simulation such as sim:4G,link=12G.",
                .def = "auto"},
        {.name = "threads",
                .kind = OPT_LIST,
                .offset = offsetof(bench_opts, threads),
                .arg = "N",
                .help = "Threads that fill the ring, or read the disk. Repeatable: a row each; "
                        "default: 1, 2, 4 and so on up to the processors, at most 16."},
        {.name = "runs",
                .kind = OPT_I32,
                .offset = offsetof(bench_opts, runs),
                .arg = "N",
                .help = "Runs of each row.",
                .def = "3",
                .min = 1,
                .max = 64},
        {.name = "slots",
                .kind = OPT_I32,
                .offset = offsetof(bench_opts, slots),
                .arg = "N",
                .help = "Slots of the ring; default: what a load takes.",
                .min = 1,
                .max = 4096},
        {.name = "slot-bytes",
                .kind = OPT_BYTES,
                .offset = offsetof(bench_opts, slot_bytes),
                .arg = "BYTES",
                .help = "Bytes of a slot; default: what a load takes.",
                .min = 4096,
                .max = 1 << 30},
        {.name = "cold",
                .kind = OPT_FLAG,
                .offset = offsetof(bench_opts, cold),
                .help = "Drop the file from the page cache before each run, and measure the disk, "
                        "too; else it is read into the page cache first."},
        {.name = "json",
                .kind = OPT_FLAG,
                .offset = offsetof(bench_opts, json),
                .help = "Write one JSON object instead of a table."},
        {.name = "csv",
                .kind = OPT_STR,
                .offset = offsetof(bench_opts, csv),
                .arg = "FILE",
                .help = "Write the rows to a file, too; - is standard output, without a table."},
        {.name = "machine",
                .kind = OPT_STR,
                .offset = offsetof(bench_opts, machine),
                .arg = "TEXT",
                .help = "What the results call this machine; default: device and processors."},
};

static const opt_rule rules[] = {{OPT_EXCLUDES, "model", "size"}};

const opt_command cmd_bench_transfer_table = {
        .name = "bench transfer",
        .summary = "measure how fast weights get to a device",
        .synopsis = "[-m FILE | --size BYTES] [--device NAME] [OPTIONS]",
        .about = "Moves the same bytes by every route and sets each against the limit of the link "
                 "(uploads from pinned memory that nobody fills) and against the usual way (a set "
                 "and a wait for each tensor); with --cold also against what the disk gives to "
                 "the same numbers of threads that read the file and throw it away (the best of "
                 "the rows 'disk'). A row is the best of its runs. A stall is a time "
                 "at which the link had nothing to do while slots were being filled. Bytes are "
                 "compared after each run. Exit status 1 means that something failed.",
        .opts = defs,
        .n_opts = sizeof defs / sizeof defs[0],
        .rules = rules,
        .n_rules = sizeof rules / sizeof rules[0],
};

/* What the callbacks of a measurement need. */
typedef struct bench_run {
    const bench_source *source;
    tty_progress progress;
} bench_run;

static bool is_interrupted(void *ud)
{
    (void)ud;
    return interrupt_seen();
}

static int make_cold(void *ud, sl_error *reterr)
{
    bench_run *run = ud;
    return bench_source_drop(run->source, reterr);
}

static void on_row(void *ud, const char *name)
{
    bench_run *run = ud;
    tty_progress_show(&run->progress, "%s", name);
}

/* The numbers of threads of the rows; false after one line about a wrong one. */
static bool list_threads(const opt_list *given, bench_transfer_opts *ret)
{
    static const opt_def one = {.kind = OPT_I32, .min = 1, .max = 256};
    size_t most = sl__n_cpus() < 16 ? sl__n_cpus() : 16;
    for (size_t n = 1; given->n == 0 && n < most; n *= 2) {
        ret->n_threads[ret->n_thread_counts++] = n;
    }
    if (given->n == 0) {
        ret->n_threads[ret->n_thread_counts++] = most;
    }
    for (size_t i = 0; i < given->n; i++) {
        int32_t n;
        char needs[80];
        char shown[80];
        if (!opt_value_parse(&one, given->items[i], &n)) {
            report_usage(cmd_bench_transfer_table.name, "--threads: '%s' is not %s",
                    sl__quote(shown, sizeof shown, given->items[i], strlen(given->items[i])),
                    opt_value_needs(&one, needs, sizeof needs));
            return false;
        }
        ret->n_threads[ret->n_thread_counts++] = (size_t)n;
    }
    return true;
}

/* A file that does not fit into memory would measure the disk, and push out what others need. */
static int check_ram(uint64_t n_bytes, const sl_device_info *info, sl_error *reterr)
{
    char need[32];
    char have[32];
    sl_ram_budget ram = {0};
    int r = sl_ram_budget_read(NULL, &ram, reterr);
    bool is_twice = info->is_unified || info->kind == SL_DEVICE_SIM;
    uint64_t most = is_twice ? ram.budget_bytes / 2 : ram.budget_bytes;
    if (r == 0 && ram.is_known && n_bytes > most) {
        r = sl__fail(reterr, SL_EBUDGET,
                "--size: a file of %s is to stay in memory%s and the RAM budget is %s (see 'sluice "
                "doctor'); give less",
                sl__byte_text(n_bytes, need, sizeof need),
                is_twice ? ", and a copy of it, since the device is in memory, too," : "",
                sl__byte_text(ram.budget_bytes, have, sizeof have));
    }
    sl_ram_budget_done(&ram);
    return r;
}

static int open_source(
        const bench_opts *opts, const sl_device_info *info, bench_source *ret, sl_error *reterr)
{
    if (opts->model) {
        return bench_source_model(opts->model, ret, reterr);
    }
    if (info->total_bytes > 0 && opts->size > info->free_bytes) {
        char need[32];
        char have[32];
        return sl__fail(reterr, SL_EINVAL,
                "--size: %s are more than the %s that %s has free; give less",
                sl__byte_text(opts->size, need, sizeof need),
                sl__byte_text(info->free_bytes, have, sizeof have), info->name);
    }
    int r = check_ram(opts->size, info, reterr);
    return r < 0 ? r : bench_source_noise(opts->size, is_interrupted, NULL, ret, reterr);
}

static int write_results(const bench_opts *opts, const bench_about *about,
        const bench_transfer_result *result, sl_error *reterr)
{
    bool is_csv_out = opts->csv && strcmp(opts->csv, "-") == 0;
    int r = 0;
    if (opts->json) {
        r = bench_print_json(about, result, reterr);
    } else if (!is_csv_out) {
        bench_print_table(about, result);
    }
    return r < 0 || !opts->csv ? r : bench_write_csv(opts->csv, about, result, reterr);
}

static int measure(const bench_opts *opts, bench_transfer_opts bench, const sl_device_info *info,
        sl_error *reterr)
{
    char machine[256];
    bench_source source = {.fd = -1};
    bench_run run = {.source = &source};
    bench_transfer_result *result = sl__alloc(1, sizeof *result);
    tty_progress_init(&run.progress, stderr, false);
    snprintf(machine, sizeof machine, "%s, %u processors", info->description, sl__n_cpus());
    const bench_about about = {.machine = opts->machine ? opts->machine : machine,
            .device = info->name,
            .source = opts->model ? opts->model : "noise",
            .is_cold = opts->cold};
    int r = result ? 0 : sl__fail_nomem(reterr, sizeof *result, "the results");
    if (r == 0) {
        tty_progress_show(&run.progress, "getting the file");
        r = open_source(opts, info, &source, reterr);
    }
    if (r == 0 && !opts->cold) {
        r = bench_source_warm(&source, reterr);
    }
    if (r == 0) {
        bench.ranges = source.ranges;
        bench.n_ranges = source.n_ranges;
        bench.before_run = opts->cold ? make_cold : NULL;
        bench.on_row = on_row;
        bench.is_cancelled = is_interrupted;
        bench.ud = &run;
        r = bench_transfer(&bench, result, reterr);
    }
    tty_progress_clear(&run.progress);
    r = r < 0 ? r : write_results(opts, &about, result, reterr);
    bench_source_done(&source);
    sl__free(result);
    return r;
}

static void show_warning(void *ud, sl_log_level level, const char *msg)
{
    (void)ud;
    if (level <= SL_LOG_WARN) {
        report_warning(cmd_bench_transfer_table.name, "%s", msg);
    }
}

static int run_transfer(int argc, char **argv)
{
    bench_opts opts = {0};
    opt_result line;
    sl_error err = {0};
    sl_device_info info;
    bench_transfer_opts bench = {0};
    s2_placement *placement = NULL;
    const sl_logger log = {show_warning, NULL};
    int status = opt_parse(&cmd_bench_transfer_table, argc, argv, &opts, &line);
    if (status != OPT_RUN) {
        return status;
    }
    if (!list_threads(&opts.threads, &bench)) {
        return sl_err_exit_status(SL_EINVAL);
    }
    interrupt_catch();
    const s2_place_opts place = {.device = opts.device};
    int r = s2_placement_open(&place, false, &log, &placement, &err);
    if (r == 0) {
        size_t i_place = s2_placement_wanted(placement, S2_UNIT_SLOW);
        bench.device = s2_placement_place(placement, i_place)->device;
        r = sl_device_describe(bench.device, &info, &err);
    }
    if (r == 0) {
        bench.n_runs = (unsigned)opts.runs;
        bench.n_slots = (size_t)opts.slots;
        bench.slot_bytes = (size_t)opts.slot_bytes;
        size_t most = bench.n_threads[bench.n_thread_counts - 1];
        bench.tries_rings = most > 4 && opts.slots == 0 && opts.slot_bytes == 0;
        r = measure(&opts, bench, &info, &err);
    }
    s2_placement_close(&placement);
    return r < 0 ? report_error(cmd_bench_transfer_table.name, &err) : 0;
}

static void print_help(void)
{
    printf("Measures what this machine reaches.\n\nUsage: sluice bench transfer [OPTIONS]\n\n"
           "  sluice bench transfer --help   options\n");
}

int cmd_bench(int argc, char **argv)
{
    char quoted[80];
    if (argc < 2) {
        return report_usage("bench", "needs a command: transfer");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help();
        return 0;
    }
    if (strcmp(argv[1], "transfer") == 0) {
        return run_transfer(argc - 1, argv + 1);
    }
    return report_usage("bench", "unknown command '%s'; there is: transfer",
            sl__quote(quoted, sizeof quoted, argv[1], strlen(argv[1])));
}
