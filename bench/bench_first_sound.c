/*
 * How much of a restore one waits for: time to the first sound of request after request, with weights that are kept on the
 * device, that leave it after each request, and that leave it when something else needs the room, in turn, in one process.
 *
 *   bench_first_sound MODEL.gguf [N [DEVICE...]]      N requests of each (default 9), devices as in `say`
 *
 * One CSV line a device: medians of the requests behind the first; keep while another engine restores the same bytes
 * (busy); the restore by itself (everything asked for and arrived, nothing computed); the share of it that swap hides,
 * 1 - (swap - keep) / restore, and the same against busy: a device in software copies with the processors and the memory
 * that compute, which a link of its own would not. Samples that differ between policies fail the program.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_support.h"
#include "os/os_clock.h"
#include "s2/engine.h"
#include "s2/units.h"
#include "sluice/residency.h"

#define TEXT       "The lock opens slowly, the water finds its level."
#define MAX_FRAMES 4
#define MAX_TIMES  100

enum {
    KEEP,
    SWAP,
    AUTO,
    N_SIDES
};

typedef struct times {
    double ms[MAX_TIMES];
    unsigned n;
} times;

typedef struct side {
    s2_engine *engine;
    times first_sound;
    times busy;    /* the same while something else is restored */
    uint64_t hash; /* of all samples of the last request */
} side;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(times *t)
{
    qsort(t->ms, t->n, sizeof t->ms[0], compare);
    return t->ms[t->n / 2];
}

static void add(times *t, uint64_t ns)
{
    if (t->n < MAX_TIMES) {
        t->ms[t->n] = (double)ns / 1e6;
        t->n++;
    }
}

static int on_samples(void *ud, const float *samples, size_t n)
{
    side *s = ud;
    const unsigned char *bytes = (const unsigned char *)samples;
    for (size_t i = 0; i < n * sizeof *samples; i++) {
        s->hash = (s->hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return 0;
}

static void open_side(side *s, const char *model, const char *device, sl_policy policy)
{
    sl_error err = {0};
    const s2_engine_opts opts = {.model_path = model,
            .place = {.device = device, .policy = policy, .decode = S2_DECODE_TOGETHER},
            .n_threads = 1, /* a simulated device copies with the others, and ggml's threads spin */
            .expected_frames = MAX_FRAMES};
    bench_ok(s2_engine_open(&opts, &s->engine, &err), &err);
}

static void speak(side *s, times *counted_or_null)
{
    sl_error err = {0};
    s2_stats stats = {0};
    s2_speak_opts opts = s2_speak_defaults();
    opts.text = TEXT;
    opts.text_bytes = strlen(TEXT);
    opts.max_frames = MAX_FRAMES;
    opts.min_frames = MAX_FRAMES;
    opts.wants_sound_early = true;
    opts.on_samples = on_samples;
    opts.ud = s;
    s->hash = UINT64_C(0xcbf29ce484222325);
    bench_ok(s2_engine_speak(s->engine, &opts, &stats, &err), &err);
    if (counted_or_null) {
        add(counted_or_null, stats.first_audio_ns);
    }
}

/* What speaking needs on the device. */
static const s2_unit_id needed[] = {S2_UNIT_SLOW, S2_UNIT_FAST, S2_UNIT_CODEC_DECODER};
#define N_NEEDED (sizeof needed / sizeof needed[0])

static void settle(side *s)
{
    sl_error err = {0};
    bench_ok(sl_residency_settle(s2_engine_residency(s->engine), NULL, &err), &err);
}

static void ask_for_all(side *s)
{
    for (size_t i = 0; i < N_NEEDED; i++) {
        sl_residency_prefetch(s2_engine_residency(s->engine), (size_t)needed[i]);
    }
}

static void send_all_away(side *s)
{
    settle(s);
    for (size_t i = 0; i < N_NEEDED; i++) {
        sl_residency_evict(s2_engine_residency(s->engine), (size_t)needed[i]);
    }
    settle(s);
}

/* From nothing to there, and away again. */
static void restore(side *s, times *t, uint64_t *ret_bytes)
{
    sl_error err = {0};
    sl_place_status place;
    settle(s);
    uint64_t begin_ns = sl__now_ns();
    ask_for_all(s);
    settle(s);
    add(t, sl__now_ns() - begin_ns);
    bench_ok(sl_residency_place_status(s2_engine_residency(s->engine), 1, &place, &err), &err);
    *ret_bytes = place.used[SL_MEM_WEIGHTS];
    send_all_away(s);
}

static void speak_beside_restore(side *s, side *other)
{
    settle(other);
    ask_for_all(other);
    speak(s, &s->busy);
    send_all_away(other);
}

static bool run_device(const char *model, const char *device, unsigned n)
{
    static const sl_policy policies[N_SIDES] = {
            [KEEP] = SL_POLICY_KEEP, [SWAP] = SL_POLICY_SWAP, [AUTO] = SL_POLICY_AUTO};
    side sides[N_SIDES] = {0};
    times moves = {0};
    uint64_t n_bytes = 0;
    bool is_same = true;
    for (int k = 0; k < N_SIDES; k++) {
        open_side(&sides[k], model, device, policies[k]);
    }
    for (unsigned i = 0; i <= n; i++) {
        for (int k = 0; k < N_SIDES; k++) {
            speak(&sides[k], i > 0 ? &sides[k].first_sound : NULL);
            is_same = is_same && sides[k].hash == sides[0].hash;
        }
        speak_beside_restore(&sides[KEEP], &sides[SWAP]);
    }
    for (unsigned i = 0; i < n; i++) {
        restore(&sides[SWAP], &moves, &n_bytes);
    }
    double keep_ms = median(&sides[KEEP].first_sound);
    double swap_ms = median(&sides[SWAP].first_sound);
    double auto_ms = median(&sides[AUTO].first_sound);
    double busy_ms = median(&sides[KEEP].busy);
    double move_ms = median(&moves);
    printf("\"%s\",%.2f,%.2f,%.2f,%.2f,%.2f,%.1f,%.3f,%.3f,%.3f,%s\n", device, keep_ms, swap_ms,
            auto_ms, busy_ms, move_ms, (double)n_bytes / 1e6, 1.0 - (swap_ms - keep_ms) / move_ms,
            1.0 - (swap_ms - busy_ms) / move_ms, swap_ms / keep_ms, is_same ? "same" : "different");
    for (int k = 0; k < N_SIDES; k++) {
        s2_engine_close(&sides[k].engine);
    }
    return is_same;
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {
            "sim:1G,link=12G,keep-pages=yes", "sim:1G,link=50G,keep-pages=yes"};
    bool is_good = true;
    if (argc < 2) {
        fprintf(stderr, "bench_first_sound MODEL.gguf [N [DEVICE...]]\n");
        return 2;
    }
    unsigned n = bench_number(argc, argv, 2, 9);
    bench_print_machine();
    printf("# bench_first_sound %s %u\n", argv[1], n);
    printf("device,keep_ms,swap_ms,auto_ms,busy_ms,restore_ms,restored_mb,hidden,hidden_of_busy,"
           "swap_per_keep,samples\n");
    for (int i = 3; i < argc; i++) {
        is_good = run_device(argv[1], argv[i], n) && is_good;
    }
    for (size_t i = 0; argc <= 3 && i < sizeof usual / sizeof usual[0]; i++) {
        is_good = run_device(argv[1], usual[i], n) && is_good;
    }
    return is_good ? 0 : 1;
}
