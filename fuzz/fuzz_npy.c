/* An array of codes. */
#include <stdlib.h>

#include "fuzz_target.h"

#include "base/mem.h"
#include "npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int32_t *codes = NULL;
    uint32_t n_frames = 0;
    sl_error err = {0};
    int r = npy_parse_codes((const char *)data, size, "input", 2, 63, &codes, &n_frames, &err);
    if (r < 0) {
        if (err.code != r || err.msg[0] == '\0') {
            abort();
        }
        return 0;
    }
    for (size_t i = 0; i < (size_t)n_frames * 2; i++) {
        if (codes[i] < 0 || codes[i] > 63) {
            abort();
        }
    }
    sl__free(codes);
    return 0;
}
