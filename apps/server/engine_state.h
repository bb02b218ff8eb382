/*
 * The S2 engine as the server's speaker, and what is known about its memory.
 *
 * The plan that /residency shows is made once, when the engine opens, for a request of the usual size: the engine's
 * own plans follow each request.
 */
#ifndef SERVER_ENGINE_STATE_H
#define SERVER_ENGINE_STATE_H

#include "speaker.h"

typedef struct engine_state engine_state;

/* The options' strings must live until engine_state_free. Opens nothing. Errors: SL_ENOMEM. */
int engine_state_create(
        const s2_engine_opts *opts, engine_state **ret_state, sl_error *reterr) SL_MUST_CHECK;

/* The speaker's close comes first. Accepts NULL. */
void engine_state_free(engine_state **state);

speaker engine_state_speaker(engine_state *state);

#endif
