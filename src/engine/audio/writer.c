/* Rates, clipping and the life of the file; what the bytes are is the encoder's (encoder.h). */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "engine/audio/encoder.h"
#include "engine/audio/resample.h"
#include "s2/audio.h"

#define BLOCK          1024u
#define FLAC_RATE_MOST 655350u
#define OPUS_RATE      48000u

struct s2_audio_writer {
    sl__out_file *file;
    s2_resampler *resampler;
    const s2_encoder_ops *ops;
    s2_encoder *encoder;
    bool may_be_empty; /* a file without samples is a valid one */
    bool has_samples;
};

static const uint32_t mp3_rates[] = {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000};

static bool can_mp3(uint32_t rate)
{
    for (size_t i = 0; i < sizeof mp3_rates / sizeof mp3_rates[0]; i++) {
        if (mp3_rates[i] == rate) {
            return true;
        }
    }
    return false;
}

static int check_range(const char *what, uint32_t rate, uint32_t most, sl_error *reterr)
{
    if (rate < S2_RATE_MIN || rate > most) {
        return sl__fail(reterr, SL_EINVAL, "%s at %" PRIu32 " Hz is not possible; choose %u to %u",
                what, rate, S2_RATE_MIN, most);
    }
    return 0;
}

static int check_rate(s2_audio_format format, uint32_t rate, sl_error *reterr)
{
    if (format == S2_AUDIO_MP3 && !can_mp3(rate)) {
        return sl__fail(reterr, SL_EINVAL,
                "mp3 at %" PRIu32 " Hz is not possible; choose 8000, 11025, 12000, 16000, 22050, "
                "24000, 32000, 44100 or 48000",
                rate);
    }
    if (format == S2_AUDIO_OPUS && rate != OPUS_RATE) {
        return sl__fail(reterr, SL_EINVAL, "opus at %" PRIu32 " Hz is not possible; choose %u",
                rate, OPUS_RATE);
    }
    uint32_t most = format == S2_AUDIO_FLAC ? FLAC_RATE_MOST : S2_RATE_MAX;
    return check_range(s2_audio_format_name(format), rate, most, reterr);
}

static const s2_encoder_ops *ops_of(s2_audio_format format)
{
    if (format == S2_AUDIO_WAV || format == S2_AUDIO_PCM) {
        return &s2_pcm_encoder;
    }
    return format == S2_AUDIO_OPUS ? &s2_opus_encoder : &s2_sndfile_encoder;
}

void s2_audio_writer_abort(s2_audio_writer **writer)
{
    if (writer && *writer) {
        s2_audio_writer *w = *writer;
        if (w->ops) {
            w->ops->free(w->encoder);
        }
        s2_resampler_free(&w->resampler);
        sl__out_file_discard(&w->file);
        sl__free(w);
        *writer = NULL;
    }
}

int s2_audio_writer_open(
        const s2_audio_writer_opts *opts, s2_audio_writer **ret_writer, sl_error *reterr)
{
    uint32_t default_rate = opts->format == S2_AUDIO_OPUS ? OPUS_RATE : opts->in_rate;
    uint32_t rate = opts->out_rate != 0 ? opts->out_rate : default_rate;
    if ((unsigned)opts->format >= S2_AUDIO_FORMAT_COUNT) {
        return sl__fail(reterr, SL_EINVAL, "audio format %d is none of wav, flac, mp3, opus, pcm",
                (int)opts->format);
    }
    int r = check_range("sound", opts->in_rate, S2_RATE_MAX, reterr);
    if (r == 0) {
        r = check_rate(opts->format, rate, reterr);
    }
    if (r < 0) {
        return r;
    }
    s2_audio_writer *w = sl__alloc(1, sizeof *w);
    if (!w) {
        return sl__fail_nomem(reterr, sizeof *w, "an audio writer");
    }
    w->ops = ops_of(opts->format);
    w->may_be_empty = w->ops == &s2_pcm_encoder;
    r = s2_resampler_create(opts->in_rate, rate, &w->resampler, reterr);
    if (r == 0) {
        r = sl__out_file_open(opts->path, 0666, &w->file, reterr);
    }
    if (r == 0) {
        r = w->ops->create(w->file, opts->format, rate, &w->encoder, reterr);
    }
    if (r < 0) {
        s2_audio_writer_abort(&w);
        return r;
    }
    *ret_writer = w;
    return 0;
}

static float clip(float sample)
{
    return sample > 1.0f ? 1.0f : (sample < -1.0f ? -1.0f : sample);
}

static void clip_block(float *to, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = clip(from[i]);
    }
}

/* Resampled sound may swing beyond the limits again. */
static int encode(void *user, const float *samples, size_t n, sl_error *reterr)
{
    s2_audio_writer *w = user;
    float block[BLOCK];
    for (size_t done = 0; done < n;) {
        size_t n_block = n - done < BLOCK ? n - done : BLOCK;
        clip_block(block, samples + done, n_block);
        int r = w->ops->write(w->encoder, block, n_block, reterr);
        if (r < 0) {
            return r;
        }
        done += n_block;
    }
    return 0;
}

int s2_audio_writer_write(s2_audio_writer *writer, const float *samples, size_t n, sl_error *reterr)
{
    float block[BLOCK];
    for (size_t i = 0; i < n; i++) {
        if (isnan(samples[i])) {
            return sl__fail(reterr, SL_EINVAL,
                    "sample %zu of %zu is not a number; the sound is broken", i, n);
        }
    }
    writer->has_samples = writer->has_samples || n > 0;
    for (size_t done = 0; done < n;) {
        size_t n_block = n - done < BLOCK ? n - done : BLOCK;
        clip_block(block, samples + done, n_block);
        int r = s2_resampler_push(writer->resampler, block, n_block, encode, writer, reterr);
        if (r < 0) {
            return r;
        }
        done += n_block;
    }
    return 0;
}

int s2_audio_writer_flush(s2_audio_writer *writer, sl_error *reterr)
{
    return sl__out_file_flush(writer->file, reterr);
}

int s2_audio_writer_finish(s2_audio_writer **writer, sl_error *reterr)
{
    s2_audio_writer *w = *writer;
    int r = 0;
    if (!w->has_samples && !w->may_be_empty) {
        r = sl__fail(reterr, SL_EINVAL, "no sound to write: this format has no empty file");
    }
    if (r == 0) {
        r = s2_resampler_finish(w->resampler, encode, w, reterr);
    }
    if (r == 0) {
        r = w->ops->end(w->encoder, reterr);
    }
    if (r == 0) {
        r = sl__out_file_commit(&w->file, reterr);
    }
    s2_audio_writer_abort(writer);
    return r;
}
