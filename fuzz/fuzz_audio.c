/* A recording of any format: samples are numbers, and not more than was asked for. */
#include <math.h>
#include <stdlib.h>

#include "fuzz_target.h"

#include "engine/audio/reader.h"

#define MAX_SECONDS 2.0

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    s2_audio audio = {0};
    sl_error err = {0};
    int r = s2_audio_decode(data, size, "input", MAX_SECONDS, &audio, &err);
    if (r < 0) {
        if (err.code != r || err.msg[0] == '\0') {
            abort();
        }
        return 0;
    }
    if (audio.rate == 0 || (double)audio.n > MAX_SECONDS * audio.rate + 1) {
        abort();
    }
    for (size_t i = 0; i < audio.n; i++) {
        if (!isfinite(audio.samples[i])) {
            abort();
        }
    }
    s2_audio_done(&audio);
    return 0;
}
