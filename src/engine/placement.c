#include "s2/placement.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/status.h"
#include "engine/nn/back_ends.h"
#include "sluice/ggml_device.h"

/* What a unit was asked to be on. */
typedef struct wish {
    size_t i_place;
    bool is_named; /* by --place */
} wish;

struct s2_placement {
    s2_place places[S2_MAX_PLACES];
    size_t n_places;
    wish wishes[S2_UNIT_COUNT];
    const char *sim_spec; /* while it is made */
    bool is_auto;         /* nobody named the device */
    bool has_gpu_layers;
    uint32_t gpu_layers;
};

/* The books and the tables of embeddings stay on the host. */
static const s2_unit_id movable[] = {
        S2_UNIT_SLOW, S2_UNIT_FAST, S2_UNIT_CODEC_ENCODER, S2_UNIT_CODEC_DECODER};
#define N_MOVABLE (sizeof movable / sizeof movable[0])

int s2_devices_list(
        const sl_logger *log, sl_device_info **ret_infos, size_t *ret_n, sl_error *reterr)
{
    s2_back_ends_load();
    size_t n_all = s2_back_ends_count();
    size_t n = 0;
    sl_device_info *infos = sl__alloc(n_all, sizeof *infos);
    if (!infos) {
        return sl__fail_nomem(reterr, n_all * sizeof *infos, "a list of devices");
    }
    for (size_t i = 0; i < n_all; i++) {
        sl_error err = {0};
        sl_device *device = NULL;
        int r = sl_ggml_create(s2_back_ends_device(i), &device, &err);
        if (r >= 0) {
            r = sl_device_describe(device, &infos[n], &err);
        }
        if (r < 0) {
            sl__log(log, SL_LOG_WARN, "%s", err.msg);
        }
        n += r >= 0;
        sl_device_free(&device);
    }
    *ret_infos = infos;
    *ret_n = n;
    return SL_OK;
}

void s2_devices_free(sl_device_info *infos)
{
    sl__free(infos);
}

const char *s2_devices_best(const sl_device_info *infos, size_t n)
{
    const sl_device_info *best = NULL;
    for (size_t i = 0; i < n; i++) {
        /* A card of its own before one that shares the computer's memory, whatever that reports. */
        bool is_gpu = infos[i].kind == SL_DEVICE_GPU;
        bool is_any = is_gpu || infos[i].kind == SL_DEVICE_INTEGRATED;
        bool is_better = !best || (is_gpu && best->kind != SL_DEVICE_GPU) ||
                         (infos[i].kind == best->kind && infos[i].free_bytes > best->free_bytes);
        best = is_any && is_better ? &infos[i] : best;
    }
    return best ? best->name : "cpu";
}

/* What of a device may be used by default. */
static uint64_t default_budget(const sl_device_info *info, const char **ret_source)
{
    uint64_t part = info->total_bytes / S2_VRAM_RESERVE_FRACTION;
    uint64_t reserve = part > S2_VRAM_RESERVE_BYTES ? part : S2_VRAM_RESERVE_BYTES;
    if (info->kind == SL_DEVICE_SIM) {
        *ret_source = "size of the simulation";
        return info->total_bytes;
    }
    if (info->total_bytes == 0) {
        *ret_source = "not limited: the device does not say";
        return UINT64_MAX;
    }
    *ret_source = "free less a reserve";
    return info->free_bytes > reserve ? info->free_bytes - reserve : 0;
}

static int describe_place(s2_place *place, uint64_t vram_bytes, sl_error *reterr)
{
    sl_device_info info;
    int r = sl_device_describe(place->device, &info, reterr);
    if (r < 0) {
        return r;
    }
    place->name = sl_device_name(place->device);
    place->budget_bytes = default_budget(&info, &place->budget_source);
    if (vram_bytes > 0 && info.kind == SL_DEVICE_SIM && vram_bytes > info.total_bytes) {
        return sl__fail(reterr, SL_EINVAL,
                "--vram: %" PRIu64 " bytes, but %s has %" PRIu64 ": give less", vram_bytes,
                place->name, info.total_bytes);
    }
    if (vram_bytes > 0) {
        place->budget_bytes = vram_bytes;
        place->budget_source = "--vram";
    }
    return SL_OK;
}

static int open_device(const char *name, uint64_t vram_bytes, bool is_planning, s2_place *ret_place,
        sl_error *reterr)
{
    if (strncmp(name, "sim:", 4) == 0) {
        return sl_device_create_sim(name, &ret_place->device, reterr);
    }
    s2_back_ends_load();
    int r = sl_ggml_open(name, &ret_place->device, reterr);
    if (r == SL_ENOENT && is_planning && vram_bytes > 0) {
        char spec[64];
        snprintf(spec, sizeof spec, "sim:%" PRIu64, vram_bytes);
        ret_place->is_stand_in = true;
        r = sl_device_create_sim(spec, &ret_place->device, reterr);
    }
    return r;
}

/* The place of a device, opened if it is a new one. */
static int need_place(s2_placement *p, const s2_place_opts *opts, bool is_planning,
        const char *name, size_t *ret_place, sl_error *reterr)
{
    if (strcmp(name, "cpu") == 0) {
        *ret_place = 0;
        return SL_OK;
    }
    for (size_t i = 1; i < p->n_places; i++) {
        bool is_sim = strncmp(name, "sim:", 4) == 0 && strcmp(p->places[i].name, "sim") == 0;
        if (is_sim && strcmp(p->sim_spec, name) != 0) {
            return sl__fail(reterr, SL_EINVAL,
                    "--place: a second simulated device; there can be one: call it sim");
        }
        if (is_sim || strcmp(p->places[i].name, name) == 0) {
            *ret_place = i;
            return SL_OK;
        }
    }
    if (p->n_places == S2_MAX_PLACES) {
        return sl__fail(reterr, SL_EINVAL, "--place: more than %d devices", S2_MAX_PLACES - 1);
    }
    s2_place *place = &p->places[p->n_places];
    int r = open_device(name, opts->vram_bytes, is_planning, place, reterr);
    if (r < 0) {
        return r;
    }
    *ret_place = p->n_places;
    p->n_places++;
    p->sim_spec = strncmp(name, "sim:", 4) == 0 ? name : p->sim_spec;
    r = describe_place(place, opts->vram_bytes, reterr);
    if (place->is_stand_in) {
        place->name = name;
    }
    return r;
}

/* "auto": the best device of all. In plans without any, a GPU that --vram describes. */
static int choose_device(const s2_place_opts *opts, bool is_planning, const sl_logger *log,
        char ret_name[64], sl_error *reterr)
{
    sl_device_info *infos = NULL;
    size_t n = 0;
    int r = s2_devices_list(log, &infos, &n, reterr);
    if (r < 0) {
        return r;
    }
    snprintf(ret_name, 64, "%s", s2_devices_best(infos, n));
    s2_devices_free(infos);
    bool is_none = strcmp(ret_name, "cpu") == 0;
    if (is_none && is_planning && opts->vram_bytes > 0) {
        snprintf(ret_name, 64, "gpu");
    }
    return SL_OK;
}

static bool word_is(const char *word, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(word, name, n) == 0;
}

/* The units that a word means, as bits 1 << s2_unit_id; 0 for none. */
static unsigned units_of_word(const char *word, size_t n)
{
    unsigned mask = 0;
    for (size_t i = 0; i < N_MOVABLE; i++) {
        mask |= word_is(word, n, s2_unit_name(movable[i])) ? 1u << movable[i] : 0;
    }
    if (word_is(word, n, "codec")) {
        mask = (1u << S2_UNIT_CODEC_ENCODER) | (1u << S2_UNIT_CODEC_DECODER);
    }
    if (word_is(word, n, s2_unit_name(S2_UNIT_CODEC_QUANTIZER))) {
        mask = 1u << S2_UNIT_CODEC_QUANTIZER;
    }
    if (word_is(word, n, s2_unit_name(S2_UNIT_EMBED))) {
        mask = 1u << S2_UNIT_EMBED;
    }
    return mask;
}

static int take_wish(s2_placement *p, const s2_place_opts *opts, bool is_planning, const char *text,
        const sl_logger *log, sl_error *reterr)
{
    char quoted[120];
    const char *equals = strchr(text, '=');
    unsigned mask = equals ? units_of_word(text, (size_t)(equals - text)) : 0;
    size_t i_place = 0;
    sl__quote(quoted, sizeof quoted, text, strlen(text));
    if (!mask || equals[1] == '\0') {
        return sl__fail(reterr, SL_EINVAL,
                "--place: '%s' is not UNIT=DEVICE with a unit slow, fast, codec.encoder, "
                "codec.decoder or codec",
                quoted);
    }
    int r = need_place(p, opts, is_planning, equals + 1, &i_place, reterr);
    if (r < 0) {
        return r;
    }
    if (mask == 1u << S2_UNIT_CODEC_QUANTIZER) {
        return i_place == 0 ? SL_OK
                            : sl__fail(reterr, SL_EINVAL,
                                      "--place: '%s': the quantizer is computed on the host; leave "
                                      "this out",
                                      quoted);
    }
    if (mask == 1u << S2_UNIT_EMBED && i_place > 0) {
        sl__log(log, SL_LOG_WARN,
                "--place %s: the tables of embeddings are gathered on the host: embed stays on the "
                "cpu",
                quoted);
        return SL_OK;
    }
    for (int u = 0; u < S2_UNIT_COUNT; u++) {
        wish *w = &p->wishes[u];
        if (!(mask & (1u << u))) {
            continue;
        }
        if (w->is_named && w->i_place != i_place) {
            return sl__fail(reterr, SL_EINVAL, "--place: '%s', but %s was placed on %s before",
                    quoted, s2_unit_name((s2_unit_id)u), p->places[w->i_place].name);
        }
        *w = (wish){i_place, true};
    }
    return SL_OK;
}

static int take_shorthand(
        s2_placement *p, bool is_set, const char *option, s2_unit_id unit, sl_error *reterr)
{
    wish *w = &p->wishes[unit];
    if (!is_set) {
        return SL_OK;
    }
    if (w->is_named && w->i_place != 0) {
        return sl__fail(reterr, SL_EINVAL, "%s and --place %s=%s contradict each other", option,
                s2_unit_name(unit), p->places[w->i_place].name);
    }
    *w = (wish){0, true};
    return SL_OK;
}

static int take_shorthands(
        s2_placement *p, const s2_place_opts *opts, const sl_logger *log, sl_error *reterr)
{
    if (opts->embed_on_cpu) {
        sl__log(log, SL_LOG_INFO, "--codebook-cpu: the tables of embeddings are on the cpu anyway");
    }
    int r = take_shorthand(p, opts->fast_on_cpu, "--fast-decoder-cpu", S2_UNIT_FAST, reterr);
    if (r == 0) {
        r = take_shorthand(p, opts->codec_on_cpu, "--codec-cpu", S2_UNIT_CODEC_ENCODER, reterr);
    }
    if (r == 0) {
        r = take_shorthand(p, opts->codec_on_cpu, "--codec-cpu", S2_UNIT_CODEC_DECODER, reterr);
    }
    if (r == 0 && opts->has_gpu_layers && opts->gpu_layers == 0) {
        r = take_shorthand(p, true, "--gpu-layers 0", S2_UNIT_SLOW, reterr);
    }
    return r;
}

static bool uses_device(const s2_placement *p)
{
    for (size_t i = 0; i < N_MOVABLE; i++) {
        if (p->wishes[movable[i]].i_place > 0) {
            return true;
        }
    }
    return false;
}

/* Words that would do nothing are a mistake of the one who typed them. */
static int check_effect(const s2_placement *p, const s2_place_opts *opts, sl_error *reterr)
{
    bool moves = uses_device(p);
    if (opts->vram_bytes > 0 && !moves) {
        return sl__fail(reterr, SL_EINVAL,
                "--vram: everything is on the cpu, so there is nothing to budget; name a device "
                "with "
                "--device");
    }
    if (opts->has_gpu_layers && opts->gpu_layers > 0 && p->wishes[S2_UNIT_SLOW].i_place == 0) {
        return sl__fail(reterr, SL_EINVAL,
                "--gpu-layers %" PRIu32 ": slow is on the cpu; name a device with --device",
                opts->gpu_layers);
    }
    return SL_OK;
}

static int fill_placement(s2_placement *p, const s2_place_opts *opts, bool is_planning,
        const sl_logger *log, sl_error *reterr)
{
    char chosen[64];
    const char *device = opts->device;
    size_t i_default = 0;
    int r = sl_device_create_host(&p->places[0].device, reterr);
    if (r < 0) {
        return r;
    }
    p->n_places = 1;
    p->places[0].name = "cpu";
    p->places[0].budget_bytes = UINT64_MAX;
    p->places[0].budget_source = "not limited";
    p->is_auto = !device || strcmp(device, "auto") == 0;
    p->has_gpu_layers = opts->has_gpu_layers;
    p->gpu_layers = opts->gpu_layers;
    if (p->is_auto) {
        r = choose_device(opts, is_planning, log, chosen, reterr);
        device = strcmp(chosen, "gpu") == 0 ? "gpu" : chosen;
    }
    if (r == 0) {
        r = need_place(p, opts, is_planning, device, &i_default, reterr);
    }
    for (size_t i = 0; i < N_MOVABLE && r == 0; i++) {
        p->wishes[movable[i]].i_place = i_default;
    }
    for (size_t i = 0; i < opts->n_places && r == 0; i++) {
        r = take_wish(p, opts, is_planning, opts->places[i], log, reterr);
    }
    if (r == 0) {
        r = take_shorthands(p, opts, log, reterr);
    }
    return r < 0 ? r : check_effect(p, opts, reterr);
}

int s2_placement_open(const s2_place_opts *opts, bool is_planning, const sl_logger *log,
        s2_placement **ret_placement, sl_error *reterr)
{
    s2_placement *p = sl__alloc(1, sizeof *p);
    if (!p) {
        return sl__fail_nomem(reterr, sizeof *p, "a placement");
    }
    int r = fill_placement(p, opts, is_planning, log, reterr);
    if (r < 0) {
        s2_placement_close(&p);
        return r;
    }
    *ret_placement = p;
    return SL_OK;
}

void s2_placement_close(s2_placement **placement)
{
    if (!placement || !*placement) {
        return;
    }
    for (size_t i = 0; i < S2_MAX_PLACES; i++) {
        sl_device_free(&(*placement)->places[i].device);
    }
    sl__free(*placement);
    *placement = NULL;
}

size_t s2_placement_n_places(const s2_placement *placement)
{
    return placement->n_places;
}

const s2_place *s2_placement_place(const s2_placement *placement, size_t i_place)
{
    return &placement->places[i_place];
}

size_t s2_placement_wanted(const s2_placement *placement, s2_unit_id unit)
{
    return placement->wishes[unit].i_place;
}

size_t s2_placement_second(const s2_placement *placement, s2_unit_id unit)
{
    const wish *w = &placement->wishes[unit];
    return w->i_place > 0 && placement->is_auto && !w->is_named ? 0 : SL_PLAN_NONE;
}

void s2_placement_give_up(s2_placement *placement, s2_unit_id unit)
{
    placement->wishes[unit].i_place = 0;
}

uint32_t s2_placement_slow_layers(const s2_placement *placement, uint32_t n_layer)
{
    bool is_part = placement->has_gpu_layers && placement->gpu_layers < n_layer &&
                   placement->wishes[S2_UNIT_SLOW].i_place > 0;
    return is_part ? placement->gpu_layers : n_layer;
}
