/*
 * Runs a fuzz target over files and folders of files without libFuzzer, so that the corpus is a test with
 * any compiler. Each input is a block of exactly its size: a sanitizer sees every read outside.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fuzz_target.h"

static int run_file(const char *path, uint64_t n_bytes)
{
    FILE *f = fopen(path, "rbe");
    uint8_t *data = malloc(n_bytes ? (size_t)n_bytes : 1);
    size_t n = f && data ? fread(data, 1, (size_t)n_bytes, f) : 0;
    int r = f && data && n == n_bytes ? LLVMFuzzerTestOneInput(data, n) : -1;
    if (r != 0) {
        fprintf(stderr, "driver: %s: cannot read it, or the target failed\n", path);
    }
    free(data);
    if (f) {
        (void)fclose(f);
    }
    return r == 0 ? 1 : -1;
}

/* Every file of a folder that does not begin with a dot. Number of inputs run, or negative. */
static int run_folder(const char *path)
{
    char below[4096];
    int n = 0;
    DIR *dir = opendir(path);
    while (dir && n >= 0) {
        struct dirent *e = readdir(dir); /* NOLINT(concurrency-mt-unsafe): one thread */
        if (!e) {
            break;
        }
        struct stat st;
        int n_path = snprintf(below, sizeof below, "%s/%s", path, e->d_name);
        if (e->d_name[0] == '.') {
            continue;
        }
        bool is_file = n_path > 0 && (size_t)n_path < sizeof below && stat(below, &st) == 0;
        n = is_file && run_file(below, (uint64_t)st.st_size) > 0 ? n + 1 : -1;
    }
    if (dir) {
        closedir(dir);
    }
    return n;
}

static int run_path(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        fprintf(stderr, "driver: %s: no such file\n", path);
        return -1;
    }
    return S_ISDIR(st.st_mode) ? run_folder(path) : run_file(path, (uint64_t)st.st_size);
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++) {
        int more = run_path(argv[i]);
        if (more < 0) {
            return 1;
        }
        n += more;
    }
    printf("%d inputs\n", n);
    return n > 0 ? 0 : 1;
}
