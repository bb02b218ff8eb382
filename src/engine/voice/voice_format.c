/*
 * One check of the fields serves reading and writing, so that nothing is written that could not be read.
 * When reading, all sizes are compared with the size of the file before anything is allocated.
 */
#include "engine/voice/voice_format.h"

#include <inttypes.h>
#include <string.h>

#include "base/le_bytes.h"
#include "base/mem.h"
#include "base/utf8.h"

#define HEADER_BYTES    44u
#define VERSION         1u
#define MAX_SAMPLE_RATE 768000

static const char magic[8] = "S2VOICE";

static int32_t get_i32(const char *p)
{
    uint32_t bits = sl__load_u32(p);
    int32_t v = 0;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* The numbers of the header, as they stand in the file. */
typedef struct voice_fields {
    int64_t n_codebooks;
    int64_t n_frames;
    int64_t sample_rate;
    int64_t codebook_size;
    uint64_t text_bytes; /* with the NUL */
    uint64_t codes_bytes;
} voice_fields;

static int check_field(int64_t value, int64_t min, int64_t max, const char *field, uint64_t offset,
        const char *name, int code, sl_error *reterr)
{
    if (value < min || value > max) {
        return sl__fail_at(reterr, code, offset,
                "%s: %s is %" PRId64 " at byte %" PRIu64 ", needed is %" PRId64 " to %" PRId64,
                name, field, value, offset, min, max);
    }
    return 0;
}

static int check_fields(const voice_fields *f, const char *name, int code, sl_error *reterr)
{
    int r = check_field(f->n_codebooks, 1, S2_VOICE_MAX_CODEBOOKS, "the number of codebooks", 12,
            name, code, reterr);
    if (r == 0) {
        r = check_field(f->n_frames, 1, S2_VOICE_MAX_FRAMES, "the number of frames", 16, name,
                code == SL_EFORMAT && f->n_frames > 0 ? SL_ELIMIT : code, reterr);
    }
    if (r == 0) {
        r = check_field(
                f->sample_rate, 1, MAX_SAMPLE_RATE, "the sample rate", 20, name, code, reterr);
    }
    if (r == 0) {
        r = check_field(f->codebook_size, 1, S2_VOICE_MAX_CODEBOOK_SIZE, "the codebook size", 24,
                name, code, reterr);
    }
    return r;
}

/* The two sizes against the other fields and the n bytes of the file. */
static int check_sizes(const voice_fields *f, size_t n, const char *name, sl_error *reterr)
{
    uint64_t want_codes = 4ull * (uint64_t)f->n_codebooks * (uint64_t)f->n_frames;
    if (f->text_bytes < 2 || f->text_bytes > S2_VOICE_MAX_TEXT_BYTES) {
        return sl__fail_at(reterr, SL_EFORMAT, 28,
                "%s: the transcript has %" PRIu64 " bytes with its NUL, needed is 2 to %u", name,
                f->text_bytes, S2_VOICE_MAX_TEXT_BYTES);
    }
    if (f->codes_bytes != want_codes) {
        return sl__fail_at(reterr, SL_EFORMAT, 36,
                "%s: the codes have %" PRIu64 " bytes, but %" PRId64 " codebooks of %" PRId64
                " frames need %" PRIu64,
                name, f->codes_bytes, f->n_codebooks, f->n_frames, want_codes);
    }
    uint64_t want = HEADER_BYTES + f->text_bytes + f->codes_bytes; /* all three are bounded */
    if (n != want) {
        return sl__fail_at(reterr, SL_EFORMAT, n < want ? n : want,
                "%s: the file has %zu bytes, its header needs %" PRIu64 "; it is %s", name, n, want,
                n < want ? "cut off" : "followed by something else");
    }
    return 0;
}

static int check_text(const char *text, size_t n, const char *name, int code, sl_error *reterr)
{
    const char *nul = memchr(text, '\0', n);
    size_t n_valid = sl__utf8_valid_prefix(text, n);
    if (nul) {
        return sl__fail_at(reterr, code, HEADER_BYTES + (uint64_t)(nul - text),
                "%s: the transcript of %zu bytes has a NUL inside, at byte %zu", name, n,
                (size_t)(nul - text));
    }
    if (n_valid != n) {
        return sl__fail_at(reterr, code, HEADER_BYTES + n_valid,
                "%s: the transcript is not UTF-8 from its byte %zu on", name, n_valid);
    }
    return 0;
}

static int check_code(int32_t value, const voice_fields *f, size_t i, uint64_t offset,
        const char *name, int code, sl_error *reterr)
{
    if (value < 0 || value >= f->codebook_size) {
        return sl__fail_at(reterr, code, offset,
                "%s: code %" PRId32 " in codebook %zu, frame %zu is outside 0 to %" PRId64, name,
                value, i / (size_t)f->n_frames, i % (size_t)f->n_frames, f->codebook_size - 1);
    }
    return 0;
}

static int read_header(
        const char *bytes, size_t n, const char *name, voice_fields *ret_fields, sl_error *reterr)
{
    if (n < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0) {
        return sl__fail(reterr, SL_EFORMAT,
                "%s: not a .s2voice file (it does not begin with S2VOICE)", name);
    }
    if (n < HEADER_BYTES) {
        return sl__fail_at(reterr, SL_EFORMAT, n,
                "%s: the file has %zu bytes, the header alone needs %u; it is cut off", name, n,
                HEADER_BYTES);
    }
    uint32_t version = sl__load_u32(bytes + 8);
    if (version != VERSION) {
        return sl__fail_at(reterr, SL_EFORMAT, 8,
                "%s: version %" PRIu32 " of .s2voice, this program reads version %u", name, version,
                VERSION);
    }
    voice_fields f = {get_i32(bytes + 12), get_i32(bytes + 16), get_i32(bytes + 20),
            get_i32(bytes + 24), sl__load_u64(bytes + 28), sl__load_u64(bytes + 36)};
    int r = check_fields(&f, name, SL_EFORMAT, reterr);
    if (r == 0) {
        r = check_sizes(&f, n, name, reterr);
    }
    if (r == 0) {
        *ret_fields = f;
    }
    return r;
}

static int read_codes(const char *bytes, const voice_fields *f, const char *name, int32_t *codes,
        sl_error *reterr)
{
    size_t n_codes = (size_t)f->codes_bytes / 4;
    uint64_t start = HEADER_BYTES + f->text_bytes;
    for (size_t i = 0; i < n_codes; i++) {
        codes[i] = get_i32(bytes + start + 4 * i);
        int r = check_code(codes[i], f, i, start + 4 * i, name, SL_EFORMAT, reterr);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int s2_voice_parse(
        const char *bytes, size_t n, const char *name, s2_voice *ret_voice, sl_error *reterr)
{
    voice_fields f = {0};
    s2_voice voice = {0};
    int r = read_header(bytes, n, name, &f, reterr);
    if (r < 0) {
        return r;
    }
    const char *text = bytes + HEADER_BYTES;
    size_t text_bytes = (size_t)f.text_bytes - 1;
    if (text[text_bytes] != '\0') {
        return sl__fail_at(reterr, SL_EFORMAT, HEADER_BYTES + text_bytes,
                "%s: the transcript of %zu bytes does not end with a NUL", name, text_bytes);
    }
    r = check_text(text, text_bytes, name, SL_EFORMAT, reterr);
    if (r < 0) {
        return r;
    }
    voice.n_codebooks = (uint32_t)f.n_codebooks;
    voice.n_frames = (uint32_t)f.n_frames;
    voice.sample_rate = (uint32_t)f.sample_rate;
    voice.codebook_size = (uint32_t)f.codebook_size;
    voice.text = sl__strndup(text, text_bytes);
    voice.codes = sl__alloc((size_t)f.codes_bytes / 4, sizeof *voice.codes);
    if (!voice.text || !voice.codes) {
        r = sl__fail_nomem(reterr, n, name);
    } else {
        r = read_codes(bytes, &f, name, voice.codes, reterr);
    }
    if (r < 0) {
        s2_voice_done(&voice);
        return r;
    }
    *ret_voice = voice;
    return 0;
}

static int check_voice(const s2_voice *voice, const voice_fields *f, sl_error *reterr)
{
    const char *name = "the voice to save";
    if (!voice->text || !voice->codes || f->text_bytes < 2) {
        return sl__fail(reterr, SL_EINVAL, "%s has no %s", name,
                voice->text && f->text_bytes >= 2 ? "codes" : "transcript");
    }
    int r = check_fields(f, name, SL_EINVAL, reterr);
    if (r == 0 && f->text_bytes > S2_VOICE_MAX_TEXT_BYTES) {
        r = sl__fail(reterr, SL_EINVAL, "%s: the transcript has %" PRIu64 " bytes, at most %u fit",
                name, f->text_bytes - 1, S2_VOICE_MAX_TEXT_BYTES - 1);
    }
    if (r == 0) {
        r = check_text(voice->text, (size_t)f->text_bytes - 1, name, SL_EINVAL, reterr);
    }
    size_t n_codes = r == 0 ? (size_t)voice->n_codebooks * voice->n_frames : 0;
    for (size_t i = 0; r == 0 && i < n_codes; i++) {
        uint64_t offset = HEADER_BYTES + f->text_bytes + 4 * i;
        r = check_code(voice->codes[i], f, i, offset, name, SL_EINVAL, reterr);
    }
    return r;
}

int s2_voice_encode(const s2_voice *voice, char **ret_bytes, size_t *ret_n, sl_error *reterr)
{
    voice_fields f = {voice->n_codebooks, voice->n_frames, voice->sample_rate, voice->codebook_size,
            voice->text ? strlen(voice->text) + 1 : 0, 0};
    int r = check_voice(voice, &f, reterr);
    if (r < 0) {
        return r;
    }
    size_t n_codes = (size_t)voice->n_codebooks * voice->n_frames;
    size_t text_bytes = (size_t)f.text_bytes;
    size_t n = HEADER_BYTES + text_bytes + 4 * n_codes;
    char *bytes = sl__alloc(n, 1);
    if (!bytes) {
        return sl__fail_nomem(reterr, n, "a voice file");
    }
    memcpy(bytes, magic, sizeof magic);
    sl__store_le(bytes + 8, VERSION, 4);
    sl__store_le(bytes + 12, voice->n_codebooks, 4);
    sl__store_le(bytes + 16, voice->n_frames, 4);
    sl__store_le(bytes + 20, voice->sample_rate, 4);
    sl__store_le(bytes + 24, voice->codebook_size, 4);
    sl__store_le(bytes + 28, text_bytes, 8);
    sl__store_le(bytes + 36, 4 * (uint64_t)n_codes, 8);
    memcpy(bytes + HEADER_BYTES, voice->text, text_bytes);
    for (size_t i = 0; i < n_codes; i++) {
        sl__store_le(bytes + HEADER_BYTES + text_bytes + 4 * i, (uint32_t)voice->codes[i], 4);
    }
    *ret_bytes = bytes;
    *ret_n = n;
    return 0;
}
