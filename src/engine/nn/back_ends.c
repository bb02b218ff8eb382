#include "engine/nn/back_ends.h"

#include <stdio.h>
#include <stdlib.h>

#include "ggml-backend.h"

/* Back ends tell what they find; of that, only what ends the process is of use to whoever asked for speech. */
static void keep_errors(enum ggml_log_level level, const char *text, void *ud)
{
    (void)ud;
    if (level == GGML_LOG_LEVEL_ERROR) {
        (void)fputs(text, stderr);
    }
}

/* NOLINTBEGIN(concurrency-mt-unsafe): the environment is touched before there are threads, as the header says. */
void s2_back_ends_load(void)
{
    /* CUDA registers memory only if it is told to; somebody's own choice stays. */
    (void)setenv("GGML_CUDA_REGISTER_HOST", "1", 0);
    ggml_log_set(keep_errors, NULL);
    if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU)) {
        return;
    }
    const char *dir = getenv("SLUICE_GGML_BACKENDS");
    dir = dir ? dir : SLUICE_GGML_BACKENDS;
    if (dir[0]) {
        ggml_backend_load_all_from_path(dir);
    }
}
/* NOLINTEND(concurrency-mt-unsafe) */

size_t s2_back_ends_count(void)
{
    return ggml_backend_dev_count();
}

struct ggml_backend_device *s2_back_ends_device(size_t i)
{
    return ggml_backend_dev_get(i);
}
