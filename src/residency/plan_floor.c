/*
 * How much a place must hold at least. With keep that is the sum of everything that the run touches; with the
 * other policies, whose units can all leave between two phases, it is the largest phase. Sums cannot wrap: the
 * request was checked for that.
 */
#include <string.h>

#include "base/mem.h"
#include "residency/plan_impl.h"

/* Units whose second place is tried: 2^12 placements at most. */
#define N_MOVABLE_MAX 12

typedef struct movable_set {
    size_t unit[N_MOVABLE_MAX];
    size_t n;
} movable_set;

size_t sl__plan_phase_of(const sl__plan_input *in, size_t i_step)
{
    return in->request->run ? in->request->run[i_step] : i_step;
}

bool sl__plan_needs(const sl__plan_input *in, size_t i_phase, size_t i_unit)
{
    return in->needs[i_phase * in->request->n_units + i_unit] != 0;
}

uint64_t sl__plan_unit_bytes(
        const sl__plan_input *in, const size_t *placement, size_t i_unit, size_t i_place)
{
    const sl_plan_unit *unit = &in->request->units[i_unit];
    size_t at = placement ? placement[i_unit] : unit->i_place;
    if (at != i_place) {
        return 0;
    }
    return at == unit->i_place ? unit->n_bytes : unit->second_bytes;
}

void sl__plan_add_weights(uint64_t n_bytes, sl_plan_bytes *to)
{
    to->kind[SL_MEM_WEIGHTS] += n_bytes;
    to->total += n_bytes;
}

void sl__plan_add_scratch(
        const sl__plan_input *in, size_t i_phase, size_t i_place, sl_plan_bytes *to)
{
    const sl_plan_phase *phase = &in->request->phases[i_phase];
    for (size_t i = 0; i < phase->n_scratch; i++) {
        const sl_plan_scratch *s = &phase->scratch[i];
        if (s->i_place == i_place) {
            to->kind[s->kind] += s->n_bytes;
            to->total += s->n_bytes;
        }
    }
}

sl_plan_bytes sl__plan_need(
        const sl__plan_input *in, const size_t *placement, size_t i_phase, size_t i_place)
{
    sl_plan_bytes need = {{0}, 0};
    sl__plan_add_scratch(in, i_phase, i_place, &need);
    for (size_t u = 0; u < in->request->n_units; u++) {
        if (sl__plan_needs(in, i_phase, u)) {
            sl__plan_add_weights(sl__plan_unit_bytes(in, placement, u, i_place), &need);
        }
    }
    return need;
}

static bool is_used(const sl__plan_input *in, size_t i_unit)
{
    for (size_t p = 0; p < in->request->n_phases; p++) {
        if (in->runs[p] && sl__plan_needs(in, p, i_unit)) {
            return true;
        }
    }
    return false;
}

static uint64_t floor_of_keep(const sl__plan_input *in, const size_t *placement, size_t i_place)
{
    sl_plan_bytes sum = {{0}, 0};
    for (size_t p = 0; p < in->request->n_phases; p++) {
        if (in->runs[p]) {
            sl__plan_add_scratch(in, p, i_place, &sum);
        }
    }
    for (size_t u = 0; u < in->request->n_units; u++) {
        if (is_used(in, u)) {
            sl__plan_add_weights(sl__plan_unit_bytes(in, placement, u, i_place), &sum);
        }
    }
    return sum.total;
}

uint64_t sl__plan_floor_of(
        const sl__plan_input *in, const size_t *placement, sl_policy policy, size_t i_place)
{
    if (policy == SL_POLICY_KEEP) {
        return floor_of_keep(in, placement, i_place);
    }
    uint64_t largest = 0;
    for (size_t p = 0; p < in->request->n_phases; p++) {
        if (in->runs[p]) {
            uint64_t total = sl__plan_need(in, placement, p, i_place).total;
            largest = total > largest ? total : largest;
        }
    }
    return largest;
}

static bool fits(const sl__plan_input *in, const size_t *placement)
{
    for (size_t i = 0; i < in->request->n_places; i++) {
        uint64_t floor = sl__plan_floor_of(in, placement, in->request->policy, i);
        if (floor > in->request->places[i].budget_bytes) {
            return false;
        }
    }
    return true;
}

/* The largest units that are used and have a second place. */
static void find_movable(const sl__plan_input *in, movable_set *ret)
{
    const sl_plan_unit *units = in->request->units;
    ret->n = 0;
    for (size_t u = 0; u < in->request->n_units; u++) {
        bool can_move = units[u].i_second != SL_PLAN_NONE && units[u].i_second != units[u].i_place;
        if (!can_move || !is_used(in, u)) {
            continue;
        }
        size_t at = ret->n < N_MOVABLE_MAX ? ret->n : N_MOVABLE_MAX - 1;
        if (ret->n == N_MOVABLE_MAX && units[ret->unit[at]].n_bytes >= units[u].n_bytes) {
            continue;
        }
        for (; at > 0 && units[ret->unit[at - 1]].n_bytes < units[u].n_bytes; at--) {
            ret->unit[at] = ret->unit[at - 1];
        }
        ret->unit[at] = u;
        ret->n += ret->n < N_MOVABLE_MAX;
    }
}

/* Puts the units of the mask on their second places, all others on the wanted ones; returns the bytes moved. */
static uint64_t place_by_mask(
        const sl__plan_input *in, const movable_set *movable, size_t mask, size_t *placement)
{
    uint64_t n_bytes = 0;
    for (size_t u = 0; u < in->request->n_units; u++) {
        placement[u] = in->request->units[u].i_place;
    }
    for (size_t i = 0; i < movable->n; i++) {
        if (mask >> i & 1) {
            const sl_plan_unit *unit = &in->request->units[movable->unit[i]];
            placement[movable->unit[i]] = unit->i_second;
            n_bytes += unit->n_bytes;
        }
    }
    return n_bytes;
}

static unsigned n_bits(size_t mask)
{
    unsigned n = 0;
    for (; mask; mask &= mask - 1) {
        n++;
    }
    return n;
}

bool sl__plan_find_placement(const sl__plan_input *in, size_t *ret_placement)
{
    movable_set movable;
    bool found = false;
    size_t best_mask = 0;
    uint64_t best_bytes = 0;
    find_movable(in, &movable);
    for (size_t mask = 0; mask < (size_t)1 << movable.n; mask++) {
        uint64_t n_bytes = place_by_mask(in, &movable, mask, ret_placement);
        bool is_better = !found || n_bytes < best_bytes ||
                         (n_bytes == best_bytes && n_bits(mask) < n_bits(best_mask));
        if (is_better && fits(in, ret_placement)) {
            found = true;
            best_mask = mask;
            best_bytes = n_bytes;
        }
    }
    place_by_mask(in, &movable, best_mask, ret_placement);
    return found;
}
