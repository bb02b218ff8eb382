/*
 * WAV and raw PCM: 16-bit samples, for WAV behind a head of 44 bytes and with nothing behind them.
 *
 * To a stream the head says 0xFFFFFFFF for both sizes, as ffmpeg and the OpenAI service write them: ffmpeg, sox
 * and the reader here take that as "to the end", while 0 stops many players at once and 0x7FFFFFF0 is refused
 * by some.
 */
#include <inttypes.h>
#include <string.h>

#include "base/le_bytes.h"
#include "base/mem.h"
#include "engine/audio/encoder.h"

#define HEAD_BYTES   44u
#define BLOCK        1024u
#define DATA_UNKNOWN UINT32_MAX
#define DATA_MOST    (UINT32_MAX - HEAD_BYTES)

struct s2_encoder {
    sl__out_file *file;
    uint32_t rate;
    bool has_head;
    uint64_t n_data;
};

static void fill_head(unsigned char head[HEAD_BYTES], uint32_t rate, uint32_t n_data)
{
    /* RIFF, WAVE, a fmt chunk of 16 bytes: integers, one channel of 16 bits; data. Zeros are set below. */
    static const unsigned char plain[HEAD_BYTES] = {'R', 'I', 'F', 'F', 0, 0, 0, 0, 'W', 'A', 'V',
            'E', 'f', 'm', 't', ' ', 16, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 16, 0,
            'd', 'a', 't', 'a', 0, 0, 0, 0};
    memcpy(head, plain, sizeof plain);
    sl__store_le(head + 4, n_data == DATA_UNKNOWN ? DATA_UNKNOWN : n_data + HEAD_BYTES - 8, 4);
    sl__store_le(head + 24, rate, 4);
    sl__store_le(head + 28, 2 * (uint64_t)rate, 4);
    sl__store_le(head + 40, n_data, 4);
}

static void pcm_free(s2_encoder *encoder)
{
    sl__free(encoder);
}

static int pcm_create(sl__out_file *file, s2_audio_format format, uint32_t rate,
        s2_encoder **ret_encoder, sl_error *reterr)
{
    unsigned char head[HEAD_BYTES];
    s2_encoder *e = sl__alloc(1, sizeof *e);
    if (!e) {
        return sl__fail_nomem(reterr, sizeof *e, "an encoder");
    }
    e->file = file;
    e->rate = rate;
    e->has_head = format == S2_AUDIO_WAV;
    fill_head(head, rate, DATA_UNKNOWN);
    int r = e->has_head ? sl__out_file_write(file, head, sizeof head, reterr) : 0;
    if (r < 0) {
        pcm_free(e);
        return r;
    }
    *ret_encoder = e;
    return 0;
}

static int pcm_write(s2_encoder *encoder, const float *samples, size_t n, sl_error *reterr)
{
    unsigned char bytes[2 * BLOCK];
    if (encoder->has_head && !sl__out_file_is_stream(encoder->file) &&
            encoder->n_data + 2 * (uint64_t)n > DATA_MOST) {
        return sl__fail(reterr, SL_ELIMIT,
                "a WAV file holds at most %u bytes of samples; use flac, pcm or a stream",
                DATA_MOST);
    }
    for (size_t done = 0; done < n;) {
        size_t n_block = n - done < BLOCK ? n - done : BLOCK;
        for (size_t i = 0; i < n_block; i++) {
            sl__store_le(bytes + 2 * i, (uint16_t)s2_pcm_s16(samples[done + i]), 2);
        }
        int r = sl__out_file_write(encoder->file, bytes, 2 * n_block, reterr);
        if (r < 0) {
            return r;
        }
        done += n_block;
    }
    encoder->n_data += 2 * (uint64_t)n;
    return 0;
}

static int pcm_end(s2_encoder *encoder, sl_error *reterr)
{
    unsigned char head[HEAD_BYTES];
    if (!encoder->has_head || sl__out_file_is_stream(encoder->file)) {
        return 0;
    }
    fill_head(head, encoder->rate, (uint32_t)encoder->n_data);
    return sl__out_file_patch(encoder->file, 0, head, sizeof head, reterr);
}

const s2_encoder_ops s2_pcm_encoder = {pcm_create, pcm_write, pcm_end, pcm_free};
