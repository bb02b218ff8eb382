/* The cover over a device's table, with a table of our own: what it checks, and what it passes on. */
#include "test_support.h"

#include <string.h>

#include "base/mem.h"
#include "sluice/device.h"

typedef struct fake {
    sl_device_info info;
    int r;           /* what the next call returns */
    bool gives_none; /* a success without an object */
    int n_calls;
    int n_live;
    int n_destroyed;
} fake;

static int fake_describe(void *self, sl_device_info *ret, sl_error *reterr)
{
    (void)reterr;
    *ret = ((fake *)self)->info;
    return ((fake *)self)->r;
}

static int make(fake *f, void **ret)
{
    f->n_calls++;
    if (f->r == 0 && !f->gives_none) {
        f->n_live++;
        *ret = f;
    }
    return f->r;
}

static int fake_alloc(void *self, uint64_t n_bytes, void **ret_buffer, sl_error *reterr)
{
    (void)n_bytes;
    (void)reterr;
    return make(self, ret_buffer);
}

static int fake_wrap(
        void *self, const void *data, uint64_t n_bytes, void **ret_buffer, sl_error *reterr)
{
    (void)data;
    (void)n_bytes;
    (void)reterr;
    return make(self, ret_buffer);
}

static int fake_free(void *self, void *buffer, sl_error *reterr)
{
    fake *f = self;
    (void)reterr;
    assert_ptr_equal(buffer, f);
    f->n_live--;
    return f->r;
}

static int fake_upload(void *self, void *buffer, uint64_t offset, const void *src, size_t n_bytes,
        sl_error *reterr)
{
    (void)buffer;
    (void)offset;
    (void)src;
    (void)n_bytes;
    (void)reterr;
    ((fake *)self)->n_calls++;
    return ((fake *)self)->r;
}

static int fake_download(
        void *self, void *buffer, uint64_t offset, void *dst, size_t n_bytes, sl_error *reterr)
{
    memset(dst, 7, n_bytes);
    return fake_upload(self, buffer, offset, dst, n_bytes, reterr);
}

static int fake_synchronize(void *self, sl_error *reterr)
{
    (void)reterr;
    return ((fake *)self)->r;
}

static int fake_event_create(void *self, void **ret_event, sl_error *reterr)
{
    (void)reterr;
    return make(self, ret_event);
}

static int fake_event(void *self, void *event, sl_error *reterr)
{
    (void)event;
    (void)reterr;
    ((fake *)self)->n_calls++;
    return ((fake *)self)->r;
}

static void fake_give_back(void *self, void *impl)
{
    (void)impl;
    ((fake *)self)->n_live--;
}

static char pinned_page[16];

static int fake_pinned_alloc(
        void *self, size_t n_bytes, void **ret_data, void **ret_impl, sl_error *reterr)
{
    (void)n_bytes;
    (void)reterr;
    *ret_data = pinned_page;
    return make(self, ret_impl);
}

static void fake_destroy(void *self)
{
    ((fake *)self)->n_destroyed++;
}

static sl_device_ops full_table(void)
{
    return (sl_device_ops){
            .describe = fake_describe,
            .alloc = fake_alloc,
            .wrap = fake_wrap,
            .free = fake_free,
            .upload = fake_upload,
            .download = fake_download,
            .synchronize = fake_synchronize,
            .event_create = fake_event_create,
            .event_record = fake_event,
            .event_wait = fake_event,
            .event_free = fake_give_back,
            .pinned_alloc = fake_pinned_alloc,
            .pinned_free = fake_give_back,
            .register_host = fake_wrap,
            .unregister_host = fake_give_back,
            .destroy = fake_destroy,
    };
}

static fake good_fake(void)
{
    return (fake){.info = {.name = "fake",
                          .alignment = 32,
                          .max_alloc_bytes = 100,
                          .can_wrap = true,
                          .has_pinned = true,
                          .can_register = true}};
}

static sl_device *create(const sl_device_ops *ops, fake *f)
{
    sl_device *device = NULL;
    sl_error err = {0};
    assert_ok(sl_device_create(ops, f, &device, &err), &err);
    return device;
}

static void test_a_table_must_be_complete(void **state)
{
    (void)state;
    fake f = good_fake();
    sl_device *device = NULL;
    sl_error err = {0};
    assert_int_equal(sl_device_create(NULL, &f, &device, &err), SL_EINVAL);
    for (int i = 0; i < 5; i++) {
        sl_device_ops ops = full_table();
        if (i == 0) {
            ops.describe = NULL;
        } else if (i == 1) {
            ops.event_wait = NULL;
        } else if (i == 2) {
            ops.pinned_free = NULL;
        } else if (i == 3) {
            ops.register_host = NULL;
        } else {
            ops.free = NULL;
        }
        assert_int_equal(sl_device_create(&ops, &f, &device, &err), SL_EINVAL);
        assert_null(device);
    }
    assert_int_equal(f.n_destroyed, 0);
}

static void test_a_description_must_make_sense(void **state)
{
    (void)state;
    sl_device_ops ops = full_table();
    sl_device *device = NULL;
    sl_error err = {0};
    fake nameless = good_fake();
    nameless.info.name[0] = '\0';
    assert_int_equal(sl_device_create(&ops, &nameless, &device, &err), SL_EINVAL);
    fake odd = good_fake();
    odd.info.alignment = 48;
    assert_int_equal(sl_device_create(&ops, &odd, &device, &err), SL_EINVAL);
    assert_non_null(strstr(err.msg, "48"));
    fake dead = good_fake();
    dead.r = SL_EDEVICE;
    assert_int_equal(sl_device_create(&ops, &dead, &device, &err), SL_EDEVICE);
    assert_null(device);
}

static void test_names_of_drivers_are_made_safe_to_show(void **state)
{
    (void)state;
    sl_device_ops ops = full_table();
    fake f = good_fake();
    memset(f.info.name, 'x', sizeof f.info.name);
    f.info.name[1] = '\033';
    sl_device *device = create(&ops, &f);
    assert_int_equal(strlen(sl_device_name(device)), sizeof f.info.name - 1);
    assert_int_equal(sl_device_name(device)[1], ' ');
    sl_device_free(&device);
}

/* A capability without its functions is none. */
static void test_capabilities_need_their_functions(void **state)
{
    (void)state;
    sl_device_ops ops = full_table();
    ops.wrap = NULL;
    ops.pinned_alloc = NULL;
    ops.pinned_free = NULL;
    ops.register_host = NULL;
    ops.unregister_host = NULL;
    fake f = good_fake();
    f.info.can_query = true;
    sl_device *device = create(&ops, &f);
    sl_device_info info = {0};
    sl_error err = {0};
    assert_ok(sl_device_describe(device, &info, &err), &err);
    assert_false(info.can_wrap || info.has_pinned || info.can_register || info.can_query);

    sl_buffer *buffer = NULL;
    assert_int_equal(sl_buffer_wrap(device, &f, 4, &buffer, &err), SL_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "fake"));
    sl_registration *registration = NULL;
    assert_int_equal(sl_register(device, &f, 4, &registration, &err), SL_EUNSUPPORTED);
    sl_pinned pinned = {0};
    assert_ok(sl_pinned_alloc(device, 5000, &pinned, &err), &err);
    assert_false(pinned.is_pinned);
    memset(pinned.data, 1, 5000);
    sl_pinned_free(&pinned);
    assert_null(pinned.data);
    sl_pinned_free(&pinned);
    sl_pinned_free(NULL);
    sl_device_free(&device);
    assert_int_equal(f.n_destroyed, 1);
}

static void test_G3_06_sizes_are_checked_before_the_device_is_asked(void **state)
{
    (void)state;
    sl_device_ops ops = full_table();
    fake f = good_fake();
    sl_device *device = create(&ops, &f);
    sl_buffer *buffer = NULL;
    sl_error err = {0};
    assert_int_equal(sl_buffer_alloc(device, 0, &buffer, &err), SL_EINVAL);
    assert_int_equal(sl_buffer_alloc(device, 101, &buffer, &err), SL_ELIMIT);
    assert_non_null(strstr(err.msg, "101"));
    assert_non_null(strstr(err.msg, "100"));
    assert_int_equal(f.n_calls, 0);
    assert_ok(sl_buffer_alloc(device, 100, &buffer, &err), &err);
    assert_int_equal(sl_buffer_free(&buffer, &err), 0);
    sl_device_free(&device);

    /* 0 is "unknown, try". */
    f.info.max_alloc_bytes = 0;
    device = create(&ops, &f);
    assert_ok(sl_buffer_alloc(device, UINT64_MAX, &buffer, &err), &err);
    assert_int_equal(sl_buffer_free(&buffer, &err), 0);
    sl_device_free(&device);
}

static void test_copies_stay_inside_their_buffer(void **state)
{
    (void)state;
    sl_device_ops ops = full_table();
    fake f = good_fake();
    sl_device *device = create(&ops, &f);
    sl_buffer *buffer = NULL;
    sl_error err = {0};
    char bytes[100];
    assert_ok(sl_buffer_alloc(device, 100, &buffer, &err), &err);
    int n_calls = f.n_calls;
    assert_int_equal(sl_buffer_upload(buffer, 1, bytes, 100, &err), SL_EINVAL);
    assert_int_equal(sl_buffer_upload(buffer, 101, bytes, 0, &err), SL_EINVAL);
    assert_int_equal(sl_buffer_upload(buffer, UINT64_MAX, bytes, 2, &err), SL_EINVAL);
    assert_int_equal(sl_buffer_download(buffer, 99, bytes, 2, &err), SL_EINVAL);
    assert_int_equal(sl_buffer_upload(buffer, 100, bytes, 0, &err), 0);
    assert_int_equal(f.n_calls, n_calls);
    assert_int_equal(sl_buffer_upload(buffer, 0, bytes, 100, &err), 0);
    assert_int_equal(sl_buffer_download(buffer, 99, bytes, 1, &err), 0);
    assert_int_equal(bytes[0], 7);
    assert_int_equal(sl_buffer_size(buffer), 100);
    assert_ptr_equal(sl_buffer_device(buffer), device);
    assert_ptr_equal(sl_buffer_get_impl(buffer), &f);
    assert_null(sl_buffer_host_data(buffer));
    assert_int_equal(sl_buffer_free(&buffer, &err), 0);

    assert_ok(sl_buffer_wrap(device, bytes, 100, &buffer, &err), &err);
    assert_int_equal(sl_buffer_upload(buffer, 0, bytes, 1, &err), SL_EINVAL);
    assert_int_equal(sl_buffer_free(&buffer, &err), 0);
    sl_device_free(&device);
}

/* Every kind of object, made under failure r: nothing comes out. */
static void try_all(sl_device *device, int expected)
{
    sl_buffer *buffer = NULL;
    sl_event *event = NULL;
    sl_registration *registration = NULL;
    sl_error err = {0};
    assert_int_equal(sl_buffer_alloc(device, 4, &buffer, &err), expected);
    assert_int_equal(sl_buffer_wrap(device, &err, 4, &buffer, &err), expected);
    assert_int_equal(sl_event_create(device, &event, &err), expected);
    assert_int_equal(sl_register(device, &err, 4, &registration, &err), expected);
    assert_null(buffer);
    assert_null(event);
    assert_null(registration);
}

static void test_G3_05_a_failure_gives_no_object(void **state)
{
    (void)state;
    sl_device_ops ops = full_table();
    fake f = good_fake();
    sl_device *device = create(&ops, &f);
    f.r = SL_ENOMEM;
    try_all(device, SL_ENOMEM);
    /* A device that says yes and gives nothing is not believed. */
    f.r = 0;
    f.gives_none = true;
    try_all(device, SL_EDEVICE);
    /* Pinned memory falls back. */
    sl_pinned pinned = {0};
    sl_error err = {0};
    assert_ok(sl_pinned_alloc(device, 10, &pinned, &err), &err);
    assert_false(pinned.is_pinned);
    sl_pinned_free(&pinned);
    assert_int_equal(sl_pinned_alloc(device, 0, &pinned, &err), SL_EINVAL);
    f.gives_none = false;
    assert_ok(sl_pinned_alloc(device, 10, &pinned, &err), &err);
    assert_true(pinned.is_pinned);
    assert_ptr_equal(pinned.data, pinned_page);
    sl_pinned_free(&pinned);
    assert_int_equal(f.n_live, 0);
    sl_device_free(&device);
}

static void test_G3_05_out_of_heap_gives_no_object(void **state)
{
    (void)state;
    sl_device_ops ops = full_table();
    fake f = good_fake();
    sl_device *device = NULL;
    sl_error err = {0};
    sl__mem_fail_after(0);
    assert_int_equal(sl_device_create(&ops, &f, &device, &err), SL_ENOMEM);
    sl__mem_fail_after(-1);
    device = create(&ops, &f);
    sl_buffer *buffer = NULL;
    sl_event *event = NULL;
    sl_registration *registration = NULL;
    sl__mem_fail_after(0);
    assert_int_equal(sl_buffer_alloc(device, 4, &buffer, &err), SL_ENOMEM);
    sl__mem_fail_after(0);
    assert_int_equal(sl_buffer_wrap(device, &f, 4, &buffer, &err), SL_ENOMEM);
    sl__mem_fail_after(0);
    assert_int_equal(sl_event_create(device, &event, &err), SL_ENOMEM);
    sl__mem_fail_after(0);
    assert_int_equal(sl_register(device, &f, 4, &registration, &err), SL_ENOMEM);
    sl__mem_fail_after(-1);
    assert_int_equal(f.n_calls, 0);
    sl_device_free(&device);
}

static void test_a_failed_free_still_takes_the_handle(void **state)
{
    (void)state;
    sl_device_ops ops = full_table();
    fake f = good_fake();
    sl_device *device = create(&ops, &f);
    sl_buffer *buffer = NULL;
    sl_error err = {0};
    assert_ok(sl_buffer_alloc(device, 4, &buffer, &err), &err);
    f.r = SL_EDEVICE;
    assert_int_equal(sl_buffer_free(&buffer, &err), SL_EDEVICE);
    assert_null(buffer);
    assert_int_equal(sl_buffer_free(&buffer, &err), 0);
    assert_int_equal(sl_buffer_free(NULL, &err), 0);
    sl_device_free(&device);
    sl_device_free(&device);
    sl_device_free(NULL);
    assert_int_equal(f.n_destroyed, 1);
}

static void test_query_waits_where_the_device_cannot_ask(void **state)
{
    (void)state;
    sl_device_ops ops = full_table();
    fake f = good_fake();
    sl_device *device = create(&ops, &f);
    sl_event *event = NULL;
    sl_error err = {0};
    assert_ok(sl_event_create(device, &event, &err), &err);
    assert_int_equal(sl_event_record(event, &err), 0);
    assert_int_equal(sl_event_query(event, &err), 1);
    f.r = SL_EDEVICE;
    assert_int_equal(sl_event_query(event, &err), SL_EDEVICE);
    assert_int_equal(sl_event_record(event, &err), SL_EDEVICE);
    assert_int_equal(sl_device_synchronize(device, &err), SL_EDEVICE);
    sl_event_free(&event);
    sl_event_free(&event);
    sl_event_free(NULL);
    assert_int_equal(f.n_live, 0);
    sl_device_free(&device);
}

static void test_kinds_have_names(void **state)
{
    (void)state;
    for (int k = 0; k < SL_DEVICE_KIND_COUNT; k++) {
        const char *name = sl_device_kind_name((sl_device_kind)k);
        assert_non_null(name);
        assert_string_not_equal(name, "unknown");
    }
    assert_string_equal(sl_device_kind_name(SL_DEVICE_KIND_COUNT), "unknown");
    assert_string_equal(sl_device_kind_name(SL_DEVICE_INTEGRATED), "integrated");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_a_table_must_be_complete),
            cmocka_unit_test(test_a_description_must_make_sense),
            cmocka_unit_test(test_names_of_drivers_are_made_safe_to_show),
            cmocka_unit_test(test_capabilities_need_their_functions),
            cmocka_unit_test(test_G3_06_sizes_are_checked_before_the_device_is_asked),
            cmocka_unit_test(test_copies_stay_inside_their_buffer),
            cmocka_unit_test(test_G3_05_a_failure_gives_no_object),
            cmocka_unit_test(test_G3_05_out_of_heap_gives_no_object),
            cmocka_unit_test(test_a_failed_free_still_takes_the_handle),
            cmocka_unit_test(test_query_waits_where_the_device_cannot_ask),
            cmocka_unit_test(test_kinds_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
