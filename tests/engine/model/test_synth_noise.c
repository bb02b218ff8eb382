/* What fills synthetic models: as large as it should be, of the mean and deviation asked for, stopped when asked. */
#include "engine/model/synth_noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ggml.h"

#include "sluice/model.h"
#include "test_support.h"

static char *dir;
static char path[512];
static int n_asked;

static int set_up(void **state)
{
    (void)state;
    dir = test_dir_create();
    test_path(path, sizeof path, dir, "noise.gguf");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_dir_remove(dir);
    return 0;
}

static bool stop_at_the_second(void)
{
    n_asked++;
    return n_asked == 2;
}

/* Writes two tensors of F32, of 1.5 tiles and of a few values, with other means. */
static int write_two(const s2_synth_noise *noise, sl_error *reterr)
{
    s2_synth_list list = {0};
    sl__gguf_writer *w = NULL;
    sl_error err;
    assert_ok(sl__gguf_writer_create(32, &w, &err), &err);
    s2_synth_list_add(
            &list, GGML_TYPE_F32, 0.5f, 2.0f, (const uint64_t[3]){1000, 1570, 0}, "%s", "large");
    s2_synth_list_add(
            &list, GGML_TYPE_F32, -3.0f, 0.1f, (const uint64_t[3]){100, 0, 0}, "%s", "small");
    int r = s2_synth_noise_write(noise, w, &list, path, reterr);
    sl__gguf_writer_free(&w);
    s2_synth_list_done(&list);
    return r;
}

static void assert_noise(const sl_model *model, const char *name, double mean, double deviation)
{
    const sl_tensor *t = sl_model_find(model, name);
    const float *values = sl_model_data(model, t);
    size_t n = (size_t)(t->info->n_bytes / sizeof *values);
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        double v = (double)values[i] - mean;
        assert_true(fabs(v) <= 3.5 * deviation);
        sum += v;
        squares += v * v;
    }
    assert_true(fabs(sum / (double)n) < 0.3 * deviation);
    assert_true(fabs(sqrt(squares / (double)n) / deviation - 1) < 0.2);
}

static void test_mean_and_deviation(void **state)
{
    (void)state;
    sl_error err;
    sl_model *model = NULL;
    assert_ok(write_two(&(s2_synth_noise){.seed = 5}, &err), &err);
    assert_ok(sl_model_open(path, &model, &err), &err);
    assert_int_equal(sl_model_find(model, "large")->info->n_bytes, 4u * 1000 * 1570);
    assert_noise(model, "large", 0.5, 2.0);
    assert_noise(model, "small", -3.0, 0.1);
    sl_model_close(&model);
}

static void test_it_stops_and_leaves_what_was_there(void **state)
{
    (void)state;
    sl_error err = {0};
    size_t n = 0;
    test_write_file(path, "before", 6);
    n_asked = 0;
    int r = write_two(&(s2_synth_noise){.seed = 5, .should_stop = stop_at_the_second}, &err);
    assert_int_equal(r, SL_ECANCELLED);
    char *bytes = test_read_file(path, &n);
    assert_int_equal(n, 6);
    assert_memory_equal(bytes, "before", 6);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_mean_and_deviation),
            cmocka_unit_test(test_it_stops_and_leaves_what_was_there),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
