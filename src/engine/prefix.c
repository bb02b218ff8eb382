#include "engine/prefix.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

static bool is_in_cache(const s2_prefix *p, const s2_slow_ar *slow)
{
    return p->n > 0 && s2_slow_ar_n_past(slow) >= p->n;
}

int s2_prefix_need(s2_prefix *p, s2_slow_ar *slow, const int32_t *columns, uint32_t n,
        uint32_t height, uint32_t *ret_n_evaluated, sl_error *reterr)
{
    size_t n_bytes = (size_t)n * height * sizeof *columns;
    bool is_same = p->n == n && memcmp(p->columns, columns, n_bytes) == 0;
    *ret_n_evaluated = 0;
    if (is_same && is_in_cache(p, slow)) {
        s2_slow_ar_rewind(slow, n);
        return SL_OK;
    }
    s2_slow_ar_rewind(slow, 0);
    if (is_same && p->copy) {
        return s2_slow_ar_write_rows(slow, p->copy, n, reterr);
    }
    int32_t *own = sl__alloc(n_bytes, 1);
    if (!own) {
        return sl__fail_nomem(reterr, n_bytes, "a prompt");
    }
    memcpy(own, columns, n_bytes);
    s2_prefix_done(p);
    p->columns = own;
    p->n = n;
    int r = s2_slow_ar_eval(slow, own, n, 0, NULL, NULL, reterr);
    *ret_n_evaluated = r == 0 ? n : 0;
    return r;
}

void s2_prefix_keep(s2_prefix *p, s2_slow_ar *slow, sl_residency *residency)
{
    if (p->copy || !is_in_cache(p, slow)) {
        return;
    }
    size_t n_bytes = s2_slow_ar_row_bytes(slow) * p->n;
    if (n_bytes > S2_PREFIX_MAX_BYTES) {
        return;
    }
    int r = sl_scratch_acquire(residency, 0, SL_MEM_KV, n_bytes, false, NULL, &p->booked, NULL);
    p->copy = r == 0 ? sl__alloc(n_bytes, 1) : NULL;
    if (p->copy) {
        s2_slow_ar_read_rows(slow, p->n, p->copy);
    } else {
        sl_scratch_release(&p->booked);
    }
}

void s2_prefix_drop(s2_prefix *p)
{
    sl__free(p->copy);
    p->copy = NULL;
    sl_scratch_release(&p->booked);
}

void s2_prefix_done(s2_prefix *p)
{
    s2_prefix_drop(p);
    sl__free(p->columns);
    memset(p, 0, sizeof *p);
}
