/* A model, opened as far as a test of one module needs it. */
#ifndef TEST_MODEL_FIXTURE_H
#define TEST_MODEL_FIXTURE_H

#include "engine/model/hparams.h"
#include "engine/nn/compute.h"
#include "engine/nn/rows.h"
#include "engine/nn/weights.h"
#include "sluice/model.h"

typedef struct model_fixture {
    sl_model *model;
    s2_hparams hp;
    s2_compute compute;
    s2_rows head;
    s2_weights *weights;
} model_fixture;

/* Both fail the test if anything does. */
void model_fixture_open_path(model_fixture *f, const char *path, int n_threads);
/* name: path below tests/data. */
void model_fixture_open(model_fixture *f, const char *name, int n_threads);
void model_fixture_close(model_fixture *f);

/* Largest |a - b|; fails the test if a value is not finite. */
float largest_difference(const float *a, const float *b, size_t n);

#endif
