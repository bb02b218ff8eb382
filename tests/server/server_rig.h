/* A server in the test's own process, with a made-up engine or the tiny model, on a free port. */
#ifndef SERVER_RIG_H
#define SERVER_RIG_H

#include "engine_state.h"
#include "fake_speaker.h"
#include "server.h"

typedef struct server_rig {
    fake_speaker fake;
    engine_state *engine; /* of a real model */
    server_opts opts;     /* may be changed before server_rig_start */
    server *server;
    uint16_t port;
    char *dir;                    /* of voices */
    atomic_int n_cancelled_lines; /* of the log */
} server_rig;

/* Everything but the start; the caller's struct stays where it is. */
void server_rig_init(server_rig *rig);

/* Speaks with a model of tests/data or models instead of the fake. */
void server_rig_use_model(server_rig *rig, const char *model, const char *tokenizer);

/* Starts, and waits until the model is open unless the fake is told to take its time. */
void server_rig_start(server_rig *rig);

void server_rig_done(server_rig *rig);

/* cmocka's set-ups: a rig to be changed and started, one that runs; and what ends either. */
int server_rig_prepare(void **state);
int server_rig_prepare_started(void **state);
int server_rig_finish(void **state);

/* Waits until *value >= least; fails the test after 20 s. */
void server_rig_wait(const atomic_int *value, int least);

/* Waits until the fake does nothing. */
void server_rig_wait_idle(const server_rig *rig);

#endif
