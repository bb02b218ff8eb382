#include "fake_speaker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "os/os_thread.h"

static void enter(fake_speaker *f)
{
    int n = atomic_fetch_add(&f->n_inside, 1) + 1;
    if (n > atomic_load(&f->n_most_inside)) {
        atomic_store(&f->n_most_inside, n);
    }
}

static void leave(fake_speaker *f)
{
    atomic_fetch_sub(&f->n_inside, 1);
}

/* Waits like work: asks often whether to stop. True if it was stopped. */
static bool work_for(const fake_speaker *f, long ms)
{
    for (long i = 0; i < ms; i++) {
        if (f->should_stop && f->should_stop(f->stop_ud)) {
            return true;
        }
        sl__sleep_ns(1000000);
    }
    return f->should_stop && f->should_stop(f->stop_ud);
}

/* Waits for the gate; true if it was stopped meanwhile. */
static bool wait_at_gate(const fake_speaker *f, long i_frame)
{
    bool is_stopped = false;
    while (atomic_load(&f->gate) <= i_frame && !is_stopped) {
        is_stopped = work_for(f, 1);
    }
    return is_stopped;
}

static int fake_open(void *ud, sl_error *reterr)
{
    fake_speaker *f = ud;
    sl__sleep_ns((uint64_t)atomic_load(&f->open_ms) * 1000000);
    int r = atomic_load(&f->open_result);
    if (r < 0) {
        return sl__fail(reterr, r, "the fake does not open");
    }
    atomic_store(&f->is_open, 1);
    return 0;
}

static void fake_close(void *ud)
{
    fake_speaker *f = ud;
    atomic_store(&f->is_open, 0);
}

static s2_engine_info fake_info(void *ud)
{
    (void)ud;
    return (s2_engine_info){.sample_rate = FAKE_RATE,
            .frame_samples = FAKE_FRAME,
            .n_codebooks = 4,
            .codebook_size = 64,
            .n_ctx = 1024,
            .n_threads = 1};
}

static void fake_set_stop(void *ud, bool (*should_stop)(void *stop_ud), void *stop_ud)
{
    fake_speaker *f = ud;
    f->should_stop = should_stop;
    f->stop_ud = stop_ud;
}

/* The number behind "name=" in the text, or `otherwise`. */
static long word(const char *text, size_t n, const char *name, long otherwise)
{
    size_t n_name = strlen(name);
    for (size_t i = 0; i + n_name < n; i++) {
        if (memcmp(text + i, name, n_name) == 0 && text[i + n_name] == '=') {
            long v = 0;
            for (size_t k = i + n_name + 1; k < n && text[k] >= '0' && text[k] <= '9'; k++) {
                v = 10 * v + (text[k] - '0');
            }
            return v;
        }
    }
    return otherwise;
}

float fake_noise(uint64_t seed, uint32_t voice_frames, uint64_t i)
{
    uint64_t x = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + voice_frames * UINT64_C(0xc2b2ae35) +
                 i * UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    x ^= x >> 33;
    return (float)((double)(x >> 40) / (double)(1 << 24) - 0.5);
}

static void make_frame(const s2_speak_opts *opts, bool is_noise, uint64_t i_frame, float *samples)
{
    uint32_t voice = opts->n_voices > 0 ? opts->voices[0].n_frames : 0;
    for (size_t i = 0; i < FAKE_FRAME; i++) {
        uint64_t at = i_frame * FAKE_FRAME + i;
        samples[i] = is_noise ? fake_noise(opts->seed, voice, at)
                              : (float)(0.5 * sin(2.0 * 3.14159265358979 * 1000.0 * (double)at /
                                                      FAKE_RATE));
    }
}

static int fake_speak(void *ud, const s2_speak_opts *opts, s2_stats *ret_stats, sl_error *reterr)
{
    fake_speaker *f = ud;
    const char *text = opts->text;
    size_t n = opts->text_bytes;
    long n_frames = word(text, n, "frames", 4);
    long delay_ms = word(text, n, "delay_ms", 0);
    long fail = word(text, n, "fail", -1);
    bool is_gated = word(text, n, "gated", 0) != 0;
    bool is_noise = n >= 5 && strncmp(text, "noise", 5) == 0;
    float *samples = malloc(FAKE_FRAME * sizeof *samples);
    int32_t codes[4] = {0};
    s2_stats stats = {.n_segments = 1, .end = S2_END_SPEECH};
    int r = 0;
    enter(f);
    atomic_fetch_add(&f->n_speaks, 1);
    atomic_store(&f->pause_ms, opts->pause_ms);
    atomic_store(&f->level, 0);
    bool is_stopped = work_for(f, word(text, n, "prefill_ms", 0));
    for (long i = 0; i < n_frames && r == 0 && !is_stopped && samples; i++) {
        is_stopped = work_for(f, delay_ms) || (is_gated && wait_at_gate(f, i));
        if (i == fail) {
            r = sl__fail(reterr, SL_EDEVICE, "the fake failed at frame %ld as it was told", i);
        } else if (!is_stopped) {
            make_frame(opts, is_noise, (uint64_t)i, samples);
            atomic_fetch_add(&f->n_frames, 1);
            stats.n_frames++;
            is_stopped = opts->on_frame(opts->ud, codes) != 0 ||
                         opts->on_samples(opts->ud, samples, FAKE_FRAME) != 0;
        }
    }
    free(samples);
    stats.end = is_stopped ? S2_END_STOPPED : S2_END_SPEECH;
    *ret_stats = stats;
    leave(f);
    return r;
}

/* A voice of as many frames as the recording has. */
static int fake_make_voice(void *ud, const float *samples, size_t n_samples, const char *text,
        s2_voice *ret_voice, sl_error *reterr)
{
    fake_speaker *f = ud;
    uint32_t n_frames = (uint32_t)(n_samples / FAKE_FRAME) + 1;
    (void)samples;
    enter(f);
    bool is_stopped = work_for(f, word(text, strlen(text), "delay_ms", 0));
    leave(f);
    if (is_stopped) {
        return sl__fail(reterr, SL_ECANCELLED, "stopped");
    }
    atomic_fetch_add(&f->n_voices, 1);
    *ret_voice = (s2_voice){.n_codebooks = 4,
            .n_frames = n_frames,
            .sample_rate = FAKE_RATE,
            .codebook_size = 64,
            .text = sl__strndup(text, strlen(text)),
            .codes = sl__alloc(4 * (size_t)n_frames, sizeof(int32_t))};
    return 0;
}

static int fake_sleep(void *ud, unsigned level, sl_error *reterr)
{
    fake_speaker *f = ud;
    (void)reterr;
    enter(f);
    atomic_store(&f->level, (int)level);
    atomic_fetch_add(&f->n_sleeps, 1);
    leave(f);
    return 0;
}

static void fake_status(void *ud, speaker_status *ret_status)
{
    fake_speaker *f = ud;
    *ret_status = (speaker_status){
            .n_units = 1,
            .units = {{.name = "slow",
                    .state = atomic_load(&f->level) < 2 ? "resident" : "absent",
                    .wanted = "GPU",
                    .actual = atomic_load(&f->level) < 2 ? "GPU" : "",
                    .n_bytes = 1000,
                    .n_loads = 1,
                    .route = "memcpy",
                    .load_bytes_per_s = 46.3e9,
                    .load_stalls = 2}},
            .n_places = 1,
            .places =
                    {{.name = "GPU", .budget_bytes = 5000, .used_bytes = 1000, .peak_bytes = 2000}},
    };
}

static void fake_describe(void *ud, sl__json *json)
{
    fake_speaker *f = ud;
    sl__json_key(json, "frames");
    sl__json_u64(json, (uint64_t)atomic_load(&f->n_frames));
}

speaker fake_speaker_get(fake_speaker *f)
{
    static const speaker_ops ops = {
            .open = fake_open,
            .close = fake_close,
            .info = fake_info,
            .set_stop = fake_set_stop,
            .speak = fake_speak,
            .make_voice = fake_make_voice,
            .sleep = fake_sleep,
            .status = fake_status,
            .describe = fake_describe,
    };
    return (speaker){.ops = &ops, .ud = f};
}
