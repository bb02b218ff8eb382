/* What the server takes apart itself: forms, escaped paths, queries, base64. What is accepted lies inside the input. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"

#include "base64.h"
#include "multipart.h"
#include "origin.h"
#include "url.h"

static multipart form;

static void try_form(const char *data, size_t size)
{
    sl_error err = {0};
    int r = multipart_parse("multipart/form-data; boundary=B", data, size, &form, &err);
    if (r < 0 && err.code != r) {
        abort();
    }
    for (size_t i = 0; i < form.n && r == 0; i++) {
        const multipart_part *p = &form.parts[i];
        bool is_inside =
                p->data >= data && p->n <= size && p->data - data <= (ptrdiff_t)(size - p->n);
        if (!is_inside || p->name[0] == '\0') {
            abort();
        }
    }
}

/* The type of a form is bytes from outside too. */
static void try_type(const char *text)
{
    sl_error err = {0};
    if (multipart_parse(text, "--B--", 5, &form, &err) == 0 && form.n > 0) {
        abort();
    }
}

static void try_words(const char *text, size_t size)
{
    char small[16];
    char *buf = malloc(size + 1);
    if (buf && url_decode(text, size, buf, size + 1) && strlen(buf) > size) {
        abort();
    }
    if (url_query_get(text, "level", small, sizeof small) && strlen(small) >= sizeof small) {
        abort();
    }
    (void)host_is_local(text);
    (void)origin_is_host(text, "localhost:3030");
    free(buf);
}

/* What decodes comes back as the same bytes after encoding and decoding again. */
static void try_base64(const char *text, size_t size)
{
    size_t n = 0;
    size_t n_again = 0;
    unsigned char *data = malloc(3 * (size / 4) + 3);
    if (data && base64_decode(text, size, data, &n)) {
        char *again = malloc(base64_bound(n) + 1);
        unsigned char *back = malloc(n + 3);
        if (again && back) {
            size_t n_text = base64_encode(data, n, again);
            bool is_same = base64_decode(again, n_text, back, &n_again) && n_again == n &&
                           memcmp(back, data, n) == 0;
            if (!is_same) {
                abort();
            }
        }
        free(again);
        free(back);
    }
    free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text) {
        return 0;
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    try_form((const char *)data, size);
    try_type(text);
    try_words(text, size);
    try_base64(text, size);
    free(text);
    return 0;
}
