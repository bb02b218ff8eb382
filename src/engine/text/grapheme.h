/*
 * What a reader takes for one character: a letter with its marks, a family of emoji, CR LF.
 *
 * Extended grapheme clusters of Unicode by utf8proc (15.0 in Debian 12). Pure function; any thread.
 */
#ifndef S2_TEXT_GRAPHEME_H
#define S2_TEXT_GRAPHEME_H

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of the cluster at the start of text[0..n_bytes-1], 0 at the end. The start must be a border. Sets
 * *ret_cp to its first character. A byte that is not UTF-8 counts as a cluster (U+FFFD).
 */
size_t s2_grapheme_len(const char *text, size_t n_bytes, uint32_t *ret_cp);

#endif
