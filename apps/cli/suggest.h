/* "Did you mean": the known word that is nearest to a mistyped one. Pure. */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

#include <stddef.h>

/* The best so far; zeroed memory with `word` set is a fresh search. */
typedef struct suggest {
    const char *word; /* what was typed, not NUL-terminated */
    size_t n_bytes;
    const char *best; /* NULL while nothing is near enough */
    size_t best_distance;
} suggest;

/* Offers a known word. A word that begins with what was typed beats one that merely resembles it. */
void suggest_offer(suggest *s, const char *known);

#endif
