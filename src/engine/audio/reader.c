/*
 * libsndfile does the decoding; it sees no file, but bytes in memory, and these begin where the sound does:
 * tags are skipped and a WAV header is replaced by one that tells the truth (riff.h), since libsndfile
 * refuses some of what people have. What it says about lengths is not believed: samples are read to the end.
 */
#include "engine/audio/reader.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <sndfile.h>

#include "base/mem.h"
#include "engine/audio/audio_sniff.h"
#include "engine/audio/mpeg_frames.h"
#include "engine/audio/resample.h"
#include "engine/audio/riff.h"
#include "sluice/map.h"

#define BLOCK_FRAMES  1024
#define CHANNELS_MOST 64
/* Of FLAC, Ogg and MP3, whose decoders look for the end; a sparse file can be as large as it likes. */
#define COMPRESSED_MOST ((size_t)1 << 30)

/* A made-up head and a part of the file behind it, as one run of bytes. */
typedef struct parts {
    const unsigned char *head;
    size_t n_head;
    const unsigned char *body;
    size_t n_body;
    sf_count_t pos;
} parts;

static sf_count_t parts_length(void *user)
{
    const parts *p = user;
    return (sf_count_t)(p->n_head + p->n_body);
}

static sf_count_t parts_seek(sf_count_t offset, int whence, void *user)
{
    parts *p = user;
    sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? p->pos : parts_length(user);
    if (offset < -base || offset > parts_length(user) - base) {
        return -1;
    }
    p->pos = base + offset;
    return p->pos;
}

static size_t copy_from(const unsigned char *from, size_t n, size_t at, char *to, size_t n_most)
{
    size_t n_copy = at >= n ? 0 : (n - at < n_most ? n - at : n_most);
    if (n_copy > 0) {
        memcpy(to, from + at, n_copy);
    }
    return n_copy;
}

static sf_count_t parts_read(void *to, sf_count_t count, void *user)
{
    parts *p = user;
    size_t n_most = count > 0 ? (size_t)count : 0;
    size_t at = (size_t)p->pos;
    size_t n = copy_from(p->head, p->n_head, at, to, n_most);
    size_t body_at = at + n > p->n_head ? at + n - p->n_head : 0;
    if (at + n >= p->n_head) {
        n += copy_from(p->body, p->n_body, body_at, (char *)to + n, n_most - n);
    }
    p->pos += (sf_count_t)n;
    return (sf_count_t)n;
}

static sf_count_t parts_tell(void *user)
{
    const parts *p = user;
    return p->pos;
}

typedef struct decoder {
    SNDFILE *file;
    SF_INFO info;
    const char *name;
    uint64_t max_frames;
    double max_seconds;
    float *block; /* BLOCK_FRAMES of all channels */
    float *samples;
    size_t n;
    size_t cap;
} decoder;

static void close_decoder(decoder *d)
{
    if (d->file) {
        sf_close(d->file);
    }
    sl__free(d->block);
    sl__free(d->samples);
    memset(d, 0, sizeof *d);
}

static int open_decoder(decoder *d, parts *source, const char *what, sl_error *reterr)
{
    static SF_VIRTUAL_IO io = {parts_length, parts_seek, parts_read, NULL, parts_tell};
    d->file = sf_open_virtual(&io, SFM_READ, &d->info, source);
    if (!d->file) {
        char reason[128];
        const char *text = sf_strerror(NULL);
        sl__quote(reason, sizeof reason, text, strcspn(text, "\r\n"));
        return sl__fail(
                reterr, SL_EFORMAT, "%s: %s that cannot be decoded: %s", d->name, what, reason);
    }
    if (d->info.samplerate < (int)S2_RATE_MIN || d->info.samplerate > (int)S2_RATE_MAX) {
        return sl__fail(reterr, SL_EFORMAT, "%s: %d samples a second; %u to %u are possible",
                d->name, d->info.samplerate, S2_RATE_MIN, S2_RATE_MAX);
    }
    if (d->info.channels < 1 || d->info.channels > CHANNELS_MOST) {
        return sl__fail(reterr, SL_EFORMAT, "%s: %d channels; 1 to %d are possible", d->name,
                d->info.channels, CHANNELS_MOST);
    }
    double max_frames = ceil(d->max_seconds * d->info.samplerate);
    d->max_frames = max_frames < 0x1p53 ? (uint64_t)max_frames : (uint64_t)1 << 53;
    size_t n_block = (size_t)d->info.channels * BLOCK_FRAMES;
    d->block = sl__alloc(n_block, sizeof *d->block);
    return d->block ? 0 : sl__fail_nomem(reterr, n_block * sizeof *d->block, d->name);
}

/* Averages the channels of the block; false at a sample that is no number. */
static bool append_mono(decoder *d, size_t n_frames, size_t *ret_bad)
{
    size_t n_channels = (size_t)d->info.channels;
    for (size_t i = 0; i < n_frames; i++) {
        double sum = 0.0;
        for (size_t c = 0; c < n_channels; c++) {
            sum += (double)d->block[i * n_channels + c];
        }
        float mean = (float)(sum / (double)n_channels);
        if (!isfinite(mean)) {
            *ret_bad = d->n;
            return false;
        }
        d->samples[d->n] = mean;
        d->n++;
    }
    return true;
}

static int decode_all(decoder *d, sl_error *reterr)
{
    for (;;) {
        sf_count_t got = sf_readf_float(d->file, d->block, BLOCK_FRAMES);
        size_t bad = 0;
        if (got <= 0) {
            return 0;
        }
        if (d->n + (uint64_t)got > d->max_frames) {
            return sl__fail(reterr, SL_ELIMIT, "%s: longer than %g s; cut it to the part to use",
                    d->name, d->max_seconds);
        }
        void *p = d->samples;
        if (!sl__grow(&p, &d->cap, d->n + (size_t)got, sizeof *d->samples)) {
            return sl__fail_nomem(reterr, (d->n + (size_t)got) * sizeof *d->samples, d->name);
        }
        d->samples = p;
        if (!append_mono(d, (size_t)got, &bad)) {
            return sl__fail(reterr, SL_EFORMAT,
                    "%s: sample %zu is not a finite number; the file is damaged", d->name, bad);
        }
    }
}

static int check_length(const decoder *d, sl_error *reterr)
{
    if (d->n == 0) {
        return sl__fail(reterr, SL_EFORMAT, "%s: no samples in it", d->name);
    }
    double seconds = (double)d->n / d->info.samplerate;
    if (seconds * 1000.0 < S2_AUDIO_MIN_MS) {
        return sl__fail(reterr, SL_EFORMAT,
                "%s: %.1f ms of sound (%zu samples), at least %d ms are needed", d->name,
                seconds * 1000.0, d->n, S2_AUDIO_MIN_MS);
    }
    return 0;
}

static int decode_parts(
        parts *source, decoder *d, const char *what, s2_audio *ret_audio, sl_error *reterr)
{
    int r = open_decoder(d, source, what, reterr);
    if (r == 0) {
        r = decode_all(d, reterr);
    }
    if (r == 0) {
        r = check_length(d, reterr);
    }
    if (r == 0) {
        ret_audio->samples = d->samples;
        ret_audio->n = d->n;
        ret_audio->rate = (uint32_t)d->info.samplerate;
        d->samples = NULL;
    }
    close_decoder(d);
    return r;
}

static int fail_kind(const s2_sound *sound, const char *name, sl_error *reterr)
{
    bool is_other = sound->kind == S2_SOUND_OTHER;
    return sl__fail(reterr, is_other ? SL_EUNSUPPORTED : SL_EFORMAT,
            "%s: this is %s; WAV, FLAC, Ogg (Vorbis, Opus) and MP3 are read, so convert it", name,
            sound->what);
}

static int decode_compressed(
        parts *source, decoder *d, const char *what, s2_audio *ret_audio, sl_error *reterr)
{
    if (source->n_body > COMPRESSED_MOST) {
        return sl__fail(reterr, SL_ELIMIT, "%s: %zu bytes of %s, at most %zu are read; cut it",
                d->name, source->n_body, what, COMPRESSED_MOST);
    }
    return decode_parts(source, d, what, ret_audio, reterr);
}

/* MP3, as a file or inside a WAV. */
static int decode_mpeg(parts *source, decoder *d, s2_audio *ret_audio, sl_error *reterr)
{
    s2_mpeg_head head;
    s2_mpeg_make_head(source->body, source->n_body, &head);
    source->body += head.skip;
    source->n_body -= head.skip;
    source->head = head.bytes;
    source->n_head = head.n;
    int r = decode_compressed(source, d, "MP3", ret_audio, reterr);
    source->head = NULL;
    source->n_head = 0;
    return r;
}

static int decode_riff(parts *source, decoder *d, s2_audio *ret_audio, sl_error *reterr)
{
    s2_riff riff;
    int r = s2_riff_parse(source->body, source->n_body, d->name, &riff, reterr);
    if (r < 0) {
        return r;
    }
    source->body += riff.data_at;
    source->n_body = riff.n_data;
    if (riff.n_data == 0) {
        return check_length(d, reterr);
    }
    if (riff.is_mpeg) {
        return decode_mpeg(source, d, ret_audio, reterr);
    }
    source->head = riff.head;
    source->n_head = riff.n_head;
    return decode_parts(source, d, "WAV", ret_audio, reterr);
}

int s2_audio_decode(const void *bytes, size_t n, const char *name, double max_seconds,
        s2_audio *ret_audio, sl_error *reterr)
{
    if (!(max_seconds > 0.0)) {
        return sl__fail(
                reterr, SL_EINVAL, "the longest sound is %g s; give more than 0", max_seconds);
    }
    bytes = n > 0 ? bytes : ""; /* no arithmetic on NULL */
    s2_sound sound = s2_sound_sniff(bytes, n);
    decoder d = {.name = name, .max_seconds = max_seconds};
    parts source = {.body = (const unsigned char *)bytes + sound.start, .n_body = n - sound.start};
    switch (sound.kind) {
    case S2_SOUND_RIFF:
        return decode_riff(&source, &d, ret_audio, reterr);
    case S2_SOUND_MPEG:
        return decode_mpeg(&source, &d, ret_audio, reterr);
    case S2_SOUND_FLAC:
    case S2_SOUND_OGG:
        return decode_compressed(&source, &d, sound.what, ret_audio, reterr);
    case S2_SOUND_UNKNOWN:
    case S2_SOUND_OTHER:
    default:
        return fail_kind(&sound, name, reterr);
    }
}

/* The resampled sound in place of the read one. */
static int change_rate(s2_audio *audio, uint32_t rate, const char *name, sl_error *reterr)
{
    s2_audio changed = {0};
    int r = s2_audio_resample(audio->samples, audio->n, audio->rate, rate, &changed, reterr);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < changed.n; i++) {
        if (!isfinite(changed.samples[i])) {
            s2_audio_done(&changed);
            return sl__fail(reterr, SL_EFORMAT,
                    "%s: its samples are too large to be sound; the file is damaged", name);
        }
    }
    s2_audio_done(audio);
    *audio = changed;
    return 0;
}

int s2_audio_read(
        const char *path, uint32_t rate, double max_seconds, s2_audio *ret_audio, sl_error *reterr)
{
    char name[272] = "audio file ";
    size_t n_prefix = strlen(name);
    sl_map *map = NULL;
    s2_audio audio = {0};
    int r = sl_map_open(path, &map, reterr);
    if (r < 0) {
        return r;
    }
    sl__quote(name + n_prefix, sizeof name - n_prefix, path, strlen(path));
    r = s2_audio_decode(
            sl_map_data(map), (size_t)sl_map_size(map), name, max_seconds, &audio, reterr);
    sl_error changed;
    if (sl_map_check(map, &changed) < 0) { /* a cause that comes before all others */
        r = changed.code;
        if (reterr) {
            *reterr = changed;
        }
    }
    sl_map_close(&map);
    if (r == 0 && audio.rate != rate) {
        r = change_rate(&audio, rate, name, reterr);
    }
    if (r < 0) {
        s2_audio_done(&audio);
        return r;
    }
    *ret_audio = audio;
    return 0;
}
