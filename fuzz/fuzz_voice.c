/* A voice file: what is accepted is consistent and is written as it was read. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"

#include "base/mem.h"
#include "engine/voice/voice_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    s2_voice voice = {0};
    sl_error err = {0};
    char *bytes = NULL;
    size_t n_bytes = 0;
    int r = s2_voice_parse((const char *)data, size, "input", &voice, &err);
    if (r < 0) {
        if (err.code != r || err.msg[0] == '\0') {
            abort();
        }
        return 0;
    }
    if (s2_voice_encode(&voice, &bytes, &n_bytes, &err) < 0 || n_bytes != size ||
            memcmp(bytes, data, size) != 0) {
        abort();
    }
    sl__free(bytes);
    s2_voice_done(&voice);
    return 0;
}
