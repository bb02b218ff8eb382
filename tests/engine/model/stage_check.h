/* Compares inner tensors of the codec, piece by piece, with the golden tensors. */
#ifndef TEST_STAGE_CHECK_H
#define TEST_STAGE_CHECK_H

#include <stddef.h>

#include "engine/nn/build.h"

#define STAGE_CHECK_MAX 16

typedef struct stage_check {
    const char *prefix; /* golden tensors PREFIX.STAGE or PREFIX.STAGE.head; others are skipped */
    float tolerance;
    float worst;      /* largest difference seen */
    size_t n_columns; /* compared in all */
    size_t n_stages;
    struct {
        char name[32];
        size_t n_done; /* columns seen so far */
    } stages[STAGE_CHECK_MAX];
} stage_check;

/* A probe that compares and fails the test beyond the tolerance. */
s2_probe stage_check_probe(stage_check *check);

#endif
