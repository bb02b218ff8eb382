#include "engine/text/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "random_text.h"
#include "test_support.h"

#define N_MERGES 40

typedef struct merge_row {
    int32_t left;
    int32_t right;
    int32_t id;
} merge_row;

/* Bytes are tokens 0..255; merge k makes token 256 + k of two earlier ones, mostly a to d. */
static void make_merges(uint64_t *seed, merge_row *rows, s2_bpe *bpe)
{
    sl_error err = {0};
    assert_ok(s2_bpe_init(bpe, N_MERGES, &err), &err);
    for (int32_t byte = 0; byte < 256; byte++) {
        bpe->byte_ids[byte] = byte;
    }
    int32_t n = 0;
    while (n < N_MERGES) {
        int32_t sides[2];
        for (int k = 0; k < 2; k++) {
            uint64_t pick = random_next(seed) % (uint64_t)(4 + n);
            sides[k] = pick < 4 ? 'a' + (int32_t)pick : 256 + (int32_t)pick - 4;
        }
        rows[n] = (merge_row){sides[0], sides[1], 256 + n};
        n += s2_bpe_add(bpe, sides[0], sides[1], 256 + n, NULL) == 0;
    }
}

/* As the definition says: look for the first merge of the list anywhere, join, start again. */
static size_t encode_slowly(const merge_row *rows, const char *text, size_t n, int32_t *ids)
{
    for (size_t i = 0; i < n; i++) {
        ids[i] = (unsigned char)text[i];
    }
    for (int k = 0; k < N_MERGES; k++) {
        for (size_t i = 0; i + 1 < n; i++) {
            if (ids[i] == rows[k].left && ids[i + 1] == rows[k].right) {
                ids[i] = rows[k].id;
                memmove(ids + i + 1, ids + i + 2, (n - i - 2) * sizeof *ids);
                n--;
                k = -1;
                break;
            }
        }
    }
    return n;
}

static void test_random_merges_equal_the_definition(void **state)
{
    (void)state;
    uint64_t seed = 5;
    s2_bpe_scratch scratch = {0};
    s2_tokens tokens = {0};
    for (int round = 0; round < 300; round++) {
        merge_row rows[N_MERGES];
        s2_bpe bpe = {0};
        make_merges(&seed, rows, &bpe);
        for (int i = 0; i < 20; i++) {
            char text[64];
            int32_t want[64];
            sl_error err = {0};
            size_t n = random_next(&seed) % sizeof text;
            for (size_t k = 0; k < n; k++) {
                text[k] = (char)('a' + random_next(&seed) % 5);
            }
            tokens.n = 0;
            assert_ok(s2_bpe_encode(&bpe, text, n, &scratch, &tokens, &err), &err);
            size_t n_want = encode_slowly(rows, text, n, want);
            assert_int_equal(tokens.n, n_want);
            assert_true(n_want == 0 || memcmp(tokens.ids, want, n_want * sizeof *want) == 0);
        }
        s2_bpe_done(&bpe);
    }
    s2_bpe_scratch_done(&scratch);
    s2_tokens_done(&tokens);
}

/* aa = 256, aaaa = 257, ...: a megabyte of one word. Quadratic work would take hours. */
static void test_a_megabyte_without_a_border(void **state)
{
    (void)state;
    size_t n = (size_t)1 << 20;
    char *text = malloc(n);
    s2_bpe bpe = {0};
    s2_bpe_scratch scratch = {0};
    s2_tokens tokens = {0};
    sl_error err = {0};
    assert_non_null(text);
    memset(text, 'a', n);
    assert_ok(s2_bpe_init(&bpe, 10, &err), &err);
    bpe.byte_ids['a'] = 'a';
    assert_ok(s2_bpe_add(&bpe, 'a', 'a', 256, &err), &err);
    for (int32_t k = 0; k < 9; k++) {
        assert_ok(s2_bpe_add(&bpe, 256 + k, 256 + k, 257 + k, &err), &err);
    }
    assert_ok(s2_bpe_encode(&bpe, text, n, &scratch, &tokens, &err), &err);
    assert_int_equal(tokens.n, n / 1024);
    assert_int_equal(tokens.ids[0], 265);
    assert_int_equal(tokens.ids[tokens.n - 1], 265);
    s2_bpe_done(&bpe);
    s2_bpe_scratch_done(&scratch);
    s2_tokens_done(&tokens);
    free(text);
}

static void test_a_merge_that_is_there_twice(void **state)
{
    (void)state;
    s2_bpe bpe = {0};
    sl_error err = {0};
    assert_ok(s2_bpe_init(&bpe, 4, &err), &err);
    assert_ok(s2_bpe_add(&bpe, 1, 2, 3, &err), &err);
    assert_ok(s2_bpe_add(&bpe, 2, 1, 3, &err), &err);
    assert_int_equal(s2_bpe_add(&bpe, 1, 2, 4, &err), SL_EEXIST);
    assert_int_equal(bpe.n_merges, 2);
    s2_bpe_done(&bpe);
}

static void test_every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    s2_bpe bpe = {0};
    sl_error err = {0};
    assert_ok(s2_bpe_init(&bpe, 4, &err), &err);
    for (long n = 0; n < 3; n++) {
        s2_bpe_scratch scratch = {0};
        s2_tokens tokens = {0};
        sl__mem_fail_after(n);
        int r = s2_bpe_encode(&bpe, "ab", 2, &scratch, &tokens, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(r, SL_ENOMEM);
        s2_bpe_scratch_done(&scratch);
        s2_tokens_done(&tokens);
    }
    s2_bpe_done(&bpe);
    sl__mem_fail_after(0);
    int r = s2_bpe_init(&bpe, 4, &err);
    sl__mem_fail_after(-1);
    assert_int_equal(r, SL_ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_random_merges_equal_the_definition),
            cmocka_unit_test(test_a_megabyte_without_a_border),
            cmocka_unit_test(test_a_merge_that_is_there_twice),
            cmocka_unit_test(test_every_failing_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
