/*
 * Builds the index in one pass over the metadata. Every number of the file is compared with the bytes that
 * are left before it is used, by subtraction or division so that nothing wraps, and records are pushed one
 * by one as they are read: a count that lies costs nothing.
 */
#include "sluice/gguf.h"

#include <inttypes.h>
#include <string.h>

#include "base/le_bytes.h"
#include "base/mem.h"
#include "base/status.h"
#include "source/gguf_reader.h"

/* Fewest bytes that a record can take: a key of one byte with a one-byte value, a nameless scalar. */
#define MIN_KV_BYTES     14u
#define MIN_TENSOR_BYTES 24u

static int nomem(const sl__gguf_reader *r, size_t n_bytes)
{
    return sl__fail_nomem(r->reterr, n_bytes, "the index of a GGUF file");
}

/* What a file that is no GGUF probably is, as the end of a sentence. */
static const char *foreign_hint(const char *bytes, uint64_t n_bytes)
{
    static const char html[] =
            "; it is an HTML page: download the file itself, not the page about it";
    static const char legacy[] = "; it is a legacy GGML file: convert it to GGUF";
    static const char packed[] = "; it is compressed: unpack it first";
    static const char blanks[] = {' ', '\t', '\r', '\n', '\xEF', '\xBB', '\xBF'};
    static const struct {
        const char *start;
        const char *hint;
    } kinds[] = {
            {"FUGG", "; it is a big-endian GGUF, only little-endian files are read"},
            {"version https://git-lfs",
                    "; it is a Git LFS pointer: fetch the file with git lfs pull"},
            {"<!DOCTYPE", html},
            {"<!doctype", html},
            {"<html", html},
            {"<HTML", html},
            {"{\"", "; it is JSON: perhaps the error message of a server"},
            {"lmgg", legacy},
            {"fmgg", legacy},
            {"tjgg", legacy},
            {"algg", legacy},
            {"ggml", legacy},
            {"ggmf", legacy},
            {"ggjt", legacy},
            {"ggla", legacy},
            {"PK\x03\x04", "; it is a ZIP archive or PyTorch checkpoint: convert it to GGUF"},
            {"\x1f\x8b", packed},
            {"\x28\xb5\x2f\xfd", packed},
    };
    if (n_bytes > 9 && memcmp(bytes + 8, "{\"", 2) == 0) {
        return "; it is a safetensors file: convert it to GGUF";
    }
    uint64_t n_blank = 0;
    while (n_blank < n_bytes && memchr(blanks, bytes[n_blank], sizeof blanks)) {
        n_blank++;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t n = strlen(kinds[i].start);
        if (n <= n_bytes - n_blank && memcmp(bytes + n_blank, kinds[i].start, n) == 0) {
            return kinds[i].hint;
        }
    }
    return "";
}

static int check_magic(const sl__gguf_reader *r)
{
    size_t n = r->src.n_bytes < 4 ? (size_t)r->src.n_bytes : 4;
    if (n == 0 || memcmp(r->src.bytes, "GGUF", n) == 0) {
        return 0;
    }
    char shown[24];
    sl__quote(shown, sizeof shown, r->src.bytes, n);
    return sl__gguf_bad(r, SL_EFORMAT, 0, "not a GGUF file: it starts with '%s', need 'GGUF'%s",
            shown, foreign_hint(r->src.bytes, r->src.n_bytes));
}

static int check_version(const sl__gguf_reader *r, uint32_t version)
{
    if (version == 2 || version == 3) {
        return 0;
    }
    if (version != 0 && (version & 0xFFFF) == 0) {
        return sl__gguf_bad(r, SL_EUNSUPPORTED, 4,
                "the file is big-endian (version field 0x%08" PRIx32
                "), only little-endian GGUF is read",
                version);
    }
    return sl__gguf_bad(r, SL_EUNSUPPORTED, 4, "GGUF version %" PRIu32 ", supported are 2 and 3%s",
            version, version == 1 ? "; convert the file again" : "");
}

/* Magic, version and counts; leaves the counts checked against the bytes that follow. */
static int read_header(sl__gguf_reader *r, sl_gguf *g, uint64_t *ret_n_tensors, uint64_t *ret_n_kv)
{
    int e = check_magic(r);
    if (e < 0) {
        return e;
    }
    if (r->src.n_bytes >= 8) {
        g->version = sl__load_u32(r->src.bytes + 4);
        e = check_version(r, g->version);
        if (e < 0) {
            return e;
        }
    }
    if (r->src.n_bytes < SL_GGUF_HEADER_BYTES) {
        return sl__gguf_bad(r, SL_EFORMAT, r->src.n_bytes,
                "file too short: have %" PRIu64 " bytes, need %u", r->src.n_bytes,
                SL_GGUF_HEADER_BYTES);
    }
    uint64_t n_tensors = sl__load_u64(r->src.bytes + 8);
    uint64_t n_kv = sl__load_u64(r->src.bytes + 16);
    r->at = SL_GGUF_HEADER_BYTES;
    uint64_t left = sl__gguf_left(r);
    if (n_kv > left / MIN_KV_BYTES) {
        return sl__gguf_bad(r, SL_EFORMAT, 16,
                "the header says %" PRIu64 " keys, but the %" PRIu64
                " bytes that follow hold at most %" PRIu64,
                n_kv, left, left / MIN_KV_BYTES);
    }
    left -= n_kv * MIN_KV_BYTES;
    if (n_tensors > left / MIN_TENSOR_BYTES) {
        return sl__gguf_bad(r, SL_EFORMAT, 8,
                "the header says %" PRIu64
                " tensors, but the bytes that follow hold at most %" PRIu64,
                n_tensors, left / MIN_TENSOR_BYTES);
    }
    *ret_n_tensors = n_tensors;
    *ret_n_kv = n_kv;
    return 0;
}

/* Names are compared as they are read: a file of nothing but equal names ends at the second. */
static int add_name(
        const sl__gguf_reader *r, sl__name_table *table, const char *kind, sl_span name, size_t i)
{
    uint32_t other = SL_NAME_NONE;
    int e = sl__name_table_add(table, name, (uint32_t)i, &other, r->reterr);
    if (e >= 0 && other != SL_NAME_NONE) {
        return sl__gguf_bad_item(
                r, SL_EFORMAT, (uint64_t)(name.p - r->src.bytes) - 8, kind, name, "is there twice");
    }
    return e;
}

static int skip_value(sl__gguf_reader *r, const sl_gguf_kv *kv)
{
    uint64_t n_bytes = 0;
    if (kv->elem_type == SL_GGUF_STR) {
        /* Each string takes at least its length: a count that lies is refused before the walk. */
        if (kv->n > sl__gguf_left(r) / 8) {
            return sl__gguf_bad_item(r, SL_EFORMAT, r->at, "key", kv->key,
                    "has %" PRIu64 " strings, but only %" PRIu64
                    " bytes are left; the file is truncated or damaged",
                    kv->n, sl__gguf_left(r));
        }
        if (kv->n > SL_GGUF_MAX_STRINGS - r->n_strings) {
            return sl__gguf_bad_item(r, SL_ELIMIT, r->at, "key", kv->key,
                    "brings the strings of arrays above %u", SL_GGUF_MAX_STRINGS);
        }
        r->n_strings += kv->n;
        return sl__gguf_skip_strings(r, kv->n);
    }
    if (!sl__mul_u64(kv->n, sl__gguf_type_bytes(kv->elem_type), &n_bytes) ||
            n_bytes > sl__gguf_left(r)) {
        return sl__gguf_bad_item(r, SL_EFORMAT, r->at, "key", kv->key,
                "has %" PRIu64 " values of type %s, but only %" PRIu64
                " bytes are left; the file is truncated or damaged",
                kv->n, sl_gguf_type_name(kv->elem_type), sl__gguf_left(r));
    }
    r->at += n_bytes;
    return 0;
}

static int read_value_type(sl__gguf_reader *r, sl_gguf_kv *kv)
{
    uint64_t start = r->at;
    uint32_t type = 0;
    int e = sl__gguf_read_u32(r, "a value type", &type);
    if (e < 0) {
        return e;
    }
    if (type >= SL_GGUF_TYPE_COUNT) {
        return sl__gguf_bad_item(
                r, SL_EFORMAT, start, "key", kv->key, "has the unknown value type %" PRIu32, type);
    }
    kv->type = (sl_gguf_type)type;
    kv->elem_type = kv->type;
    kv->n = 1;
    if (kv->type != SL_GGUF_ARRAY) {
        return 0;
    }
    e = sl__gguf_read_u32(r, "an array's element type", &type);
    if (e < 0) {
        return e;
    }
    if (type >= SL_GGUF_TYPE_COUNT || type == SL_GGUF_ARRAY) {
        return sl__gguf_bad_item(r, SL_EFORMAT, start + 4, "key", kv->key,
                "is an array of %s type %" PRIu32,
                type == SL_GGUF_ARRAY ? "arrays, which are not read:" : "the unknown", type);
    }
    kv->elem_type = (sl_gguf_type)type;
    return sl__gguf_read_u64(r, "an array's length", &kv->n);
}

static int read_kv(sl__gguf_reader *r, sl_gguf *g)
{
    sl_gguf_kv kv = {0};
    uint64_t start = r->at;
    int e = sl__gguf_read_name(r, "key", SL_GGUF_MAX_KEY_BYTES, &kv.key);
    if (e < 0) {
        return e;
    }
    if (kv.key.n == 0) {
        return sl__gguf_bad(r, SL_EFORMAT, start, "key number %zu is empty", g->n_kv);
    }
    e = read_value_type(r, &kv);
    if (e < 0) {
        return e;
    }
    kv.data = r->src.bytes + r->at;
    start = r->at;
    e = skip_value(r, &kv);
    if (e < 0) {
        return e;
    }
    kv.n_bytes = r->at - start;
    e = add_name(r, &g->kv_names, "key", kv.key, g->n_kv);
    if (e < 0) {
        return e;
    }
    if (!sl__grow((void **)&g->kvs, &g->cap_kv, g->n_kv + 1, sizeof *g->kvs)) {
        return nomem(r, (g->n_kv + 1) * sizeof *g->kvs);
    }
    g->kvs[g->n_kv] = kv;
    g->n_kv++;
    return 0;
}

static int read_alignment(const sl__gguf_reader *r, sl_gguf *g)
{
    const sl_gguf_kv *kv = sl_gguf_find(g, "general.alignment");
    g->alignment = SL_GGUF_DEFAULT_ALIGNMENT;
    if (!kv) {
        return 0;
    }
    uint64_t offset = (uint64_t)(kv->data - r->src.bytes);
    if (kv->type != SL_GGUF_U32) {
        return sl__gguf_bad(r, SL_EFORMAT, offset, "general.alignment has type %s, need u32",
                sl_gguf_type_name(kv->type));
    }
    g->alignment = sl__load_u32(kv->data);
    if (g->alignment == 0 || (g->alignment & (g->alignment - 1)) != 0 ||
            g->alignment > SL_GGUF_MAX_ALIGNMENT) {
        return sl__gguf_bad(r, SL_EFORMAT, offset,
                "general.alignment is %" PRIu64 ", need a power of two from 1 to %u", g->alignment,
                SL_GGUF_MAX_ALIGNMENT);
    }
    return 0;
}

static int read_shape(sl__gguf_reader *r, sl_gguf_tensor *t)
{
    uint64_t start = r->at;
    int e = sl__gguf_read_u32(r, "a tensor's dimensions", &t->n_dims);
    if (e < 0) {
        return e;
    }
    if (t->n_dims > SL_GGUF_MAX_DIMS) {
        return sl__gguf_bad_item(r, SL_EFORMAT, start, "tensor", t->name,
                "has %" PRIu32 " dimensions, at most %d", t->n_dims, SL_GGUF_MAX_DIMS);
    }
    for (uint32_t i = 0; i < SL_GGUF_MAX_DIMS; i++) {
        t->ne[i] = 1;
        if (i < t->n_dims) {
            e = sl__gguf_read_u64(r, "a tensor's dimensions", &t->ne[i]);
        }
        if (e < 0) {
            return e;
        }
    }
    return 0;
}

static int read_tensor_type(sl__gguf_reader *r, sl_gguf_tensor *t)
{
    sl_tensor_type_info type;
    uint64_t start = r->at;
    int e = sl__gguf_read_u32(r, "a tensor's type", &t->type);
    if (e < 0) {
        return e;
    }
    if (!sl_tensor_type(t->type, &type)) {
        return sl__gguf_bad_item(r, SL_EUNSUPPORTED, start, "tensor", t->name,
                "has type number %" PRIu32 ", which is unknown or was removed from ggml", t->type);
    }
    if (t->ne[0] % type.block_elems != 0) {
        return sl__gguf_bad_item(r, SL_EFORMAT, start, "tensor", t->name,
                "of type %s has rows of %" PRIu64 " elements, need a multiple of %" PRIu32,
                type.name, t->ne[0], type.block_elems);
    }
    if (!sl__tensor_bytes(&type, t->ne, &t->n_bytes)) {
        return sl__gguf_bad_item(r, SL_EFORMAT, start, "tensor", t->name,
                "is too large to exist: %" PRIu64 " x %" PRIu64 " x %" PRIu64 " x %" PRIu64
                " of type %s",
                t->ne[0], t->ne[1], t->ne[2], t->ne[3], type.name);
    }
    return 0;
}

static int read_tensor(sl__gguf_reader *r, sl_gguf *g)
{
    sl_gguf_tensor t = {0};
    int e = sl__gguf_read_name(r, "tensor name", SL_GGUF_MAX_NAME_BYTES, &t.name);
    if (e < 0) {
        return e;
    }
    e = read_shape(r, &t);
    if (e < 0) {
        return e;
    }
    e = read_tensor_type(r, &t);
    if (e < 0) {
        return e;
    }
    e = sl__gguf_read_u64(r, "a tensor's offset", &t.offset);
    if (e >= 0) {
        e = add_name(r, &g->tensor_names, "tensor", t.name, g->n_tensors);
    }
    if (e < 0) {
        return e;
    }
    if (!sl__grow((void **)&g->tensors, &g->cap_tensors, g->n_tensors + 1, sizeof *g->tensors)) {
        return nomem(r, (g->n_tensors + 1) * sizeof *g->tensors);
    }
    g->tensors[g->n_tensors] = t;
    g->n_tensors++;
    return 0;
}

static int bad_offset(
        const sl__gguf_reader *r, const sl_gguf *g, const sl_gguf_tensor *t, uint64_t expected)
{
    const char *why = t->offset < expected ? "it overlaps the tensor before it"
                                           : "there is a gap or the tensors are out of order";
    if (t->offset % g->alignment != 0) {
        why = "it is not aligned";
    }
    return sl__gguf_bad_item(r, SL_EFORMAT, (uint64_t)(t->name.p - r->src.bytes) - 8, "tensor",
            t->name, "has data offset %" PRIu64 ", need %" PRIu64 " (alignment %" PRIu64 "): %s",
            t->offset, expected, g->alignment, why);
}

/* Turns the offset of a tensor into one from the start of the file and moves *sum behind its padding. */
static int place_tensor(
        const sl__gguf_reader *r, const sl_gguf *g, sl_gguf_tensor *t, uint64_t *sum)
{
    uint64_t begin = 0;
    uint64_t end = 0;
    if (t->offset != *sum) {
        return bad_offset(r, g, t, *sum);
    }
    bool fits = sl__add_u64(g->data_offset, t->offset, &begin) &&
                sl__add_u64(begin, t->n_bytes, &end) &&
                sl__align_up_u64(*sum + t->n_bytes, g->alignment, sum);
    /* Only padding can be missing in front of an empty tensor at the end. */
    if (!fits || (end > r->src.n_bytes && t->n_bytes > 0)) {
        return sl__gguf_bad_item(r, SL_EFORMAT, r->src.n_bytes, "tensor", t->name,
                "of %" PRIu64 " bytes ends at %" PRIu64 ", file has %" PRIu64 "; it is truncated",
                t->n_bytes, fits ? end : UINT64_MAX, r->src.n_bytes);
    }
    t->offset = begin;
    return 0;
}

static int place_tensors(sl__gguf_reader *r, sl_gguf *g)
{
    uint64_t sum = 0;
    g->data_offset = r->at;
    if (g->n_tensors == 0) {
        return 0;
    }
    if (!sl__align_up_u64(r->at, g->alignment, &g->data_offset) ||
            g->data_offset > r->src.n_bytes) {
        return sl__gguf_bad(r, SL_EFORMAT, r->src.n_bytes,
                "tensor data starts at %" PRIu64 ", file has %" PRIu64 " bytes; it is truncated",
                g->data_offset, r->src.n_bytes);
    }
    for (size_t i = 0; i < g->n_tensors; i++) {
        int e = place_tensor(r, g, &g->tensors[i], &sum);
        if (e < 0) {
            return e;
        }
    }
    return 0;
}

static int read_index(sl__gguf_reader *r, sl_gguf *g)
{
    uint64_t n_tensors = 0;
    uint64_t n_kv = 0;
    int e = read_header(r, g, &n_tensors, &n_kv);
    for (uint64_t i = 0; e >= 0 && i < n_kv; i++) {
        e = read_kv(r, g);
    }
    if (e >= 0) {
        e = read_alignment(r, g);
    }
    for (uint64_t i = 0; e >= 0 && i < n_tensors; i++) {
        e = read_tensor(r, g);
    }
    return e >= 0 ? place_tensors(r, g) : e;
}

int sl__gguf_open_source(const sl__gguf_source *src, sl_gguf **ret_gguf, sl_error *reterr)
{
    sl__gguf_reader r = {.src = *src, .reterr = reterr};
    sl_gguf *g = sl__alloc(1, sizeof *g);
    if (!g) {
        return nomem(&r, sizeof *g);
    }
    int e = read_index(&r, g);
    if (e < 0) {
        sl_gguf_close(&g);
        return e;
    }
    *ret_gguf = g;
    return 0;
}

int sl_gguf_open(
        const void *bytes, uint64_t n_bytes, const char *name, sl_gguf **ret_gguf, sl_error *reterr)
{
    sl__gguf_source src = {.bytes = bytes, .n_bytes = n_bytes, .name = name};
    return sl__gguf_open_source(&src, ret_gguf, reterr);
}

void sl_gguf_close(sl_gguf **gguf)
{
    if (!gguf || !*gguf) {
        return;
    }
    sl_gguf *g = *gguf;
    sl__name_table_done(&g->kv_names);
    sl__name_table_done(&g->tensor_names);
    sl__free(g->kvs);
    sl__free(g->tensors);
    sl__free(g);
    *gguf = NULL;
}
