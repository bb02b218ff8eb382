#include "audio_zoo.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/audio/reader.h"
#include "test_support.h"

#define PI 3.14159265358979323846

void zoo_put(zoo_bytes *b, const void *bytes, size_t n)
{
    if (b->n + n >= b->cap) {
        b->cap = 2 * (b->n + n) + 64;
        b->p = realloc(b->p, b->cap);
        assert_non_null(b->p);
    }
    if (n > 0) {
        memcpy(b->p + b->n, bytes, n);
    }
    b->n += n;
}

void zoo_put_le(zoo_bytes *b, uint64_t v, unsigned n_bytes)
{
    for (unsigned i = 0; i < n_bytes; i++) {
        unsigned char byte = (unsigned char)(v >> (8 * i));
        zoo_put(b, &byte, 1);
    }
}

void zoo_put_zeros(zoo_bytes *b, size_t n)
{
    void *zeros = calloc(n + 1, 1);
    assert_non_null(zeros);
    zoo_put(b, zeros, n);
    free(zeros);
}

void zoo_done(zoo_bytes *b)
{
    free(b->p);
    memset(b, 0, sizeof *b);
}

float *zoo_tone(double hz, double amplitude, uint32_t rate, size_t n)
{
    float *samples = malloc(sizeof *samples * (n + 1));
    assert_non_null(samples);
    for (size_t i = 0; i < n; i++) {
        samples[i] = (float)(amplitude * sin(2.0 * PI * hz * (double)i / rate));
    }
    return samples;
}

static void put_sample(zoo_bytes *b, const zoo_wav *spec, double v)
{
    if (spec->tag == 3 && spec->bits == 64) {
        uint64_t bits = 0;
        memcpy(&bits, &v, sizeof bits);
        zoo_put_le(b, bits, 8);
    } else if (spec->tag == 3) {
        float f = (float)v;
        zoo_put(b, &f, sizeof f);
    } else if (spec->bits <= 8) {
        zoo_put_le(b, (uint64_t)(lround(v * 127.0) + 128), 1);
    } else {
        double scale = ldexp(1.0, (int)spec->bits - 1) - 1.0;
        zoo_put_le(b, (uint64_t)llround(v * scale), spec->bits / 8);
    }
}

static void put_list(zoo_bytes *b, size_t n)
{
    if (n > 0) {
        zoo_put(b, "LIST", 4);
        zoo_put_le(b, n, 4);
        zoo_put(b, "INFO", 4);
        zoo_put_zeros(b, n - 4 + (n & 1));
    }
}

static void put_fmt(zoo_bytes *b, const zoo_wav *spec)
{
    static const unsigned char guid_tail[14] = {
            0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71};
    uint32_t align = spec->n_channels * spec->bits / 8;
    zoo_put(b, "fmt ", 4);
    zoo_put_le(b, spec->is_extensible ? 40 : 16, 4);
    zoo_put_le(b, spec->is_extensible ? 0xFFFE : spec->tag, 2);
    zoo_put_le(b, spec->n_channels, 2);
    zoo_put_le(b, spec->rate, 4);
    zoo_put_le(b, (uint64_t)spec->rate * align, 4);
    zoo_put_le(b, align, 2);
    zoo_put_le(b, spec->bits, 2);
    if (spec->is_extensible) {
        zoo_put_le(b, 22, 2);
        zoo_put_le(b, spec->bits, 2);
        zoo_put_le(b, 0, 4);
        zoo_put_le(b, spec->tag, 2);
        zoo_put(b, guid_tail, sizeof guid_tail);
    }
}

static void put_data(zoo_bytes *b, const zoo_wav *spec)
{
    size_t n_data = spec->n_frames * spec->n_channels * spec->bits / 8;
    zoo_put(b, "data", 4);
    zoo_put_le(b, spec->is_rf64 ? UINT32_MAX : spec->has_size ? spec->data_size : n_data, 4);
    for (size_t i = 0; i < spec->n_frames; i++) {
        for (uint32_t c = 0; c < spec->n_channels; c++) {
            put_sample(b, spec, 0.1 * (c + 1) * sin(2.0 * PI * ZOO_HZ * (double)i / spec->rate));
        }
    }
    zoo_put_zeros(b, n_data & 1);
}

zoo_bytes zoo_make_wav(const zoo_wav *spec)
{
    zoo_bytes b = {0};
    zoo_put(&b, spec->is_rf64 ? "RF64" : "RIFF", 4);
    zoo_put_le(&b, spec->is_rf64 || spec->has_size ? UINT32_MAX : 0, 4);
    zoo_put(&b, "WAVE", 4);
    if (spec->is_rf64) {
        zoo_put(&b, "ds64", 4);
        zoo_put_le(&b, 28, 4);
        zoo_put_le(&b, 0, 8);
        zoo_put_le(&b, spec->n_frames * spec->n_channels * spec->bits / 8, 8);
        zoo_put_zeros(&b, 12);
    }
    put_list(&b, spec->n_list_before);
    put_fmt(&b, spec);
    put_data(&b, spec);
    put_list(&b, spec->n_list_after);
    assert_true(spec->n_cut <= b.n);
    b.n -= spec->n_cut;
    return b;
}

double zoo_wav_amplitude(const zoo_wav *spec)
{
    return 0.1 * (spec->n_channels + 1) / 2.0;
}

double zoo_measure(const float *samples, size_t n, double hz, uint32_t rate, double *ret_snr_db)
{
    double re = 0.0;
    double im = 0.0;
    double rest = 0.0;
    size_t n_fit = (size_t)(floor((double)n * hz / rate) * rate / hz); /* whole periods */
    assert_true(n_fit > 0);
    for (size_t i = 0; i < n_fit; i++) {
        double angle = 2.0 * PI * hz * (double)i / rate;
        re += (double)samples[i] * cos(angle) * 2.0 / (double)n_fit;
        im += (double)samples[i] * sin(angle) * 2.0 / (double)n_fit;
    }
    for (size_t i = 0; i < n_fit; i++) {
        double angle = 2.0 * PI * hz * (double)i / rate;
        double d = (double)samples[i] - re * cos(angle) - im * sin(angle);
        rest += d * d / (double)n_fit;
    }
    double power = (re * re + im * im) / 2.0;
    *ret_snr_db = 10.0 * log10((power + 1e-20) / (rest + 1e-20));
    return sqrt(2.0 * power);
}

void zoo_expect_tone(const s2_audio *audio, double amplitude, double min_snr_db)
{
    double snr_db = 0.0;
    size_t n_edge = audio->n / 16; /* filters and codecs ring at the ends */
    double got = zoo_measure(
            audio->samples + n_edge, audio->n - 2 * n_edge, ZOO_HZ, audio->rate, &snr_db);
    if (fabs(got - amplitude) > 0.03 * amplitude || snr_db < min_snr_db) {
        fail_msg("amplitude %g, %.1f dB; needed %g, %.1f dB", got, snr_db, amplitude, min_snr_db);
    }
}

double zoo_power_db(const float *samples, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)samples[i] * (double)samples[i];
    }
    return 10.0 * log10(sum / (double)n + 1e-30);
}

/* In pieces of a frame, as speech comes. */
static void write_tone(s2_audio_writer *writer, uint32_t rate, size_t n)
{
    sl_error err;
    float *samples = zoo_tone(ZOO_HZ, 0.5, rate, n);
    for (size_t done = 0; done < n;) {
        size_t n_piece = n - done < 2048 ? n - done : 2048;
        assert_ok(s2_audio_writer_write(writer, samples + done, n_piece, &err), &err);
        assert_ok(s2_audio_writer_flush(writer, &err), &err);
        done += n_piece;
    }
    free(samples);
    assert_ok(s2_audio_writer_finish(&writer, &err), &err);
    assert_null(writer);
}

void zoo_write(
        const char *path, s2_audio_format format, uint32_t in_rate, uint32_t out_rate, size_t n)
{
    s2_audio_writer_opts opts = {path, format, in_rate, out_rate};
    s2_audio_writer *writer = NULL;
    sl_error err;
    assert_ok(s2_audio_writer_open(&opts, &writer, &err), &err);
    write_tone(writer, in_rate, n);
}

zoo_bytes zoo_write_stream(const char *dir, s2_audio_format format, uint32_t in_rate, size_t n)
{
    char path[4096];
    zoo_bytes b = {0};
    unsigned char buf[4096];
    test_path(path, sizeof path, dir, "zoo-fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC); /* a reader that does not wait */
    assert_true(fd >= 0);
    zoo_write(path, format, in_rate, 0, n);
    for (;;) {
        ssize_t got = read(fd, buf, sizeof buf);
        if (got <= 0) {
            break;
        }
        zoo_put(&b, buf, (size_t)got);
    }
    close(fd);
    assert_int_equal(unlink(path), 0);
    return b;
}

int zoo_decode(const void *bytes, size_t n, s2_audio *ret_audio, sl_error *reterr)
{
    void *copy = malloc(n + (n == 0));
    assert_non_null(copy);
    if (n > 0) {
        memcpy(copy, bytes, n);
    }
    int r = s2_audio_decode(copy, n, "the sound", 30.0, ret_audio, reterr);
    free(copy);
    return r;
}
