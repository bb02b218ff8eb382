/* sluice inspect: opens a model the way the engine does, and shows what it found. */
#include <stddef.h>
#include <stdio.h>

#include "commands.h"
#include "inspect.h"
#include "report.h"

typedef struct inspect_opts {
    bool tensors;
    bool units;
    bool json;
} inspect_opts;

static const opt_def defs[] = {
        {.name = "tensors",
                .kind = OPT_FLAG,
                .offset = offsetof(inspect_opts, tensors),
                .help = "List every tensor with type, bytes, unit, shape and place."},
        {.name = "units",
                .kind = OPT_FLAG,
                .offset = offsetof(inspect_opts, units),
                .help = "Show the units alone: what is loaded together, its bytes and types, what "
                        "is "
                        "lazy and what is zero-size."},
        {.name = "json",
                .kind = OPT_FLAG,
                .offset = offsetof(inspect_opts, json),
                .help = "Write everything (files, metadata, tensors, units) as one JSON object."},
};

const opt_command cmd_inspect_table = {
        .name = "inspect",
        .summary = "show what is in a model file",
        .synopsis = "[--tensors] [--units] [--json] FILE",
        .about = "Shows the metadata, tensors and units of a GGUF file, or of a split set through "
                 "any of "
                 "its shards. Exit status 0 means that the file is sound: every tensor lies wholly "
                 "inside "
                 "it. An unsound file gives one line and exit status 1.",
        .operand = "FILE",
        .min_operands = 1,
        .max_operands = 1,
        .opts = defs,
        .n_opts = sizeof defs / sizeof defs[0],
};

static void warn_about_units(const model_summary *summary)
{
    char warning[256];
    for (int id = 0; id < S2_UNIT_COUNT; id++) {
        if (inspect_unit_warning((s2_unit_id)id, &summary->units[id], warning, sizeof warning)) {
            report_warning(cmd_inspect_table.name, "%s", warning);
        }
    }
}

static int show(const sl_model *model, const inspect_opts *opts, sl_error *reterr)
{
    model_summary summary;
    bool is_overview = !opts->tensors && !opts->units;
    inspect_sections sections = {is_overview, opts->tensors, is_overview || opts->units};
    unit_summarize(model, &summary);
    if (opts->json) {
        int r = inspect_print_json(model, &summary, stdout, reterr);
        if (r < 0) {
            return r;
        }
    } else {
        inspect_print_text(model, &summary, sections, stdout);
    }
    /* A file that shrank meanwhile read as zeros: what was shown is then not what it says. */
    int r = sl_model_check(model, reterr);
    if (r >= 0) {
        warn_about_units(&summary);
    }
    return r;
}

int cmd_inspect(int argc, char **argv)
{
    inspect_opts opts = {0};
    opt_result line;
    sl_model *model = NULL;
    sl_error err = {0};
    int status = opt_parse(&cmd_inspect_table, argc, argv, &opts, &line);
    if (status != OPT_RUN) {
        return status;
    }
    int r = sl_model_open(line.operands[0], &model, &err);
    if (r >= 0) {
        r = show(model, &opts, &err);
    }
    sl_model_close(&model);
    if (r < 0) {
        (void)report_error(cmd_inspect_table.name, &err);
        return 1;
    }
    return 0;
}
