#include "engine/planner.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/model/codec_decoder.h"
#include "engine/model/codec_encoder.h"
#include "engine/model/fast_ar.h"

/* Time of decoding a frame, as a part of the time of generating it; only for predictions. */
#define DECODE_SHARE 0.25

/* Recordings are encoded this many times faster than frames are generated; only for predictions. */
#define ENCODE_SHARE 0.25

#define CODEC_ENCODER 0
#define CODEC_DECODER 1

s2_extent s2_extent_of(const s2_hparams *hp, uint64_t n_prompt, uint32_t n_frames)
{
    uint64_t n_positions = n_prompt + n_frames;
    return (s2_extent){
            .n_prompt = n_prompt < hp->n_ctx ? (uint32_t)n_prompt : hp->n_ctx,
            .n_positions = n_positions < hp->n_ctx ? (uint32_t)n_positions : hp->n_ctx,
            .n_frames = n_frames,
    };
}

const char *s2_phase_name(s2_phase_kind kind)
{
    static const char *const names[S2_PHASE_COUNT] = {
            [S2_PHASE_ENCODE] = "encode",
            [S2_PHASE_GENERATE] = "generate",
            [S2_PHASE_DECODE] = "decode",
            [S2_PHASE_SPEAK] = "speak",
    };
    return names[kind];
}

bool s2_phase_needs(s2_phase_kind kind, s2_slot slot)
{
    bool generates = kind == S2_PHASE_GENERATE || kind == S2_PHASE_SPEAK;
    bool decodes = kind == S2_PHASE_DECODE || kind == S2_PHASE_SPEAK;
    switch (slot) {
    case S2_SLOT_EMBED:
    case S2_SLOT_SLOW:
    case S2_SLOT_SLOW_REST:
    case S2_SLOT_FAST:
        return generates;
    case S2_SLOT_CODEC_ENCODER:
        return kind == S2_PHASE_ENCODE;
    case S2_SLOT_CODEC_DECODER:
        return decodes;
    case S2_SLOT_CODEC_QUANTIZER:
        return decodes || kind == S2_PHASE_ENCODE;
    case S2_SLOT_COUNT:
    default:
        return false;
    }
}

size_t s2_planner_wanted(const s2_planner *p, s2_slot slot)
{
    return slot == S2_SLOT_SLOW_REST ? 0 : s2_placement_wanted(p->placement, (s2_unit_id)slot);
}

size_t s2_planner_second(const s2_planner *p, s2_slot slot)
{
    return slot == S2_SLOT_SLOW_REST ? SL_PLAN_NONE
                                     : s2_placement_second(p->placement, (s2_unit_id)slot);
}

static s2_compute *measure_of(s2_planner *p, s2_slot slot)
{
    return &p->measures[s2_planner_wanted(p, slot)];
}

/* Any token that may stand for the end: measuring looks at no vocabulary. */
static int32_t some_end_token(const s2_hparams *hp)
{
    return hp->semantic_begin > 0 ? 0 : hp->semantic_end + 1;
}

static int measure_fast(s2_planner *p, s2_needs *needs, sl_error *reterr)
{
    s2_fast_ar *fast = NULL;
    size_t at = s2_planner_wanted(p, S2_SLOT_FAST);
    int r = s2_fast_ar_create(p->hp, p->weights, &p->measures[at], &fast, reterr);
    if (r == 0) {
        r = s2_fast_ar_prepare(fast, reterr);
    }
    if (r == 0) {
        needs->kv[at] += s2_fast_ar_kv_bytes(fast);
        needs->compute[at] += s2_fast_ar_compute_bytes(fast);
    }
    s2_fast_ar_free(&fast);
    return r;
}

static int measure_slow(s2_planner *p, const s2_extent *extent, s2_needs *needs, sl_error *reterr)
{
    s2_slow_ar *slow = NULL;
    const s2_slow_places places = {
            .first = measure_of(p, S2_SLOT_SLOW),
            .rest = measure_of(p, S2_SLOT_SLOW_REST),
            .n_first = p->n_first,
    };
    int r = s2_slow_ar_create(p->hp, some_end_token(p->hp), p->weights, &places, &slow, reterr);
    if (r == 0) {
        r = s2_slow_ar_measure(slow, extent->n_prompt, extent->n_positions, reterr);
    }
    for (size_t i = 0; i < p->n_places && r == 0; i++) {
        needs->kv[i] += s2_slow_ar_kv_bytes(slow, &p->measures[i]);
        needs->compute[i] += s2_slow_ar_compute_bytes(slow, &p->measures[i]);
    }
    s2_slow_ar_free(&slow);
    return r;
}

static int measure_decoder(s2_planner *p, sl_error *reterr)
{
    s2_codec_decoder *decoder = NULL;
    size_t at = s2_planner_wanted(p, S2_SLOT_CODEC_DECODER);
    int r = s2_codec_decoder_create(p->hp, p->weights, &p->measures[at], &decoder, reterr);
    if (r == 0) {
        r = s2_codec_decoder_prepare(decoder, reterr);
    }
    memset(&p->codec[CODEC_DECODER], 0, sizeof p->codec[CODEC_DECODER]);
    p->codec[CODEC_DECODER].compute[at] = r == 0 ? s2_codec_decoder_bytes(decoder) : 0;
    s2_codec_decoder_free(&decoder);
    return r;
}

static int measure_encoder(s2_planner *p, sl_error *reterr)
{
    s2_codec_encoder *encoder = NULL;
    size_t at = s2_planner_wanted(p, S2_SLOT_CODEC_ENCODER);
    int r = s2_codec_encoder_create(p->hp, p->weights, &p->measures[at], &encoder, reterr);
    if (r == 0) {
        r = s2_codec_encoder_prepare(encoder, reterr);
    }
    memset(&p->codec[CODEC_ENCODER], 0, sizeof p->codec[CODEC_ENCODER]);
    p->codec[CODEC_ENCODER].compute[at] = r == 0 ? s2_codec_encoder_bytes(encoder) : 0;
    s2_codec_encoder_free(&encoder);
    return r;
}

static int measure_ar(s2_planner *p, const s2_extent *extent, sl_error *reterr)
{
    bool is_same = p->has_ar && p->extent.n_prompt == extent->n_prompt &&
                   p->extent.n_positions == extent->n_positions;
    if (is_same) {
        return SL_OK;
    }
    s2_needs needs = {0};
    int r = measure_slow(p, extent, &needs, reterr);
    if (r == 0) {
        r = measure_fast(p, &needs, reterr);
    }
    if (r == 0) {
        p->ar = needs;
        p->extent = *extent;
        p->has_ar = true;
    }
    return r;
}

/* A unit that its device cannot compute goes to the host, unless somebody placed it there by name. */
static int give_up(s2_planner *p, s2_unit_id unit, const sl_logger *log, sl_error *reterr)
{
    const sl_error why = *reterr;
    size_t at = s2_placement_wanted(p->placement, unit);
    if (at == 0 || s2_placement_second(p->placement, unit) == SL_PLAN_NONE) {
        return sl__fail(reterr, SL_EUNSUPPORTED, "unit %s: %s; place it with --place %s=cpu",
                s2_unit_name(unit), why.msg, s2_unit_name(unit));
    }
    s2_placement_give_up(p->placement, unit);
    sl__log(log, SL_LOG_WARN, "%s goes to the cpu: %s", s2_unit_name(unit), why.msg);
    return SL_OK;
}

static int fit_fast(s2_planner *p, const sl_logger *log, sl_error *reterr)
{
    s2_needs ignored = {0};
    int r = measure_fast(p, &ignored, reterr);
    if (r == SL_EUNSUPPORTED) {
        r = give_up(p, S2_UNIT_FAST, log, reterr);
    }
    return r;
}

static int fit_slow(s2_planner *p, const sl_logger *log, sl_error *reterr)
{
    const s2_extent extent = {.n_prompt = 2, .n_positions = 4};
    s2_needs ignored = {0};
    int r = measure_slow(p, &extent, &ignored, reterr);
    if (r == SL_EUNSUPPORTED) {
        r = give_up(p, S2_UNIT_SLOW, log, reterr);
    }
    return r;
}

static int fit_codec(s2_planner *p, const sl_logger *log, sl_error *reterr)
{
    int r = measure_decoder(p, reterr);
    if (r == SL_EUNSUPPORTED) {
        r = give_up(p, S2_UNIT_CODEC_DECODER, log, reterr);
        r = r < 0 ? r : measure_decoder(p, reterr);
    }
    if (r < 0) {
        return r;
    }
    r = measure_encoder(p, reterr);
    if (r == SL_EUNSUPPORTED) {
        r = give_up(p, S2_UNIT_CODEC_ENCODER, log, reterr);
        r = r < 0 ? r : measure_encoder(p, reterr);
    }
    return r;
}

int s2_planner_init(s2_planner *p, const sl_model *model, const s2_hparams *hp,
        s2_placement *placement, const s2_compute *const *computes, const sl_logger *log,
        sl_error *reterr)
{
    memset(p, 0, sizeof *p);
    p->model = model;
    p->hp = hp;
    p->placement = placement;
    p->n_places = s2_placement_n_places(placement);
    for (size_t i = 0; i < p->n_places; i++) {
        s2_compute_init_measure(&p->measures[i], computes[i], i == 0);
    }
    p->n_first = s2_placement_slow_layers(placement, hp->slow.n_layer);
    int r = s2_head_rows_init(&p->head, model, hp, reterr);
    if (r == 0) {
        r = s2_weights_open(model, &p->head.tensor, &p->weights, reterr);
    }
    if (r == 0) {
        r = s2_weights_use_mapping(p->weights, reterr);
    }
    if (r == 0) {
        r = fit_slow(p, log, reterr);
    }
    if (r == 0) {
        r = fit_fast(p, log, reterr);
    }
    if (r == 0) {
        r = fit_codec(p, log, reterr);
    }
    if (r < 0) {
        s2_planner_done(p);
        return r;
    }
    if (p->n_first < hp->slow.n_layer) {
        s2_weights_split_slow(p->weights, p->n_first);
    }
    return SL_OK;
}

void s2_planner_done(s2_planner *p)
{
    s2_weights_close(&p->weights);
    memset(p, 0, sizeof *p);
}

static uint64_t room(void *ud, size_t i_place, const sl_tensor *tensor)
{
    const s2_planner *p = ud;
    return s2_weights_room(p->weights, tensor, &p->measures[i_place]);
}

static int add_units(s2_planner *p, sl_residency *residency, sl_error *reterr)
{
    size_t n_tensors = (size_t)sl_model_n_tensors(p->model) + 1; /* and the head */
    const sl_tensor **tensors = sl__alloc(n_tensors, sizeof(const sl_tensor *));
    int r = tensors ? SL_OK : sl__fail_nomem(reterr, n_tensors * sizeof(void *), "units");
    p->n_units = 0;
    for (int slot = 0; slot < S2_SLOT_COUNT && r == 0; slot++) {
        p->units[slot] = SL_PLAN_NONE;
        sl_unit_spec spec = {
                .name = s2_slot_name((s2_slot)slot),
                .model = p->model,
                .tensors = tensors,
                .i_place = s2_planner_wanted(p, (s2_slot)slot),
                .i_second = s2_planner_second(p, (s2_slot)slot),
                .room = room,
                .ud = p,
        };
        spec.n_tensors = s2_weights_list(p->weights, (s2_slot)slot, tensors);
        bool is_used = spec.n_tensors > 0 || slot != S2_SLOT_SLOW_REST;
        if (is_used) {
            r = sl_residency_add_unit(residency, &spec, &p->units[slot], reterr);
            p->n_units += r >= 0;
        }
    }
    sl__free(tensors);
    return r;
}

int s2_planner_open_residency(s2_planner *p, sl_policy policy, bool is_stepped,
        const sl_logger *log, sl_residency **ret_residency, sl_error *reterr)
{
    sl_residency_place places[S2_MAX_PLACES];
    sl_residency *residency = NULL;
    for (size_t i = 0; i < p->n_places; i++) {
        const s2_place *place = s2_placement_place(p->placement, i);
        places[i] = (sl_residency_place){place->device, place->budget_bytes};
    }
    const sl_residency_opts opts = {
            .places = places,
            .n_places = p->n_places,
            .policy = policy,
            .is_stepped = is_stepped,
            .log = *log,
    };
    p->has_ar = false; /* it may have been measured for other places */
    int r = sl_residency_open(&opts, &residency, reterr);
    if (r == 0) {
        r = add_units(p, residency, reterr);
    }
    if (r < 0) {
        sl_residency_close(&residency);
        return r;
    }
    p->residency = residency;
    *ret_residency = residency;
    return SL_OK;
}

void s2_planned_done(s2_planned *planned)
{
    sl_plan_free(&planned->plan);
    sl__free(planned->places);
    sl__free(planned->units);
    sl__free(planned->phases);
    sl__free(planned->lists);
    sl__free(planned->scratch);
    memset(planned, 0, sizeof *planned);
}

static int alloc_planned(const s2_planner *p, size_t n_run, s2_planned *ret, sl_error *reterr)
{
    ret->places = sl__alloc(p->n_places, sizeof *ret->places);
    ret->units = sl__alloc(p->n_units, sizeof *ret->units);
    ret->phases = sl__alloc(n_run, sizeof *ret->phases);
    ret->lists = sl__alloc(n_run * p->n_units, sizeof *ret->lists);
    ret->scratch = sl__alloc(n_run * 2 * p->n_places, sizeof *ret->scratch);
    if (ret->places && ret->units && ret->phases && ret->lists && ret->scratch) {
        return SL_OK;
    }
    (void)sl__fail_nomem(reterr, n_run * sizeof *ret->phases, "a plan");
    return SL_ENOMEM;
}

static void fill_units(const s2_planner *p, s2_planned *planned)
{
    for (int slot = 0; slot < S2_SLOT_COUNT; slot++) {
        size_t unit = p->units[slot];
        if (unit == SL_PLAN_NONE) {
            continue;
        }
        size_t place = s2_planner_wanted(p, (s2_slot)slot);
        size_t second = s2_planner_second(p, (s2_slot)slot);
        planned->units[unit] = (sl_plan_unit){
                .name = s2_slot_name((s2_slot)slot),
                .i_place = place,
                .n_bytes = sl_residency_unit_bytes(p->residency, unit, place),
                .i_second = second,
                .second_bytes = second == SL_PLAN_NONE
                                        ? 0
                                        : sl_residency_unit_bytes(p->residency, unit, second),
        };
    }
}

static void add_needs(s2_needs *sum, const s2_needs *more)
{
    for (size_t i = 0; i < S2_MAX_PLACES; i++) {
        sum->kv[i] += more->kv[i];
        sum->compute[i] += more->compute[i];
    }
}

static s2_needs needs_of(const s2_planner *p, s2_phase_kind kind)
{
    s2_needs needs = {0};
    if (kind == S2_PHASE_GENERATE || kind == S2_PHASE_SPEAK) {
        add_needs(&needs, &p->ar);
    }
    if (kind == S2_PHASE_DECODE || kind == S2_PHASE_SPEAK) {
        add_needs(&needs, &p->codec[CODEC_DECODER]);
    }
    if (kind == S2_PHASE_ENCODE) {
        add_needs(&needs, &p->codec[CODEC_ENCODER]);
    }
    return needs;
}

static double seconds_of(s2_phase_kind kind, const s2_extent *extent, const s2_speeds *speeds)
{
    double frame = speeds->frame_seconds;
    double generate = frame * (1.0 - DECODE_SHARE) * extent->n_frames;
    double decode = frame * DECODE_SHARE * extent->n_frames;
    switch (kind) {
    case S2_PHASE_ENCODE:
        return frame * ENCODE_SHARE * extent->n_prompt;
    case S2_PHASE_GENERATE:
        return generate;
    case S2_PHASE_DECODE:
        return decode;
    case S2_PHASE_SPEAK:
        return generate + decode;
    case S2_PHASE_COUNT:
    default:
        return 0;
    }
}

static void fill_phase(const s2_planner *p, s2_phase_kind kind, size_t i, s2_planned *planned)
{
    sl_plan_phase *phase = &planned->phases[i];
    size_t *list = planned->lists + i * p->n_units;
    sl_plan_scratch *scratch = planned->scratch + i * 2 * p->n_places;
    s2_needs needs = needs_of(p, kind);
    size_t n_units = 0;
    size_t n_scratch = 0;
    for (int slot = 0; slot < S2_SLOT_COUNT; slot++) {
        if (p->units[slot] != SL_PLAN_NONE && s2_phase_needs(kind, (s2_slot)slot)) {
            list[n_units] = p->units[slot];
            n_units++;
        }
    }
    for (size_t k = 0; k < p->n_places; k++) {
        if (needs.kv[k] > 0) {
            scratch[n_scratch] = (sl_plan_scratch){k, SL_MEM_KV, needs.kv[k]};
            n_scratch++;
        }
        if (needs.compute[k] > 0) {
            scratch[n_scratch] = (sl_plan_scratch){k, SL_MEM_COMPUTE, needs.compute[k]};
            n_scratch++;
        }
    }
    *phase = (sl_plan_phase){.name = s2_phase_name(kind),
            .units = list,
            .n_units = n_units,
            .scratch = scratch,
            .n_scratch = n_scratch};
}

int s2_planner_plan(s2_planner *p, const s2_run *run, const s2_extent *extent, sl_policy policy,
        const s2_speeds *speeds, s2_planned *ret_planned, sl_error *reterr)
{
    s2_planned planned = {0};
    int r = measure_ar(p, extent, reterr);
    if (r == 0) {
        r = alloc_planned(p, run->n, &planned, reterr);
    }
    bool has_memory = r == 0 && planned.places && planned.units;
    if (!has_memory) {
        s2_planned_done(&planned);
        return r < 0 ? r : SL_ENOMEM;
    }
    for (size_t i = 0; i < p->n_places; i++) {
        const s2_place *place = s2_placement_place(p->placement, i);
        double link = i > 0 ? speeds->link_bytes_per_s : 0;
        planned.places[i] = (sl_plan_place){place->name, place->budget_bytes, link};
    }
    fill_units(p, &planned);
    for (size_t i = 0; i < run->n; i++) {
        fill_phase(p, run->kinds[i], i, &planned);
        planned.phases[i].seconds = seconds_of(run->kinds[i], extent, speeds);
    }
    planned.request = (sl_plan_request){
            .places = planned.places,
            .n_places = p->n_places,
            .units = planned.units,
            .n_units = p->n_units,
            .phases = planned.phases,
            .n_phases = run->n,
            .policy = policy,
            .prefetch = SL_PREFETCH_PEAK,
    };
    r = sl_plan_solve(&planned.request, &planned.plan, reterr);
    if (r < 0) {
        s2_planned_done(&planned);
        return r;
    }
    *ret_planned = planned;
    return SL_OK;
}

/* Whether the codec's decoder and the AR want memory of the same device. */
static bool shares_device(const s2_planner *p)
{
    size_t decoder = s2_planner_wanted(p, S2_SLOT_CODEC_DECODER);
    return decoder > 0 && (decoder == s2_planner_wanted(p, S2_SLOT_SLOW) ||
                                  decoder == s2_planner_wanted(p, S2_SLOT_FAST));
}

static s2_run run_of(const s2_run_wish *wish, bool is_together)
{
    s2_run run = {0};
    if (wish->begins_with_voice) {
        run.kinds[run.n++] = S2_PHASE_ENCODE;
    }
    run.kinds[run.n++] = is_together ? S2_PHASE_SPEAK : S2_PHASE_GENERATE;
    if (!is_together) {
        run.kinds[run.n++] = S2_PHASE_DECODE;
    }
    return run;
}

int s2_planner_plan_speech(s2_planner *p, const s2_run_wish *wish, const s2_extent *extent,
        const s2_speeds *speeds, s2_run *ret_run, s2_planned *ret_planned, sl_error *reterr)
{
    bool is_auto = wish->decode == S2_DECODE_AUTO;
    bool is_free = !shares_device(p) || wish->policy == SL_POLICY_KEEP;
    bool is_tried = is_auto && !is_free && wish->wants_sound_early;
    bool is_together = wish->decode == S2_DECODE_TOGETHER || (is_auto && is_free) || is_tried;
    *ret_run = run_of(wish, is_together);
    int r = s2_planner_plan(p, ret_run, extent, wish->policy, speeds, ret_planned, reterr);
    if (r < 0 || !is_tried || sl_plan_is_feasible(ret_planned->plan)) {
        return r;
    }
    s2_planned_done(ret_planned);
    *ret_run = run_of(wish, false);
    return s2_planner_plan(p, ret_run, extent, wish->policy, speeds, ret_planned, reterr);
}
