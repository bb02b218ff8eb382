/*
 * The bytes of a `.s2voice` file (s2/voice.h has the layout). Pure functions; any thread.
 */
#ifndef S2_VOICE_FORMAT_H
#define S2_VOICE_FORMAT_H

#include <stddef.h>

#include "base/status.h"
#include "s2/voice.h"

/* More than any checked file can have. */
#define S2_VOICE_MAX_BYTES                                                                         \
    (44u + S2_VOICE_MAX_TEXT_BYTES + 4ull * S2_VOICE_MAX_CODEBOOKS * S2_VOICE_MAX_FRAMES)

/*
 * Reads a voice from the n bytes of a whole file. `name` is what messages call it (quoted by the caller).
 * Errors: SL_EFORMAT (what and where), SL_ELIMIT (too many frames), SL_ENOMEM.
 */
int s2_voice_parse(const char *bytes, size_t n, const char *name, s2_voice *ret_voice,
        sl_error *reterr) SL_MUST_CHECK;

/*
 * The bytes of a voice (sl__free them).
 * Errors: SL_EINVAL (a voice that s2_voice_parse would refuse), SL_ENOMEM.
 */
int s2_voice_encode(
        const s2_voice *voice, char **ret_bytes, size_t *ret_n, sl_error *reterr) SL_MUST_CHECK;

#endif
