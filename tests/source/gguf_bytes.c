#include "gguf_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "gguf_walk.h"

#include "base/le_bytes.h"
#include "base/utf8.h"

gguf_bytes gb_start(uint32_t version, uint64_t n_tensors, uint64_t n_kv)
{
    gguf_bytes g = {0};
    gb_raw(&g, "GGUF", 4);
    gb_u32(&g, version);
    gb_u64(&g, n_tensors);
    gb_u64(&g, n_kv);
    return g;
}

void gb_done(gguf_bytes *g)
{
    free(g->p);
    memset(g, 0, sizeof *g);
}

void gb_raw(gguf_bytes *g, const void *p, size_t n)
{
    if (n > 0) {
        g->p = realloc(g->p, g->n + n);
        assert_non_null(g->p);
        memcpy(g->p + g->n, p, n);
        g->n += n;
    }
}

static void put_le(gguf_bytes *g, uint64_t v, unsigned n)
{
    unsigned char le[8];
    sl__store_le(le, v, n);
    gb_raw(g, le, n);
}

void gb_u8(gguf_bytes *g, unsigned v)
{
    put_le(g, v, 1);
}

void gb_u16(gguf_bytes *g, unsigned v)
{
    put_le(g, v, 2);
}

void gb_u32(gguf_bytes *g, uint32_t v)
{
    put_le(g, v, 4);
}

void gb_u64(gguf_bytes *g, uint64_t v)
{
    put_le(g, v, 8);
}

void gb_fill(gguf_bytes *g, int byte, size_t n)
{
    if (n > 0) {
        g->p = realloc(g->p, g->n + n);
        assert_non_null(g->p);
        memset(g->p + g->n, byte, n);
        g->n += n;
    }
}

void gb_str(gguf_bytes *g, const char *s)
{
    gb_u64(g, strlen(s));
    gb_raw(g, s, strlen(s));
}

void gb_key(gguf_bytes *g, const char *key, uint32_t type)
{
    gb_str(g, key);
    gb_u32(g, type);
}

void gb_key_u32(gguf_bytes *g, const char *key, uint32_t v)
{
    gb_key(g, key, SL_GGUF_U32);
    gb_u32(g, v);
}

void gb_key_str(gguf_bytes *g, const char *key, const char *v)
{
    gb_key(g, key, SL_GGUF_STR);
    gb_str(g, v);
}

void gb_key_array(gguf_bytes *g, const char *key, uint32_t elem_type, uint64_t n)
{
    gb_key(g, key, SL_GGUF_ARRAY);
    gb_u32(g, elem_type);
    gb_u64(g, n);
}

void gb_tensor(gguf_bytes *g, const char *name, uint32_t n_dims, const uint64_t *ne, uint32_t type,
        uint64_t offset)
{
    gb_str(g, name);
    gb_u32(g, n_dims);
    for (uint32_t i = 0; i < n_dims; i++) {
        gb_u64(g, ne[i]);
    }
    gb_u32(g, type);
    gb_u64(g, offset);
}

void gb_pad(gguf_bytes *g, size_t align)
{
    gb_fill(g, 0, (align - g->n % align) % align);
}

int gb_open(gguf_bytes *g, sl_gguf **ret, sl_error *err)
{
    return sl_gguf_open(g->p, g->n, "made.gguf", ret, err);
}

void gb_expect_accepted(gguf_bytes *g)
{
    sl_gguf *gguf = NULL;
    sl_error err = {0};
    assert_ok(gb_open(g, &gguf, &err), &err);
    gguf_walk(gguf, g->p, g->n);
    sl_gguf_close(&gguf);
    assert_null(gguf);
    gb_done(g);
}

void expect_good_message(const sl_error *err, const char *name, const char *needle)
{
    size_t n = strlen(err->msg);
    if (!strstr(err->msg, name) || !strstr(err->msg, needle)) {
        fail_msg("'%s' does not name '%s' and say '%s'", err->msg, name, needle);
    }
    assert_int_equal(sl__utf8_valid_prefix(err->msg, n), n);
    for (size_t i = 0; i < n; i++) {
        assert_true((unsigned char)err->msg[i] >= 0x20 && err->msg[i] != 0x7F);
    }
}

void gb_expect_refused(gguf_bytes *g, const char *needle)
{
    sl_gguf *gguf = NULL;
    sl_error err = {0};
    int r = gb_open(g, &gguf, &err);
    if (r >= 0) {
        fail_msg("accepted, but should say '%s'", needle);
    }
    assert_true(r == SL_EFORMAT || r == SL_EUNSUPPORTED);
    assert_int_equal(err.code, r);
    assert_null(gguf);
    assert_true(err.offset <= g->n);
    expect_good_message(&err, "made.gguf", needle);
    gb_done(g);
}
