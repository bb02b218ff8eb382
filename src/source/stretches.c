#include "source/stretches.h"

#include <stdbool.h>

#include "base/mem.h"

int sl__stretches_make(const sl_ranges *pages, uint64_t file_bytes, uint64_t head_bytes,
        uint64_t tail_bytes, sl__stretches *ret_stretches, sl_error *reterr)
{
    sl__stretches made = {.items = sl__alloc(pages->n, 2 * sizeof *made.items)};
    if (!made.items) {
        return sl__fail_nomem(reterr, pages->n * 2 * sizeof *made.items, "the pages to populate");
    }
    for (size_t i = 0; i < pages->n; i++) {
        sl_range all = pages->items[i];
        uint64_t n_bytes = all.end - all.begin;
        uint64_t n_head = all.begin > 0 ? head_bytes : 0;
        uint64_t n_tail = all.end < file_bytes ? tail_bytes : 0;
        bool has_middle = n_bytes > n_head && n_bytes - n_head > n_tail;
        if (!has_middle) {
            made.items[made.n] = (sl__stretch){.bytes = all, .ask = {all}};
            made.n++;
            continue;
        }
        sl_range head = {all.begin, all.begin + n_head};
        sl_range tail = {all.end - n_tail, all.end};
        made.items[made.n] = (sl__stretch){.bytes = {head.end, all.end}, .ask = {head, tail}};
        made.n++;
        if (n_head > 0) {
            made.items[made.n] = (sl__stretch){.bytes = head};
            made.n++;
        }
    }
    *ret_stretches = made;
    return 0;
}

void sl__stretches_done(sl__stretches *stretches)
{
    sl__free(stretches->items);
    *stretches = (sl__stretches){0};
}
