/*
 * Writes SVG into a growing buffer. Markup is written as it is, text is escaped: bytes that are not UTF-8, and
 * control characters, become U+FFFD.
 *
 * A failed allocation makes the writer dead: everything later does nothing and svg_result returns NULL.
 *
 * Threads: one at a time. Zeroed memory is an empty writer.
 */
#ifndef CLI_SVG_OUT_H
#define CLI_SVG_OUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

typedef struct svg_out {
    char *buf;
    size_t n;
    size_t cap;
    bool is_dead;
} svg_out;

void svg_done(svg_out *o);

/* Markup. */
void svg_put(svg_out *o, const char *fmt, ...) SL_PRINTF(2, 3);

/* Text of any bytes, escaped for content and attributes. */
void svg_text(svg_out *o, const char *text);

/* As many characters of the text as fit into `n`, the last one an ellipsis if some are left out. */
void svg_text_cut(svg_out *o, const char *text, size_t n);

/* Characters of a text as svg_text shows them. */
size_t svg_n_chars(const char *text);

/* The document so far with a NUL behind it, valid until the next call; NULL if memory ran out. */
const char *svg_result(const svg_out *o, size_t *ret_n);

#endif
