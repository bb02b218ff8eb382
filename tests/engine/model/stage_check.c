#include "stage_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"
#include "test_support.h"

/* Columns of the stage that were seen before, counted on by n. */
static size_t advance(stage_check *check, const char *stage, size_t n)
{
    size_t i = 0;
    while (i < check->n_stages && strcmp(check->stages[i].name, stage) != 0) {
        i++;
    }
    if (i == check->n_stages) {
        assert_true(i < STAGE_CHECK_MAX);
        snprintf(check->stages[i].name, sizeof check->stages[i].name, "%s", stage);
        check->n_stages++;
    }
    size_t done = check->stages[i].n_done;
    check->stages[i].n_done += n;
    return done;
}

static void see(void *user, const char *stage, const float *data, int64_t ne0, int64_t ne1)
{
    stage_check *check = user;
    char name[64];
    size_t dims[GOLDEN_MAX_DIMS];
    bool is_rows = strcmp(stage, "zq") == 0; /* [channels, time]; all others [time, channels] */
    size_t n_time = (size_t)(is_rows ? ne1 : ne0);
    size_t n_channels = (size_t)(is_rows ? ne0 : ne1);
    bool is_model = strncmp(stage, "model", 5) == 0 && strcmp(stage, "model0") != 0;
    bool is_head = is_model || strncmp(stage, "block", 5) == 0;
    size_t done = advance(check, stage, n_time);
    if (is_head && strncmp(check->prefix, "enc.", 4) == 0 &&
            strcmp(check->prefix, "enc.ref") != 0) {
        return; /* heads exist for one recording only */
    }
    snprintf(name, sizeof name, "%s.%s%s", check->prefix, stage, is_head ? ".head" : "");
    assert_int_equal(golden_dims(name, dims), 2);
    assert_int_equal(dims[0], n_channels);
    float *want = golden_f32(name, NULL);
    for (size_t t = 0; t < n_time && done + t < dims[1]; t++) {
        for (size_t c = 0; c < n_channels; c++) {
            float got = is_rows ? data[t * n_channels + c] : data[c * n_time + t];
            float expected = want[c * dims[1] + done + t];
            float difference = fabsf(got - expected);
            if (!(difference <= check->tolerance)) {
                fail_msg("%s[%zu][%zu]: %g, want %g", name, c, done + t, (double)got,
                        (double)expected);
            }
            check->worst = fmaxf(check->worst, difference);
        }
        check->n_columns++;
    }
    free(want);
}

s2_probe stage_check_probe(stage_check *check)
{
    return (s2_probe){.see = see, .user = check};
}
