/*
 * Weights are used where the file's pages are: what a process has of its own while it speaks is its KV cache,
 * its compute buffers and a constant, whatever the size of the file.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ggml.h"

#include "engine/model/synth.h"
#include "os/os_process.h"
#include "s2/engine.h"
#include "test_support.h"

#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

#define MIB         (UINT64_C(1) << 20)
#define N_FRAMES    4
#define EXIT_SKIP   77
#define DISK_NEEDED (3 * 1024 * MIB)

static char *dir;

/* One number of each kind that a child reports. */
typedef struct report {
    uint64_t file_bytes;
    uint64_t
            grown_bytes; /* most private memory while it spoke, less that before it opened the file */
    uint64_t kv_bytes;
    uint64_t compute_bytes;
    uint64_t n_frames;
} report;

typedef struct watch {
    uint64_t before;
    uint64_t most;
} watch;

static void look(watch *w)
{
    uint64_t now = sl__process_rss().anon_bytes;
    uint64_t grown = now > w->before ? now - w->before : 0;
    w->most = grown > w->most ? grown : w->most;
}

static int on_frame(void *ud, const int32_t *codes)
{
    (void)codes;
    look(ud);
    return 0;
}

/* Layers of 118 MB beside 50 MB of tables; a frame reads each once. */
static s2_synth_opts sized_opts(uint32_t n_layer)
{
    sl_error err;
    s2_synth_opts opts = s2_synth_tiny();
    opts.hp.slow = (s2_ar_hparams){n_layer, 2048, 16, 4, 128, 16384, 1e6F, 1e-6F, true};
    opts.hp.fast = (s2_ar_hparams){1, 512, 4, 2, 128, 1024, 1e6F, 1e-6F, false};
    opts.hp.n_vocab = 20000;
    opts.ar_type = GGML_TYPE_Q8_0;
    assert_ok(s2_synth_complete(&opts, &err), &err);
    return opts;
}

static int speak(s2_engine *e, watch *w, s2_stats *ret_stats, sl_error *reterr)
{
    s2_speak_opts opts = s2_speak_defaults();
    opts.text = "a";
    opts.text_bytes = 1;
    opts.max_frames = N_FRAMES;
    opts.min_frames = N_FRAMES;
    opts.on_frame = on_frame;
    opts.ud = w;
    return s2_engine_speak(e, &opts, ret_stats, reterr);
}

/* What the child does; it must not assert, since the tests are its parent's. */
static int speak_and_watch(const char *path, int out)
{
    sl_error err;
    s2_engine *e = NULL;
    s2_stats stats = {0};
    watch w = {.before = sl__process_rss().anon_bytes};
    s2_engine_opts opts = {.model_path = path, .n_threads = 1};
    int r = s2_engine_open(&opts, &e, &err);
    if (r == 0) {
        look(&w);
        r = speak(e, &w, &stats, &err);
        look(&w);
    }
    s2_engine_close(&e);
    report rep = {.grown_bytes = w.most,
            .kv_bytes = stats.kv_bytes,
            .compute_bytes = stats.compute_bytes,
            .n_frames = stats.n_frames};
    return r == 0 && write(out, &rep, sizeof rep) == (ssize_t)sizeof rep ? 0 : 1;
}

/* In a child, so that its private memory is this model's alone. */
static report measure(const char *path)
{
    int ends[2];
    int status = 0;
    report rep = {0};
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(speak_and_watch(path, ends[1]));
    }
    close(ends[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(read(ends[0], &rep, sizeof rep), sizeof rep);
    close(ends[0]);
    return rep;
}

static report measure_model(uint32_t n_layer)
{
    char path[512];
    char tokenizer[512];
    sl_error err;
    struct stat st;
    s2_synth_opts opts = sized_opts(n_layer);
    test_path(path, sizeof path, dir, "sized.gguf");
    test_path(tokenizer, sizeof tokenizer, dir, "sized.tokenizer.json");
    assert_ok(s2_synth_write(&opts, path, &err), &err);
    assert_ok(s2_synth_write_tokenizer(&opts, tokenizer, &err), &err);
    report rep = measure(path);
    assert_int_equal(stat(path, &st), 0);
    rep.file_bytes = (uint64_t)st.st_size;
    assert_int_equal(unlink(path), 0);
    print_message("file %llu MiB: private memory +%.1f MiB; KV %.1f, compute %.1f\n",
            (unsigned long long)(rep.file_bytes / MIB), (double)rep.grown_bytes / (double)MIB,
            (double)rep.kv_bytes / (double)MIB, (double)rep.compute_bytes / (double)MIB);
    assert_int_equal(rep.n_frames, N_FRAMES);
    return rep;
}

/* Private memory that is neither KV cache nor compute buffer; less than nothing if those are not all used. */
static int64_t rest_of(const report *rep)
{
    return (int64_t)rep->grown_bytes - (int64_t)(rep->kv_bytes + rep->compute_bytes);
}

static void test_private_memory_is_bounded_for_every_file_size(void **state)
{
    (void)state;
    report small = measure_model(1);
    report large = measure_model(9);
    assert_true(small.file_bytes <= 256 * MIB);
    assert_true(large.file_bytes >= 1024 * MIB);
    assert_true(small.grown_bytes > 0 && large.grown_bytes > 0);
    assert_true(rest_of(&small) <= (int64_t)(64 * MIB));
    assert_true(rest_of(&large) <= (int64_t)(64 * MIB));
    assert_true(llabs(rest_of(&large) - rest_of(&small)) < (int64_t)(16 * MIB));
}

static bool has_room(void)
{
    struct statvfs fs;
    return statvfs(dir, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize >= DISK_NEEDED;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_private_memory_is_bounded_for_every_file_size),
    };
    if (IS_SANITIZED) {
        return EXIT_SKIP; /* a sanitizer's own memory would be measured */
    }
    dir = test_dir_create();
    int r = has_room() ? cmocka_run_group_tests(tests, NULL, NULL) : EXIT_SKIP;
    test_dir_remove(dir);
    return r;
}
