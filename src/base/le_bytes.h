/*
 * Little-endian numbers at any address. Compilers turn each of these into one load or store.
 */
#ifndef SL_BASE_LE_BYTES_H
#define SL_BASE_LE_BYTES_H

#include <stdint.h>

static inline uint16_t sl__load_u16(const void *at)
{
    const unsigned char *b = at;
    return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t sl__load_u32(const void *at)
{
    const unsigned char *b = at;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint64_t sl__load_u64(const void *at)
{
    const unsigned char *b = at;
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 |
           (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 |
           (uint64_t)b[7] << 56;
}

/* Stores the low n_bytes bytes of `v`. */
static inline void sl__store_le(void *at, uint64_t v, unsigned n_bytes)
{
    unsigned char *b = at;
    for (unsigned i = 0; i < n_bytes; i++) {
        b[i] = (unsigned char)(v >> (8 * i));
    }
}

#endif
