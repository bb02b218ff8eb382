#include "engine/audio/audio_sniff.h"

#include <stdint.h>
#include <string.h>

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

size_t s2_mpeg_frame_bytes(const unsigned char *h)
{
    /* kbit/s by [MPEG 1: layer I, II, III; MPEG 2: layer I, II and III][index] */
    static const uint16_t kbits[5][15] = {
            {0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
            {0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
            {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
            {0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
            {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
    };
    static const uint32_t rates[3] = {44100, 48000, 32000};
    unsigned version = (h[1] >> 3) & 3u; /* 3 = MPEG 1, 2 = MPEG 2, 0 = MPEG 2.5 */
    unsigned layer = 4 - ((h[1] >> 1) & 3u);
    unsigned i_kbits = h[2] >> 4;
    unsigned i_rate = (h[2] >> 2) & 3u;
    if (h[0] != 0xFF || (h[1] & 0xE0) != 0xE0 || version == 1 || layer == 4 || i_kbits == 0 ||
            i_kbits == 15 || i_rate == 3) {
        return 0;
    }
    uint32_t rate = rates[i_rate] >> (version == 3 ? 0 : version == 2 ? 1 : 2);
    unsigned row = version == 3 ? layer - 1 : layer == 1 ? 3 : 4;
    uint32_t bits = kbits[row][i_kbits] * 1000u;
    uint32_t pad = (h[2] >> 1) & 1u;
    if (layer == 1) {
        return (12 * bits / rate + pad) * 4;
    }
    return (layer == 3 && version != 3 ? 72u : 144u) * bits / rate + pad;
}

/* True if frames follow one another at `at`: n_frames of them, or up to the end of the file. */
static bool is_mpeg_at(const unsigned char *bytes, size_t n, size_t at, int n_frames)
{
    for (int i = 0; i < n_frames; i++) {
        if (i > 0 && (at >= n || n - at < 4 || memcmp(bytes + at, "TAG", 3) == 0)) {
            return true; /* all of a short file */
        }
        if (n - at < 4) {
            return false;
        }
        size_t frame = s2_mpeg_frame_bytes(bytes + at);
        if (frame == 0) {
            return false;
        }
        at += frame;
    }
    return true;
}

static bool find_mpeg(const unsigned char *bytes, size_t n, size_t start, size_t *ret_at)
{
    size_t end = n - start > SEARCH_BYTES ? start + SEARCH_BYTES : n;
    for (size_t at = start; at < end; at++) {
        /* The further from where it should be, the more proof. */
        if (bytes[at] == 0xFF && is_mpeg_at(bytes, n, at, at == start ? 2 : 4)) {
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
