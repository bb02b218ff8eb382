/*
 * spectrogram IN.wav OUT.png: a small picture of a recording, for a look at what was spoken.
 *
 * Mono or the first channel of 16-bit PCM. A column is the log magnitude of a Hann window of 25 ms or more;
 * time runs right with a tick each half second, frequency up with a tick each kilohertz, 80 dB from dark to
 * bright.
 */
#include <math.h>
#include <png.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/le_bytes.h"

#define PLOT_COLUMNS 800
#define PLOT_ROWS    256
#define MARGIN_LEFT  44
#define MARGIN_OTHER 22
#define WIDTH        (MARGIN_LEFT + PLOT_COLUMNS + MARGIN_OTHER)
#define HEIGHT       (PLOT_ROWS + 2 * MARGIN_OTHER)
#define MAX_FFT      4096
#define RANGE_DB     80.0F
#define MAX_BYTES    (UINT32_C(1) << 30)

typedef struct sound {
    const int16_t *samples;
    size_t n;
    uint32_t rate;
} sound;

/* A palette image: levels, then ink and paper. */
#define N_LEVELS 64
#define INK      N_LEVELS
#define PAPER    (N_LEVELS + 1)
#define N_COLORS (N_LEVELS + 2)

typedef struct picture {
    unsigned char dots[HEIGHT][WIDTH];
} picture;

static int fail(const char *path, const char *what)
{
    fprintf(stderr, "spectrogram: %s: %s\n", path, what);
    return 1;
}

static unsigned char *read_file(const char *path, size_t *ret_bytes)
{
    unsigned char *data = NULL;
    FILE *f = fopen(path, "rbe");
    long size = -1;
    if (f && fseek(f, 0, SEEK_END) == 0) {
        size = ftell(f);
    }
    if (size > 0 && (unsigned long)size <= MAX_BYTES && fseek(f, 0, SEEK_SET) == 0) {
        data = malloc((size_t)size);
    }
    if (data && fread(data, 1, (size_t)size, f) != (size_t)size) {
        free(data);
        data = NULL;
    }
    if (f) {
        (void)fclose(f);
    }
    *ret_bytes = data ? (size_t)size : 0;
    return data;
}

/* Finds "fmt " and "data" of a RIFF file and keeps the first channel, in place. */
static bool parse_wav(unsigned char *data, size_t n_bytes, sound *ret)
{
    uint32_t channels = 0;
    if (n_bytes < 12 || memcmp(data, "RIFF", 4) != 0 || memcmp(data + 8, "WAVE", 4) != 0) {
        return false;
    }
    for (size_t at = 12; at + 8 <= n_bytes;) {
        const unsigned char *chunk = data + at + 8;
        size_t room = n_bytes - at - 8;
        size_t size = sl__load_u32(data + at + 4);
        size = size < room ? size : room;
        if (memcmp(data + at, "fmt ", 4) == 0 && size >= 16) {
            bool is_pcm16 = sl__load_u16(chunk) == 1 && sl__load_u16(chunk + 14) == 16;
            channels = is_pcm16 ? sl__load_u16(chunk + 2) : 0;
            ret->rate = sl__load_u32(chunk + 4);
        } else if (memcmp(data + at, "data", 4) == 0 && channels > 0 && ret->rate > 0) {
            int16_t *samples = (int16_t *)(void *)data; /* data began with 44 bytes or more */
            ret->n = size / 2 / channels;
            for (size_t i = 0; i < ret->n; i++) {
                samples[i] = (int16_t)sl__load_u16(chunk + 2 * i * channels);
            }
            ret->samples = samples;
            return ret->n > 0;
        }
        at += 8 + size + (size & 1);
    }
    return false;
}

/* In-place radix-2 transform of n (a power of two) complex values. */
static void fft(float *re, float *im, size_t n)
{
    for (size_t i = 1, j = 0; i < n; i++) {
        size_t bit = n >> 1;
        for (; j & bit; bit >>= 1) {
            j ^= bit;
        }
        j |= bit;
        if (i < j) {
            float t = re[i];
            re[i] = re[j];
            re[j] = t;
        }
    }
    memset(im, 0, n * sizeof *im);
    for (size_t half = 1; half < n; half *= 2) {
        float step = -(float)M_PI / (float)half;
        for (size_t k = 0; k < half; k++) {
            float c = cosf(step * (float)k);
            float s = sinf(step * (float)k);
            for (size_t a = k; a < n; a += 2 * half) {
                size_t b = a + half;
                float tr = re[b] * c - im[b] * s;
                float ti = re[b] * s + im[b] * c;
                re[b] = re[a] - tr;
                im[b] = im[a] - ti;
                re[a] += tr;
                im[a] += ti;
            }
        }
    }
}

/* Decibels of PLOT_ROWS bands from 0 to half the rate, around sample `centre`. */
static void analyse(const sound *s, size_t centre, size_t n_fft, float *ret_db)
{
    static float re[MAX_FFT];
    static float im[MAX_FFT];
    for (size_t i = 0; i < n_fft; i++) {
        size_t at = centre + i - n_fft / 2; /* wraps below zero, and is then beyond the end */
        float window = 0.5F - 0.5F * cosf(2 * (float)M_PI * (float)i / (float)n_fft);
        re[i] = at < s->n ? window * (float)s->samples[at] / 32768.0F : 0;
    }
    fft(re, im, n_fft);
    for (size_t row = 0; row < PLOT_ROWS; row++) {
        size_t begin = row * (n_fft / 2) / PLOT_ROWS;
        size_t end = (row + 1) * (n_fft / 2) / PLOT_ROWS;
        float power = 1e-12F;
        for (size_t k = begin; k < (end > begin ? end : begin + 1); k++) {
            float p = re[k] * re[k] + im[k] * im[k];
            power = p > power ? p : power;
        }
        ret_db[row] = 10 * log10f(power);
    }
}

/* Black, violet, orange, pale yellow: brighter is louder, also in grey. */
static void make_palette(unsigned char (*rgb)[3])
{
    static const float stops[][3] = {
            {8, 8, 24}, {60, 20, 110}, {160, 45, 110}, {235, 110, 55}, {255, 235, 170}};
    for (size_t level = 0; level < N_LEVELS; level++) {
        float x = (float)level / (N_LEVELS - 1) * 3.999F;
        size_t i = (size_t)x;
        for (size_t c = 0; c < 3; c++) {
            float v = stops[i][c] + (stops[i + 1][c] - stops[i][c]) * (x - (float)i);
            rgb[level][c] = (unsigned char)v;
        }
    }
    memset(rgb[INK], 50, 3);
    memset(rgb[PAPER], 245, 3);
}

/* 0 is silent, 1 the loudest. */
static unsigned char color_of(float level)
{
    float x = level < 0 ? 0 : level > 1 ? 1 : level;
    return (unsigned char)(x * (N_LEVELS - 1) + 0.5F);
}

/* Digits of 3 x 5 dots, three bits a row from the top, drawn twice as large. */
static void put_number(picture *p, unsigned number, size_t x, size_t y)
{
    static const uint16_t glyphs[10] = {
            075557, 026227, 071747, 071717, 055711, 074717, 074757, 071111, 075757, 075717};
    char text[12];
    snprintf(text, sizeof text, "%u", number);
    for (const char *t = text; *t; t++, x += 8) {
        for (size_t i = 0; i < 60; i++) {
            size_t row = i / 6;
            size_t column = i % 6;
            if (glyphs[*t - '0'] >> (14 - row / 2 * 3 - column / 2) & 1) {
                p->dots[y + row][x + column] = INK;
            }
        }
    }
}

static void put_tick(picture *p, size_t x, size_t y, size_t width, size_t height)
{
    for (size_t dy = 0; dy < height; dy++) {
        memset(&p->dots[y + dy][x], INK, width);
    }
}

static void put_axes(picture *p, const sound *s)
{
    double seconds = (double)s->n / s->rate;
    unsigned step = seconds < 20 ? 1 : 1 + (unsigned)(seconds / 20);
    size_t bottom = MARGIN_OTHER + PLOT_ROWS;
    for (unsigned half = 0; half <= (unsigned)(2 * seconds); half++) {
        size_t x = MARGIN_LEFT + (size_t)(half / 2.0 / seconds * (PLOT_COLUMNS - 1));
        bool is_labelled = half % (2 * step) == 0;
        put_tick(p, x, bottom, 1, is_labelled ? 6 : 3);
        if (is_labelled) {
            put_number(p, half / 2, x - 3, bottom + 9);
        }
    }
    for (unsigned khz = 0; khz * 2000 <= s->rate; khz++) {
        size_t y = bottom - 1 - (size_t)(khz * 2000.0 / s->rate * (PLOT_ROWS - 1));
        bool is_labelled = s->rate <= 24000 || khz % 4 == 0;
        put_tick(p, MARGIN_LEFT - (is_labelled ? 6 : 3), y, is_labelled ? 6 : 3, 1);
        if (is_labelled) {
            put_number(p, khz, MARGIN_LEFT - (khz < 10 ? 16 : 24), y - 5);
        }
    }
}

static void draw(const sound *s, picture *p)
{
    static float db[PLOT_COLUMNS][PLOT_ROWS];
    float loudest = -200;
    size_t n_fft = 64;
    while (n_fft < s->rate / 40 && n_fft < MAX_FFT) {
        n_fft *= 2;
    }
    memset(p->dots, PAPER, sizeof p->dots);
    for (size_t x = 0; x < PLOT_COLUMNS; x++) {
        analyse(s, x * s->n / PLOT_COLUMNS, n_fft, db[x]);
        for (size_t y = 0; y < PLOT_ROWS; y++) {
            loudest = db[x][y] > loudest ? db[x][y] : loudest;
        }
    }
    for (size_t x = 0; x < PLOT_COLUMNS; x++) {
        for (size_t y = 0; y < PLOT_ROWS; y++) {
            p->dots[MARGIN_OTHER + PLOT_ROWS - 1 - y][MARGIN_LEFT + x] =
                    color_of(1 + (db[x][y] - loudest) / RANGE_DB);
        }
    }
    put_axes(p, s);
}

int main(int argc, char **argv)
{
    static picture p;
    static unsigned char palette[N_COLORS][3];
    size_t n_bytes;
    sound s = {0};
    if (argc != 3) {
        fprintf(stderr, "usage: spectrogram IN.wav OUT.png\n");
        return 2;
    }
    unsigned char *data = read_file(argv[1], &n_bytes);
    if (!data) {
        return fail(argv[1], "cannot be read, or is empty or over 1 GiB");
    }
    if (!parse_wav(data, n_bytes, &s)) {
        free(data);
        return fail(argv[1], "no samples of 16-bit PCM WAV in it");
    }
    draw(&s, &p);
    free(data);
    make_palette(palette);
    png_image image = {.version = PNG_IMAGE_VERSION,
            .width = WIDTH,
            .height = HEIGHT,
            .format = PNG_FORMAT_RGB_COLORMAP,
            .colormap_entries = N_COLORS};
    if (!png_image_write_to_file(&image, argv[2], 0, p.dots, 0, palette)) {
        return fail(argv[2], image.message);
    }
    return 0;
}
