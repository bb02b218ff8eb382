/*
 * Levenshtein distance over one row, bounded by the longest word that an option or a command can be; what
 * is longer has no near neighbour.
 */
#include "suggest.h"

#include <string.h>

#define MAX_WORD 32

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t row[MAX_WORD + 1];
    for (size_t j = 0; j <= n_b; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= n_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            size_t above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[n_b];
}

void suggest_offer(suggest *s, const char *known)
{
    size_t n = strlen(known);
    if (n > MAX_WORD || s->n_bytes > MAX_WORD || s->n_bytes < 2) {
        return;
    }
    size_t limit = s->n_bytes < 4 ? 1 : s->n_bytes < 9 ? 2 : 3;
    size_t d =
            strncmp(known, s->word, s->n_bytes) == 0 ? 0 : distance(s->word, s->n_bytes, known, n);
    if (d <= limit && (!s->best || d < s->best_distance)) {
        s->best = known;
        s->best_distance = d;
    }
}
