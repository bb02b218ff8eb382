#include "codec_files.h"

#include <sndfile.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"

float *read_wav(const char *name, size_t *ret_n)
{
    char path[512];
    SF_INFO info = {0};
    SNDFILE *f = sf_open(test_data(path, sizeof path, name), SFM_READ, &info);
    assert_non_null(f);
    assert_int_equal(info.channels, 1);
    float *samples = malloc((size_t)info.frames * sizeof *samples);
    assert_non_null(samples);
    assert_int_equal(sf_readf_float(f, samples, info.frames), info.frames);
    sf_close(f);
    *ret_n = (size_t)info.frames;
    return samples;
}

json_t *read_json(const char *name)
{
    char path[512];
    json_error_t err;
    json_t *root = json_load_file(test_data(path, sizeof path, name), 0, &err);
    if (!root) {
        fail_msg("%s: %s", path, err.text);
    }
    return root;
}

double json_number_at(const json_t *array, size_t i)
{
    const json_t *v = json_array_get(array, i);
    assert_true(json_is_number(v));
    return json_number_value(v);
}

int32_t *to_frame_major(const int32_t *codes, size_t n_books, size_t n_frames)
{
    int32_t *out = malloc(n_books * n_frames * sizeof *out);
    assert_non_null(out);
    for (size_t j = 0; j < n_books; j++) {
        for (size_t t = 0; t < n_frames; t++) {
            out[t * n_books + j] = codes[j * n_frames + t];
        }
    }
    return out;
}

s2_codec_decoder *create_decoder(model_fixture *f, const s2_build_options *options)
{
    s2_codec_decoder *d = NULL;
    sl_error err;
    assert_ok(s2__codec_decoder_create(&f->hp, f->weights, &f->compute, options, &d, &err), &err);
    return d;
}

float *decode(const model_fixture *f, s2_codec_decoder *d, const int32_t *codes, size_t n_frames,
        size_t stride)
{
    sl_error err;
    size_t n_books = f->hp.codec.n_codebooks;
    size_t n_samples = f->hp.codec.frame_samples;
    float *pcm = malloc(n_frames * n_samples * sizeof *pcm);
    assert_non_null(pcm);
    s2_codec_decoder_reset(d);
    for (size_t t = 0; t < n_frames; t += stride) {
        uint32_t n = (uint32_t)(n_frames - t < stride ? n_frames - t : stride);
        assert_ok(
                s2_codec_decoder_push(d, codes + t * n_books, n, pcm + t * n_samples, &err), &err);
    }
    return pcm;
}

static char *find_bytes(char *data, size_t n, const char *what)
{
    size_t n_what = strlen(what);
    for (size_t i = 0; i + n_what <= n; i++) {
        if (memcmp(data + i, what, n_what) == 0) {
            return data + i;
        }
    }
    fail_msg("%s is not in the model", what);
    return NULL;
}

void open_damaged(model_fixture *f, const char *dir, const char *from, const char *to, int32_t type)
{
    char path[512];
    size_t n;
    char *data = test_read_file(test_data(path, sizeof path, "golden/tiny-s2-f32.gguf"), &n);
    char *name = find_bytes(data, n, from);
    if (type >= 0) {
        /* Behind the name: number of dimensions, dimensions, type. */
        uint32_t n_dims;
        memcpy(&n_dims, name + strlen(from), sizeof n_dims);
        char *at = name + strlen(from) + sizeof n_dims + n_dims * sizeof(uint64_t);
        memcpy(at, &type, sizeof type);
    }
    if (to) {
        assert_int_equal(strlen(from), strlen(to));
        for (size_t i = 0; to[i]; i++) {
            name[i] = to[i];
        }
    }
    test_path(path, sizeof path, dir, "damaged.gguf");
    test_write_file(path, data, n);
    free(data);
    model_fixture_open_path(f, path, 1);
}
