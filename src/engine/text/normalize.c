#include "engine/text/normalize.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "engine/text/split.h"

int s2_text_check_utf8(const char *text, size_t n_bytes, sl_error *reterr)
{
    size_t n_good = sl__utf8_valid_prefix(text, n_bytes);
    if (n_good == n_bytes) {
        return 0;
    }
    return sl__fail_at(reterr, SL_EINVAL, n_good,
            "the text is not UTF-8: byte 0x%02x at offset %zu; convert it to UTF-8",
            (unsigned)(unsigned char)text[n_good], n_good);
}

static bool is_no_break_space(uint32_t cp)
{
    return cp == 0xA0 || cp == 0x2007 || cp == 0x202F;
}

/* Asked after s2_is_line_end. */
static bool is_removed(uint32_t cp)
{
    static const struct {
        uint32_t first;
        uint32_t last;
    } ranges[] = {
            {0x00, 0x08}, {0x0E, 0x1F}, {0x7F, 0x9F}, {0xAD, 0xAD}, /* soft hyphen */
            {0x061C, 0x061C},                                       /* Arabic letter mark */
            {0x200B, 0x200B},                                       /* zero-width space */
            {0x200E, 0x200F},                                       /* direction marks */
            {0x202A, 0x202E},                                       /* direction embeddings */
            {0x2060, 0x2060},                                       /* word joiner */
            {0x2066, 0x206F}, /* direction isolates, deprecated format characters */
            {0xFEFF, 0xFEFF}, /* byte order mark */
            {0xFFF9, 0xFFFB}, /* annotation marks */
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (cp >= ranges[i].first && cp <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

/* Writes at most as many bytes as it reads. */
static size_t clean(const char *text, size_t n_bytes, char *out)
{
    size_t n = 0;
    size_t at = 0;
    bool was_cr = false;
    while (at < n_bytes) {
        uint32_t cp = 0;
        size_t len = sl__utf8_decode(text + at, n_bytes - at, &cp);
        bool is_second_half = was_cr && cp == '\n';
        was_cr = cp == '\r';
        if (s2_is_line_end(cp)) {
            out[n] = '\n';
            n += !is_second_half;
        } else if (is_no_break_space(cp)) {
            out[n++] = ' ';
        } else if (!is_removed(cp)) {
            memcpy(out + n, text + at, len);
            n += len;
        }
        at += len;
    }
    return n;
}

int s2_text_normalize(
        const char *text, size_t n_bytes, char **ret_text, size_t *ret_n_bytes, sl_error *reterr)
{
    int r = s2_text_check_utf8(text, n_bytes, reterr);
    if (r < 0) {
        return r;
    }
    char *out = n_bytes < SIZE_MAX ? sl__alloc(n_bytes + 1, 1) : NULL;
    if (!out) {
        return sl__fail_nomem(reterr, n_bytes, "a text");
    }
    *ret_n_bytes = clean(text, n_bytes, out);
    out[*ret_n_bytes] = '\0';
    *ret_text = out;
    return 0;
}
