/*
 * A small seeded generator (PCG32, M. E. O'Neill 2014): integer arithmetic only, so the same sequence
 * everywhere. Not for secrets.
 */
#ifndef S2_SAMPLE_RNG_H
#define S2_SAMPLE_RNG_H

#include <stdint.h>

typedef struct s2_rng {
    uint64_t state;
    uint64_t inc; /* odd */
} s2_rng;

void s2_rng_seed(s2_rng *rng, uint64_t seed);
uint32_t s2_rng_u32(s2_rng *rng);
double s2_rng_unit(s2_rng *rng); /* uniform in [0, 1), 53 bits */

#endif
