/*
 * FLAC and MP3 through libsndfile. Both encoders go back at the end to complete their head (FLAC: length and
 * checksum; MP3: an empty first frame becomes the "Info" frame with the length). To a stream these rewrites
 * are dropped, and so is MP3's empty first frame: FLAC then says "length unknown", MP3 has none to say.
 */
#include <stdio.h>
#include <string.h>

#include <sndfile.h>

#include "base/mem.h"
#include "engine/audio/encoder.h"
#include "engine/audio/mpeg_frames.h"

#define BLOCK 1024u
struct s2_encoder {
    SNDFILE *sndfile;
    sl__out_file *file;
    s2_audio_format format;
    bool is_stream;
    bool is_mute; /* nothing more may be written */
    uint64_t pos;
    uint64_t end;
    size_t n_skip; /* bytes of the dropped first frame still to come */
    int r;         /* first error of the file */
    sl_error err;
};

static sf_count_t out_length(void *user)
{
    const s2_encoder *e = user;
    return (sf_count_t)e->end;
}

static sf_count_t out_tell(void *user)
{
    const s2_encoder *e = user;
    return (sf_count_t)e->pos;
}

static sf_count_t out_seek(sf_count_t offset, int whence, void *user)
{
    s2_encoder *e = user;
    sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? out_tell(e) : out_length(e);
    if (offset < -base || base + offset > out_length(e)) {
        return -1;
    }
    e->pos = (uint64_t)(base + offset);
    return (sf_count_t)e->pos;
}

static sf_count_t out_read(void *to, sf_count_t count, void *user)
{
    (void)to;
    (void)count;
    (void)user;
    return 0; /* nobody reads what is written */
}

static bool is_zero(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Bytes at the start of an MP3 stream that are the empty first frame. */
static size_t placeholder_bytes(const unsigned char *bytes, size_t n)
{
    size_t frame = n >= 4 ? s2_mpeg_frame_bytes(bytes) : 0;
    size_t n_here = frame < n ? frame : n;
    return n_here > 4 && is_zero(bytes + 4, n_here - 4) ? frame : 0;
}

static int append(s2_encoder *e, const unsigned char *bytes, size_t n)
{
    if (e->is_stream && e->format == S2_AUDIO_MP3 && e->pos == 0) {
        e->n_skip = placeholder_bytes(bytes, n);
    }
    size_t n_skip = e->n_skip < n ? e->n_skip : n;
    e->n_skip -= n_skip;
    e->pos += n;
    e->end += n;
    return n > n_skip ? sl__out_file_write(e->file, bytes + n_skip, n - n_skip, &e->err) : 0;
}

static int rewrite(s2_encoder *e, const unsigned char *bytes, size_t n)
{
    int r = e->is_stream ? 0 : sl__out_file_patch(e->file, e->pos, bytes, n, &e->err);
    e->pos += n;
    return r;
}

static sf_count_t out_write(const void *from, sf_count_t count, void *user)
{
    s2_encoder *e = user;
    const unsigned char *bytes = from;
    size_t n = count > 0 ? (size_t)count : 0;
    if (e->is_mute || e->r < 0) {
        return 0;
    }
    size_t n_old = e->end - e->pos < n ? (size_t)(e->end - e->pos) : n;
    if (n_old > 0) {
        e->r = rewrite(e, bytes, n_old);
    }
    if (e->r == 0 && n > n_old) {
        e->r = append(e, bytes + n_old, n - n_old);
    }
    return e->r < 0 ? 0 : count;
}

/* The file's own error if there is one, else what libsndfile says. */
static int fail_sndfile(const s2_encoder *e, const char *text, sl_error *reterr)
{
    if (e->r < 0) {
        if (reterr) {
            *reterr = e->err;
        }
        return e->r;
    }
    char reason[128];
    sl__quote(reason, sizeof reason, text, strcspn(text, "\r\n"));
    return sl__fail(reterr, SL_EIO, "writing %s: %s", s2_audio_format_name(e->format), reason);
}

static void sndfile_free(s2_encoder *encoder)
{
    if (encoder) {
        encoder->is_mute = true;
        if (encoder->sndfile) {
            sf_close(encoder->sndfile);
        }
        sl__free(encoder);
    }
}

/*
 * Constant bitrate, so that players can tell the length of a stream. libsndfile's scale goes from the highest
 * bitrate (0) down to the lowest: 128 kbit/s from 32 kHz on, 80 and 64 below. Frames of less than that have no
 * room for the length.
 */
static double mp3_level(uint32_t rate)
{
    if (rate >= 32000) {
        return 0.667;
    }
    return rate >= 16000 ? 0.5 : 0.0;
}

static int open_sndfile(s2_encoder *e, uint32_t rate, sl_error *reterr)
{
    static SF_VIRTUAL_IO io = {out_length, out_seek, out_read, out_write, out_tell};
    bool is_mp3 = e->format == S2_AUDIO_MP3;
    SF_INFO info = {0};
    info.samplerate = (int)rate;
    info.channels = 1;
    info.format =
            is_mp3 ? SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III : SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
    e->sndfile = sf_open_virtual(&io, SFM_WRITE, &info, e);
    if (!e->sndfile) {
        return fail_sndfile(e, sf_strerror(NULL), reterr);
    }
    if (is_mp3) {
        int mode = SF_BITRATE_MODE_CONSTANT;
        double level = mp3_level(rate);
        sf_command(e->sndfile, SFC_SET_BITRATE_MODE, &mode, sizeof mode);
        sf_command(e->sndfile, SFC_SET_COMPRESSION_LEVEL, &level, sizeof level);
    }
    return 0;
}

static int sndfile_create(sl__out_file *file, s2_audio_format format, uint32_t rate,
        s2_encoder **ret_encoder, sl_error *reterr)
{
    s2_encoder *e = sl__alloc(1, sizeof *e);
    if (!e) {
        return sl__fail_nomem(reterr, sizeof *e, "an encoder");
    }
    e->file = file;
    e->format = format;
    e->is_stream = sl__out_file_is_stream(file);
    int r = open_sndfile(e, rate, reterr);
    if (r < 0) {
        sndfile_free(e);
        return r;
    }
    *ret_encoder = e;
    return 0;
}

/* FLAC gets our own 16-bit samples, so that it holds what a WAV file would. */
static sf_count_t write_block(s2_encoder *e, const float *samples, size_t n)
{
    short block[BLOCK];
    if (e->format == S2_AUDIO_MP3) {
        return sf_write_float(e->sndfile, samples, (sf_count_t)n);
    }
    for (size_t i = 0; i < n; i++) {
        block[i] = s2_pcm_s16(samples[i]);
    }
    return sf_write_short(e->sndfile, block, (sf_count_t)n);
}

static int sndfile_write(s2_encoder *encoder, const float *samples, size_t n, sl_error *reterr)
{
    for (size_t done = 0; done < n;) {
        size_t n_block = n - done < BLOCK ? n - done : BLOCK;
        sf_count_t got = write_block(encoder, samples + done, n_block);
        if (got != (sf_count_t)n_block || encoder->r < 0) {
            return fail_sndfile(encoder, sf_strerror(encoder->sndfile), reterr);
        }
        done += n_block;
    }
    return 0;
}

static int sndfile_end(s2_encoder *encoder, sl_error *reterr)
{
    int error = sf_close(encoder->sndfile);
    encoder->sndfile = NULL;
    if (error != 0 || encoder->r < 0) {
        return fail_sndfile(encoder, sf_error_number(error), reterr);
    }
    return 0;
}

const s2_encoder_ops s2_sndfile_encoder = {
        sndfile_create, sndfile_write, sndfile_end, sndfile_free};
