/*
 * gguf_seeds VECTORS.json DIR: writes the first inputs of the GGUF target, the small vectors of the tests and
 * two larger files: one with every kind of value and tensor, one with a long array of strings.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "os/os_out_file.h"
#include "source/gguf_write.h"

#define MANY 4100

static void die(const char *what)
{
    fprintf(stderr, "gguf_seeds: %s\n", what);
    _Exit(1);
}

static void must(int r, const sl_error *err)
{
    if (r < 0) {
        die(err->msg);
    }
}

static sl__out_file *open_seed(const char *dir, const char *name)
{
    char path[4096];
    sl__out_file *file = NULL;
    sl_error err = {0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    must(sl__out_file_open(path, 0644, &file, &err), &err);
    return file;
}

static void commit(sl__out_file *file)
{
    sl_error err = {0};
    must(sl__out_file_commit(&file, &err), &err);
}

static unsigned nibble(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;
    if (!at) {
        die("a vector is not in hexadecimal");
    }
    return (unsigned)(at - digits);
}

static void write_vector(const char *dir, const char *name, const char *hex)
{
    sl_error err = {0};
    sl__out_file *file = open_seed(dir, name);
    for (; hex[0]; hex += 2) {
        unsigned char byte = (unsigned char)(nibble(hex[0]) << 4 | nibble(hex[1]));
        must(sl__out_file_write(file, &byte, 1, &err), &err);
    }
    commit(file);
}

static void write_vectors(const char *vectors, const char *dir)
{
    size_t i;
    json_t *v;
    json_error_t why;
    json_t *list = json_load_file(vectors, 0, &why);
    if (!json_is_array(list)) {
        die(why.text);
    }
    json_array_foreach(list, i, v)
    {
        const char *name = json_string_value(json_object_get(v, "name"));
        const char *hex = json_string_value(json_object_get(v, "hex"));
        if (name && hex) {
            write_vector(dir, name, hex);
        }
    }
    json_decref(list);
}

static void put_values(sl__gguf_writer *w)
{
    const double reals[] = {0.5, -1};
    const sl_span strs[] = {{"one", 3}, {"", 0}};
    for (unsigned i = 0; i < SL_GGUF_TYPE_COUNT; i++) {
        sl_gguf_type type = (sl_gguf_type)i;
        const char *key = sl_gguf_type_name(type);
        if (type == SL_GGUF_F32 || type == SL_GGUF_F64) {
            sl__gguf_put_f64(w, key, type, 0.5);
        } else if (type == SL_GGUF_STR) {
            sl__gguf_put_str(w, key, strs[0]);
        } else if (type == SL_GGUF_ARRAY) {
            sl__gguf_put_array(w, key, SL_GGUF_F64, reals, 2);
        } else {
            sl__gguf_put_u64(w, key, type, 1);
        }
    }
    sl__gguf_put_strs(w, "strings", strs, 2);
}

/* All kinds of values and tensors, or a long array of strings. */
static void write_large(const char *dir, const char *name, bool is_long)
{
    static const char zeros[4096];
    static sl_span empty[MANY];
    const uint64_t ne[] = {256, 2, 1, 1};
    sl_error err = {0};
    sl__gguf_writer *w = NULL;
    sl__out_file *file = open_seed(dir, name);
    must(sl__gguf_writer_create(is_long ? 32 : 64, &w, &err), &err);
    if (is_long) {
        sl__gguf_put_strs(w, "tokens", empty, MANY);
    } else {
        put_values(w);
        sl__gguf_put_tensor(w, "f32", 0, 2, ne);
        sl__gguf_put_tensor(w, "q8_0", 8, 4, ne);
        sl__gguf_put_tensor(w, "q4_K", 12, 1, ne);
    }
    must(sl__gguf_writer_begin(w, file, &err), &err);
    const size_t sizes[] = {2048, 544, 144};
    for (size_t i = 0; i < 3 && !is_long; i++) {
        must(sl__gguf_writer_data(w, zeros, sizes[i], &err), &err);
    }
    must(sl__gguf_writer_finish(w, &err), &err);
    sl__gguf_writer_free(&w);
    commit(file);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        die("usage: gguf_seeds VECTORS.json DIR");
    }
    write_vectors(argv[1], argv[2]);
    write_large(argv[2], "every_kind", false);
    write_large(argv[2], "long_array", true);
    return 0;
}
