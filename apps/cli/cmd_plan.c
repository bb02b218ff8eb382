/*
 * sluice plan: what a request would take on which device when, from the model's file alone. A plan that does not fit
 * is shown too, and the exit status says so.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/status.h"
#include "commands.h"
#include "file_roles.h"
#include "place_options.h"
#include "plan_json.h"
#include "plan_overlay.h"
#include "plan_speeds.h"
#include "plan_svg.h"
#include "plan_text.h"
#include "report.h"
#include "s2/plan_model.h"

#define LINES_MAX   32 /* a budget each, and room */
#define SOURCES_MAX (4 + LINES_MAX)
#define LINE_BYTES  120

typedef struct plan_opts {
    const char *model;
    int32_t threads;
    place_options place;
    int32_t frames;
    int32_t prompt;
    bool recording;
    bool stream;
    uint64_t link;
    float frame_ms;
    bool json;
    const char *svg;
    const char *overlay;
} plan_opts;

static const opt_def defs[] = {
        {.name = "model",
                .short_name = 'm',
                .kind = OPT_STR,
                .offset = offsetof(plan_opts, model),
                .arg = "FILE",
                .help = "The model, a GGUF file; any shard of a split one."},
        PLACE_OPTION_ROWS(plan_opts, place),
        {.name = "frames",
                .kind = OPT_I32,
                .offset = offsetof(plan_opts, frames),
                .arg = "N",
                .help = "Frames of speech to plan for, as --max-frames of 'say'.",
                .def = "1024",
                .min = 1,
                .max = 1 << 24},
        {.name = "prompt",
                .kind = OPT_I32,
                .offset = offsetof(plan_opts, prompt),
                .arg = "N",
                .help = "Columns of the prompt: text, and a voice's text and frames.",
                .def = "256",
                .min = 1,
                .max = 1 << 24},
        {.name = "recording",
                .kind = OPT_FLAG,
                .offset = offsetof(plan_opts, recording),
                .help = "The request begins with a recording to imitate."},
        {.name = "stream",
                .kind = OPT_FLAG,
                .offset = offsetof(plan_opts, stream),
                .help = "Somebody listens while it is made."},
        {.name = "link",
                .kind = OPT_BYTES,
                .offset = offsetof(plan_opts, link),
                .arg = "BYTES",
                .help = "Bytes a second of the link to the devices, for predicted times; default: "
                        "that of a simulation or of --overlay.",
                .min = 1,
                .max = 1e14},
        {.name = "frame-ms",
                .kind = OPT_F32,
                .offset = offsetof(plan_opts, frame_ms),
                .arg = "MS",
                .help = "Milliseconds that making a frame takes, for predicted times; default: "
                        "those of --overlay.",
                .min = 1e-3,
                .max = 1e6},
        {.name = "threads",
                .kind = OPT_I32,
                .offset = offsetof(plan_opts, threads),
                .arg = "N",
                .help = "Threads of the cpu; 0 is as many as there are processors.",
                .def = "0",
                .max = 512},
        {.name = "json",
                .kind = OPT_FLAG,
                .offset = offsetof(plan_opts, json),
                .help = "Write everything as one JSON object instead of tables."},
        {.name = "svg",
                .kind = OPT_STR,
                .offset = offsetof(plan_opts, svg),
                .arg = "FILE",
                .help = "Draw the plan: memory of each device over time against its budget, and "
                        "what is moved when."},
        {.name = "overlay",
                .kind = OPT_STR,
                .offset = offsetof(plan_opts, overlay),
                .arg = "TRACE",
                .help = "Show what really happened beside the plan: a file of 'say --trace'. Give "
                        "the "
                        "--prompt and --frames of that run ('say --stats' has them)."},
};

static const opt_rule rules[] = {PLACE_OPTION_RULES};

const opt_command cmd_plan_table = {
        .name = "plan",
        .summary = "show what a request would take on which device when",
        .synopsis = "-m MODEL [--vram BYTES] [--device NAME] [--policy POLICY] [--frames N]\n"
                    "-m MODEL ... [--json] [--svg FILE] [--overlay TRACE]",
        .about = "Plans a request before anything is loaded: for each phase and device the memory "
                 "for weights, KV cache and computing, what is moved, and how long that takes. It "
                 "reads the model's header alone, and a device that is not there is stood in for "
                 "by --vram. If the plan does not fit, the message names the smallest budget that "
                 "does, and the exit status is that of a budget that is too small.",
        .opts = defs,
        .n_opts = sizeof defs / sizeof defs[0],
        .rules = rules,
        .n_rules = sizeof rules / sizeof rules[0],
};

/* A plan, what it is compared with, and the lines that say where its numbers come from. */
typedef struct plan_run {
    const plan_opts *opts;
    const opt_result *line;
    plan_speeds speeds;
    s2_plan *plan;
    plan_view view;
    plan_actual actual;
    bool has_actual;
    plan_source sources[SOURCES_MAX];
    char lines[LINES_MAX][2][LINE_BYTES];
    size_t n_lines;
} plan_run;

static void show_message(void *ud, sl_log_level level, const char *msg)
{
    (void)ud;
    if (level <= SL_LOG_WARN) {
        report_warning(cmd_plan_table.name, "%s", msg);
    }
}

static void add_source(plan_run *run, const char *what, const char *from)
{
    if (run->view.n_sources < SOURCES_MAX) {
        run->sources[run->view.n_sources] = (plan_source){what, from};
        run->view.n_sources++;
    }
}

static void add_place_source(plan_run *run, const s2_place *place)
{
    if (run->n_lines == LINES_MAX) {
        return;
    }
    char *what = run->lines[run->n_lines][0];
    char *from = run->lines[run->n_lines][1];
    run->n_lines++;
    snprintf(what, LINE_BYTES, "budget of %.90s", place->name);
    snprintf(from, LINE_BYTES, "%.60s%s", place->budget_source,
            place->is_stand_in ? "; a stand-in, this machine has no such device" : "");
    add_source(run, what, from);
}

static void list_sources(plan_run *run)
{
    const s2_placement *placement = s2_plan_placement(run->plan);
    run->n_lines = 0;
    run->view.n_sources = 0;
    add_source(run, "weights", "sizes of the tensors in the GGUF, as the devices align them");
    add_source(run, "kv, compute", "the graphs of such a request, laid out without computing");
    for (size_t i = 1; i < s2_placement_n_places(placement); i++) {
        add_place_source(run, s2_placement_place(placement, i));
    }
    add_source(run, "links", run->speeds.link_from ? run->speeds.link_from : "not known: --link");
    add_source(run, "computing",
            run->speeds.frame_from ? run->speeds.frame_from : "not known: --frame-ms");
    run->view.sources = run->sources;
}

static int make(plan_run *run, sl_error *reterr)
{
    const plan_opts *opts = run->opts;
    s2_plan_free(&run->plan);
    const s2_plan_opts popts = {
            .model_path = opts->model,
            .place = place_options_get(&opts->place, run->line),
            .n_threads = (uint32_t)opts->threads,
            .n_prompt = (uint32_t)opts->prompt,
            .n_frames = (uint32_t)opts->frames,
            .begins_with_voice = opts->recording,
            .wants_sound_early = opts->stream,
            .link_bytes_per_s = run->speeds.link_bytes_per_s,
            .frame_seconds = run->speeds.frame_seconds,
            .log = {show_message, NULL},
    };
    int r = s2_plan_make(&popts, &run->plan, reterr);
    if (r < 0) {
        return r;
    }
    uint32_t n_frames = s2_plan_n_frames(run->plan);
    run->view = (plan_view){.request = s2_plan_request(run->plan),
            .plan = s2_plan_solved(run->plan),
            .model = opts->model,
            .n_frames = n_frames,
            .speech_s = n_frames * s2_plan_frame_sound_s(run->plan)};
    list_sources(run);
    return 0;
}

static int read_trace(plan_run *run, sl_error *reterr)
{
    plan_actual_done(&run->actual);
    int r = plan_actual_read(run->opts->overlay, &run->view, &run->actual, reterr);
    run->has_actual = r >= 0;
    return r;
}

/* Speeds that nobody gave are those of the trace: the plan is then made once more with them. */
static int take_trace(plan_run *run, sl_error *reterr)
{
    int r = read_trace(run, reterr);
    bool has_speeds = run->speeds.link_bytes_per_s > 0 && run->speeds.frame_seconds > 0;
    if (r < 0 || has_speeds) {
        return r;
    }
    plan_speeds_measure(&run->speeds, &run->actual, run->view.n_frames);
    r = make(run, reterr);
    return r < 0 ? r : read_trace(run, reterr);
}

static int print_json(const plan_run *run, sl_error *reterr)
{
    sl__json j = {0};
    plan_put_json(&run->view, run->has_actual ? &run->actual : NULL, &j);
    return report_json(&j, reterr);
}

static int show(const plan_run *run, sl_error *reterr)
{
    const plan_opts *opts = run->opts;
    const plan_actual *actual = run->has_actual ? &run->actual : NULL;
    int r = 0;
    if (opts->json) {
        r = print_json(run, reterr);
    } else if (!opts->svg || strcmp(opts->svg, "-") != 0) {
        plan_print_text(&run->view, actual, stdout);
    }
    if (r >= 0 && opts->svg) {
        r = plan_svg_write(&run->view, actual, opts->svg, reterr);
    }
    return r < 0 ? r : sl_plan_check(run->view.plan, reterr);
}

static int run_plan(plan_run *run, sl_error *reterr)
{
    const plan_opts *opts = run->opts;
    double of_sim = plan_speeds_of_sim(opts->place.device);
    if (opts->link > 0) {
        run->speeds.link_bytes_per_s = (double)opts->link;
        run->speeds.link_from = "given by --link";
    } else if (of_sim > 0) {
        run->speeds.link_bytes_per_s = of_sim;
        run->speeds.link_from = "link of the simulation";
    }
    if (opts->frame_ms > 0) {
        run->speeds.frame_seconds = (double)opts->frame_ms / 1000;
        run->speeds.frame_from = "given by --frame-ms";
    }
    int r = make(run, reterr);
    if (r >= 0 && opts->overlay) {
        r = take_trace(run, reterr);
    }
    return r < 0 ? r : show(run, reterr);
}

static int check_line(const plan_opts *opts)
{
    const file_role roles[] = {
            {"--model", opts->model, false},
            {"--overlay", opts->overlay, false},
            {"--svg", opts->svg, true},
    };
    if (!opts->model) {
        return report_usage(cmd_plan_table.name, "no model; name one with -m MODEL.gguf");
    }
    if (opts->json && opts->svg && strcmp(opts->svg, "-") == 0) {
        return report_usage(cmd_plan_table.name,
                "--json and --svg - both write to standard output; name a file for one of them");
    }
    return file_roles_check(cmd_plan_table.name, roles, sizeof roles / sizeof roles[0]);
}

int cmd_plan(int argc, char **argv)
{
    plan_opts opts = {0};
    opt_result line;
    sl_error err = {0};
    int status = opt_parse(&cmd_plan_table, argc, argv, &opts, &line);
    if (status == OPT_RUN) {
        status = check_line(&opts);
    }
    if (status != OPT_RUN) {
        return status;
    }
    plan_run run = {.opts = &opts, .line = &line};
    int r = run_plan(&run, &err);
    plan_actual_done(&run.actual);
    s2_plan_free(&run.plan);
    return r < 0 ? report_error(cmd_plan_table.name, &err) : 0;
}
