#include "model_fixture.h"

#include <math.h>

#include "engine/model/slow_ar.h"
#include "test_support.h"

void model_fixture_open_path(model_fixture *f, const char *path, int n_threads)
{
    sl_error err;
    *f = (model_fixture){0};
    assert_ok(sl_model_open(path, &f->model, &err), &err);
    assert_ok(s2_hparams_read(f->model, &f->hp, &err), &err);
    assert_ok(s2_compute_init(&f->compute, n_threads, &err), &err);
    assert_ok(s2_head_rows_init(&f->head, f->model, &f->hp, &err), &err);
    assert_ok(s2_weights_open(f->model, &f->head.tensor, &f->weights, &err), &err);
    assert_ok(s2_weights_use_mapping(f->weights, &err), &err);
}

void model_fixture_open(model_fixture *f, const char *name, int n_threads)
{
    char path[512];
    model_fixture_open_path(f, test_data(path, sizeof path, name), n_threads);
}

void model_fixture_close(model_fixture *f)
{
    s2_weights_close(&f->weights);
    s2_compute_done(&f->compute);
    sl_model_close(&f->model);
}

float largest_difference(const float *a, const float *b, size_t n)
{
    float largest = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(isfinite(a[i]) && isfinite(b[i]));
        float d = fabsf(a[i] - b[i]);
        largest = d > largest ? d : largest;
    }
    return largest;
}
