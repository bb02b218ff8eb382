/*
 * A model's file that changes under a running server. A program of its own: cmocka sets the signal handlers anew for
 * every test, and the guard of mappings sets its own once a process.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http_client.h"
#include "os/os_thread.h"
#include "server_rig.h"
#include "test_support.h"

#define SPEECH "/v1/audio/speech"

/* The file is written anew while it is served: one request meets the change, the next one has the new file. */
static void test_a_model_that_changes_is_opened_anew(void **state)
{
    server_rig *rig = *state;
    char source[512];
    char model[600];
    char tokenizer[512];
    size_t n = 0;
    http_response r;
    static const char json[] =
            "{\"input\":\"hi\",\"response_format\":\"wav\",\"seed\":1,\"max_frames\":4}";
    char *bytes = test_read_file(test_data(source, sizeof source, "tiny/tiny-f16.gguf"), &n);
    test_path(model, sizeof model, rig->dir, "model.gguf");
    test_write_file(model, bytes, n);
    test_data(tokenizer, sizeof tokenizer, "tiny/tokenizer.json");
    server_rig_use_model(rig, model, tokenizer);
    rig->opts.model_path = model;
    rig->opts.n_model_dir = strlen(rig->dir);
    server_rig_start(rig);
    http_post_json(rig->port, SPEECH, json, &r);
    assert_int_equal(r.status, 200);
    char *first = r.body;
    size_t n_first = r.n_body;
    sl__sleep_ns(20000000); /* so that its time of change is another one */
    test_write_file(model, bytes, n);
    http_post_json(rig->port, SPEECH, json, &r);
    assert_int_equal(r.status, 500);
    assert_null(strstr(r.body, rig->dir));
    http_response_done(&r);
    for (int i = 0; i < 20; i++) { /* asked all the while */
        http_ask(rig->port, "GET", i % 2 ? "/residency" : "/metrics", "", NULL, 0, &r);
        assert_int_equal(r.status, 200);
        http_response_done(&r);
    }
    http_post_json(rig->port, SPEECH, json, &r);
    assert_int_equal(r.status, 200);
    assert_int_equal(r.n_body, n_first);
    assert_memory_equal(r.body, first, n_first);
    free(first);
    http_response_done(&r);
    /* Gone for good: then it says so. */
    assert_int_equal(truncate(model, 1000), 0);
    http_post_json(rig->port, SPEECH, json, &r);
    assert_int_equal(r.status, 500);
    http_response_done(&r);
    sl_error err = {0};
    for (int i = 0; i < 5000 && !server_has_failed(rig->server, &err); i++) {
        sl__sleep_ns(2000000);
    }
    assert_true(server_has_failed(rig->server, &err));
    assert_true(err.msg[0] != '\0');
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(test_a_model_that_changes_is_opened_anew,
                    server_rig_prepare, server_rig_finish),
    };
    return cmocka_run_group_tests_name("serve_changed", tests, NULL, NULL);
}
