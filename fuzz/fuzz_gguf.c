/*
 * The GGUF index: opened from memory, and through a read function as a model file is, each time walked over
 * completely; then once more with an allocation that fails, a different one for each input.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "gguf_walk.h"

#include "base/mem.h"
#include "source/gguf_index.h"

typedef struct memory {
    const uint8_t *p;
    size_t n;
} memory;

static int read_memory(void *ud, void *buf, uint64_t offset, size_t n, sl_error *reterr)
{
    const memory *m = ud;
    (void)reterr;
    if (offset > m->n || n > m->n - offset) {
        abort();
    }
    memcpy(buf, m->p + offset, n);
    return 0;
}

/* Opens and walks; returns the code. */
static int open_and_walk(const sl__gguf_source *src)
{
    sl_gguf *gguf = NULL;
    sl_error err = {0};
    int r = sl__gguf_open_source(src, &gguf, &err);
    if ((r < 0) != (gguf == NULL) || (r < 0 && (err.code != r || err.msg[0] == '\0'))) {
        abort();
    }
    if (gguf) {
        gguf_walk(gguf, src->bytes, (size_t)src->n_bytes);
    }
    sl_gguf_close(&gguf);
    return r;
}

/* NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memory m = {data, size};
    sl__gguf_source src = {.bytes = (const char *)data, .n_bytes = size, .name = "fuzz"};
    int in_place = open_and_walk(&src);
    src.read = read_memory;
    src.ud = &m;
    if (open_and_walk(&src) != in_place) {
        abort();
    }
    sl__mem_fail_after((long)(size % 13));
    int short_of_memory = open_and_walk(&src);
    sl__mem_fail_after(-1);
    if (short_of_memory != in_place && short_of_memory != SL_ENOMEM) {
        abort();
    }
    return 0;
}
