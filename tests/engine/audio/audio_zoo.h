/*
 * Sounds to test with: tones, WAV files written by hand with any header, and a measure of what came back.
 */
#ifndef AUDIO_ZOO_H
#define AUDIO_ZOO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "s2/audio.h"

#define ZOO_HZ 440.0

typedef struct zoo_bytes {
    unsigned char *p;
    size_t n;
    size_t cap;
} zoo_bytes;

void zoo_put(zoo_bytes *b, const void *bytes, size_t n);
void zoo_put_le(zoo_bytes *b, uint64_t v, unsigned n_bytes);
void zoo_put_zeros(zoo_bytes *b, size_t n);
void zoo_done(zoo_bytes *b);

/* n samples of a tone; free() them. */
float *zoo_tone(double hz, double amplitude, uint32_t rate, size_t n);

typedef struct zoo_wav {
    uint32_t tag; /* 1 = integers, 3 = floats */
    uint32_t bits;
    uint32_t n_channels; /* channel c has amplitude 0.1 * (c + 1) */
    uint32_t rate;
    size_t n_frames;
    bool is_extensible;
    bool is_rf64;
    bool has_size; /* data_size stands in the header in place of the truth */
    uint32_t data_size;
    size_t n_list_before; /* bytes of a LIST chunk in front of fmt; 0 = none */
    size_t n_list_after;
    size_t n_cut; /* bytes missing at the end */
} zoo_wav;

zoo_bytes zoo_make_wav(const zoo_wav *spec);

/* Mean amplitude over the channels of such a file. */
double zoo_wav_amplitude(const zoo_wav *spec);

/* Amplitude of the tone in the samples, and dB by which it is above all the rest. */
double zoo_measure(const float *samples, size_t n, double hz, uint32_t rate, double *ret_snr_db);

/* The tone of ZOO_HZ is there with this amplitude (within 3 %) and above all else by min_snr_db. */
void zoo_expect_tone(const s2_audio *audio, double amplitude, double min_snr_db);

/* Mean power of n samples in dB (0 dB: a square wave of 1). */
double zoo_power_db(const float *samples, size_t n);

/* Writes a tone of n samples with our writer. */
void zoo_write(
        const char *path, s2_audio_format format, uint32_t in_rate, uint32_t out_rate, size_t n);

/* What the writer sends to a stream for the same call: at most as much as a pipe holds. */
zoo_bytes zoo_write_stream(const char *dir, s2_audio_format format, uint32_t in_rate, size_t n);

/* One decode of exactly these bytes from the heap, so that a read beyond them is caught. */
int zoo_decode(const void *bytes, size_t n, s2_audio *ret_audio, sl_error *reterr);

#endif
