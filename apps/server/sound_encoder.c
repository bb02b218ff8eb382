#define _GNU_SOURCE /* pipe2, memfd_create */

#include "sound_encoder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

/* A pipe holds 64 KiB, or 4 KiB when the user has very many. */
#define PIECE 512u

struct sound_encoder {
    s2_audio_writer *writer;
    int read_fd;
    sound_sink *sink;
    void *ud;
};

static int fail_system(sl_error *reterr, const char *what)
{
    return sl__fail_os(reterr, errno, "%s", what);
}

uint32_t sound_encoder_rate(s2_audio_format format, uint32_t in_rate, uint32_t asked_rate)
{
    static const uint32_t mp3_rates[] = {
            8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000};
    if (asked_rate != 0) {
        return asked_rate;
    }
    for (size_t i = 0; format == S2_AUDIO_MP3 && i < sizeof mp3_rates / sizeof mp3_rates[0]; i++) {
        if (mp3_rates[i] == in_rate) {
            return in_rate;
        }
    }
    if (format == S2_AUDIO_MP3) {
        return 44100;
    }
    return format == S2_AUDIO_OPUS ? 48000 : in_rate;
}

const char *sound_content_type(s2_audio_format format)
{
    static const char *const types[S2_AUDIO_FORMAT_COUNT] = {
            [S2_AUDIO_WAV] = "audio/wav",
            [S2_AUDIO_FLAC] = "audio/flac",
            [S2_AUDIO_MP3] = "audio/mpeg",
            [S2_AUDIO_OPUS] = "audio/ogg",
            [S2_AUDIO_PCM] = "audio/pcm",
    };
    return (unsigned)format < S2_AUDIO_FORMAT_COUNT ? types[format] : "application/octet-stream";
}

void sound_encoder_free(sound_encoder **e)
{
    if (e && *e) {
        s2_audio_writer_abort(&(*e)->writer);
        if ((*e)->read_fd >= 0) {
            (void)close((*e)->read_fd);
        }
        sl__free(*e);
        *e = NULL;
    }
}

int sound_encoder_open(s2_audio_format format, uint32_t in_rate, uint32_t out_rate,
        sound_sink *sink, void *ud, sound_encoder **ret_encoder, sl_error *reterr)
{
    char path[40];
    int fds[2] = {-1, -1};
    sound_encoder *e = sl__alloc(1, sizeof *e);
    if (!e) {
        return sl__fail_nomem(reterr, sizeof *e, "an encoder");
    }
    e->sink = sink;
    e->ud = ud;
    e->read_fd = -1;
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        int r = fail_system(reterr, "a pipe for the encoder");
        sl__free(e);
        return r;
    }
    e->read_fd = fds[0];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fds[1]);
    const s2_audio_writer_opts opts = {
            .path = path, .format = format, .in_rate = in_rate, .out_rate = out_rate};
    int r = s2_audio_writer_open(&opts, &e->writer, reterr);
    (void)close(fds[1]); /* the writer has its own */
    if (r < 0) {
        sound_encoder_free(&e);
        return r;
    }
    *ret_encoder = e;
    return SL_OK;
}

/* Hands on what is in the pipe. */
static int drain(sound_encoder *e, sl_error *reterr)
{
    unsigned char buf[4096];
    for (;;) {
        ssize_t n = read(e->read_fd, buf, sizeof buf);
        if (n > 0) {
            int r = e->sink(e->ud, buf, (size_t)n, reterr);
            if (r < 0) {
                return r;
            }
        } else if (n == 0 || errno == EAGAIN) {
            return SL_OK;
        } else if (errno != EINTR) {
            return fail_system(reterr, "the encoder's pipe");
        }
    }
}

int sound_encoder_write(sound_encoder *e, const float *samples, size_t n, sl_error *reterr)
{
    int r = SL_OK;
    for (size_t done = 0; done < n && r == 0;) {
        size_t part = n - done < PIECE ? n - done : PIECE;
        r = s2_audio_writer_write(e->writer, samples + done, part, reterr);
        if (r == 0) {
            r = s2_audio_writer_flush(e->writer, reterr);
        }
        if (r == 0) {
            r = drain(e, reterr);
        }
        done += part;
    }
    return r;
}

int sound_encoder_finish(sound_encoder *e, sl_error *reterr)
{
    int r = s2_audio_writer_finish(&e->writer, reterr);
    return r == 0 ? drain(e, reterr) : r;
}

static int write_all(int fd, const unsigned char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno != EINTR) {
            return -1;
        }
        bytes += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

/* The reader names the file; here it has no name that means anything to the client. */
static void rename_in_message(sl_error *err, const char *path)
{
    char rest[sizeof err->msg];
    char *at = strstr(err->msg, path);
    if (at) {
        snprintf(rest, sizeof rest, "%s", at + strlen(path));
        snprintf(at, sizeof err->msg - (size_t)(at - err->msg), "of the recording%s", rest);
    }
}

int sound_decode(const void *bytes, size_t n, uint32_t rate, double max_seconds,
        s2_audio *ret_audio, sl_error *reterr)
{
    char path[40];
    int fd = memfd_create("recording", MFD_CLOEXEC);
    if (fd < 0) {
        return fail_system(reterr, "memory for the recording");
    }
    int r = SL_OK;
    if (write_all(fd, bytes, n) != 0) {
        r = fail_system(reterr, "memory for the recording");
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (r == 0) {
        sl_error err = {0};
        r = s2_audio_read(path, rate, max_seconds, ret_audio, &err);
        rename_in_message(&err, path);
        if (r < 0 && reterr) {
            *reterr = err;
        }
    }
    (void)close(fd);
    return r;
}
