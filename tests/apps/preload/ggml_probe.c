/*
 * Loads a model as programs on ggml do: the index by ggml's own reader, the file mapped with MAP_POPULATE, tensors
 * where they lie. Prints how many bytes of each are not zero, and the pages that had to be read meanwhile.
 *
 *   ggml_probe FILE [SKIP]   SKIP: a tensor that is not looked at
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ggml.h"
#include "gguf.h"

static size_t count(const unsigned char *p, size_t n)
{
    size_t n_set = 0;
    for (size_t i = 0; i < n; i++) {
        n_set += p[i] != 0;
    }
    return n_set;
}

int main(int argc, char **argv)
{
    struct ggml_context *ctx = NULL;
    struct gguf_init_params params = {.no_alloc = true, .ctx = &ctx};
    struct gguf_context *gguf = argc > 1 ? gguf_init_from_file(argv[1], params) : NULL;
    struct rusage before;
    struct rusage after;
    struct stat st;
    int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;
    if (!gguf || fd < 0 || fstat(fd, &st) != 0) {
        fprintf(stderr, "ggml_probe: cannot load\n");
        return 1;
    }
    const char *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    close(fd);
    if (data == MAP_FAILED) {
        return 1;
    }
    getrusage(RUSAGE_SELF, &before);
    for (int64_t i = 0; i < gguf_get_n_tensors(gguf); i++) {
        const char *name = gguf_get_tensor_name(gguf, i);
        size_t at = gguf_get_data_offset(gguf) + gguf_get_tensor_offset(gguf, i);
        if (argc > 2 && strcmp(name, argv[2]) == 0) {
            continue;
        }
        printf("%s %zu of %zu\n", name,
                count((const unsigned char *)data + at, gguf_get_tensor_size(gguf, i)),
                gguf_get_tensor_size(gguf, i));
    }
    getrusage(RUSAGE_SELF, &after);
    printf("%ld major faults\n", after.ru_majflt - before.ru_majflt);
    gguf_free(gguf);
    ggml_free(ctx);
    return 0;
}
