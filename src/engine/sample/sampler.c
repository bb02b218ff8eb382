/*
 * The order of the items is needed only as far as they are kept (some thirty of 4097), so they come off a
 * heap one by one until top_k or top_p ends the list: the same items as a full sort gives, in linear time.
 *
 * Everything is double arithmetic in a fixed order with an exponential of our own, because the last bit of
 * libm's differs between systems and a seed should mean the same codes everywhere.
 */
#include "engine/sample/sampler.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"

#define GREEDY_BELOW    1e-5f
#define MAX_TEMPERATURE 100.0f
#define RAS_TEMPERATURE 1.0f
#define RAS_TOP_P       0.9f

struct s2_sampler {
    s2_sample_params params;
    uint64_t seed;
    s2_rng rng;
    uint32_t n_max;
    uint32_t *heap;      /* indices, best at the root */
    s2_kept_item *items; /* best first */
    uint32_t window[S2_RAS_WINDOW];
    uint32_t n_window; /* tokens that ever entered */
    bool is_first_done;
};

static int check_params(const s2_sample_params *p, sl_error *reterr)
{
    if (!(p->temperature >= 0.0f && p->temperature <= MAX_TEMPERATURE)) {
        return sl__fail(reterr, SL_EINVAL, "temperature is %g; give 0 (greedy) to %g",
                (double)p->temperature, (double)MAX_TEMPERATURE);
    }
    if (!(p->top_p >= 0.0f && p->top_p <= 1.0f)) {
        return sl__fail(reterr, SL_EINVAL, "top-p is %g; give 0 to 1", (double)p->top_p);
    }
    if (p->top_k < 0) {
        return sl__fail(reterr, SL_EINVAL, "top-k is %d; give 0 (no limit) or more", (int)p->top_k);
    }
    return 0;
}

int s2_sampler_create(const s2_sample_params *params, uint64_t seed, uint32_t n_max,
        s2_sampler **ret_sampler, sl_error *reterr)
{
    int r = check_params(params, reterr);
    if (r < 0) {
        return r;
    }
    s2_sampler *s = sl__alloc(1, sizeof *s);
    if (!s) {
        return sl__fail_nomem(reterr, sizeof *s, "the sampler");
    }
    s->heap = sl__alloc(n_max, sizeof *s->heap);
    s->items = sl__alloc(n_max, sizeof *s->items);
    if (!s->heap || !s->items) {
        s2_sampler_free(&s);
        return sl__fail_nomem(
                reterr, n_max * (sizeof(uint32_t) + sizeof(s2_kept_item)), "the sampler");
    }
    s->params = *params;
    s->seed = seed;
    s->n_max = n_max;
    s2_sampler_reset(s);
    *ret_sampler = s;
    return 0;
}

void s2_sampler_free(s2_sampler **sampler)
{
    if (!sampler || !*sampler) {
        return;
    }
    sl__free((*sampler)->heap);
    sl__free((*sampler)->items);
    sl__free(*sampler);
    *sampler = NULL;
}

void s2_sampler_reset(s2_sampler *sampler)
{
    s2_rng_seed(&sampler->rng, sampler->seed);
    sampler->n_window = 0;
    sampler->is_first_done = false;
}

#define EXP_BLOCK 64

/*
 * exp(x) for up to EXP_BLOCK x <= 0, in place: whole powers of two taken off exactly, then the series down to the last
 * bit. Step by step over all of them, so that the compiler spreads each step over lanes; the bits are those of
 * one at a time.
 */
static void exp_of_negatives(double *x, uint32_t n)
{
    static const double ln2_high = 0x1.62e42fee00000p-1;
    static const double ln2_low = 0x1.a39ef35793c76p-33;
    static const double one_over_factorial[] = {1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120,
            1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800,
            1.0 / 479001600, 1.0 / 6227020800};
    const double least = -700.0; /* below, the result counts as 0 */
    double sum[EXP_BLOCK] = {0.0};
    double rest[EXP_BLOCK];
    int32_t n_halvings[EXP_BLOCK];
    for (uint32_t i = 0; i < n; i++) {
        double y = x[i] < least ? least : x[i];
        n_halvings[i] = (int32_t)(0.5 - y * 0x1.71547652b82fep+0);
        rest[i] = (y + n_halvings[i] * ln2_high) + n_halvings[i] * ln2_low;
    }
    for (size_t k = sizeof one_over_factorial / sizeof one_over_factorial[0]; k > 0; k--) {
        for (uint32_t i = 0; i < n; i++) {
            sum[i] = sum[i] * rest[i] + one_over_factorial[k - 1];
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t bits = (uint64_t)(1023 - n_halvings[i]) << 52;
        double power = 0.0;
        memcpy(&power, &bits, sizeof power);
        x[i] = x[i] < least ? 0.0 : sum[i] * power;
    }
}

static double exp_of_negative(double x)
{
    exp_of_negatives(&x, 1);
    return x;
}

static bool is_better(const float *logits, uint32_t a, uint32_t b)
{
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

/* The heap has its worst item at the root. */
static void sift_down(uint32_t *heap, uint32_t n, uint32_t at, const float *logits)
{
    uint32_t item = heap[at];
    for (uint32_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && is_better(logits, heap[child], heap[child + 1])) {
            child++;
        }
        if (!is_better(logits, item, heap[child])) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = item;
}

static void sift_up(uint32_t *heap, uint32_t at, const float *logits)
{
    uint32_t item = heap[at];
    while (at > 0 && is_better(logits, heap[(at - 1) / 2], item)) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = item;
}

static int check_logits(const s2_sampler *s, const float *logits, uint32_t n, sl_error *reterr)
{
    if (n > s->n_max) {
        return sl__fail(reterr, SL_EINVAL, "%u logits for a sampler of at most %u", n, s->n_max);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (isnan(logits[i]) || (isinf(logits[i]) && logits[i] > 0.0f)) {
            return sl__fail(reterr, SL_EINVAL, "logit %u of %u is %g; the model's output is broken",
                    i, n, (double)logits[i]);
        }
    }
    return SL_OK;
}

/* The best n_most of the allowed items, best first, in the heap's memory; gives their number. */
static uint32_t sort_best(s2_sampler *s, const float *logits, uint32_t n, uint32_t n_most)
{
    uint32_t n_heap = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (isinf(logits[i])) {
            continue;
        }
        if (n_heap < n_most) {
            s->heap[n_heap] = i;
            sift_up(s->heap, n_heap, logits);
            n_heap++;
        } else if (is_better(logits, i, s->heap[0])) {
            s->heap[0] = i;
            sift_down(s->heap, n_heap, 0, logits);
        }
    }
    for (uint32_t m = n_heap; m > 1; m--) {
        uint32_t worst = s->heap[0];
        s->heap[0] = s->heap[m - 1];
        s->heap[m - 1] = worst;
        sift_down(s->heap, m - 1, 0, logits);
    }
    return n_heap;
}

static double softmax_sum(const float *logits, uint32_t n, double best)
{
    double block[EXP_BLOCK];
    double sum = 0.0;
    for (uint32_t first = 0; first < n; first += EXP_BLOCK) {
        uint32_t m = n - first < EXP_BLOCK ? n - first : EXP_BLOCK;
        for (uint32_t i = 0; i < m; i++) {
            block[i] = (double)logits[first + i] - best;
        }
        exp_of_negatives(block, m);
        for (uint32_t i = 0; i < m; i++) {
            sum += block[i];
        }
    }
    return sum;
}

/* How many of the sorted items top_p leaves. */
static uint32_t cut_tail(const s2_sampler *s, const s2_sample_params *params, const float *logits,
        uint32_t n, uint32_t n_sorted)
{
    if (params->top_p >= 1.0f) {
        return n_sorted; /* a sum of 1 + rounding must not cut the tail */
    }
    double best = (double)logits[s->heap[0]];
    double sum = softmax_sum(logits, n, best);
    double cumulative = 0.0;
    uint32_t n_kept = 0;
    while (n_kept < n_sorted) {
        cumulative += exp_of_negative((double)logits[s->heap[n_kept]] - best) / sum;
        if (n_kept > 0 && cumulative > (double)params->top_p) {
            break;
        }
        n_kept++;
    }
    return n_kept;
}

int s2_sampler_keep(s2_sampler *sampler, const s2_sample_params *params, const float *logits,
        uint32_t n, const s2_kept_item **ret_items, uint32_t *ret_n, sl_error *reterr)
{
    int r = check_params(params, reterr);
    if (r == 0) {
        r = check_logits(sampler, logits, n, reterr);
    }
    if (r < 0) {
        return r;
    }
    bool is_greedy = params->temperature < GREEDY_BELOW;
    uint32_t n_most = params->top_k > 0 ? (uint32_t)params->top_k : n;
    uint32_t n_kept = sort_best(sampler, logits, n, is_greedy ? 1 : n_most);
    if (n_kept == 0) {
        return sl__fail(
                reterr, SL_EINVAL, "all %u logits are -inf; the model's output is broken", n);
    }
    n_kept = cut_tail(sampler, params, logits, n, n_kept);
    double best = (double)logits[sampler->heap[0]];
    double temperature = is_greedy ? 1.0 : (double)params->temperature;
    s2_kept_item *items = sampler->items;
    for (uint32_t i = 0; i < n_kept; i++) {
        items[i].index = sampler->heap[i];
    }
    double sum = 0.0;
    for (uint32_t i = 0; i < n_kept; i++) {
        items[i].p = exp_of_negative(((double)logits[items[i].index] - best) / temperature);
        sum += items[i].p;
    }
    for (uint32_t i = 0; i < n_kept; i++) {
        items[i].p /= sum;
    }
    *ret_items = items;
    *ret_n = n_kept;
    return 0;
}

static int draw_with(s2_sampler *s, const s2_sample_params *params, const float *logits, uint32_t n,
        uint32_t *ret_index, sl_error *reterr)
{
    const s2_kept_item *items = NULL;
    uint32_t n_kept = 0;
    int r = s2_sampler_keep(s, params, logits, n, &items, &n_kept, reterr);
    if (r < 0) {
        return r;
    }
    double rest = s2_rng_unit(&s->rng);
    uint32_t chosen = items[0].index; /* rounding may leave a rest that no item takes */
    for (uint32_t i = 0; i < n_kept; i++) {
        if (items[i].p > 0.0) {
            chosen = items[i].index;
        }
        rest -= items[i].p;
        if (rest < 0.0) {
            break;
        }
    }
    *ret_index = chosen;
    return 0;
}

int s2_sampler_draw(
        s2_sampler *sampler, const float *logits, uint32_t n, uint32_t *ret_index, sl_error *reterr)
{
    return draw_with(sampler, &sampler->params, logits, n, ret_index, reterr);
}

static bool is_in_window(const s2_sampler *s, uint32_t token)
{
    uint32_t n = s->n_window < S2_RAS_WINDOW ? s->n_window : S2_RAS_WINDOW;
    for (uint32_t i = 0; i < n; i++) {
        if (s->window[i] == token) {
            return true;
        }
    }
    return false;
}

int s2_sampler_draw_semantic(s2_sampler *sampler, const float *logits, uint32_t n_semantic,
        uint32_t *ret_index, sl_error *reterr)
{
    uint32_t token = 0;
    int r = s2_sampler_draw(sampler, logits, n_semantic + 1, &token, reterr);
    if (r < 0) {
        return r;
    }
    if (!sampler->is_first_done) {
        sampler->is_first_done = true;
        *ret_index = token;
        return 0;
    }
    if (token < n_semantic && is_in_window(sampler, token)) {
        s2_sample_params ras = {RAS_TEMPERATURE, RAS_TOP_P, sampler->params.top_k};
        r = draw_with(sampler, &ras, logits, n_semantic + 1, &token, reterr);
        if (r < 0) {
            return r;
        }
    }
    if (token < n_semantic) {
        sampler->window[sampler->n_window % S2_RAS_WINDOW] = token;
        sampler->n_window++;
    }
    *ret_index = token;
    return 0;
}
