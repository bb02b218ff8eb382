/*
 * Reads keys and shapes of a model for hparams.c and keeps the first failure: after it every call does
 * nothing, so that the caller is a list of facts and not of checks.
 *
 * Messages name the file, the key or tensor, what was found and what is needed.
 */
#ifndef S2_MODEL_HPARAMS_READER_H
#define S2_MODEL_HPARAMS_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "sluice/model.h"

#define S2_HP_MAX_WIDTH (1u << 20) /* largest dimension that becomes a width */

typedef struct s2_hp_reader {
    const sl_model *model;
    const sl_gguf *gguf; /* of the first file */
    sl_error *reterr;
    int r; /* first failure, or 0 */
} s2_hp_reader;

/* Records a failure unless there was one. */
void s2_hp_refuse(s2_hp_reader *rd, int code, const char *fmt, ...) SL_PRINTF(3, 4);

/* A number in min..max; *dst stays as it is after a failure. */
void s2_hp_u32(s2_hp_reader *rd, const char *key, uint32_t min, uint32_t max, uint32_t *dst);
void s2_hp_f32(s2_hp_reader *rd, const char *key, double min, double max, float *dst);

/* A flag that older exports lack. */
bool s2_hp_flag(s2_hp_reader *rd, const char *key, bool if_absent);

/* An array of 1..n_max integers, each in min..max, of any integer type; returns how many, 0 = failure. */
uint32_t s2_hp_list(s2_hp_reader *rd, const char *key, uint32_t n_max, uint32_t min, uint32_t max,
        uint32_t *dst);

/* The tensor of the formatted name, or NULL. */
const sl_gguf_tensor *s2_hp_tensor(const s2_hp_reader *rd, const char *fmt, ...) SL_PRINTF(2, 3);

/* Size of dimension d of a tensor, in 1..S2_HP_MAX_WIDTH; 0 = failure. */
uint32_t s2_hp_width(s2_hp_reader *rd, const char *name, int d);

/* Refuses a file that says two different things. */
void s2_hp_expect_equal(
        s2_hp_reader *rd, const char *what, uint32_t found, const char *need_what, uint32_t need);

#endif
