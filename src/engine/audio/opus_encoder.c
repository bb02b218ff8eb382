/* Opus in Ogg through libopusenc, which never goes back. */
#include <opusenc.h>

#include "base/mem.h"
#include "engine/audio/encoder.h"

#define BITRATE       64000 /* mono speech at full band, transparent */
#define SERIAL_NUMBER 1     /* fixed: the same sound gives the same bytes */
#define STREAM_DELAY  4800  /* samples at 48 kHz that may wait for a page: 0.1 s */
#define BLOCK         4096u

struct s2_encoder {
    OggOpusEnc *opus;
    OggOpusComments *comments;
    sl__out_file *file;
    int r; /* first error of the file */
    sl_error err;
};

static int on_page(void *user, const unsigned char *bytes, opus_int32 n)
{
    s2_encoder *e = user;
    if (e->r == 0) {
        e->r = sl__out_file_write(e->file, bytes, n > 0 ? (size_t)n : 0, &e->err);
    }
    return e->r < 0 ? 1 : 0;
}

static int on_close(void *user)
{
    (void)user;
    return 0;
}

static int fail_opus(const s2_encoder *e, int error, sl_error *reterr)
{
    if (e->r < 0) {
        if (reterr) {
            *reterr = e->err;
        }
        return e->r;
    }
    return sl__fail(reterr, error == OPE_ALLOC_FAIL ? SL_ENOMEM : SL_EIO, "writing opus: %s",
            ope_strerror(error));
}

static void opus_free(s2_encoder *encoder)
{
    if (encoder) {
        if (encoder->opus) {
            ope_encoder_destroy(encoder->opus);
        }
        if (encoder->comments) {
            ope_comments_destroy(encoder->comments);
        }
        sl__free(encoder);
    }
}

static int open_opus(s2_encoder *e, uint32_t rate, sl_error *reterr)
{
    static const OpusEncCallbacks callbacks = {on_page, on_close};
    int error = OPE_OK;
    e->comments = ope_comments_create();
    if (!e->comments) {
        return fail_opus(e, OPE_ALLOC_FAIL, reterr);
    }
    e->opus = ope_encoder_create_callbacks(
            &callbacks, e, e->comments, (opus_int32)rate, 1, 0, &error);
    if (!e->opus) {
        return fail_opus(e, error, reterr);
    }
    error = ope_encoder_ctl(e->opus, OPUS_SET_BITRATE(BITRATE));
    if (error == OPE_OK) {
        error = ope_encoder_ctl(e->opus, OPE_SET_SERIALNO(SERIAL_NUMBER));
    }
    if (error == OPE_OK && sl__out_file_is_stream(e->file)) {
        error = ope_encoder_ctl(e->opus, OPE_SET_DECISION_DELAY(0));
        if (error == OPE_OK) {
            error = ope_encoder_ctl(e->opus, OPE_SET_MUXING_DELAY(STREAM_DELAY));
        }
    }
    if (error == OPE_OK) {
        error = ope_encoder_flush_header(e->opus);
    }
    return error == OPE_OK ? 0 : fail_opus(e, error, reterr);
}

static int opus_create(sl__out_file *file, s2_audio_format format, uint32_t rate,
        s2_encoder **ret_encoder, sl_error *reterr)
{
    (void)format;
    s2_encoder *e = sl__alloc(1, sizeof *e);
    if (!e) {
        return sl__fail_nomem(reterr, sizeof *e, "an encoder");
    }
    e->file = file;
    int r = open_opus(e, rate, reterr);
    if (r < 0) {
        opus_free(e);
        return r;
    }
    *ret_encoder = e;
    return 0;
}

static int opus_write(s2_encoder *encoder, const float *samples, size_t n, sl_error *reterr)
{
    for (size_t done = 0; done < n;) {
        size_t n_block = n - done < BLOCK ? n - done : BLOCK;
        int error = ope_encoder_write_float(encoder->opus, samples + done, (int)n_block);
        if (error != OPE_OK || encoder->r < 0) {
            return fail_opus(encoder, error, reterr);
        }
        done += n_block;
    }
    return 0;
}

static int opus_end(s2_encoder *encoder, sl_error *reterr)
{
    int error = ope_encoder_drain(encoder->opus);
    return error == OPE_OK && encoder->r == 0 ? 0 : fail_opus(encoder, error, reterr);
}

const s2_encoder_ops s2_opus_encoder = {opus_create, opus_write, opus_end, opus_free};
