/*
 * sluice say: text to an audio file or stream.
 *
 * The output is opened before anything is computed, so that a folder that cannot be written shows at once,
 * and appears under its name only when it is complete. An interrupt ends the speech at the next node of the
 * graph: what was spoken until then is a valid, shorter file.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/byte_text.h"
#include "base/mem.h"
#include "base/status.h"
#include "commands.h"
#include "interrupt.h"
#include "npy.h"
#include "os/os_clock.h"
#include "os/os_process.h"
#include "os/os_thread.h"
#include "report.h"
#include "say.h"
#include "tty.h"
#include "voice_dir.h"

/* Letters and digits that are spoken in a second, for the estimate of what is left. */
#define LETTERS_PER_SECOND 14.0

static const char *const format_names[] = {"wav", "flac", "mp3", "opus", "pcm", NULL};

#define STR(n, s, field, a, h)                                                                     \
    {                                                                                              \
        .name = (n), .short_name = (s), .kind = OPT_STR, .offset = offsetof(say_opts, field),      \
        .arg = (a), .help = (h)                                                                    \
    }
#define FLAG(n, s, field, h)                                                                       \
    {                                                                                              \
        .name = (n), .short_name = (s), .kind = OPT_FLAG, .offset = offsetof(say_opts, field),     \
        .help = (h)                                                                                \
    }
#define NUM(n, k, field, a, h, d, lo, hi)                                                          \
    {                                                                                              \
        .name = (n), .kind = (k), .offset = offsetof(say_opts, field), .arg = (a), .help = (h),    \
        .def = (d), .min = (lo), .max = (hi)                                                       \
    }

static const opt_def defs[] = {
        ENGINE_OPTION_ROWS(say_opts, engine),
        STR("file", 'f', file, "FILE", "Read the text from a file; '-' is standard input."),
        STR("output", 'o', output, "FILE", "Where the audio goes; '-' is standard output."),
        STR("voice", 0, voice, "NAME|FILE", "A saved voice by name, or a .s2voice file."),
        STR("voice-dir", 0, voice_dir, "DIR", VOICE_DIR_HELP),
        STR("ref-audio", 0, ref_audio, "FILE",
                "Speak like this recording (WAV, FLAC, Ogg or MP3, up to two minutes)."),
        STR("ref-text", 0, ref_text, "TEXT", "What is said in the recording, exactly."),
        STR("save-voice", 0, save_voice, "NAME", "Save the voice of --ref-audio under a name."),
        NUM("seed", OPT_U64, seed, "N", "Seed of the random choices; default: another each time.",
                NULL, 0, 0),
        NUM("temperature", OPT_F32, temperature, "X", "Liveliness; 0 takes the best choice.", "0.8",
                0, 100),
        NUM("top-p", OPT_F32, top_p, "X", "Choose among the likeliest that make up this share.",
                "0.8", 0, 1),
        NUM("top-k", OPT_I32, top_k, "N", "Choose among the N likeliest; 0 is no limit.", "30", 0,
                1 << 20),
        FLAG("greedy", 0, greedy, "The same as --temperature 0 --top-k 1."),
        NUM("max-frames", OPT_I32, max_frames, "N",
                "Longest speech of one piece of the text, in frames.", "1024", 1, 1 << 24),
        NUM("min-frames", OPT_I32, min_frames, "N", "Speech does not end before.", "0", 0, 1 << 24),
        NUM("segment", OPT_I32, segment_bytes, "BYTES",
                "Longer text is spoken in pieces, cut at sentence ends; 0 is never.", "400", 0,
                1 << 24),
        FLAG("stream", 0, stream, "Hand frames to the output as they come; '-o -' implies it."),
        {.name = "format",
                .kind = OPT_CHOICE,
                .offset = offsetof(say_opts, format),
                .arg = "FORMAT",
                .help = "Format of the output; default: by the name of the file, else wav.",
                .choices = format_names},
        NUM("sample-rate", OPT_I32, sample_rate, "HZ",
                "Sample rate of the output; default: the model's.", "0", 0, 768000),
        STR("codes-out", 0, codes_out, "FILE",
                "Write the codes too: .npy, int32, one row a codebook."),
        STR("codes-in", 0, codes_in, "FILE", "Decode these codes instead of speaking a text."),
        STR("trace", 0, trace, "FILE",
                "Write what moved when, as Chrome trace JSON (opens in Perfetto)."),
        STR("stats", 0, stats, "FILE", "Write the figures of the run as JSON."),
        FLAG("allow-control-tokens", 0, allow_control_tokens,
                "Let <|...|> in the text be the tokens of that name."),
        FLAG("quiet", 'q', quiet, "Print nothing but errors."),
        FLAG("verbose", 'v', verbose, "Print what is being done."),
};

static const opt_rule rules[] = {
        {OPT_EXCLUDES, "voice", "ref-audio"},
        {OPT_EXCLUDES, "greedy", "temperature"},
        {OPT_EXCLUDES, "greedy", "top-k"},
        {OPT_EXCLUDES, "quiet", "verbose"},
        {OPT_EXCLUDES, "codes-in", "file"},
        {OPT_EXCLUDES, "codes-in", "voice"},
        {OPT_EXCLUDES, "codes-in", "ref-audio"},
        {OPT_EXCLUDES, "codes-in", "codes-out"},
        {OPT_EXCLUDES, "codes-in", "seed"},
        {OPT_EXCLUDES, "codes-in", "temperature"},
        {OPT_EXCLUDES, "codes-in", "top-p"},
        {OPT_EXCLUDES, "codes-in", "top-k"},
        {OPT_EXCLUDES, "codes-in", "greedy"},
        {OPT_EXCLUDES, "codes-in", "max-frames"},
        {OPT_EXCLUDES, "codes-in", "min-frames"},
        {OPT_EXCLUDES, "codes-in", "segment"},
        {OPT_EXCLUDES, "codes-in", "allow-control-tokens"},
        {OPT_REQUIRES, "ref-audio", "ref-text"},
        {OPT_REQUIRES, "ref-text", "ref-audio"},
        {OPT_REQUIRES, "save-voice", "ref-audio"},
        PLACE_OPTION_RULES,
};

const opt_command cmd_say_table = {
        .name = "say",
        .summary = "speak a text",
        .synopsis = "-m MODEL.gguf [OPTIONS] TEXT -o FILE\n-m MODEL.gguf [OPTIONS] -f FILE -o FILE",
        .about = "Speaks a text into an audio file, or to standard output while it is made.",
        .operand = "TEXT",
        .min_operands = 0,
        .max_operands = 1,
        .opts = defs,
        .n_opts = sizeof defs / sizeof defs[0],
        .rules = rules,
        .n_rules = sizeof rules / sizeof rules[0],
};

/* A run in flight. */
typedef struct say_run {
    const say_opts *opts;
    s2_engine *engine;
    s2_audio_writer *writer;
    bool is_stream;
    int32_t *codes; /* for --codes-out, frame major */
    size_t codes_cap;
    uint32_t n_frames;
    double expected_seconds; /* of audio, a guess from the letters; 0 = unknown */
    uint64_t begin_ns;       /* of the command */
    uint64_t speak_ns;       /* when speaking began */
    say_report report;
    sl__mutex terminal; /* for the progress: those who move weights log too */
    tty_progress progress;
    sl_error err; /* of a callback */
} say_run;

static bool should_stop(void *ud)
{
    (void)ud;
    return interrupt_seen();
}

static void log_line(void *ud, sl_log_level level, const char *msg)
{
    say_run *run = ud;
    bool wanted = run->opts->verbose || (level <= SL_LOG_WARN && !run->opts->quiet);
    if (!wanted) {
        return;
    }
    sl__mutex_lock(&run->terminal);
    tty_progress_clear(&run->progress);
    if (level == SL_LOG_WARN) {
        report_warning("say", "%s", msg);
    } else {
        fprintf(stderr, "sluice say: %s\n", msg);
    }
    sl__mutex_unlock(&run->terminal);
}

static void clear_progress(say_run *run)
{
    sl__mutex_lock(&run->terminal);
    tty_progress_clear(&run->progress);
    sl__mutex_unlock(&run->terminal);
}

static void show_progress(say_run *run)
{
    const s2_engine_info *info = &run->report.info;
    double audio = (double)run->report.n_samples / info->sample_rate;
    double spent = (double)(sl__now_ns() - run->speak_ns) * 1e-9;
    double rtf = spent / audio;
    double left = (run->expected_seconds - audio) * rtf;
    sl__mutex_lock(&run->terminal);
    if (left > 0) {
        tty_progress_show(&run->progress,
                "%u frames, %.1f s of audio, %.2f of real time, ~%.0f s left", run->n_frames, audio,
                rtf, left);
    } else {
        tty_progress_show(&run->progress, "%u frames, %.1f s of audio, %.2f of real time",
                run->n_frames, audio, rtf);
    }
    sl__mutex_unlock(&run->terminal);
}

static int take_samples(void *ud, const float *samples, size_t n)
{
    say_run *run = ud;
    if (run->report.n_samples == 0) {
        run->report.first_audio_ns = sl__now_ns() - run->begin_ns;
    }
    run->report.n_samples += n;
    /* A file of /proc is read for it, so only for those who want to know. */
    if (run->opts->stats) {
        uint64_t anon = sl__process_rss().anon_bytes;
        run->report.peak_anon_bytes =
                anon > run->report.peak_anon_bytes ? anon : run->report.peak_anon_bytes;
    }
    if (run->writer && s2_audio_writer_write(run->writer, samples, n, &run->err) < 0) {
        return 1;
    }
    if (run->writer && run->is_stream && s2_audio_writer_flush(run->writer, &run->err) < 0) {
        return 1;
    }
    show_progress(run);
    return interrupt_seen();
}

static int take_frame(void *ud, const int32_t *codes)
{
    say_run *run = ud;
    size_t n_books = run->report.info.n_codebooks;
    if (run->opts->codes_out) {
        size_t need = ((size_t)run->n_frames + 1) * n_books;
        if (!sl__grow((void **)&run->codes, &run->codes_cap, need, sizeof *run->codes)) {
            sl__fail_nomem(&run->err, need * sizeof *run->codes, "codes");
            return 1;
        }
        memcpy(run->codes + run->n_frames * n_books, codes, n_books * sizeof *codes);
    }
    run->n_frames++;
    return 0;
}

/* By --format, else by the extension; a name without one, or with one of no known format, gives WAV. */
static s2_audio_format choose_format(const say_opts *opts, const opt_result *line)
{
    s2_audio_format format = S2_AUDIO_WAV;
    if (opt_given(line, "format")) {
        return (s2_audio_format)opts->format;
    }
    const char *slash = strrchr(opts->output, '/');
    const char *dot = strrchr(slash ? slash : opts->output, '.');
    if (dot && !s2_audio_format_parse(dot + 1, &format) && !opts->quiet) {
        char quoted[64];
        report_warning("say", "--output ends in '%s', which names no format; writing wav",
                sl__quote(quoted, sizeof quoted, dot, strlen(dot)));
    }
    return format;
}

static int open_output(say_run *run, const opt_result *line, sl_error *reterr)
{
    const say_opts *opts = run->opts;
    if (!opts->output) {
        return SL_OK;
    }
    s2_audio_writer_opts wopts = {
            .path = opts->output,
            .format = choose_format(opts, line),
            .in_rate = run->report.info.sample_rate,
            .out_rate = (uint32_t)opts->sample_rate,
    };
    run->is_stream = opts->stream || strcmp(opts->output, "-") == 0;
    return s2_audio_writer_open(&wopts, &run->writer, reterr);
}

static double guess_seconds(const say_input *in)
{
    size_t n = 0;
    for (size_t i = 0; i < in->text_bytes; i++) {
        unsigned char c = (unsigned char)in->text[i];
        n += c > ' ' && (c & 0xC0) != 0x80;
    }
    return (double)n / LETTERS_PER_SECOND;
}

static int speak(say_run *run, const say_input *in, sl_error *reterr)
{
    const say_opts *opts = run->opts;
    s2_speak_opts s = s2_speak_defaults();
    s.text = in->text;
    s.text_bytes = in->text_bytes;
    s.voices = in->has_voice ? &in->voice : NULL;
    s.n_voices = in->has_voice ? 1 : 0;
    s.temperature = opts->greedy ? 0.0f : opts->temperature;
    s.top_p = opts->top_p;
    s.top_k = opts->greedy ? 1 : opts->top_k;
    s.seed = run->report.seed;
    s.max_frames = (uint32_t)opts->max_frames;
    s.min_frames = (uint32_t)opts->min_frames;
    s.segment_bytes = (uint32_t)opts->segment_bytes;
    s.allow_control_tokens = opts->allow_control_tokens;
    s.wants_sound_early = run->is_stream;
    s.on_samples = take_samples;
    s.on_frame = take_frame;
    s.ud = run;
    run->expected_seconds = guess_seconds(in);
    return s2_engine_speak(run->engine, &s, &run->report.stats, reterr);
}

/* Speaks or decodes; then completes the files, or none of them. */
static int make_audio(say_run *run, const say_input *in, sl_error *reterr)
{
    const say_opts *opts = run->opts;
    run->speak_ns = sl__now_ns();
    int r = in->codes ? s2_engine_decode(run->engine, in->codes, in->n_codes_frames, take_samples,
                                run, &run->report.stats, reterr)
                      : speak(run, in, reterr);
    clear_progress(run);
    if (r == 0 && run->err.code < 0) {
        *reterr = run->err;
        r = run->err.code;
    }
    if (r == 0 && run->report.n_samples == 0) {
        r = sl__fail(reterr, SL_ECANCELLED, "interrupted before the first sound");
    }
    if (r == 0 && run->writer) {
        r = s2_audio_writer_finish(&run->writer, reterr);
    }
    if (r == 0 && opts->codes_out) {
        r = npy_write_codes(
                opts->codes_out, run->codes, run->n_frames, run->report.info.n_codebooks, reterr);
    }
    return r;
}

/* Another seed each time: nothing secret, only different. */
static uint64_t any_seed(void)
{
    uint64_t x = sl__now_ns() ^ ((uint64_t)getpid() << 40);
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    return x >> 32;
}

static int show_populating(void *ud, uint64_t done_bytes, uint64_t total_bytes)
{
    say_run *run = ud;
    char part[32];
    char all[32];
    sl__mutex_lock(&run->terminal);
    tty_progress_show(&run->progress, "reading weights, %s of %s",
            sl__byte_text(done_bytes, part, sizeof part),
            sl__byte_text(total_bytes, all, sizeof all));
    sl__mutex_unlock(&run->terminal);
    return 0;
}

static int open_engine(say_run *run, const opt_result *line, sl_error *reterr)
{
    s2_engine_opts eopts =
            engine_options_get(&run->opts->engine, line, (sl_logger){.fn = log_line, .ud = run});
    eopts.should_stop = should_stop;
    eopts.expected_frames = (uint32_t)run->opts->max_frames;
    eopts.expects_voice = run->opts->ref_audio != NULL;
    eopts.expects_speech = run->opts->output || run->opts->codes_out;
    eopts.expects_speech = eopts.expects_speech && !run->opts->codes_in;
    eopts.memory.progress = (sl_progress){show_populating, run};
    int r = s2_engine_open(&eopts, &run->engine, reterr);
    run->report.load_ns = sl__now_ns() - run->begin_ns;
    if (r == 0) {
        run->report.info = s2_engine_get_info(run->engine);
    }
    return r;
}

static int run_command(say_run *run, const opt_result *line, say_input *in, sl_error *reterr)
{
    const say_opts *opts = run->opts;
    int r = say_read_text(opts, line, in, reterr);
    if (r == 0) {
        r = open_engine(run, line, reterr);
    }
    if (r == 0) {
        r = open_output(run, line, reterr);
    }
    uint64_t voice_begin_ns = sl__now_ns();
    if (r == 0) {
        r = say_read_voice(opts, run->engine, in, reterr);
    }
    run->report.voice_ns = sl__now_ns() - voice_begin_ns;
    if (r == 0 && (in->text || in->codes)) {
        r = make_audio(run, in, reterr);
    }
    run->report.wall_ns = sl__now_ns() - run->begin_ns;
    if (r == 0 && opts->stats) {
        r = say_write_stats(opts->stats, &run->report, reterr);
    }
    /* Of a failure too: that is when one wants to see it. */
    if (run->engine && opts->trace) {
        sl_error err = {0};
        int written = sl_residency_write_trace(s2_engine_residency(run->engine), opts->trace, &err);
        if (r == 0 && written < 0) {
            *reterr = err;
            r = written;
        }
    }
    return r;
}

int cmd_say(int argc, char **argv)
{
    say_opts opts = {0};
    opt_result line;
    say_input in = {0};
    sl_error err = {0};

    int status = opt_parse(&cmd_say_table, argc, argv, &opts, &line);
    if (status == OPT_RUN) {
        status = say_check_line(&opts, &line);
    }
    if (status != OPT_RUN) {
        return status;
    }
    say_run run = {.opts = &opts, .begin_ns = sl__now_ns(), .terminal = SL_MUTEX_INITIALIZER};
    run.report.seed = opt_given(&line, "seed") ? opts.seed : any_seed();
    tty_progress_init(&run.progress, stderr, opts.quiet);
    interrupt_catch();

    int r = run_command(&run, &line, &in, &err);
    clear_progress(&run);
    if (r < 0) {
        status = report_error("say", &err);
    } else {
        if (run.report.n_samples > 0 && !opts.quiet) {
            say_print_summary(&run.report, opts.output ? opts.output : opts.codes_out);
        }
        status = interrupt_seen() ? sl_err_exit_status(SL_ECANCELLED) : 0;
    }
    s2_audio_writer_abort(&run.writer);
    s2_engine_close(&run.engine);
    say_input_done(&in);
    sl__free(run.codes);
    return status;
}
