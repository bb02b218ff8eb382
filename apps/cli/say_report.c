#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/status.h"
#include "os/os_out_file.h"
#include "os/os_process.h"
#include "say.h"

static double seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}

static double audio_seconds(const say_report *r)
{
    return (double)r->n_samples / r->info.sample_rate;
}

/* Seconds of work for a second of sound, loading and reading of the voice not counted. */
static double real_time_factor(const say_report *r)
{
    return r->n_samples > 0 ? seconds(r->stats.total_ns) / audio_seconds(r) : 0.0;
}

static double ms_per_frame(const say_report *r, uint64_t ns)
{
    return r->stats.n_frames > 0 ? (double)ns * 1e-6 / r->stats.n_frames : 0.0;
}

static void put_report(sl__json *j, const say_report *r)
{
    const s2_stats *s = &r->stats;
    sl__json_put_f64(j, "audio_s", audio_seconds(r));
    sl__json_put_f64(j, "wall_s", seconds(r->wall_ns));
    sl__json_put_f64(j, "load_s", seconds(r->load_ns));
    sl__json_put_f64(j, "voice_s", seconds(r->voice_ns));
    sl__json_put_f64(j, "first_audio_s", seconds(r->first_audio_ns));
    sl__json_put_f64(j, "synthesis_s", seconds(s->total_ns));
    sl__json_put_f64(j, "synthesis_first_audio_s", seconds(s->first_audio_ns));
    sl__json_put_f64(j, "rtf", real_time_factor(r));
    sl__json_put_f64(j, "prefill_s", seconds(s->prefill_ns));
    sl__json_put_f64(j, "slow_ms_per_frame", ms_per_frame(r, s->slow_ns));
    sl__json_put_f64(j, "fast_ms_per_frame", ms_per_frame(r, s->fast_ns));
    sl__json_put_f64(j, "sample_ms_per_frame", ms_per_frame(r, s->sample_ns));
    sl__json_put_f64(j, "codec_ms_per_frame", ms_per_frame(r, s->decode_ns));
    sl__json_put_u64(j, "frames", s->n_frames);
    sl__json_put_u64(j, "segments", s->n_segments);
    sl__json_put_u64(j, "prompt_columns", s->n_prompt_columns);
    sl__json_put_cstr(j, "end", s2_end_name(s->end));
    sl__json_put_bool(j, "truncated", s->end == S2_END_LIMIT);
    sl__json_put_u64(j, "seed", r->seed);
    sl__json_put_u64(j, "threads", r->info.n_threads);
    sl__json_put_u64(j, "sample_rate", r->info.sample_rate);
    sl__json_put_u64(j, "kv_bytes", s->kv_bytes);
    sl__json_put_u64(j, "compute_bytes", s->compute_bytes);
    sl__json_put_u64(j, "peak_rss_bytes", sl__process_rss().peak_bytes);
    sl__json_put_u64(j, "peak_anon_bytes", r->peak_anon_bytes);
}

int say_write_stats(const char *path, const say_report *report, sl_error *reterr)
{
    sl__json j = {0};
    sl__out_file *file = NULL;
    size_t n = 0;
    sl__json_object(&j);
    put_report(&j, report);
    sl__json_end(&j);
    const char *text = sl__json_text(&j, &n);
    int r = text ? sl__out_file_open(path, 0666, &file, reterr)
                 : sl__fail(reterr, SL_ENOMEM, "out of memory while writing statistics");
    if (r == 0) {
        r = sl__out_file_write(file, text, n, reterr);
    }
    if (r == 0) {
        r = sl__out_file_write(file, "\n", 1, reterr);
    }
    if (r == 0) {
        r = sl__out_file_commit(&file, reterr);
    }
    sl__out_file_discard(&file);
    sl__json_done(&j);
    return r;
}

void say_print_summary(const say_report *report, const char *output)
{
    char quoted[256];
    fprintf(stderr,
            "%s: %.2f s of audio in %.2f s (%.2f of real time), first audio after %.2f s, "
            "peak memory %.0f MB, seed %llu%s\n",
            sl__quote(quoted, sizeof quoted, output, strlen(output)), audio_seconds(report),
            seconds(report->stats.total_ns), real_time_factor(report),
            seconds(report->first_audio_ns), (double)sl__process_rss().peak_bytes / 1e6,
            (unsigned long long)report->seed, report->stats.end == S2_END_LIMIT ? ", cut off" : "");
}
