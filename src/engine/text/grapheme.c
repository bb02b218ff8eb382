#include "engine/text/grapheme.h"

#include <stdbool.h>
#include <utf8proc.h>

#include "base/utf8.h"

#define REPLACEMENT 0xFFFD

size_t s2_grapheme_len(const char *text, size_t n_bytes, uint32_t *ret_cp)
{
    utf8proc_int32_t state = 0;
    uint32_t cp = 0;
    size_t n = sl__utf8_decode(text, n_bytes, &cp);
    if (n == 0) {
        *ret_cp = REPLACEMENT;
        return n_bytes > 0 ? 1 : 0;
    }
    *ret_cp = cp;
    while (n < n_bytes) {
        uint32_t next = 0;
        size_t len = sl__utf8_decode(text + n, n_bytes - n, &next);
        bool is_border = len == 0 || utf8proc_grapheme_break_stateful(
                                             (utf8proc_int32_t)cp, (utf8proc_int32_t)next, &state);
        if (is_border) {
            break;
        }
        cp = next;
        n += len;
    }
    return n;
}
