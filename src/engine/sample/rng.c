#include "engine/sample/rng.h"

/* Stream of the generator's published demonstration program, so that its vectors are ours too. */
#define RNG_STREAM     54u
#define RNG_MULTIPLIER 6364136223846793005u

uint32_t s2_rng_u32(s2_rng *rng)
{
    uint64_t old = rng->state;
    rng->state = old * RNG_MULTIPLIER + rng->inc;
    uint32_t mixed = (uint32_t)(((old >> 18) ^ old) >> 27);
    uint32_t turn = (uint32_t)(old >> 59);
    return (mixed >> turn) | (mixed << ((32u - turn) & 31u));
}

void s2_rng_seed(s2_rng *rng, uint64_t seed)
{
    rng->state = 0;
    rng->inc = (RNG_STREAM << 1) | 1u;
    (void)s2_rng_u32(rng);
    rng->state += seed;
    (void)s2_rng_u32(rng);
}

double s2_rng_unit(s2_rng *rng)
{
    uint64_t high = s2_rng_u32(rng) >> 5; /* 27 bits */
    uint64_t low = s2_rng_u32(rng) >> 6;  /* 26 bits */
    return (double)((high << 26) | low) * 0x1p-53;
}
