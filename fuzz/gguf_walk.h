/*
 * Reads everything that an index of a GGUF file offers, as a caller would. Whatever lies outside the bytes
 * of the file stops the process.
 */
#ifndef FUZZ_GGUF_WALK_H
#define FUZZ_GGUF_WALK_H

#include <stddef.h>

#include "sluice/gguf.h"

void gguf_walk(const sl_gguf *gguf, const void *bytes, size_t n_bytes);

#endif
