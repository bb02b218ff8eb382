/*
 * The order of the items is needed only as far as they are kept (some thirty of 4097), so a heap keeps the best
 * top_k of them, of which top_p may cut the last: the same items as a full sort gives, in linear time.
 *
 * Everything is double arithmetic in a fixed order, because a seed should mean the same codes everywhere.
 */
#include "engine/sample/sampler.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "engine/sample/softmax.h"

#define GREEDY_BELOW    1e-5f
#define MAX_TEMPERATURE 100.0f
#define RAS_TEMPERATURE 1.0f
#define RAS_TOP_P       0.9f
#define N_PARTS         64
#define SKIP_BLOCK      16

struct s2_sampler {
    s2_sample_params params;
    uint64_t seed;
    s2_rng rng;
    uint32_t n_max;
    uint64_t *heap;      /* keys, the worst at the root */
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
        return sl__fail_nomem(reterr, n_max * (sizeof *s->heap + sizeof *s->items), "the sampler");
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

/* Larger for the better item: by logit, equal ones by lower index. */
static uint64_t key_of(const float *logits, uint32_t index)
{
    float logit = logits[index] + 0.0f; /* makes -0 into the 0 that it is equal to */
    uint32_t bits = 0;
    memcpy(&bits, &logit, sizeof bits);
    bits = bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
    return (uint64_t)bits << 32 | (UINT32_MAX - index);
}

static uint32_t index_of(uint64_t key)
{
    return UINT32_MAX - (uint32_t)key;
}

/* The heap has its worst item at the root. */
static void sift_down(uint64_t *heap, uint32_t n, uint32_t at)
{
    uint64_t key = heap[at];
    for (uint32_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        child += child + 1 < n && heap[child + 1] < heap[child];
        if (key <= heap[child]) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = key;
}

static void sift_up(uint64_t *heap, uint32_t at)
{
    uint64_t key = heap[at];
    while (at > 0 && heap[(at - 1) / 2] > key) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = key;
}

static int check_logits(const s2_sampler *s, const float *logits, uint32_t n, sl_error *reterr)
{
    if (n > s->n_max) {
        return sl__fail(reterr, SL_EINVAL, "%u logits for a sampler of at most %u", n, s->n_max);
    }
    uint32_t n_good = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_good += logits[i] < INFINITY; /* not so of NaN */
    }
    if (n_good == n) {
        return SL_OK;
    }
    uint32_t i = 0;
    while (logits[i] < INFINITY) {
        i++;
    }
    return sl__fail(reterr, SL_EINVAL, "logit %u of %u is %g; the model's output is broken", i, n,
            (double)logits[i]);
}

/*
 * A logit that at least n_most items reach, so that those below it need no look: the n_most-th of the best items of
 * N_PARTS interleaved parts. No loop here branches on an item, so that the compiler takes several at once.
 */
static float low_bar(const float *logits, uint32_t n, uint32_t n_most)
{
    if (n_most > N_PARTS || n < N_PARTS) {
        return -FLT_MAX; /* all but those forbidden */
    }
    float best[N_PARTS];
    memcpy(best, logits, sizeof best);
    for (uint32_t first = N_PARTS; first + N_PARTS <= n; first += N_PARTS) {
        for (uint32_t i = 0; i < N_PARTS; i++) {
            best[i] = logits[first + i] > best[i] ? logits[first + i] : best[i];
        }
    }
    float least = FLT_MAX;
    for (uint32_t i = 0; i < N_PARTS; i++) {
        uint32_t n_above = 0;
        for (uint32_t j = 0; j < N_PARTS; j++) {
            n_above += best[j] > best[i];
        }
        if (n_above < n_most && best[i] < least) {
            least = best[i];
        }
    }
    return least > -FLT_MAX ? least : -FLT_MAX;
}

static bool is_any_reaching(const float *logits, uint32_t n, float least)
{
    uint32_t n_reaching = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_reaching += logits[i] >= least;
    }
    return n_reaching > 0;
}

/* Puts an item in that is among the best n_most so far; gives the heap's new size. */
static uint32_t offer(uint64_t *heap, uint32_t n_heap, uint32_t n_most, uint64_t key)
{
    if (n_heap < n_most) {
        heap[n_heap] = key;
        sift_up(heap, n_heap);
        return n_heap + 1;
    }
    if (key > heap[0]) {
        heap[0] = key;
        sift_down(heap, n_heap, 0);
    }
    return n_heap;
}

/* The best n_most of the allowed items, best first, in the heap's memory; gives their number. */
static uint32_t sort_best(s2_sampler *s, const float *logits, uint32_t n, uint32_t n_most)
{
    float least = low_bar(logits, n, n_most);
    uint32_t n_heap = 0;
    for (uint32_t first = 0; first < n; first += SKIP_BLOCK) {
        uint32_t m = n - first < SKIP_BLOCK ? n - first : SKIP_BLOCK;
        if (!is_any_reaching(logits + first, m, least)) {
            continue;
        }
        for (uint32_t i = first; i < first + m; i++) {
            if (logits[i] < least) {
                continue;
            }
            n_heap = offer(s->heap, n_heap, n_most, key_of(logits, i));
            if (n_heap == n_most) {
                least = logits[index_of(s->heap[0])];
            }
        }
    }
    for (uint32_t m = n_heap; m > 1; m--) {
        uint64_t worst = s->heap[0];
        s->heap[0] = s->heap[m - 1];
        s->heap[m - 1] = worst;
        sift_down(s->heap, m - 1, 0);
    }
    return n_heap;
}

/* How many of the sorted items top_p leaves. */
static uint32_t cut_tail(const s2_sampler *s, const s2_sample_params *params, const float *logits,
        uint32_t n, uint32_t n_sorted)
{
    if (params->top_p >= 1.0f) {
        return n_sorted; /* a sum of 1 + rounding must not cut the tail */
    }
    double best = (double)logits[index_of(s->heap[0])];
    s2_softmax_sum_fn softmax_sum = s2_softmax_sum_at(0);
    double sum = softmax_sum(logits, n, best);
    double cumulative = 0.0;
    uint32_t n_kept = 0;
    while (n_kept < n_sorted) {
        cumulative += s2_exp_of_negative((double)logits[index_of(s->heap[n_kept])] - best) / sum;
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
    double best = (double)logits[index_of(sampler->heap[0])];
    double temperature = is_greedy ? 1.0 : (double)params->temperature;
    s2_kept_item *items = sampler->items;
    for (uint32_t i = 0; i < n_kept; i++) {
        items[i].index = index_of(sampler->heap[i]);
    }
    double sum = 0.0;
    for (uint32_t i = 0; i < n_kept; i++) {
        items[i].p = s2_exp_of_negative(((double)logits[items[i].index] - best) / temperature);
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
