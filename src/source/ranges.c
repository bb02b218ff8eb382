/*
 * A set is a sorted array of ranges with gaps between all neighbours. Every operation merges sorted input
 * into a new array and then swaps it in, so that a failure leaves the target as it was and an input may be
 * the target.
 */
#include "sluice/ranges.h"

#include <string.h>

#include "base/mem.h"
#include "base/status.h"

void sl_ranges_done(sl_ranges *set)
{
    if (set) {
        sl__free(set->items);
        memset(set, 0, sizeof *set);
    }
}

static void replace(sl_ranges *set, const sl_ranges *by)
{
    sl__free(set->items);
    *set = *by;
}

/* Ends an operation: `made` becomes *ret_set, or is freed if r is an error. */
static int finish(int r, sl_ranges *made, sl_ranges *ret_set)
{
    if (r < 0) {
        sl_ranges_done(made);
    } else {
        replace(ret_set, made);
    }
    return r;
}

/* Adds a range that begins no earlier than all others. */
static int append(sl_ranges *set, uint64_t begin, uint64_t end)
{
    if (begin >= end) {
        return 0;
    }
    sl_range *last = set->n > 0 ? &set->items[set->n - 1] : NULL;
    if (last && begin <= last->end) {
        last->end = end > last->end ? end : last->end;
        return 0;
    }
    if (!sl__grow((void **)&set->items, &set->cap, set->n + 1, sizeof *set->items)) {
        return SL_ENOMEM;
    }
    set->items[set->n] = (sl_range){begin, end};
    set->n++;
    return 0;
}

/* Index of the first range that ends at or behind `at`; n if none does. */
static size_t first_touching(const sl_ranges *set, uint64_t at)
{
    size_t low = 0;
    size_t high = set->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (set->items[mid].end < at) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

int sl_ranges_add(sl_ranges *set, uint64_t begin, uint64_t end)
{
    if (begin >= end) {
        return 0;
    }
    size_t first = first_touching(set, begin);
    size_t behind = first;
    while (behind < set->n && set->items[behind].begin <= end) {
        begin = set->items[behind].begin < begin ? set->items[behind].begin : begin;
        end = set->items[behind].end > end ? set->items[behind].end : end;
        behind++;
    }
    if (behind == first &&
            !sl__grow((void **)&set->items, &set->cap, set->n + 1, sizeof *set->items)) {
        return SL_ENOMEM;
    }
    /* One range takes the place of those that it swallowed. */
    memmove(set->items + first + 1, set->items + behind, (set->n - behind) * sizeof *set->items);
    set->n = set->n - (behind - first) + 1;
    set->items[first] = (sl_range){begin, end};
    return 0;
}

int sl_ranges_align(sl_ranges *set, uint64_t page, uint64_t limit)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) {
        uint64_t begin = set->items[i].begin & ~(page - 1);
        uint64_t end = 0;
        if (!sl__align_up_u64(set->items[i].end, page, &end) || end > limit) {
            end = limit;
        }
        if (begin >= end) {
            continue;
        }
        if (n > 0 && begin <= set->items[n - 1].end) {
            set->items[n - 1].end = end;
        } else {
            set->items[n] = (sl_range){begin, end};
            n++;
        }
    }
    set->n = n;
    return 0;
}

int sl_ranges_union(const sl_ranges *a, const sl_ranges *b, sl_ranges *ret_set)
{
    sl_ranges made = {0};
    size_t i = 0;
    size_t k = 0;
    int r = 0;
    while (r >= 0 && (i < a->n || k < b->n)) {
        bool from_a = k == b->n || (i < a->n && a->items[i].begin <= b->items[k].begin);
        const sl_range *next = from_a ? &a->items[i] : &b->items[k];
        i += from_a;
        k += !from_a;
        r = append(&made, next->begin, next->end);
    }
    return finish(r, &made, ret_set);
}

int sl_ranges_intersect(const sl_ranges *a, const sl_ranges *b, sl_ranges *ret_set)
{
    sl_ranges made = {0};
    size_t i = 0;
    size_t k = 0;
    int r = 0;
    while (r >= 0 && i < a->n && k < b->n) {
        sl_range x = a->items[i];
        sl_range y = b->items[k];
        r = append(&made, x.begin > y.begin ? x.begin : y.begin, x.end < y.end ? x.end : y.end);
        i += x.end <= y.end;
        k += y.end <= x.end;
    }
    return finish(r, &made, ret_set);
}

int sl_ranges_complement(const sl_ranges *a, uint64_t begin, uint64_t end, sl_ranges *ret_set)
{
    sl_ranges made = {0};
    uint64_t at = begin;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < a->n && a->items[i].begin < end; i++) {
        r = append(&made, at, a->items[i].begin);
        at = a->items[i].end > at ? a->items[i].end : at;
    }
    if (r >= 0) {
        r = append(&made, at, end);
    }
    return finish(r, &made, ret_set);
}

int sl_ranges_subtract(const sl_ranges *a, const sl_ranges *b, sl_ranges *ret_set)
{
    sl_ranges made = {0};
    size_t k = 0;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < a->n; i++) {
        uint64_t at = a->items[i].begin;
        uint64_t end = a->items[i].end;
        while (k < b->n && b->items[k].end <= at) {
            k++;
        }
        /* A hole may reach into the next range: k stays at the last one that was looked at. */
        for (size_t hole = k; r >= 0 && hole < b->n && b->items[hole].begin < end; hole++) {
            k = hole;
            r = append(&made, at, b->items[hole].begin);
            at = b->items[hole].end;
        }
        if (r >= 0) {
            r = append(&made, at, end);
        }
    }
    return finish(r, &made, ret_set);
}

int sl_ranges_clamp(const sl_ranges *a, uint64_t begin, uint64_t end, sl_ranges *ret_set)
{
    sl_range window = {begin, end};
    sl_ranges set = {.items = &window, .n = begin < end ? 1 : 0, .cap = 1};
    return sl_ranges_intersect(a, &set, ret_set);
}

uint64_t sl_ranges_bytes(const sl_ranges *set)
{
    uint64_t n = 0;
    for (size_t i = 0; i < set->n; i++) {
        n += set->items[i].end - set->items[i].begin;
    }
    return n;
}
