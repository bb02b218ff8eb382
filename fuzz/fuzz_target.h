/* The one function of every fuzz target; libFuzzer calls it, or driver.c. */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* Must return 0 and leave nothing behind, whatever the bytes are. */
/* NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
