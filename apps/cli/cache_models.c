#include "cache_models.h"

#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "report.h"
#include "sluice/populate.h"
#include "suggest.h"

#define ALL_UNITS ((1u << S2_UNIT_NONE) - 1) /* without "none" */
#define ALL_CODEC                                                                                  \
    ((1u << S2_UNIT_CODEC_ENCODER) | (1u << S2_UNIT_CODEC_QUANTIZER) |                             \
            (1u << S2_UNIT_CODEC_DECODER))

/* The units that a word stands for, 0 if it is none. */
static unit_mask mask_of(const char *word, size_t n)
{
    for (int id = 0; id < S2_UNIT_COUNT; id++) {
        const char *name = s2_unit_name((s2_unit_id)id);
        if (strlen(name) == n && memcmp(name, word, n) == 0) {
            return 1u << id;
        }
    }
    return n == 5 && memcmp(word, "codec", n) == 0 ? ALL_CODEC : 0;
}

static bool fail_unit(const char *command, const char *word, size_t n)
{
    char quoted[80];
    suggest s = {.word = word, .n_bytes = n};
    for (int id = 0; id < S2_UNIT_COUNT; id++) {
        suggest_offer(&s, s2_unit_name((s2_unit_id)id));
    }
    sl__quote(quoted, sizeof quoted, word, n);
    if (s.best) {
        (void)report_usage(
                command, "--units: '%s' is no unit (did you mean '%s'?)", quoted, s.best);
    } else {
        (void)report_usage(command, "--units: '%s' is no unit", quoted);
    }
    return false;
}

bool cache_units_parse(const char *command, const char *list, unit_mask *ret_mask)
{
    unit_mask mask = 0;
    for (const char *s = list;;) {
        size_t n = strcspn(s, ",");
        unit_mask bits = mask_of(s, n);
        if (!bits) {
            return fail_unit(command, s, n);
        }
        mask |= bits;
        if (!s[n]) {
            break;
        }
        s += n + 1;
    }
    *ret_mask = mask;
    return true;
}

static bool is_open(const cache_models *models, const sl_model *model)
{
    sl_file_id id = sl_map_id(sl_model_map(model, 0));
    for (size_t i = 0; i < models->n; i++) {
        sl_file_id other = sl_map_id(sl_model_map(models->items[i], 0));
        if (id.device == other.device && id.inode == other.inode) {
            return true;
        }
    }
    return false;
}

int cache_models_open(char **paths, size_t n, cache_models *ret_models, sl_error *reterr)
{
    cache_models models = {.items = sl__alloc(n, sizeof(sl_model *))};
    int r = 0;
    if (!models.items) {
        return sl__fail_nomem(reterr, n * sizeof(sl_model *), "the models");
    }
    for (size_t i = 0; i < n && r >= 0; i++) {
        sl_model *model = NULL;
        r = sl_model_open(paths[i], &model, reterr);
        if (r >= 0 && is_open(&models, model)) {
            sl_model_close(&model);
        } else if (r >= 0) {
            models.items[models.n] = model;
            models.n++;
        }
    }
    if (r < 0) {
        cache_models_close(&models);
        return r;
    }
    *ret_models = models;
    return 0;
}

void cache_models_close(cache_models *models)
{
    for (size_t i = 0; i < models->n; i++) {
        sl_model_close(&models->items[i]);
    }
    sl__free(models->items);
    *models = (cache_models){0};
}

bool cache_has_units(const sl_model *model)
{
    bool is_codec_file = s2_unit_is_codec_file(model);
    for (uint64_t i = 0; i < sl_model_n_tensors(model); i++) {
        if (s2_unit_of(sl_model_tensor_at(model, i)->info->name, is_codec_file) != S2_UNIT_NONE) {
            return true;
        }
    }
    return false;
}

typedef struct filter {
    unit_mask mask;
    bool is_codec_file;
    bool has_lazy;
} filter;

static bool wants(void *ud, const sl_tensor *tensor)
{
    const filter *f = ud;
    bool is_chosen = (f->mask & (1u << s2_unit_of(tensor->info->name, f->is_codec_file))) != 0;
    return is_chosen && (f->has_lazy || !s2_unit_is_gathered(tensor->info));
}

int cache_ranges(const sl_model *model, uint32_t i_file, const cache_choice *choice,
        sl_ranges *ret_ranges, sl_error *reterr)
{
    filter f = {.mask = choice->mask, .has_lazy = choice->has_lazy};
    f.is_codec_file = s2_unit_is_codec_file(model);
    if (!f.mask) {
        f.mask = cache_has_units(model) ? ALL_UNITS : 1u << S2_UNIT_NONE;
    }
    uint64_t lazy_over = choice->has_lazy ? UINT64_MAX : choice->lazy_over_bytes;
    return sl_populate_ranges(model, i_file, lazy_over, wants, &f, ret_ranges, reterr);
}
