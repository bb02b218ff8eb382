/* Long arrays are walked in a window that is read; short ones, and all of plain memory, in place. */
#include <stdlib.h>
#include <string.h>

#include "gguf_bytes.h"

#include "base/mem.h"
#include "source/gguf_reader.h"

#define MANY 5000 /* strings: enough for the window */

typedef struct world {
    gguf_bytes bytes;
    size_t n_reads;
    size_t fail_at; /* which read fails; 0 = none */
} world;

static int read_bytes(void *ud, void *buf, uint64_t offset, size_t n, sl_error *reterr)
{
    world *w = ud;
    w->n_reads++;
    if (w->n_reads == w->fail_at) {
        return sl__fail(reterr, SL_ECHANGED, "made to fail");
    }
    assert_true(offset <= w->bytes.n && n <= w->bytes.n - offset);
    memcpy(buf, w->bytes.p + offset, n);
    return 0;
}

static sl__gguf_reader reader_of(world *w, bool has_read, sl_error *err)
{
    sl__gguf_reader r = {.src = {.bytes = (const char *)w->bytes.p,
                                 .n_bytes = w->bytes.n,
                                 .name = "made.gguf",
                                 .read = has_read ? read_bytes : NULL,
                                 .ud = w},
            .reterr = err};
    return r;
}

/* Strings whose lengths come from a seed: mostly short, some longer than the window. */
static void put_strings(gguf_bytes *g, unsigned n, unsigned seed)
{
    uint64_t s = seed * 0x9E3779B97F4A7C15u + 1;
    g->p = realloc(g->p, g->n + (16u << 20));
    assert_non_null(g->p);
    for (unsigned i = 0; i < n; i++) {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        size_t n_string = (size_t)(s >> 8) % (s % 100 == 0 ? 200000 : 40);
        for (unsigned k = 0; k < 8; k++) {
            g->p[g->n + k] = (unsigned char)(n_string >> (8 * k));
        }
        memset(g->p + g->n + 8, 'x', n_string);
        g->n += 8 + n_string;
    }
    g->p = realloc(g->p, g->n);
    assert_non_null(g->p);
}

static void test_both_walks_end_at_the_same_place(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 8; seed++) {
        world w = {0};
        sl_error err = {0};
        put_strings(&w.bytes, MANY, seed);
        size_t n_strings = w.bytes.n;
        gb_fill(&w.bytes, 0xFF, (size_t)(seed % 4) * 5);
        for (int has_read = 0; has_read < 2; has_read++) {
            sl__gguf_reader r = reader_of(&w, has_read, &err);
            assert_ok(sl__gguf_skip_strings(&r, MANY), &err);
            assert_int_equal(r.at, n_strings);
            assert_int_equal(w.n_reads > 0, has_read);
            /* One string more than there is. */
            r.at = 0;
            assert_int_equal(sl__gguf_skip_strings(&r, MANY + 1), SL_EFORMAT);
            expect_good_message(&err, "made.gguf", "string");
            assert_int_equal(err.offset, n_strings);
        }
        gb_done(&w.bytes);
    }
}

static void test_few_strings_are_not_read(void **state)
{
    world w = {0};
    sl_error err = {0};
    (void)state;
    put_strings(&w.bytes, 100, 3);
    sl__gguf_reader r = reader_of(&w, true, &err);
    assert_ok(sl__gguf_skip_strings(&r, 100), &err);
    assert_int_equal(r.at, w.bytes.n);
    assert_int_equal(w.n_reads, 0);
    gb_done(&w.bytes);
}

/* The array cut at every byte of its last 40, and of a stretch around the border of the window. */
static void test_cut_arrays_are_refused(void **state)
{
    world w = {0};
    (void)state;
    gb_fill(&w.bytes, 0, 90000);
    for (size_t i = 0; i < 90000; i += 10) {
        w.bytes.p[i] = 2; /* the length of a string of two NULs */
    }
    size_t whole = w.bytes.n;
    for (size_t i = 0; i < 80; i++) {
        sl_error err = {0};
        w.bytes.n = i < 40 ? whole - 1 - i : (64u << 10) - 20 + (i - 40);
        sl__gguf_reader r = reader_of(&w, true, &err);
        assert_int_equal(sl__gguf_skip_strings(&r, 9000), SL_EFORMAT);
        assert_int_equal(err.offset, w.bytes.n / 10 * 10);
    }
    w.bytes.n = whole;
    gb_done(&w.bytes);
}

static void test_reads_and_allocations_that_fail(void **state)
{
    world w = {0};
    sl_error err = {0};
    (void)state;
    put_strings(&w.bytes, MANY, 5);
    sl__gguf_reader r = reader_of(&w, true, &err);
    sl__mem_fail_after(0);
    assert_int_equal(sl__gguf_skip_strings(&r, MANY), SL_ENOMEM);
    sl__mem_fail_after(-1);
    for (w.fail_at = 1; w.fail_at < 4; w.fail_at++) {
        w.n_reads = 0;
        r.at = 0;
        assert_int_equal(sl__gguf_skip_strings(&r, MANY), SL_ECHANGED);
        assert_string_equal(err.msg, "made to fail");
    }
    gb_done(&w.bytes);
}

static void test_an_index_through_reads_is_the_same(void **state)
{
    world w = {.bytes = gb_start(3, 0, 3)};
    sl_gguf *gguf = NULL;
    sl_error err = {0};
    (void)state;
    gb_key_u32(&w.bytes, "before", 1);
    gb_key_array(&w.bytes, "tokens", SL_GGUF_STR, MANY);
    put_strings(&w.bytes, MANY, 9);
    gb_key_u32(&w.bytes, "after", 2);
    sl__gguf_reader r = reader_of(&w, true, &err);
    assert_ok(sl__gguf_open_source(&r.src, &gguf, &err), &err);
    assert_true(w.n_reads > 0);
    assert_int_equal(sl_gguf_n_kv(gguf), 3);
    assert_int_equal(sl_gguf_find(gguf, "tokens")->n, MANY);
    sl_gguf_close(&gguf);
    gb_expect_accepted(&w.bytes);
}

static void test_numbers_and_names(void **state)
{
    world w = {0};
    sl_error err = {0};
    uint32_t u32 = 0;
    uint64_t u64 = 0;
    sl_span name = {0};
    (void)state;
    gb_u32(&w.bytes, 7);
    gb_u64(&w.bytes, UINT64_MAX);
    gb_str(&w.bytes, "name");
    gb_raw(&w.bytes, "abc", 3);
    sl__gguf_reader r = reader_of(&w, false, &err);
    assert_ok(sl__gguf_read_u32(&r, "a number", &u32), &err);
    assert_int_equal(u32, 7);
    assert_ok(sl__gguf_read_u64(&r, "a number", &u64), &err);
    assert_true(u64 == UINT64_MAX);
    assert_int_equal(sl__gguf_read_name(&r, "label", 3, &name), SL_EFORMAT);
    expect_good_message(&err, "made.gguf: label 'name'", "4 bytes, at most 3");
    r.at = 12;
    assert_ok(sl__gguf_read_name(&r, "label", 4, &name), &err);
    assert_memory_equal(name.p, "name", 4);
    assert_int_equal(sl__gguf_left(&r), 3);
    assert_int_equal(sl__gguf_read_u32(&r, "a number", &u32), SL_EFORMAT);
    expect_good_message(&err, "made.gguf", "inside a number at offset 24: 4 bytes needed, 3 left");
    assert_int_equal(err.offset, 24);
    gb_done(&w.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_both_walks_end_at_the_same_place),
            cmocka_unit_test(test_few_strings_are_not_read),
            cmocka_unit_test(test_cut_arrays_are_refused),
            cmocka_unit_test(test_reads_and_allocations_that_fail),
            cmocka_unit_test(test_an_index_through_reads_is_the_same),
            cmocka_unit_test(test_numbers_and_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
