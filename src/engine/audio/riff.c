#include "engine/audio/riff.h"

#include <inttypes.h>
#include <string.h>

#include "base/le_bytes.h"
#include "engine/audio/resample.h"

#define CHUNK_HEAD    8u
#define FMT_PLAIN     16u /* bytes of a fmt chunk without extension */
#define FMT_MOST      256u
#define UNKNOWN       UINT32_MAX
#define DATA_MOST     (UINT32_MAX - S2_RIFF_HEAD_MAX)
#define CHANNELS_MOST 64

enum {
    TAG_PCM = 1,
    TAG_MS_ADPCM = 2,
    TAG_FLOAT = 3,
    TAG_ALAW = 6,
    TAG_MULAW = 7,
    TAG_IMA_ADPCM = 0x11,
    TAG_GSM = 0x31,
    TAG_MP3 = 0x55,
    TAG_EXTENSIBLE = 0xFFFE
};

typedef struct chunks {
    const unsigned char *fmt; /* NULL = not seen */
    size_t n_fmt;
    bool has_data;
    size_t data_at;
    size_t n_data;
    uint64_t data64; /* of ds64; 0 = none */
} chunks;

static bool is_id(const unsigned char *p)
{
    for (int i = 0; i < 4; i++) {
        if (p[i] < 0x20 || p[i] > 0x7E) {
            return false;
        }
    }
    return true;
}

/* True if chunks follow one another from `at` to the end exactly: an empty data chunk was meant so. */
static bool are_chunks(const unsigned char *bytes, size_t n, size_t at)
{
    while (n - at >= CHUNK_HEAD && is_id(bytes + at)) {
        uint64_t size = sl__load_u32(bytes + at + 4);
        uint64_t padded = size + (size & 1);
        size_t n_left = n - at - CHUNK_HEAD;
        if (size == n_left || padded == n_left) {
            return true;
        }
        if (padded > n_left) {
            return false;
        }
        at += CHUNK_HEAD + (size_t)padded;
    }
    return at == n;
}

/* Size of the data chunk whose bytes begin at `at`. */
static size_t data_bytes(
        const unsigned char *bytes, size_t n, size_t at, uint32_t size, uint64_t size64)
{
    size_t n_left = n - at;
    uint64_t claimed = size == UNKNOWN && size64 > 0 ? size64 : size;
    if (claimed == 0 && !are_chunks(bytes, n, at)) {
        return n_left; /* a stream whose header was never completed */
    }
    return claimed < n_left ? (size_t)claimed : n_left;
}

/* The chunk behind one of `size` bytes at `at`; some programs forget the pad byte. */
static size_t next_chunk(const unsigned char *bytes, size_t n, size_t at, size_t size)
{
    size_t end = at + size;
    if ((size & 1) == 0 || end >= n) {
        return end;
    }
    bool is_unpadded = n - end >= 4 &&
                       (memcmp(bytes + end, "data", 4) == 0 || memcmp(bytes + end, "fmt ", 4) == 0);
    return is_unpadded ? end : end + 1;
}

static chunks walk(const unsigned char *bytes, size_t n)
{
    chunks c = {0};
    size_t at = 12;
    while (at <= n && n - at >= CHUNK_HEAD && !(c.fmt && c.has_data)) {
        const unsigned char *id = bytes + at;
        uint32_t size = sl__load_u32(bytes + at + 4);
        at += CHUNK_HEAD;
        size_t n_here = size < n - at ? size : n - at;
        if (memcmp(id, "ds64", 4) == 0 && n_here >= 16) {
            c.data64 = sl__load_u64(bytes + at + 8);
        } else if (memcmp(id, "fmt ", 4) == 0 && !c.fmt && n_here >= 14) {
            c.fmt = bytes + at;
            c.n_fmt = n_here;
        } else if (memcmp(id, "data", 4) == 0 && !c.has_data) {
            c.has_data = true;
            c.data_at = at;
            c.n_data = n_here = data_bytes(bytes, n, at, size, c.data64);
        }
        at = next_chunk(bytes, n, at, n_here);
    }
    return c;
}

typedef struct wave_format {
    uint32_t tag;
    uint32_t n_channels;
    uint32_t rate;
    uint32_t align; /* bytes of a sample of all channels */
    uint32_t bits;
} wave_format;

/* Resolves WAVE_FORMAT_EXTENSIBLE to the tag in its GUID; 0 if that is none of Microsoft's. */
static uint32_t tag_of(const chunks *c, uint32_t tag)
{
    static const unsigned char guid_tail[14] = {
            0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71};
    if (tag != TAG_EXTENSIBLE) {
        return tag;
    }
    if (c->n_fmt < 40 || memcmp(c->fmt + 26, guid_tail, sizeof guid_tail) != 0) {
        return 0;
    }
    return sl__load_u16(c->fmt + 24);
}

static int check_format(const wave_format *f, const char *name, sl_error *reterr)
{
    if (f->rate < S2_RATE_MIN || f->rate > S2_RATE_MAX) {
        return sl__fail(reterr, SL_EFORMAT,
                "%s: its header says %" PRIu32 " samples a second; %u to %u are possible", name,
                f->rate, S2_RATE_MIN, S2_RATE_MAX);
    }
    if (f->n_channels == 0 || f->n_channels > CHANNELS_MOST) {
        return sl__fail(reterr, SL_EFORMAT,
                "%s: its header says %" PRIu32 " channels; 1 to %d are possible", name,
                f->n_channels, CHANNELS_MOST);
    }
    bool is_pcm = f->tag == TAG_PCM && f->bits >= 1 && f->bits <= 32;
    bool is_float = f->tag == TAG_FLOAT && (f->bits == 32 || f->bits == 64);
    if ((f->tag == TAG_PCM && !is_pcm) || (f->tag == TAG_FLOAT && !is_float)) {
        return sl__fail(reterr, SL_EFORMAT, "%s: its header says %s samples of %" PRIu32 " bits",
                name, f->tag == TAG_PCM ? "integer" : "floating-point", f->bits);
    }
    return 0;
}

static void put_id(unsigned char *at, const char *id)
{
    memcpy(at, id, 4);
}

static void make_head(const wave_format *f, const chunks *c, s2_riff *riff)
{
    bool is_plain =
            f->tag == TAG_PCM || f->tag == TAG_FLOAT || f->tag == TAG_ALAW || f->tag == TAG_MULAW;
    size_t n_fmt = is_plain ? FMT_PLAIN : (c->n_fmt < FMT_MOST ? c->n_fmt : FMT_MOST);
    unsigned char *p = riff->head;
    memset(p, 0, sizeof riff->head);
    memcpy(p + 20, c->fmt, n_fmt < c->n_fmt ? n_fmt : c->n_fmt);
    if (is_plain) {
        sl__store_le(p + 20, f->tag, 2);
        sl__store_le(p + 28, (uint64_t)f->align * f->rate, 4);
        sl__store_le(p + 32, f->align, 2);
        sl__store_le(p + 34, f->bits, 2);
    }
    n_fmt += n_fmt & 1;
    riff->n_head = 28 + n_fmt;
    put_id(p, "RIFF");
    sl__store_le(p + 4, riff->n_head - 8 + riff->n_data + (riff->n_data & 1), 4);
    put_id(p + 8, "WAVE");
    put_id(p + 12, "fmt ");
    sl__store_le(p + 16, n_fmt, 4);
    put_id(p + 20 + n_fmt, "data");
    sl__store_le(p + 24 + n_fmt, riff->n_data, 4);
}

static wave_format read_format(const chunks *c)
{
    wave_format f = {
            .tag = tag_of(c, sl__load_u16(c->fmt)),
            .n_channels = sl__load_u16(c->fmt + 2),
            .rate = sl__load_u32(c->fmt + 4),
            .align = sl__load_u16(c->fmt + 12),
            .bits = c->n_fmt >= FMT_PLAIN ? sl__load_u16(c->fmt + 14) : 8,
    };
    if (f.tag == TAG_PCM && f.n_channels > 0 && f.bits > 0 && f.bits <= 32) {
        /* Samples fill whole bytes, left-aligned; the alignment may say that there are more of them. */
        uint32_t per_channel = f.align % f.n_channels == 0 ? f.align / f.n_channels : 0;
        uint32_t n_bytes = (f.bits + 7) / 8;
        n_bytes = per_channel > n_bytes && per_channel <= 4 ? per_channel : n_bytes;
        f.bits = n_bytes * 8;
    }
    if (f.tag == TAG_ALAW || f.tag == TAG_MULAW) {
        f.bits = 8;
    }
    f.align = f.n_channels * f.bits / 8;
    return f;
}

static bool is_known_tag(uint32_t tag)
{
    return tag == TAG_PCM || tag == TAG_FLOAT || tag == TAG_ALAW || tag == TAG_MULAW ||
           tag == TAG_MS_ADPCM || tag == TAG_IMA_ADPCM || tag == TAG_GSM || tag == TAG_MP3;
}

int s2_riff_parse(
        const unsigned char *bytes, size_t n, const char *name, s2_riff *ret_riff, sl_error *reterr)
{
    chunks c = walk(bytes, n);
    if (!c.fmt || !c.has_data) {
        return sl__fail(reterr, SL_EFORMAT,
                "%s: a WAV file without a %s chunk; it is cut off or damaged", name,
                c.fmt ? "data" : "fmt");
    }
    wave_format f = read_format(&c);
    if (!is_known_tag(f.tag)) {
        return sl__fail(reterr, SL_EUNSUPPORTED,
                "%s: WAV with encoding 0x%04X; integer and floating-point samples, A-law, mu-law, "
                "ADPCM, GSM and MP3 are read",
                name, (unsigned)sl__load_u16(c.fmt));
    }
    int r = check_format(&f, name, reterr);
    if (r < 0) {
        return r;
    }
    if (c.n_data > DATA_MOST) {
        return sl__fail(reterr, SL_ELIMIT, "%s: %zu bytes of samples, at most %lu are read", name,
                c.n_data, (unsigned long)DATA_MOST);
    }
    ret_riff->is_mpeg = f.tag == TAG_MP3;
    ret_riff->data_at = c.data_at;
    ret_riff->n_data = c.n_data;
    if (f.tag == TAG_PCM || f.tag == TAG_FLOAT) {
        ret_riff->n_data -= c.n_data % f.align; /* half a sample at the end */
    }
    make_head(&f, &c, ret_riff);
    return 0;
}
