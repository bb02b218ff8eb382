/*
 * Who listens to /residency: server-sent events when something has changed, at most ten a second, and a sign of life
 * every fifteen seconds.
 *
 * Threads: add by the connections' thread, tick by the watcher's, close by any.
 */
#ifndef SERVER_FEED_H
#define SERVER_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "reply.h"

#define FEED_MOST 16u

typedef struct feed feed;

/* Errors: SL_ENOMEM. */
int feed_create(feed **ret_feed, sl_error *reterr) SL_MUST_CHECK;
void feed_free(feed **f);

/* Adds a listener; false if there are too many. The answer's head must be set. */
bool feed_add(feed *f, reply *answer);

size_t feed_n(feed *f);

/* Sends `text` (one line) to those who have not had it. */
void feed_send(feed *f, const char *text, size_t n, uint64_t now_ns);

/* Ends all of them. */
void feed_close(feed *f);

#endif
