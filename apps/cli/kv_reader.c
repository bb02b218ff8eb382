/* The library's getters refuse what does not fit; here every type of the format has a kind that holds it. */
#include "kv_reader.h"

#include "base/le_bytes.h"

kv_reader kv_reader_of(const sl_gguf_kv *kv)
{
    return (kv_reader){.kv = kv, .cursor = kv->data};
}

bool kv_next(kv_reader *r, kv_elem *ret)
{
    const sl_gguf_kv *kv = r->kv;
    uint64_t i = r->i_next;
    if (i >= kv->n) {
        return false;
    }
    r->i_next++;
    *ret = (kv_elem){.kind = KV_SIGNED};
    switch (kv->elem_type) {
    case SL_GGUF_STR:
        ret->kind = KV_STRING;
        return sl_gguf_next_str(kv, &r->cursor, &ret->s, NULL) >= 0;
    case SL_GGUF_F32:
    case SL_GGUF_F64:
        ret->kind = KV_FLOAT;
        return sl_gguf_elem_f64(kv, i, &ret->f, NULL) >= 0;
    case SL_GGUF_BOOL:
        ret->kind = KV_BOOL;
        ret->b = kv->data[i] != 0;
        return true;
    case SL_GGUF_U64:
        ret->kind = KV_UNSIGNED;
        ret->u = sl__load_u64(kv->data + 8 * i);
        return true;
    case SL_GGUF_U8:
    case SL_GGUF_I8:
    case SL_GGUF_U16:
    case SL_GGUF_I16:
    case SL_GGUF_U32:
    case SL_GGUF_I32:
    case SL_GGUF_I64:
    case SL_GGUF_ARRAY:
    case SL_GGUF_TYPE_COUNT:
    default:
        return sl_gguf_elem_i64(kv, i, &ret->i, NULL) >= 0;
    }
}
