/* Sizes for people: "1.5 GiB". Pure. */
#ifndef SL_BASE_BYTE_TEXT_H
#define SL_BASE_BYTE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Writes a number of bytes in the largest unit that keeps it above 1; returns `buf`. */
const char *sl__byte_text(uint64_t n, char *buf, size_t buf_bytes);

#endif
