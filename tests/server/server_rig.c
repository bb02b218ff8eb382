#include "server_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "listener.h"
#include "os/os_clock.h"
#include "os/os_thread.h"
#include "test_support.h"

#define STEP_NS   UINT64_C(2000000)
#define MOST_NS   UINT64_C(20000000000)
#define SECOND_NS UINT64_C(1000000000)

static void count_lines(void *ud, sl_log_level level, const char *msg)
{
    server_rig *rig = ud;
    (void)level;
    if (strstr(msg, "cancelled")) {
        atomic_fetch_add(&rig->n_cancelled_lines, 1);
    }
}

void server_rig_init(server_rig *rig)
{
    memset(rig, 0, sizeof *rig);
    rig->dir = test_dir_create();
    rig->opts = (server_opts){
            .engine = fake_speaker_get(&rig->fake),
            .model_name = "fake",
            .model_path = "models/fake.gguf",
            .n_model_dir = 6,
            .version = "1",
            .voice_dir = rig->dir,
            .segment_bytes = 400,
            .stop_ns = SECOND_NS,
            .limits = server_default_limits(),
            .log = {.fn = count_lines, .ud = rig},
    };
}

void server_rig_use_model(server_rig *rig, const char *model, const char *tokenizer)
{
    sl_error err;
    const s2_engine_opts opts = {.model_path = model, .tokenizer_path = tokenizer, .n_threads = 1};
    assert_ok(engine_state_create(&opts, &rig->engine, &err), &err);
    rig->opts.engine = engine_state_speaker(rig->engine);
    rig->opts.model_name = "tiny";
}

static uint16_t port_of(const char *url)
{
    unsigned port = 0;
    for (const char *at = strrchr(url, ':') + 1; *at; at++) {
        port = 10 * port + (unsigned)(*at - '0');
    }
    return (uint16_t)port;
}

void server_rig_start(server_rig *rig)
{
    sl_error err = {0};
    listener at;
    uint64_t deadline_ns = sl__now_ns() + MOST_NS;
    assert_ok(listener_open("127.0.0.1", 0, &at, &err), &err);
    rig->opts.listen_fd = at.fd;
    rig->opts.is_loopback = at.is_loopback;
    rig->port = port_of(at.url);
    assert_ok(server_open(&rig->opts, &rig->server, &err), &err);
    while (atomic_load(&rig->fake.open_ms) == 0 && !server_is_ready(rig->server)) {
        assert_false(server_has_failed(rig->server, &err));
        assert_true(sl__now_ns() < deadline_ns);
        sl__sleep_ns(STEP_NS);
    }
}

void server_rig_done(server_rig *rig)
{
    server_close(&rig->server);
    assert_int_equal(atomic_load(&rig->fake.n_inside), 0);
    assert_int_equal(atomic_load(&rig->fake.is_open), 0);
    assert_true(atomic_load(&rig->fake.n_most_inside) <= 1);
    engine_state_free(&rig->engine);
    test_dir_remove(rig->dir);
}

int server_rig_prepare(void **state)
{
    server_rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    server_rig_init(rig);
    *state = rig;
    return 0;
}

int server_rig_prepare_started(void **state)
{
    server_rig_prepare(state);
    server_rig_start(*state);
    return 0;
}

int server_rig_finish(void **state)
{
    server_rig_done(*state);
    free(*state);
    return 0;
}

void server_rig_wait(const atomic_int *value, int least)
{
    uint64_t deadline_ns = sl__now_ns() + MOST_NS;
    while (atomic_load(value) < least) {
        if (sl__now_ns() > deadline_ns) {
            fail_msg("waited for %d, still %d", least, atomic_load(value));
        }
        sl__sleep_ns(STEP_NS);
    }
}

void server_rig_wait_idle(const server_rig *rig)
{
    uint64_t deadline_ns = sl__now_ns() + MOST_NS;
    while (atomic_load(&rig->fake.n_inside) > 0) {
        assert_true(sl__now_ns() < deadline_ns);
        sl__sleep_ns(STEP_NS);
    }
}
