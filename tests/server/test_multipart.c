/* Forms: what clients send, and what nobody should. */
#include "multipart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"

#define TYPE "multipart/form-data; boundary=B"

static multipart form; /* 8 KiB: too much for a stack of this house */

static int parse(const char *type, const char *body, sl_error *err)
{
    return multipart_parse(type, body, strlen(body), &form, err);
}

static const multipart_part *part(const char *name)
{
    const char *const names[] = {name, NULL};
    return multipart_find(&form, names);
}

static void expect_part(const char *name, const char *data, bool is_file)
{
    const multipart_part *p = part(name);
    assert_non_null(p);
    assert_int_equal(p->n, strlen(data));
    assert_memory_equal(p->data, data, p->n);
    assert_int_equal(p->is_file, is_file);
}

static void test_form_as_clients_send_it(void **state)
{
    sl_error err;
    (void)state;
    assert_ok(parse("multipart/form-data; boundary=\"B\"; charset=x",
                      "--B\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nHi\r\nyou\r\n"
                      "--B  "
                      "\r\ncontent-disposition:form-data;filename=\"a;name=x.wav\";name=\"f\"\r\n"
                      "Content-Type: audio/wav\r\n\r\nRI\r\n--FF\r\n"
                      "--B\r\nContent-Disposition: form-data; name=empty\r\n\r\n\r\n--B--\r\n",
                      &err),
            &err);
    assert_int_equal(form.n, 3);
    expect_part("text", "Hi\r\nyou", false);
    expect_part("f", "RI\r\n--FF", true);
    expect_part("empty", "", false);
    assert_null(part("x.wav"));
    static const char *const aliases[] = {"nothing", "f", "text", NULL};
    assert_ptr_equal(multipart_find(&form, aliases), part("f"));
}

static void test_G5_15_bad_forms_are_refused(void **state)
{
    static const struct {
        const char *type;
        const char *body;
        int code;
    } cases[] = {
            {NULL, "", SL_EUNSUPPORTED},
            {"application/json", "{}", SL_EUNSUPPORTED},
            {"multipart/form-data", "--B--", SL_EFORMAT},
            {"multipart/form-data; boundary=", "--B--", SL_EFORMAT},
            {"multipart/form-data; boundary=\"B", "--B--", SL_EFORMAT},
            {TYPE, "", SL_EFORMAT},
            {TYPE, "--C--", SL_EFORMAT},
            {TYPE, "--B", SL_EFORMAT},
            {TYPE, "--B\r", SL_EFORMAT},
            {TYPE, "--B\r\n", SL_EFORMAT},
            {TYPE, "--Bx\r\n", SL_EFORMAT},
            {TYPE, "--B\r\nContent-Disposition: form-data; name=a", SL_EFORMAT},
            {TYPE, "--B\r\nContent-Disposition: form-data; name=a\r\n", SL_EFORMAT},
            {TYPE, "--B\r\nContent-Disposition: form-data; name=a\r\n\r\nx", SL_EFORMAT},
            {TYPE, "--B\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--B", SL_EFORMAT},
            {TYPE, "--B\r\nContent-Disposition: form-data\r\n\r\nx\r\n--B--", SL_EFORMAT},
            {TYPE, "--B\r\nContent-Disposition: form-data; name=\"\"\r\n\r\nx\r\n--B--",
                    SL_EFORMAT},
            {TYPE, "--B\r\n\r\nx\r\n--B--", SL_EFORMAT},
            {TYPE,
                    "--B\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n"
                    "--B\r\nContent-Disposition: form-data; name=a\r\n\r\ny\r\n--B--",
                    SL_EFORMAT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sl_error err = {0};
        int r = parse(cases[i].type, cases[i].body, &err);
        if (r != cases[i].code) {
            fail_msg("case %zu: %d", i, r);
        }
        assert_true(err.msg[0] != '\0');
    }
}

static void test_G5_15_many_parts_and_long_names(void **state)
{
    enum {
        N = 10000
    };
    char *body = calloc(N, 80);
    size_t n = 0;
    sl_error err;
    (void)state;
    for (int i = 0; i < N; i++) {
        n += (size_t)snprintf(
                body + n, 80, "--B\r\nContent-Disposition: form-data; name=p%d\r\n\r\nx\r\n", i);
    }
    snprintf(body + n, 16, "--B--\r\n");
    assert_int_equal(parse(TYPE, body, &err), SL_ELIMIT);
    free(body);

    size_t n_name = 1 << 20;
    char *name = malloc(n_name + 200);
    int at = snprintf(name, 100, "--B\r\nContent-Disposition: form-data; name=\"");
    memset(name + at, 'n', n_name);
    snprintf(name + at + n_name, 100, "\"\r\n\r\nx\r\n--B--");
    assert_int_equal(parse(TYPE, name, &err), SL_ELIMIT);
    free(name);
}

static void test_every_cut_of_a_form_is_refused(void **state)
{
    static const char body[] =
            "--B\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nHi\r\n"
            "--B\r\nContent-Disposition: form-data; name=\"b\"\r\n\r\nx\r\n--B--";
    sl_error err;
    (void)state;
    for (size_t n = 0; n < sizeof body - 1; n++) {
        /* In a block of its own size, so that a read behind it is seen. */
        char *copy = malloc(n + 1);
        memcpy(copy, body, n);
        assert_int_equal(multipart_parse(TYPE, copy, n, &form, &err), SL_EFORMAT);
        free(copy);
    }
    assert_ok(multipart_parse(TYPE, body, sizeof body - 1, &form, &err), &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_form_as_clients_send_it),
            cmocka_unit_test(test_G5_15_bad_forms_are_refused),
            cmocka_unit_test(test_G5_15_many_parts_and_long_names),
            cmocka_unit_test(test_every_cut_of_a_form_is_refused),
    };
    return cmocka_run_group_tests_name("multipart", tests, NULL, NULL);
}
