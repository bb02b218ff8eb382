/* sluice drop: lets go of the cached pages of models, and checks that they are gone. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/byte_text.h"
#include "base/status.h"
#include "cache_models.h"
#include "commands.h"
#include "report.h"
#include "sluice/page_cache.h"

/* What may stay without being a failure, in hundredths: pages that the kernel just holds on to. */
#define MAX_LEFT_PERCENT 1

typedef struct drop_opts {
    const char *units;
} drop_opts;

static const opt_def defs[] = {
        {.name = "units",
                .kind = OPT_STR,
                .offset = offsetof(drop_opts, units),
                .arg = "LIST",
                .help = CACHE_UNITS_HELP "; default: the whole files."},
};

const opt_command cmd_drop_table = {
        .name = "drop",
        .summary = "let go of the cached pages of models",
        .synopsis = "[--units LIST] FILE...",
        .about = "Drops what the kernel keeps of the files in memory, and counts what is left: "
                 "pages that "
                 "another process maps or locks are not ours to drop. Exit status 1 means that "
                 "more than one "
                 "in a hundred stayed.",
        .operand = "FILE",
        .min_operands = 1,
        .max_operands = SIZE_MAX,
        .opts = defs,
        .n_opts = sizeof defs / sizeof defs[0],
};

static int fail_left(const sl_map *map, uint64_t left, sl_error *reterr)
{
    char shown[256];
    char size[32];
    uint64_t page = sl_page_cache_page_bytes();
    const char *path = sl_map_path(map);
    return sl__fail(reterr, SL_EBUSY,
            "%s: %s (%" PRIu64 " pages) stay cached; another process maps or locks them",
            sl__quote(shown, sizeof shown, path, strlen(path)),
            sl__byte_text(left, size, sizeof size), left / page);
}

static int drop_ranges(const sl_map *map, const sl_ranges *ranges, sl_error *reterr)
{
    char shown[256];
    char text[2][32];
    uint64_t before = 0;
    uint64_t left = 0;
    const char *path = sl_map_path(map);
    sl__quote(shown, sizeof shown, path, strlen(path));
    bool is_known = sl_page_cache_cached_in(map, ranges, &before, NULL) >= 0;
    int r = sl_page_cache_drop(map, ranges, &left, reterr);
    if (r < 0) {
        return r;
    }
    if (!is_known || left == UINT64_MAX) {
        printf("%s: dropped; this system does not say what is left\n", shown);
        return 0;
    }
    printf("%s: %s dropped, %s left\n", shown,
            sl__byte_text(before > left ? before - left : 0, text[0], sizeof text[0]),
            sl__byte_text(left, text[1], sizeof text[1]));
    bool is_done = left <= sl_ranges_bytes(ranges) / 100 * MAX_LEFT_PERCENT;
    return is_done ? 0 : fail_left(map, left, reterr);
}

static int drop_file(
        const sl_model *model, uint32_t i_file, const cache_choice *choice, sl_error *reterr)
{
    const sl_map *map = sl_model_map(model, i_file);
    sl_ranges ranges = {0};
    int r = 0;
    if (choice->mask) {
        r = cache_ranges(model, i_file, choice, &ranges, reterr);
    } else if (sl_ranges_add(&ranges, 0, sl_map_size(map)) < 0) {
        r = sl__fail_nomem(reterr, sizeof(sl_range), "the ranges to drop");
    }
    if (r >= 0) {
        r = drop_ranges(map, &ranges, reterr);
    }
    sl_ranges_done(&ranges);
    return r;
}

/* Every file is tried; the status is that of the last failure. */
static int drop_all(const cache_models *models, const cache_choice *choice)
{
    int status = 0;
    for (size_t i = 0; i < models->n; i++) {
        for (uint32_t k = 0; k < sl_model_n_files(models->items[i]); k++) {
            sl_error err = {0};
            if (drop_file(models->items[i], k, choice, &err) < 0) {
                status = report_error(cmd_drop_table.name, &err);
            }
        }
    }
    return status;
}

int cmd_drop(int argc, char **argv)
{
    drop_opts opts = {0};
    opt_result line;
    cache_models models = {0};
    cache_choice choice = {.has_lazy = true};
    sl_error err = {0};
    int status = opt_parse(&cmd_drop_table, argc, argv, &opts, &line);
    if (status != OPT_RUN) {
        return status;
    }
    if (opts.units && !cache_units_parse(cmd_drop_table.name, opts.units, &choice.mask)) {
        return sl_err_exit_status(SL_EINVAL);
    }
    if (cache_models_open(line.operands, line.n_operands, &models, &err) < 0) {
        return report_error(cmd_drop_table.name, &err);
    }
    status = drop_all(&models, &choice);
    cache_models_close(&models);
    return status;
}
