/* The rule from names to units, on the real model's names. */
#include "s2/units.h"

#include <stdlib.h>
#include <string.h>

#include "test_support.h"

static sl_span span(const char *s)
{
    return (sl_span){s, strlen(s)};
}

/*
 * Counts of spec section 1.4 to 1.6: slow 327 of which 2 are embeddings, fast 31, codec 126 + 240 + 89; of the 240
 * in the middle, 95 go with the encoder and 95 with the decoder.
 */
static void test_real_model_names_fall_into_their_units(void **state)
{
    static const uint64_t wanted[S2_UNIT_COUNT] = {[S2_UNIT_EMBED] = 2,
            [S2_UNIT_SLOW] = 325,
            [S2_UNIT_FAST] = 31,
            [S2_UNIT_CODEC_ENCODER] = 126 + 95,
            [S2_UNIT_CODEC_QUANTIZER] = 50,
            [S2_UNIT_CODEC_DECODER] = 89 + 95};
    uint64_t n[S2_UNIT_COUNT] = {0};
    char path[512];
    size_t n_bytes;
    (void)state;
    char *names =
            test_read_file(test_data(path, sizeof path, "golden/s2pro-tensors.tsv"), &n_bytes);
    for (const char *line = names; *line;) {
        n[s2_unit_of((sl_span){line, strcspn(line, "\t")}, false)]++;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    free(names);
    for (int id = 0; id < S2_UNIT_COUNT; id++) {
        assert_int_equal(n[id], wanted[id]);
    }
}

static void test_codec_files_lack_the_prefix(void **state)
{
    (void)state;
    assert_int_equal(s2_unit_of(span("encoder.block.0.conv.weight"), true), S2_UNIT_CODEC_ENCODER);
    assert_int_equal(s2_unit_of(span("encoder.block.0.conv.weight"), false), S2_UNIT_NONE);
    assert_int_equal(s2_unit_of(span("c."), false), S2_UNIT_NONE);
    assert_int_equal(s2_unit_of(span(""), false), S2_UNIT_NONE);
    assert_int_equal(s2_unit_of(span("layers"), false), S2_UNIT_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_real_model_names_fall_into_their_units),
            cmocka_unit_test(test_codec_files_lack_the_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
