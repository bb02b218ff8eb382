#include "engine/audio/audio_sniff.h"

#include <string.h>

#include "engine/audio/mpeg_frames.h"

#define SEARCH_BYTES 65536u /* how far an MP3 may begin behind padding */
#define TAGS_MOST    64     /* ID3 tags one behind the other */

typedef struct magic_row {
    size_t offset;
    const char *bytes;
    size_t n;
    s2_sound_kind kind;
    const char *what;
} magic_row;

#define MAGIC(offset, text, kind, what)                                                            \
    {                                                                                              \
        (offset), (text), sizeof(text) - 1, (kind), (what)                                         \
    }

static const magic_row magics[] = {
        MAGIC(8, "WAVE", S2_SOUND_RIFF, "WAV"), /* with RIFF, RF64 or BW64 in front */
        MAGIC(0, "fLaC", S2_SOUND_FLAC, "FLAC"),
        MAGIC(28,
                "\x7F"
                "FLAC",
                S2_SOUND_OTHER, "FLAC in Ogg"), /* first packet of an Ogg stream */
        MAGIC(28, "Speex   ", S2_SOUND_OTHER, "Speex in Ogg"),
        MAGIC(28, "\x80theora", S2_SOUND_OTHER, "Theora video in Ogg"),
        MAGIC(0, "OggS", S2_SOUND_OGG, "Ogg"),
        MAGIC(4, "ftyp", S2_SOUND_OTHER, "MP4 or M4A (AAC, ALAC)"),
        MAGIC(0, "RIFF", S2_SOUND_OTHER, "RIFF without WAVE (AVI, WebP or another)"),
        MAGIC(0, "RIFX", S2_SOUND_OTHER, "big-endian WAV (RIFX)"),
        MAGIC(0, "riff", S2_SOUND_OTHER, "Wave64 (W64)"),
        MAGIC(0, "FORM", S2_SOUND_OTHER, "AIFF"),
        MAGIC(0, ".snd", S2_SOUND_OTHER, "Sun AU"),
        MAGIC(0, "caff", S2_SOUND_OTHER, "Core Audio (CAF)"),
        MAGIC(0, "\x1A\x45\xDF\xA3", S2_SOUND_OTHER, "Matroska or WebM"),
        MAGIC(0, "\x30\x26\xB2\x75", S2_SOUND_OTHER, "ASF (WMA)"),
        MAGIC(0, "#!AMR", S2_SOUND_OTHER, "AMR"),
        MAGIC(0, "ADIF", S2_SOUND_OTHER, "AAC (ADIF)"),
        MAGIC(0, "wvpk", S2_SOUND_OTHER, "WavPack"),
        MAGIC(0, "MAC ", S2_SOUND_OTHER, "Monkey's Audio (APE)"),
        MAGIC(0, "TTA1", S2_SOUND_OTHER, "True Audio (TTA)"),
        MAGIC(0, "MThd", S2_SOUND_OTHER, "MIDI"),
        MAGIC(0, "DSD ", S2_SOUND_OTHER, "DSD"),
        MAGIC(0, "GGUF", S2_SOUND_OTHER, "a GGUF model"),
        MAGIC(0, "S2VOICE", S2_SOUND_OTHER, "a .s2voice file"),
        MAGIC(0, "PK\x03\x04", S2_SOUND_OTHER, "a ZIP archive"),
        MAGIC(0, "\x1F\x8B", S2_SOUND_OTHER, "gzip"),
        MAGIC(0, "%PDF", S2_SOUND_OTHER, "PDF"),
        MAGIC(0, "<!DOCTYPE", S2_SOUND_OTHER, "an HTML page"),
        MAGIC(0, "<html", S2_SOUND_OTHER, "an HTML page"),
};

static bool has_at(const unsigned char *bytes, size_t n, size_t at, const char *text, size_t n_text)
{
    return at <= n && n - at >= n_text && memcmp(bytes + at, text, n_text) == 0;
}

/* Bytes of an ID3v2 tag at the start, with its head and foot; 0 if there is none. */
static size_t id3_bytes(const unsigned char *bytes, size_t n)
{
    if (n < 10 || memcmp(bytes, "ID3", 3) != 0 || bytes[3] == 0xFF || bytes[4] == 0xFF) {
        return 0;
    }
    size_t size = 0;
    for (size_t i = 6; i < 10; i++) {
        size = (size << 7) | (bytes[i] & 0x7Fu);
    }
    size += (bytes[5] & 0x10) ? 20 : 10;
    return size < n ? size : n;
}

/* How many frames follow one another at `at`, up to n_most; those up to the end of the file are enough. */
static int count_frames(const unsigned char *bytes, size_t n, size_t at, int n_most)
{
    for (int i = 0; i < n_most; i++) {
        if (i > 0 && (at == n || (n - at >= 3 && memcmp(bytes + at, "TAG", 3) == 0))) {
            return n_most; /* an ID3v1 tag ends a file */
        }
        size_t frame = n - at < 4 ? 0 : s2_mpeg_frame_bytes(bytes + at);
        if (frame == 0 || frame > n - at) {
            return i + (frame > 0);
        }
        at += frame;
    }
    return n_most;
}

/* Where MPEG frames begin: at the start the last may be cut; behind padding more proof is asked for. */
static bool find_mpeg(const unsigned char *bytes, size_t n, size_t start, size_t *ret_at)
{
    size_t end = n - start > SEARCH_BYTES ? start + SEARCH_BYTES : n;
    for (size_t at = start; at < end; at++) {
        int n_needed = at == start ? 2 : 4;
        if (bytes[at] == 0xFF && count_frames(bytes, n, at, n_needed) == n_needed) {
            *ret_at = at;
            return true;
        }
    }
    return false;
}

static bool is_riff_wave(const unsigned char *bytes, size_t n)
{
    return has_at(bytes, n, 0, "RIFF", 4) || has_at(bytes, n, 0, "RF64", 4) ||
           has_at(bytes, n, 0, "BW64", 4);
}

s2_sound s2_sound_sniff(const unsigned char *bytes, size_t n)
{
    s2_sound sound = {S2_SOUND_UNKNOWN, 0, "no known sound format"};
    size_t tag = 1;
    for (int i = 0; i < TAGS_MOST && tag > 0; i++) {
        tag = id3_bytes(bytes + sound.start, n - sound.start);
        sound.start += tag;
    }
    const unsigned char *p = bytes + sound.start;
    size_t n_left = n - sound.start;
    if (n_left == 0) {
        sound.what = n == 0 ? "an empty file" : "a tag with no sound behind it";
        return sound;
    }
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++) {
        const magic_row *row = &magics[i];
        if (has_at(p, n_left, row->offset, row->bytes, row->n) &&
                (row->kind != S2_SOUND_RIFF || is_riff_wave(p, n_left))) {
            sound.kind = row->kind;
            sound.what = row->what;
            return sound;
        }
    }
    if (n_left >= 2 && p[0] == 0xFF && (p[1] & 0xF6) == 0xF0) {
        sound.kind = S2_SOUND_OTHER;
        sound.what = "AAC (ADTS)";
    } else if (find_mpeg(bytes, n, sound.start, &sound.start)) {
        sound.kind = S2_SOUND_MPEG;
        sound.what = "MP3";
    }
    return sound;
}
