/* Inputs of the codec's tests: recordings, codes of the golden JSON files, damaged models. */
#ifndef TEST_CODEC_FILES_H
#define TEST_CODEC_FILES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/model/codec_decoder.h"
#include "model_fixture.h"

/* Samples of a mono WAV below tests/data; free() them. */
float *read_wav(const char *name, size_t *ret_n);

/* A JSON file below tests/data; json_decref() it. */
json_t *read_json(const char *name);

/* Element i of an array of numbers. */
double json_number_at(const json_t *array, size_t i);

/* codes[book * n_frames + t] to codes[t * n_books + book]; free() the result. */
int32_t *to_frame_major(const int32_t *codes, size_t n_books, size_t n_frames);

/* A decoder; the test fails if there is none. */
s2_codec_decoder *create_decoder(model_fixture *f, const s2_build_options *options);

/* Decodes all frames as one stream from its beginning, in pieces of `stride`; free() the result. */
float *decode(const model_fixture *f, s2_codec_decoder *d, const int32_t *codes, size_t n_frames,
        size_t stride);

/*
 * Opens a copy of the F32 model in `dir` in which one tensor has another name or type. from: its name; to: a
 * name of the same length or NULL; type: ggml type with elements of four bytes, or -1.
 */
void open_damaged(
        model_fixture *f, const char *dir, const char *from, const char *to, int32_t type);

#endif
