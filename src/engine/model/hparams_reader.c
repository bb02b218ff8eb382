#include "engine/model/hparams_reader.h"

#include <stdarg.h>
#include <stdio.h>

void s2_hp_refuse(s2_hp_reader *rd, int code, const char *fmt, ...)
{
    char what[400];
    va_list ap;
    if (rd->r < 0) {
        return;
    }
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    rd->r = sl__fail(rd->reterr, code, "%s: %s", sl_model_path(rd->model), what);
}

void s2_hp_u32(s2_hp_reader *rd, const char *key, uint32_t min, uint32_t max, uint32_t *dst)
{
    sl_error err;
    uint32_t v = 0;
    if (rd->r < 0) {
        return;
    }
    int r = sl_gguf_get_u32(rd->gguf, key, &v, &err);
    if (r < 0) {
        s2_hp_refuse(rd, SL_EFORMAT, "%s", err.msg);
    } else if (v < min || v > max) {
        s2_hp_refuse(rd, SL_EFORMAT, "%s is %u, need %u to %u", key, v, min, max);
    } else {
        *dst = v;
    }
}

void s2_hp_f32(s2_hp_reader *rd, const char *key, double min, double max, float *dst)
{
    sl_error err;
    double v = 0;
    if (rd->r < 0) {
        return;
    }
    int r = sl_gguf_get_f64(rd->gguf, key, &v, &err);
    if (r < 0) {
        s2_hp_refuse(rd, SL_EFORMAT, "%s", err.msg);
    } else if (!(v >= min && v <= max)) {
        s2_hp_refuse(rd, SL_EFORMAT, "%s is %g, need %g to %g", key, v, min, max);
    } else {
        *dst = (float)v;
    }
}

bool s2_hp_flag(s2_hp_reader *rd, const char *key, bool if_absent)
{
    sl_error err;
    bool v = if_absent;
    if (rd->r < 0 || !sl_gguf_find(rd->gguf, key)) {
        return if_absent;
    }
    if (sl_gguf_get_bool(rd->gguf, key, &v, &err) < 0) {
        s2_hp_refuse(rd, SL_EFORMAT, "%s", err.msg);
    }
    return v;
}

uint32_t s2_hp_list(s2_hp_reader *rd, const char *key, uint32_t n_max, uint32_t min, uint32_t max,
        uint32_t *dst)
{
    sl_error err;
    if (rd->r < 0) {
        return 0;
    }
    const sl_gguf_kv *kv = sl_gguf_find(rd->gguf, key);
    if (!kv) {
        s2_hp_refuse(rd, SL_EFORMAT, "key %s is missing", key);
        return 0;
    }
    if (kv->n < 1 || kv->n > n_max) {
        s2_hp_refuse(rd, SL_EFORMAT, "%s has %llu entries, need 1 to %u", key,
                (unsigned long long)kv->n, n_max);
        return 0;
    }
    for (uint32_t i = 0; i < kv->n; i++) {
        int64_t v = 0;
        if (sl_gguf_elem_i64(kv, i, &v, &err) < 0) {
            s2_hp_refuse(rd, SL_EFORMAT, "%s: %s", key, err.msg);
            return 0;
        }
        if (v < (int64_t)min || v > (int64_t)max) {
            s2_hp_refuse(rd, SL_EFORMAT, "%s[%u] is %lld, need %u to %u", key, i, (long long)v, min,
                    max);
            return 0;
        }
        dst[i] = (uint32_t)v;
    }
    return (uint32_t)kv->n;
}

const sl_gguf_tensor *s2_hp_tensor(const s2_hp_reader *rd, const char *fmt, ...)
{
    char name[128];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    const sl_tensor *t = sl_model_find(rd->model, name);
    return t ? t->info : NULL;
}

uint32_t s2_hp_width(s2_hp_reader *rd, const char *name, int d)
{
    if (rd->r < 0) {
        return 0;
    }
    const sl_gguf_tensor *t = s2_hp_tensor(rd, "%s", name);
    if (!t) {
        s2_hp_refuse(rd, SL_EFORMAT, "tensor %s is missing", name);
        return 0;
    }
    if (t->ne[d] < 1 || t->ne[d] > S2_HP_MAX_WIDTH) {
        s2_hp_refuse(rd, SL_EFORMAT, "tensor %s: dimension %d is %llu, need 1 to %u", name, d,
                (unsigned long long)t->ne[d], S2_HP_MAX_WIDTH);
        return 0;
    }
    return (uint32_t)t->ne[d];
}

void s2_hp_expect_equal(
        s2_hp_reader *rd, const char *what, uint32_t found, const char *need_what, uint32_t need)
{
    if (found != need) {
        s2_hp_refuse(rd, SL_EFORMAT, "%s is %u, but %s is %u: the file contradicts itself", what,
                found, need_what, need);
    }
}
