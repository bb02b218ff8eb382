#include "engine/audio/riff.h"

#include <stdlib.h>
#include <string.h>

#include "audio_zoo.h"
#include "test_support.h"

static const zoo_wav plain = {
        .tag = 1, .bits = 16, .n_channels = 1, .rate = 44100, .n_frames = 100};

/* Parses exactly these bytes from the heap. */
static int parse(const zoo_bytes *b, s2_riff *riff, sl_error *err)
{
    unsigned char *copy = malloc(b->n + 1);
    assert_non_null(copy);
    memcpy(copy, b->p, b->n);
    copy = realloc(copy, b->n);
    int r = s2_riff_parse(copy, b->n, "x.wav", riff, err);
    free(copy);
    return r;
}

static void expect_data(zoo_bytes *b, size_t at, size_t n)
{
    s2_riff riff;
    sl_error err;
    assert_ok(parse(b, &riff, &err), &err);
    assert_int_equal(riff.data_at, at);
    assert_int_equal(riff.n_data, n);
    assert_true(riff.data_at + riff.n_data <= b->n);
    zoo_done(b);
}

static void expect_error(zoo_bytes *b, int code, const char *part)
{
    s2_riff riff;
    sl_error err;
    assert_int_equal(parse(b, &riff, &err), code);
    if (!strstr(err.msg, part)) {
        fail_msg("\"%s\" is not in \"%s\"", part, err.msg);
    }
    zoo_done(b);
}

static void test_a_true_head_is_made(void **state)
{
    zoo_wav spec = plain;
    s2_riff riff;
    sl_error err;
    (void)state;
    zoo_bytes want = zoo_make_wav(&plain);
    spec.has_size = true;
    spec.data_size = UINT32_MAX;
    spec.is_extensible = true;
    spec.n_list_before = 33;
    zoo_bytes b = zoo_make_wav(&spec);
    assert_ok(parse(&b, &riff, &err), &err);
    assert_int_equal(riff.n_head, 44);
    want.p[4] = 36 + 200;
    assert_memory_equal(riff.head, want.p, 44);
    assert_false(riff.is_mpeg);
    zoo_done(&b);
    zoo_done(&want);
}

static void test_sizes_are_clamped(void **state)
{
    static const uint32_t lies[] = {UINT32_MAX, 0x7FFFFFF0, 0, 201, 0x7FFFFFFF, 0xFFFFFFFE};
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        zoo_wav spec = plain;
        spec.has_size = true;
        spec.data_size = lies[i];
        zoo_bytes b = zoo_make_wav(&spec);
        expect_data(&b, 44, 200);
    }
}

static void test_half_a_sample_is_dropped(void **state)
{
    zoo_wav spec = plain;
    (void)state;
    spec.n_channels = 3;
    spec.n_cut = 1;
    zoo_bytes b = zoo_make_wav(&spec);
    expect_data(&b, 44, 594);
}

static void test_empty_data_before_other_chunks(void **state)
{
    zoo_wav spec = plain;
    (void)state;
    spec.n_frames = 0;
    spec.n_list_after = 50;
    zoo_bytes b = zoo_make_wav(&spec);
    expect_data(&b, 44, 0);
    spec.n_list_after = 51;
    b = zoo_make_wav(&spec);
    expect_data(&b, 44, 0);
    spec.n_list_after = 0;
    b = zoo_make_wav(&spec);
    expect_data(&b, 44, 0);
}

static void test_chunks_behind_the_data_are_not_samples(void **state)
{
    zoo_wav spec = plain;
    (void)state;
    spec.n_list_after = 1840;
    zoo_bytes b = zoo_make_wav(&spec);
    expect_data(&b, 44, 200);
}

static void test_data_in_front_of_fmt(void **state)
{
    zoo_bytes file = zoo_make_wav(&plain);
    zoo_bytes b = {0};
    (void)state;
    zoo_put(&b, file.p, 12);
    zoo_put(&b, file.p + 36, 208);
    zoo_put(&b, file.p + 12, 24);
    zoo_done(&file);
    expect_data(&b, 20, 200);
}

static void test_odd_chunk_without_its_pad_byte(void **state)
{
    zoo_wav spec = plain;
    (void)state;
    spec.n_list_before = 21;
    zoo_bytes b = zoo_make_wav(&spec);
    memmove(b.p + 20 + 21, b.p + 20 + 22, b.n - 20 - 22);
    b.n--;
    expect_data(&b, 44 + 8 + 21, 200);
}

static void test_rf64(void **state)
{
    zoo_wav spec = plain;
    (void)state;
    spec.is_rf64 = true;
    spec.n_list_after = 100;
    zoo_bytes b = zoo_make_wav(&spec);
    expect_data(&b, 44 + 36, 200);
    b = zoo_make_wav(&spec);
    memset(b.p + 28, 0xFF, 8); /* a size beyond all files */
    expect_data(&b, 44 + 36, 200 + 108);
}

static void test_cut_at_every_byte(void **state)
{
    zoo_wav spec = plain;
    (void)state;
    spec.is_extensible = true;
    spec.is_rf64 = true;
    spec.n_list_before = 13;
    zoo_bytes whole = zoo_make_wav(&spec);
    size_t n_read = 0;
    for (size_t n = 12; n <= whole.n; n++) {
        zoo_bytes b = {whole.p, n, n};
        s2_riff riff;
        sl_error err;
        int r = parse(&b, &riff, &err);
        assert_true(r == 0 || r == SL_EFORMAT || r == SL_EUNSUPPORTED);
        n_read += r == 0;
        if (r == 0) {
            assert_true(riff.data_at + riff.n_data <= n);
        }
    }
    assert_int_equal(n_read, 201); /* from the empty data chunk on */
    zoo_done(&whole);
}

/* Sets one little-endian field of a plain file. */
static zoo_bytes with_field(size_t at, unsigned n_bytes, uint32_t value)
{
    zoo_bytes b = zoo_make_wav(&plain);
    for (unsigned i = 0; i < n_bytes; i++) {
        b.p[at + i] = (unsigned char)(value >> (8 * i));
    }
    return b;
}

static void test_absurd_fields(void **state)
{
    static const struct {
        size_t at;
        unsigned n_bytes;
        uint32_t value;
        int code;
        const char *part;
    } rows[] = {
            {24, 4, 0, SL_EFORMAT, "0 samples a second"},
            {24, 4, 1, SL_EFORMAT, "1 samples a second"},
            {24, 4, 768001, SL_EFORMAT, "768001 samples"},
            {24, 4, UINT32_MAX, SL_EFORMAT, "4294967295 samples"},
            {22, 2, 0, SL_EFORMAT, "0 channels"},
            {22, 2, 65, SL_EFORMAT, "65 channels"},
            {22, 2, 65535, SL_EFORMAT, "65535 channels"},
            {34, 2, 0, SL_EFORMAT, "0 bits"},
            {34, 2, 64, SL_EFORMAT, "64 bits"},
            {34, 2, 65535, SL_EFORMAT, "65535 bits"},
            {20, 2, 3, SL_EFORMAT, "floating-point samples of 16 bits"},
            {20, 2, 0, SL_EUNSUPPORTED, "0x0000"},
            {20, 2, 0x161, SL_EUNSUPPORTED, "0x0161"},
            {20, 2, 0xFFFE, SL_EUNSUPPORTED, "0xFFFE"}, /* extensible without the rest of it */
            {12, 4, 0x20202020, SL_EFORMAT, "without a fmt chunk"},
            {36, 4, 0x20202020, SL_EFORMAT, "without a data chunk"},
            {16, 4, 0xFFFFFFFF, SL_EFORMAT, "without a data chunk"},
            {16, 4, 13, SL_EFORMAT, "without a fmt chunk"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        zoo_bytes b = with_field(rows[i].at, rows[i].n_bytes, rows[i].value);
        expect_error(&b, rows[i].code, rows[i].part);
    }
}

static void test_containers_of_samples(void **state)
{
    static const struct {
        uint16_t bits;
        uint16_t align;
        unsigned want_bits;
    } rows[] = {{8, 1, 8}, {12, 2, 16}, {20, 3, 24}, {24, 4, 32}, {24, 3, 24}, {16, 0, 16},
            {16, 9, 16}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        s2_riff riff;
        sl_error err;
        zoo_bytes b = with_field(34, 2, rows[i].bits);
        b.p[32] = (unsigned char)rows[i].align;
        assert_ok(parse(&b, &riff, &err), &err);
        assert_int_equal(riff.head[34], rows[i].want_bits);
        assert_int_equal(riff.head[32], rows[i].want_bits / 8);
        assert_int_equal(riff.n_data, 200 - 200 % (rows[i].want_bits / 8));
        zoo_done(&b);
    }
}

static void test_mp3_inside(void **state)
{
    s2_riff riff;
    sl_error err;
    (void)state;
    zoo_bytes b = with_field(20, 2, 0x55);
    assert_ok(parse(&b, &riff, &err), &err);
    assert_true(riff.is_mpeg);
    assert_int_equal(riff.data_at, 44);
    zoo_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_a_true_head_is_made),
            cmocka_unit_test(test_sizes_are_clamped),
            cmocka_unit_test(test_half_a_sample_is_dropped),
            cmocka_unit_test(test_empty_data_before_other_chunks),
            cmocka_unit_test(test_chunks_behind_the_data_are_not_samples),
            cmocka_unit_test(test_data_in_front_of_fmt),
            cmocka_unit_test(test_odd_chunk_without_its_pad_byte),
            cmocka_unit_test(test_rf64),
            cmocka_unit_test(test_cut_at_every_byte),
            cmocka_unit_test(test_absurd_fields),
            cmocka_unit_test(test_containers_of_samples),
            cmocka_unit_test(test_mp3_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
