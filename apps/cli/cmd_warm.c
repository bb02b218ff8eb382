/*
 * sluice warm: brings the weights of models into the page cache, within the RAM budget. The budget is sampled
 * before any file is mapped.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/byte_text.h"
#include "base/mem.h"
#include "base/status.h"
#include "cache_models.h"
#include "commands.h"
#include "interrupt.h"
#include "report.h"
#include "sluice/populate.h"
#include "tty.h"

typedef struct warm_opts {
    const char *units;
    uint64_t ram;
    uint64_t lazy_over;
    int32_t threads;
    bool quiet;
} warm_opts;

static const opt_def defs[] = {
        {.name = "units",
                .kind = OPT_STR,
                .offset = offsetof(warm_opts, units),
                .arg = "LIST",
                .help = CACHE_UNITS_HELP "; default: every unit."},
        {.name = "ram",
                .kind = OPT_BYTES,
                .offset = offsetof(warm_opts, ram),
                .arg = "BYTES",
                .help = "A budget that replaces the derived one (see 'sluice doctor')."},
        {.name = "lazy-over",
                .kind = OPT_BYTES,
                .offset = offsetof(warm_opts, lazy_over),
                .arg = "BYTES",
                .help = "Leave out tensors larger than this.",
                .def = "4G"},
        {.name = "threads",
                .kind = OPT_I32,
                .offset = offsetof(warm_opts, threads),
                .arg = "N",
                .help = "Threads; more than one helps only where several disks work together.",
                .def = "1",
                .min = 1,
                .max = SL_POPULATE_MAX_THREADS},
        {.name = "quiet",
                .short_name = 'q',
                .kind = OPT_FLAG,
                .offset = offsetof(warm_opts, quiet),
                .help = "No progress."},
};

const opt_command cmd_warm_table = {
        .name = "warm",
        .summary = "bring the weights of models into the page cache",
        .synopsis = "[OPTIONS] FILE...",
        .about = "Reads what the units of the models need into memory, so that the next program "
                 "that maps "
                 "them starts at once. Tables that are gathered row by row and very large tensors "
                 "are left "
                 "out. A file goes whole or not at all, and never more than the RAM budget: what "
                 "is cached "
                 "already costs nothing. Exit status 1 means that something did not fit.",
        .operand = "FILE",
        .min_operands = 1,
        .max_operands = SIZE_MAX,
        .opts = defs,
        .n_opts = sizeof defs / sizeof defs[0],
};

/* The files of all models, in order, with what is wanted of each. */
typedef struct warm_files {
    sl_populate_file *items;
    sl_ranges *ranges;
    size_t n;
} warm_files;

static void files_done(warm_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        sl_ranges_done(&files->ranges[i]);
    }
    sl__free(files->items);
    sl__free(files->ranges);
}

static int add_model(
        warm_files *files, const sl_model *model, const cache_choice *choice, sl_error *reterr)
{
    int r = 0;
    for (uint32_t i = 0; i < sl_model_n_files(model) && r >= 0; i++) {
        sl_ranges *ranges = &files->ranges[files->n];
        files->items[files->n] =
                (sl_populate_file){.map = sl_model_map(model, i), .ranges = ranges};
        files->n++;
        r = cache_ranges(model, i, choice, ranges, reterr);
    }
    return r;
}

static int collect(
        const cache_models *models, const cache_choice *choice, warm_files *files, sl_error *reterr)
{
    size_t n = 0;
    int r = 0;
    for (size_t i = 0; i < models->n; i++) {
        n += sl_model_n_files(models->items[i]);
    }
    files->items = sl__alloc(n, sizeof *files->items);
    files->ranges = sl__alloc(n, sizeof *files->ranges);
    if (!files->items || !files->ranges) {
        return sl__fail_nomem(reterr, n * sizeof *files->items, "the files");
    }
    for (size_t i = 0; i < models->n && r >= 0; i++) {
        r = add_model(files, models->items[i], choice, reterr);
    }
    return r;
}

static int show_progress(void *ud, uint64_t done, uint64_t total)
{
    char part[32];
    char all[32];
    tty_progress_show(ud, "%3.0f%%  %s of %s",
            total > 0 ? 100.0 * (double)done / (double)total : 100.0,
            sl__byte_text(done, part, sizeof part), sl__byte_text(total, all, sizeof all));
    return interrupt_seen();
}

/* What did not fit or stopped half way is a failure, though nothing is wrong with the files. */
static int judge(const sl_populate_result *res, const sl_ram_budget *ram, sl_error *reterr)
{
    char skipped[32];
    char budget[32];
    if (res->end == SL_POPULATE_PRESSURE) {
        return sl__fail(reterr, SL_EBUDGET,
                "memory ran short, so it stopped (%s); try again later or give --units", res->why);
    }
    if (res->end != SL_POPULATE_SKIPPED) {
        return 0;
    }
    sl__byte_text(res->skipped_bytes, skipped, sizeof skipped);
    if (!ram->is_known) {
        return sl__fail(reterr, SL_EBUDGET,
                "%s were skipped, since the available memory is unknown (see 'sluice doctor'); "
                "give --ram BYTES",
                skipped);
    }
    return sl__fail(reterr, SL_EBUDGET,
            "%s in %zu file%s were skipped, the budget is %s; give --units, or --ram BYTES if you "
            "know better",
            skipped, res->n_files_skipped, res->n_files_skipped == 1 ? "" : "s",
            sl__byte_text(ram->budget_bytes, budget, sizeof budget));
}

static int warm(const cache_models *models, const warm_opts *opts, const cache_choice *choice,
        const sl_ram_opts *ram_opts, const sl_ram_budget *ram, sl_error *reterr)
{
    warm_files files = {0};
    tty_progress progress;
    sl_populate_result res;
    char text[512];
    tty_progress_init(&progress, stderr, opts->quiet);
    const sl_populate_opts populate = {.budget_bytes = ram->budget_bytes,
            .n_threads = (unsigned)opts->threads,
            .recheck = ram_opts,
            .progress = {show_progress, &progress}};
    int r = collect(models, choice, &files, reterr);
    if (r >= 0) {
        r = sl_populate(files.items, files.n, &populate, &res, reterr);
        tty_progress_clear(&progress);
        printf("%s\n", sl_populate_text(&res, ram, text, sizeof text));
    }
    if (r >= 0) {
        r = judge(&res, ram, reterr);
    }
    files_done(&files);
    return r;
}

int cmd_warm(int argc, char **argv)
{
    warm_opts opts = {0};
    opt_result line;
    cache_models models = {0};
    cache_choice choice = {0};
    sl_ram_budget ram = {0};
    sl_error err = {0};
    int status = opt_parse(&cmd_warm_table, argc, argv, &opts, &line);
    if (status != OPT_RUN) {
        return status;
    }
    if (opts.units && !cache_units_parse(cmd_warm_table.name, opts.units, &choice.mask)) {
        return sl_err_exit_status(SL_EINVAL);
    }
    const char *off = sl_populate_switched_off();
    if (off) {
        sl__fail(&err, SL_EUNSUPPORTED, "%s switches population off; unset it to warm files", off);
        return report_error(cmd_warm_table.name, &err);
    }
    interrupt_catch();
    choice.lazy_over_bytes = opts.lazy_over;
    const sl_ram_opts ram_opts = {.has_given = opt_given(&line, "ram"), .given_bytes = opts.ram};
    int r = sl_ram_budget_read(&ram_opts, &ram, &err);
    if (r >= 0) {
        r = cache_models_open(line.operands, line.n_operands, &models, &err);
    }
    if (r >= 0) {
        r = warm(&models, &opts, &choice, &ram_opts, &ram, &err);
    }
    cache_models_close(&models);
    sl_ram_budget_done(&ram);
    return r < 0 ? report_error(cmd_warm_table.name, &err) : 0;
}
