#include "engine/stage.h"

#include <string.h>

#include "base/log.h"
#include "sluice/ggml_device.h"
#include "sluice/page_cache.h"

static s2_phase_kind kind_of_step(const s2_engine *e, size_t i_step)
{
    return e->run.kinds[i_step];
}

s2_compute *s2_stage_compute(s2_engine *e, s2_slot slot)
{
    return &e->computes[e->actual[slot]];
}

static sl_wait wait_of(const s2_engine *e)
{
    return (sl_wait){e->computes[0].should_stop, e->computes[0].stop_ud};
}

/* On the host weights are used where they are mapped. */
bool s2_stage_is_moved(const s2_engine *e, s2_slot slot)
{
    return e->actual[slot] > 0;
}

static int open_computes(s2_engine *e, int n_threads, sl_error *reterr)
{
    int r = s2_compute_init(&e->computes[0], n_threads, reterr);
    for (size_t i = 1; i < s2_placement_n_places(e->placement) && r == 0; i++) {
        sl_device *device = s2_placement_place(e->placement, i)->device;
        r = s2_compute_init_device(&e->computes[i], &e->computes[0], device, reterr);
    }
    return r;
}

static int open_residency(s2_engine *e, sl_error *reterr)
{
    int r = s2_planner_open_residency(
            &e->planner, e->policy, false, &e->log, &e->residency, reterr);
    for (size_t i = 0; i < s2_placement_n_places(e->placement) && r == 0; i++) {
        s2_compute_book_on(&e->computes[i], e->residency, i);
    }
    return r;
}

/* Units that nobody placed by name go to the host until the rest fits. */
static int place_nearest(s2_engine *e, sl_error *reterr)
{
    const size_t *fits = sl_plan_placement(e->planned.plan);
    int r = sl_plan_check(e->planned.plan, reterr);
    if (r >= 0 || !fits) {
        return r;
    }
    for (int slot = 0; slot < S2_SLOT_COUNT; slot++) {
        size_t unit = e->planner.units[slot];
        if (slot != S2_SLOT_SLOW_REST && unit != SL_PLAN_NONE && fits[unit] == 0 &&
                s2_planner_wanted(&e->planner, (s2_slot)slot) > 0) {
            sl__log(&e->log, SL_LOG_WARN, "%s goes to the cpu: the budget does not hold it",
                    s2_slot_name((s2_slot)slot));
            s2_placement_give_up(e->placement, (s2_unit_id)slot);
        }
    }
    sl_residency_close(&e->residency);
    return open_residency(e, reterr);
}

static s2_extent usual_extent(const s2_engine *e)
{
    return s2_extent_of(&e->hp, S2_USUAL_PROMPT, e->expected_frames);
}

/* A budget that is too small shows at open, and the placement yields to it where nobody asked for another. */
static int plan_usual(s2_engine *e, sl_error *reterr)
{
    const s2_extent extent = usual_extent(e);
    int r = s2_stage_plan_speech(e, &extent, false, reterr);
    return r == SL_EBUDGET ? place_nearest(e, reterr) : r;
}

int s2_stage_open(s2_engine *e, const s2_engine_opts *opts, sl_error *reterr)
{
    const s2_compute *computes[S2_MAX_PLACES];
    e->policy = opts->place.policy;
    e->decode_when = opts->place.decode;
    e->expected_frames = opts->expected_frames ? opts->expected_frames : S2_USUAL_FRAMES;
    int r = s2_placement_open(&opts->place, false, &e->log, &e->placement, reterr);
    if (r == 0) {
        r = open_computes(e, (int)e->n_threads, reterr);
    }
    for (size_t i = 0; i < S2_MAX_PLACES; i++) {
        computes[i] = &e->computes[i];
    }
    if (r == 0) {
        r = s2_planner_init(&e->planner, e->model, &e->hp, e->placement, computes, &e->log, reterr);
    }
    if (r == 0) {
        r = open_residency(e, reterr);
    }
    if (r == 0 && s2_placement_n_places(e->placement) > 1) {
        r = plan_usual(e, reterr);
    }
    for (int slot = 0; slot < S2_SLOT_COUNT && r == 0; slot++) {
        e->actual[slot] = s2_planner_wanted(&e->planner, (s2_slot)slot);
    }
    return r;
}

/* Only then has the codec processors to itself: a simulated device computes on the host's. */
static bool has_ar_on_gpu(const s2_engine *e)
{
    return !e->computes[e->actual[S2_SLOT_SLOW]].is_cpu &&
           !e->computes[e->actual[S2_SLOT_FAST]].is_cpu;
}

bool s2_stage_decodes_beside(const s2_engine *e)
{
    return e->codec_compute.backend && has_ar_on_gpu(e) && s2_stage_decodes_together(e);
}

int s2_stage_need_codec_compute(s2_engine *e, s2_compute **ret_compute, sl_error *reterr)
{
    size_t i_place = e->actual[S2_SLOT_CODEC_DECODER];
    s2_compute *own = &e->codec_compute;
    *ret_compute = &e->computes[i_place];
    if (!has_ar_on_gpu(e)) {
        return SL_OK;
    }
    if (own->backend && own->i_place != i_place) {
        s2_compute_done(own);
    }
    if (!own->backend) {
        sl_device *device = s2_placement_place(e->placement, i_place)->device;
        int r = i_place == 0 || !sl_ggml_is(device)
                        ? s2_compute_init(own, (int)e->n_threads, reterr)
                        : s2_compute_init_device(own, &e->computes[0], device, reterr);
        if (r < 0) {
            return r;
        }
        s2_compute_book_on(own, e->residency, i_place);
        s2_compute_set_stop(own, e->computes[0].should_stop, e->computes[0].stop_ud);
    }
    *ret_compute = own;
    return SL_OK;
}

/* The slow AR's memory goes; the beginning that prompts share stays in the host's if it is wanted. */
static void release_slow(s2_engine *e, bool is_kept)
{
    if (is_kept) {
        s2_prefix_keep(&e->prefix, e->slow, e->residency);
    }
    s2_slow_ar_release(e->slow);
}

/* Takes the addresses of a slot back and gives its lease up. */
static void let_go(s2_engine *e, s2_slot slot)
{
    if (!e->held[slot]) {
        return;
    }
    if (slot == S2_SLOT_CODEC_DECODER || slot == S2_SLOT_CODEC_QUANTIZER) {
        s2_codec_decoder_free(&e->decoder);
    } else if (slot == S2_SLOT_FAST && e->fast) {
        s2_fast_ar_release(e->fast);
    } else if (slot != S2_SLOT_CODEC_ENCODER && e->slow) {
        release_slow(e, e->policy != SL_POLICY_HOT && s2_stage_is_moved(e, slot));
    }
    s2_weights_detach(e->weights, slot);
    s2_compute_note_freed(s2_stage_compute(e, slot));
    s2_compute_note_freed(&e->codec_compute);
    sl_lease_release(&e->held[slot]);
}

void s2_stage_close(s2_engine *e)
{
    s2_prefix_done(&e->prefix);
    if (e->residency) {
        s2_stage_end(e);
    }
    for (int slot = 0; slot < S2_SLOT_COUNT; slot++) {
        let_go(e, (s2_slot)slot);
    }
    s2_codec_decoder_free(&e->decoder);
    s2_fast_ar_free(&e->fast);
    s2_slow_ar_free(&e->slow);
    s2_planned_done(&e->planned);
    s2_planner_done(&e->planner);
    sl_residency_close(&e->residency);
    s2_compute_done(&e->codec_compute);
    for (size_t i = S2_MAX_PLACES; i > 0; i--) {
        s2_compute_done(&e->computes[i - 1]);
    }
    s2_placement_close(&e->placement);
}

void s2_stage_fetch_ahead(s2_engine *e)
{
    static const s2_slot wanted[] = {S2_SLOT_SLOW, S2_SLOT_SLOW_REST, S2_SLOT_FAST};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        size_t unit = e->planner.units[wanted[i]];
        if (unit != SL_PLAN_NONE && s2_stage_is_moved(e, wanted[i])) {
            sl_residency_prefetch(e->residency, unit);
        }
    }
}

/* Takes over a plan. */
static int use_plan(s2_engine *e, const s2_run *run, const s2_planned *planned, sl_error *reterr)
{
    s2_planned_done(&e->planned);
    e->planned = *planned;
    e->run = *run;
    return sl_plan_check(e->planned.plan, reterr);
}

int s2_stage_plan(s2_engine *e, s2_phase_kind kind, const s2_extent *extent, sl_error *reterr)
{
    const s2_run run = {.kinds = {kind}, .n = 1};
    const s2_speeds speeds = {0};
    s2_planned planned = {0};
    int r = s2_planner_plan(&e->planner, &run, extent, e->policy, &speeds, &planned, reterr);
    return r < 0 ? r : use_plan(e, &run, &planned, reterr);
}

static int plan_speech(s2_engine *e, const s2_extent *extent, bool begins_with_voice,
        bool wants_sound_early, sl_error *reterr)
{
    const s2_run_wish wish = {e->policy, e->decode_when, begins_with_voice, wants_sound_early};
    const s2_speeds speeds = {0};
    s2_planned planned = {0};
    s2_run run;
    int r = s2_planner_plan_speech(&e->planner, &wish, extent, &speeds, &run, &planned, reterr);
    if (r >= 0) {
        r = use_plan(e, &run, &planned, reterr);
    }
    if (r >= 0 && wants_sound_early && !s2_stage_decodes_together(e)) {
        sl__log(&e->log, SL_LOG_INFO, "sound comes when all is generated: %s",
                e->decode_when == S2_DECODE_AFTER
                        ? "--decode after"
                        : "the budget does not hold AR and codec together");
    }
    return r;
}

int s2_stage_plan_speech(
        s2_engine *e, const s2_extent *extent, bool wants_sound_early, sl_error *reterr)
{
    return plan_speech(e, extent, false, wants_sound_early, reterr);
}

int s2_stage_plan_voice(s2_engine *e, sl_error *reterr)
{
    const s2_extent extent = usual_extent(e);
    return e->expects_speech ? plan_speech(e, &extent, true, false, reterr)
                             : s2_stage_plan(e, S2_PHASE_ENCODE, &extent, reterr);
}

bool s2_stage_decodes_together(const s2_engine *e)
{
    return e->run.n == 0 || e->run.kinds[e->run.n - 1] != S2_PHASE_DECODE;
}

/* Leases a slot for itself: its addresses then outlive the phase if the policy keeps it. */
static int hold(s2_engine *e, s2_slot slot, bool is_streaming, sl_error *reterr)
{
    const sl_wait wait = wait_of(e);
    size_t unit = e->planner.units[slot];
    sl_unit_status status;
    if (e->held[slot] || unit == SL_PLAN_NONE) {
        return SL_OK;
    }
    int r = sl_lease_acquire(e->residency, &unit, 1, is_streaming, &wait, &e->held[slot], reterr);
    sl_residency_unit_status(e->residency, unit, &status);
    if (r == SL_EBUSY && status.last_error.code < 0) {
        /* Its load has failed since the phase began. */
        if (reterr) {
            *reterr = status.last_error;
        }
        r = status.last_error.code;
    }
    if (r < 0) {
        return r;
    }
    e->actual[slot] = status.actual_place;
    s2_weights_attach(e->weights, slot, e->held[slot], unit);
    return SL_OK;
}

static bool is_same_places(const s2_slow_places *a, const s2_slow_places *b)
{
    return a->first == b->first && a->rest == b->rest && a->n_first == b->n_first;
}

/* The ARs compute where their weights are: after a fallback they are made anew. */
int s2_stage_need_ars(s2_engine *e, sl_error *reterr)
{
    const s2_slow_places places = {
            .first = s2_stage_compute(e, S2_SLOT_SLOW),
            .rest = s2_stage_compute(e, S2_SLOT_SLOW_REST),
            .n_first = e->planner.n_first < e->hp.slow.n_layer ? e->planner.n_first : UINT32_MAX,
    };
    s2_compute *fast = s2_stage_compute(e, S2_SLOT_FAST);
    int r = SL_OK;
    if (!e->slow || !is_same_places(&places, &e->slow_places)) {
        s2_slow_ar_free(&e->slow);
        s2_prefix_done(&e->prefix);
        e->slow_places = places;
        r = s2_slow_ar_create(&e->hp, e->layout.im_end, e->weights, &places, &e->slow, reterr);
    }
    if (r == 0 && (!e->fast || fast != e->fast_compute)) {
        s2_fast_ar_free(&e->fast);
        e->fast_compute = fast;
        r = s2_fast_ar_create(&e->hp, e->weights, fast, &e->fast, reterr);
    }
    return r;
}

/* A load that failed half way is given up: while something holds what arrived, nobody can try again. */
static void let_go_failed(s2_engine *e)
{
    for (int slot = 0; slot < S2_SLOT_COUNT; slot++) {
        sl_unit_status status;
        if (!e->held[slot]) {
            continue;
        }
        sl_residency_unit_status(e->residency, e->planner.units[slot], &status);
        if (status.state == SL_UNIT_EVICTING || status.state == SL_UNIT_ABSENT) {
            let_go(e, (s2_slot)slot);
        }
    }
}

/*
 * Whether the step's plan has room for the keys and values that the last request left: not fewer than it needs, since
 * making room moves them, and no more than the budget holds beside the rest.
 */
static bool has_room_for_leftovers(const s2_engine *e, size_t i_step)
{
    for (size_t i = 1; i < s2_placement_n_places(e->placement); i++) {
        const s2_compute *compute = &e->computes[i];
        uint64_t budget = s2_placement_place(e->placement, i)->budget_bytes;
        sl_plan_bytes peak = sl_plan_peak(e->planned.plan, i_step, i);
        uint64_t needed = peak.kind[SL_MEM_KV];
        uint64_t left = s2_slow_ar_kv_bytes(e->slow, compute);
        left += e->fast_compute == compute ? s2_fast_ar_kv_bytes(e->fast) : 0;
        if (left < needed || peak.total > budget || left - needed > budget - peak.total) {
            return false;
        }
    }
    return true;
}

/* Under auto what the last request used stays for the next one, if that needs it and has room for it. */
static void let_go_leftovers(s2_engine *e, size_t i_step, s2_phase_kind kind)
{
    for (int slot = 0; slot < S2_SLOT_COUNT; slot++) {
        if (!s2_phase_needs(kind, (s2_slot)slot) && s2_stage_is_moved(e, (s2_slot)slot)) {
            let_go(e, (s2_slot)slot);
        }
    }
    if (e->slow && e->fast && s2_slow_ar_kv_bytes(e->slow, NULL) > 0 &&
            !has_room_for_leftovers(e, i_step)) {
        release_slow(e, true);
        s2_fast_ar_release(e->fast);
        s2_codec_decoder_free(&e->decoder);
    }
}

int s2_stage_begin(s2_engine *e, size_t i_step, bool is_streaming, sl_error *reterr)
{
    const sl_wait wait = wait_of(e);
    s2_phase_kind kind = kind_of_step(e, i_step);
    let_go_failed(e);
    if (e->policy == SL_POLICY_AUTO) {
        let_go_leftovers(e, i_step, kind);
    }
    int r = sl_phase_begin(e->residency, e->planned.plan, i_step, s2_phase_name(kind), is_streaming,
            &wait, &e->phase, reterr);
    if (r < 0) {
        return r;
    }
    e->i_step = i_step;
    for (int slot = 0; slot < S2_SLOT_COUNT && r >= 0; slot++) {
        if (s2_phase_needs(kind, (s2_slot)slot)) {
            r = hold(e, (s2_slot)slot, is_streaming, reterr);
        }
    }
    if (r >= 0 && s2_phase_needs(kind, S2_SLOT_SLOW)) {
        r = s2_stage_need_ars(e, reterr);
    }
    if (r < 0) {
        s2_stage_end(e);
    }
    return r < 0 ? r : SL_OK;
}

void s2_stage_end(s2_engine *e)
{
    if (!e->phase) {
        return;
    }
    bool has_next = e->i_step + 1 < e->run.n;
    bool stays = e->policy == SL_POLICY_KEEP || (e->policy == SL_POLICY_AUTO && e->run.n == 1);
    for (int slot = 0; slot < S2_SLOT_COUNT; slot++) {
        bool is_next = has_next && s2_phase_needs(kind_of_step(e, e->i_step + 1), (s2_slot)slot);
        if (!is_next && !stays && s2_stage_is_moved(e, (s2_slot)slot)) {
            let_go(e, (s2_slot)slot);
        }
    }
    let_go_failed(e);
    sl_phase_end(&e->phase);
}

void s2_stage_finish(s2_engine *e)
{
    sl_error err = {0};
    s2_stage_end(e);
    if (e->policy == SL_POLICY_HOT && s2_engine_sleep(e, 3, &err) < 0) {
        sl__log(&e->log, SL_LOG_WARN, "not everything was given back: %s", err.msg);
    }
}

/* Forgets the pages of the model's files, in this process and in the system's cache. */
static int drop_pages(s2_engine *e, sl_error *reterr)
{
    int r = SL_OK;
    for (uint32_t i = 0; i < sl_model_n_files(e->model) && r >= 0; i++) {
        const sl_map *map = sl_model_map(e->model, i);
        sl_ranges all = {0};
        uint64_t n_left = 0;
        r = sl_ranges_add(&all, 0, sl_map_size(map));
        r = r < 0 ? sl__fail_nomem(reterr, sizeof *all.items, "a range")
                  : sl_page_cache_drop(map, &all, &n_left, reterr);
        sl_ranges_done(&all);
    }
    return r;
}

int s2_engine_sleep(s2_engine *e, unsigned level, sl_error *reterr)
{
    const sl_wait wait = wait_of(e);
    if (level < 1 || level > 3) {
        return sl__fail(reterr, SL_EINVAL, "sleep level: %u, need 1 to 3", level);
    }
    s2_stage_end(e);
    release_slow(e, level < 2 && s2_stage_is_moved(e, S2_SLOT_SLOW));
    s2_fast_ar_release(e->fast);
    s2_codec_decoder_free(&e->decoder);
    if (level >= 2) {
        s2_prefix_drop(&e->prefix);
    }
    for (int slot = 0; slot < S2_SLOT_COUNT && level >= 2; slot++) {
        let_go(e, (s2_slot)slot);
    }
    int r = sl_residency_sleep(e->residency, level >= 2 ? 2 : 1, &wait, reterr);
    for (size_t i = 0; i < S2_MAX_PLACES && r >= 0; i++) {
        r = s2_compute_renew(&e->computes[i], reterr);
    }
    r = r < 0 ? r : s2_compute_renew(&e->codec_compute, reterr);
    return r >= 0 && level == 3 ? drop_pages(e, reterr) : r;
}
