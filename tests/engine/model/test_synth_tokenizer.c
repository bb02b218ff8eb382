/* The synthetic tokenizer opens and has the ids that the model of the same options expects. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml.h"

#include "base/mem.h"
#include "engine/text/prompt.h"
#include "engine/text/tokenizer.h"
#include "small_synth.h"
#include "test_support.h"

static char *dir;

static int set_up(void **state)
{
    (void)state;
    dir = test_dir_create();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_dir_remove(dir);
    return 0;
}

static void check_ids(const s2_synth_opts *opts)
{
    char path[512];
    char name[32];
    sl_error err;
    s2_tokenizer *t = NULL;
    s2_prompt_layout layout;
    const s2_hparams *hp = &opts->hp;
    test_path(path, sizeof path, dir, "tokenizer.json");
    assert_ok(s2_synth_write_tokenizer(opts, path, &err), &err);
    assert_ok(s2_tokenizer_open(path, &t, &err), &err);
    for (uint32_t i = 0; i < hp->codebook_size; i++) {
        snprintf(name, sizeof name, "<|semantic:%u|>", i);
        assert_int_equal(s2_tokenizer_find(t, name), hp->semantic_begin + (int32_t)i);
    }
    assert_int_equal(s2_tokenizer_n_ids(t), hp->semantic_end + 1);
    assert_true((uint32_t)s2_tokenizer_n_ids(t) <= hp->n_vocab);
    assert_ok(s2_prompt_layout_init(&layout, t, hp->n_codebooks, hp->codebook_size,
                      hp->semantic_begin, hp->n_vocab, &err),
            &err);
    assert_int_equal(layout.im_start, hp->semantic_begin - 34);
    assert_int_equal(layout.im_end, hp->semantic_begin - 33);
    assert_int_equal(layout.voice, hp->semantic_begin - 5);
    s2_tokenizer_close(&t);
}

static void test_ids_fit_the_model(void **state)
{
    (void)state;
    sl_error err;
    s2_synth_opts opts = small_synth_opts(GGML_TYPE_F16);
    check_ids(&opts);
    opts = s2_synth_s2_pro();
    assert_ok(s2_synth_complete(&opts, &err), &err);
    assert_int_equal(opts.hp.semantic_begin, 151678);
    check_ids(&opts);
}

/* A token for each byte, in the order of the real vocabulary. */
static void test_every_byte_is_a_token(void **state)
{
    (void)state;
    char path[512];
    sl_error err;
    s2_tokenizer *t = NULL;
    s2_tokens ids = {0};
    s2_synth_opts opts = small_synth_opts(GGML_TYPE_F16);
    static const char text[] = "!~ \n\x7f\xc3\xa9";
    static const int32_t want[] = {0, 93, 220, 198, 221, 127, 102};
    test_path(path, sizeof path, dir, "tokenizer.json");
    assert_ok(s2_synth_write_tokenizer(&opts, path, &err), &err);
    assert_ok(s2_tokenizer_open(path, &t, &err), &err);
    assert_ok(s2_tokenizer_encode(t, text, sizeof text - 1, S2_CONTROL_AS_TEXT, &ids, &err), &err);
    assert_int_equal(ids.n, sizeof want / sizeof want[0]);
    assert_memory_equal(ids.ids, want, sizeof want);
    s2_tokens_done(&ids);
    s2_tokenizer_close(&t);
}

static void test_no_memory_is_an_error(void **state)
{
    (void)state;
    char path[512];
    sl_error err;
    s2_synth_opts opts = small_synth_opts(GGML_TYPE_F16);
    test_path(path, sizeof path, dir, "starved.json");
    long n = 0;
    for (int r = SL_ENOMEM; r < 0; n++) {
        assert_true(n < 200);
        sl__mem_fail_after(n);
        r = s2_synth_write_tokenizer(&opts, path, &err);
        sl__mem_fail_after(-1);
        assert_true(r == SL_OK || r == SL_ENOMEM);
    }
    assert_true(n > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_ids_fit_the_model),
            cmocka_unit_test(test_every_byte_is_a_token),
            cmocka_unit_test(test_no_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
