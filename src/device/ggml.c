/*
 * One code path for all back ends. What ggml leaves to its callers is checked before the call, since it aborts
 * otherwise: alignment of wrapped memory, sizes, NULLs.
 *
 * ggml copies to tensors, not to buffers: each buffer carries one tensor of bytes that spans it. The tensor is
 * built by hand, without a context, so that no allocation of ggml's can fail in it.
 */
#include "sluice/ggml_device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggml-backend.h"

#include "base/mem.h"
#include "os/os_process.h"
#include "os/os_thread.h"

/* As ggml_backend_register_host_buffer and its twin are declared by the back ends that have them. */
typedef bool (*register_fn)(void *data, size_t n_bytes);
typedef void (*unregister_fn)(void *data);

typedef struct ggml_side {
    ggml_backend_dev_t dev;
    ggml_backend_t queue;
    ggml_backend_buffer_type_t type;
    ggml_backend_buffer_type_t pinned_type; /* NULL: none */
    struct ggml_backend_dev_caps caps;
    register_fn register_host; /* NULL: none */
    unregister_fn unregister_host;
    sl__mutex lock; /* of the queue */
    char name[64];
} ggml_side;

typedef struct ggml_bytes {
    ggml_backend_buffer_t buffer;
    struct ggml_tensor all; /* the whole buffer as I8 */
} ggml_bytes;

typedef struct ggml_mark {
    ggml_backend_event_t event; /* NULL: the back end has none */
    bool is_recorded;
} ggml_mark;

/* ggml passes functions as void pointers, which ISO C does not convert. */
static void get_function(ggml_backend_dev_t dev, const char *name, void *ret_fn, size_t n_bytes)
{
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(dev);
    void *found = reg ? ggml_backend_reg_get_proc_address(reg, name) : NULL;
    memcpy(ret_fn, &found, n_bytes);
}

static void copy_lower(char *dst, size_t n_bytes, const char *src)
{
    size_t i = 0;
    while (i + 1 < n_bytes && src[i] != '\0') {
        bool is_upper = src[i] >= 'A' && src[i] <= 'Z';
        dst[i] = is_upper ? (char)(src[i] - 'A' + 'a') : src[i];
        i++;
    }
    dst[i] = '\0';
}

static sl_device_kind kind_of(ggml_backend_dev_t dev)
{
    switch (ggml_backend_dev_type(dev)) {
    case GGML_BACKEND_DEVICE_TYPE_CPU:
        return SL_DEVICE_HOST;
    case GGML_BACKEND_DEVICE_TYPE_GPU:
        return SL_DEVICE_GPU;
    case GGML_BACKEND_DEVICE_TYPE_IGPU:
        return SL_DEVICE_INTEGRATED;
    case GGML_BACKEND_DEVICE_TYPE_ACCEL:
    case GGML_BACKEND_DEVICE_TYPE_META:
    default:
        return SL_DEVICE_OTHER;
    }
}

static int side_describe(void *self, sl_device_info *ret, sl_error *reterr)
{
    (void)reterr;
    const ggml_side *s = self;
    size_t n_free = 0;
    size_t n_total = 0;
    size_t max = ggml_backend_buft_get_max_size(s->type);
    *ret = (sl_device_info){
            .kind = kind_of(s->dev),
            .max_alloc_bytes = max == SIZE_MAX ? 0 : max,
            .alignment = ggml_backend_buft_get_alignment(s->type),
            .can_wrap = s->caps.buffer_from_host_ptr,
            .is_async = s->caps.async,
            .has_pinned = s->pinned_type != NULL,
            .can_register = s->register_host && s->unregister_host,
    };
    ret->is_unified = ret->kind == SL_DEVICE_HOST || ret->kind == SL_DEVICE_INTEGRATED;
    if (ret->kind != SL_DEVICE_HOST) {
        ggml_backend_dev_memory(s->dev, &n_free, &n_total);
    }
    ret->total_bytes = n_total;
    ret->free_bytes = n_free < n_total ? n_free : n_total;
    memcpy(ret->name, s->name, sizeof ret->name);
    snprintf(ret->description, sizeof ret->description, "%s", ggml_backend_dev_description(s->dev));
    return 0;
}

/* Takes over `buffer`, also on failure. */
static int new_bytes(
        ggml_backend_buffer_t buffer, uint64_t n_bytes, void **ret_buffer, sl_error *reterr)
{
    ggml_bytes *b = sl__alloc(1, sizeof *b);
    if (!b) {
        ggml_backend_buffer_free(buffer);
        return sl__fail_nomem(reterr, sizeof *b, "a buffer");
    }
    b->buffer = buffer;
    b->all.type = GGML_TYPE_I8;
    b->all.ne[0] = (int64_t)n_bytes;
    b->all.nb[0] = 1;
    for (int i = 1; i < GGML_MAX_DIMS; i++) {
        b->all.ne[i] = 1;
        b->all.nb[i] = (size_t)n_bytes;
    }
    enum ggml_status status =
            ggml_backend_tensor_alloc(buffer, &b->all, ggml_backend_buffer_get_base(buffer));
    if (status != GGML_STATUS_SUCCESS) {
        ggml_backend_buffer_free(buffer);
        sl__free(b);
        return sl__fail(reterr, SL_EDEVICE, "a buffer of %" PRIu64 " bytes cannot be used: %s",
                n_bytes, ggml_status_to_string(status));
    }
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    *ret_buffer = b;
    return 0;
}

static int fail_nomem(ggml_side *s, uint64_t n_bytes, sl_error *reterr)
{
    size_t n_free = 0;
    size_t n_total = 0;
    ggml_backend_dev_memory(s->dev, &n_free, &n_total);
    return sl__fail(reterr, SL_ENOMEM,
            "%s: out of memory: needed %" PRIu64
            " bytes for a buffer, it says that %zu of %zu are free",
            s->name, n_bytes, n_free, n_total);
}

static int side_alloc(void *self, uint64_t n_bytes, void **ret_buffer, sl_error *reterr)
{
    ggml_side *s = self;
    if (n_bytes > SIZE_MAX / 4) {
        return fail_nomem(s, n_bytes, reterr);
    }
    sl__mutex_lock(&s->lock);
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(s->type, (size_t)n_bytes);
    int r = buffer ? new_bytes(buffer, n_bytes, ret_buffer, reterr)
                   : fail_nomem(s, n_bytes, reterr);
    sl__mutex_unlock(&s->lock);
    return r;
}

static int side_wrap(
        void *self, const void *data, uint64_t n_bytes, void **ret_buffer, sl_error *reterr)
{
    ggml_side *s = self;
    /* ggml aborts on memory that is less aligned; beyond a CPU, drivers take whole pages. */
    size_t align = ggml_backend_dev_type(s->dev) == GGML_BACKEND_DEVICE_TYPE_CPU
                           ? ggml_backend_buft_get_alignment(s->type)
                           : sl__page_bytes();
    if ((uintptr_t)data % align != 0 || n_bytes > SIZE_MAX / 4) {
        return sl__fail(reterr, SL_EINVAL,
                "%s: memory at %p (%" PRIu64
                " bytes) cannot be used in place; it must be aligned to %zu "
                "bytes",
                s->name, data, n_bytes, align);
    }
    sl__mutex_lock(&s->lock);
    /* Only read: uploads to wrapped buffers are refused (device.c). */
    ggml_backend_buffer_t buffer = ggml_backend_dev_buffer_from_host_ptr(
            s->dev, (void *)(uintptr_t)data, (size_t)n_bytes, (size_t)n_bytes);
    int r = buffer ? new_bytes(buffer, n_bytes, ret_buffer, reterr)
                   : fail_nomem(s, n_bytes, reterr);
    sl__mutex_unlock(&s->lock);
    return r;
}

static int side_free(void *self, void *buffer, sl_error *reterr)
{
    (void)reterr;
    ggml_side *s = self;
    ggml_bytes *b = buffer;
    sl__mutex_lock(&s->lock);
    ggml_backend_buffer_free(b->buffer);
    sl__mutex_unlock(&s->lock);
    sl__free(b);
    return 0;
}

static void *side_host_data(void *self, void *buffer)
{
    (void)self;
    ggml_backend_buffer_t b = ((ggml_bytes *)buffer)->buffer;
    return ggml_backend_buffer_is_host(b) ? ggml_backend_buffer_get_base(b) : NULL;
}

static int side_upload(void *self, void *buffer, uint64_t offset, const void *src, size_t n_bytes,
        sl_error *reterr)
{
    (void)reterr;
    ggml_side *s = self;
    sl__mutex_lock(&s->lock);
    ggml_backend_tensor_set_async(
            s->queue, &((ggml_bytes *)buffer)->all, src, (size_t)offset, n_bytes);
    sl__mutex_unlock(&s->lock);
    return 0;
}

static int side_download(
        void *self, void *buffer, uint64_t offset, void *dst, size_t n_bytes, sl_error *reterr)
{
    (void)reterr;
    ggml_side *s = self;
    sl__mutex_lock(&s->lock);
    ggml_backend_synchronize(s->queue);
    ggml_backend_tensor_get(&((ggml_bytes *)buffer)->all, dst, (size_t)offset, n_bytes);
    sl__mutex_unlock(&s->lock);
    return 0;
}

static int side_synchronize(void *self, sl_error *reterr)
{
    (void)reterr;
    ggml_side *s = self;
    sl__mutex_lock(&s->lock);
    ggml_backend_synchronize(s->queue);
    sl__mutex_unlock(&s->lock);
    return 0;
}

static int side_event_create(void *self, void **ret_event, sl_error *reterr)
{
    ggml_side *s = self;
    ggml_mark *mark = sl__alloc(1, sizeof *mark);
    if (!mark) {
        return sl__fail_nomem(reterr, sizeof *mark, "an event");
    }
    if (s->caps.events) {
        sl__mutex_lock(&s->lock);
        mark->event = ggml_backend_event_new(s->dev);
        sl__mutex_unlock(&s->lock);
    }
    *ret_event = mark;
    return 0;
}

static int side_event_record(void *self, void *event, sl_error *reterr)
{
    (void)reterr;
    ggml_side *s = self;
    ggml_mark *mark = event;
    sl__mutex_lock(&s->lock);
    if (mark->event) {
        ggml_backend_event_record(mark->event, s->queue);
    }
    mark->is_recorded = true;
    sl__mutex_unlock(&s->lock);
    return 0;
}

static int side_event_wait(void *self, void *event, sl_error *reterr)
{
    (void)reterr;
    ggml_side *s = self;
    const ggml_mark *mark = event;
    sl__mutex_lock(&s->lock);
    if (mark->is_recorded && mark->event) {
        ggml_backend_event_synchronize(mark->event);
    } else if (mark->is_recorded) {
        ggml_backend_synchronize(s->queue);
    }
    sl__mutex_unlock(&s->lock);
    return 0;
}

static void side_event_free(void *self, void *event)
{
    ggml_side *s = self;
    ggml_mark *mark = event;
    if (mark->event) {
        sl__mutex_lock(&s->lock);
        ggml_backend_event_free(mark->event);
        sl__mutex_unlock(&s->lock);
    }
    sl__free(mark);
}

static int side_pinned_alloc(
        void *self, size_t n_bytes, void **ret_data, void **ret_impl, sl_error *reterr)
{
    ggml_side *s = self;
    sl__mutex_lock(&s->lock);
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(s->pinned_type, n_bytes);
    sl__mutex_unlock(&s->lock);
    /* Back ends fall back to plain memory without a word; the type of what came tells. */
    if (!buffer || ggml_backend_buffer_get_type(buffer) != s->pinned_type) {
        ggml_backend_buffer_free(buffer);
        return sl__fail(reterr, SL_ENOMEM, "%s: cannot pin %zu bytes", s->name, n_bytes);
    }
    *ret_data = ggml_backend_buffer_get_base(buffer);
    *ret_impl = buffer;
    return 0;
}

static void side_pinned_free(void *self, void *impl)
{
    ggml_side *s = self;
    sl__mutex_lock(&s->lock);
    ggml_backend_buffer_free(impl);
    sl__mutex_unlock(&s->lock);
}

static int side_register(
        void *self, const void *data, uint64_t n_bytes, void **ret_impl, sl_error *reterr)
{
    ggml_side *s = self;
    size_t page = sl__page_bytes();
    uintptr_t start = (uintptr_t)data / page * page;
    uint64_t end;
    if (!sl__align_up_u64((uintptr_t)data + n_bytes, page, &end) || end <= start) {
        return sl__fail(reterr, SL_EINVAL, "%s: %" PRIu64 " bytes at %p cannot be registered",
                s->name, n_bytes, data);
    }
    /* Without the lock: copies are queued meanwhile, and several threads register at once. */
    bool works = s->register_host((void *)start, (size_t)(end - start));
    if (!works) {
        return sl__fail(reterr, SL_EDEVICE,
                "%s: the driver does not register memory; with CUDA, set GGML_CUDA_REGISTER_HOST=1",
                s->name);
    }
    *ret_impl = (void *)start;
    return 0;
}

static void side_unregister(void *self, void *impl)
{
    ((ggml_side *)self)->unregister_host(impl);
}

static void side_destroy(void *self)
{
    ggml_side *s = self;
    ggml_backend_free(s->queue);
    sl__mutex_done(&s->lock);
    sl__free(s);
}

static const sl_device_ops side_ops = {
        .describe = side_describe,
        .alloc = side_alloc,
        .wrap = side_wrap,
        .free = side_free,
        .host_data = side_host_data,
        .upload = side_upload,
        .download = side_download,
        .synchronize = side_synchronize,
        .event_create = side_event_create,
        .event_record = side_event_record,
        .event_wait = side_event_wait,
        .event_free = side_event_free,
        .pinned_alloc = side_pinned_alloc,
        .pinned_free = side_pinned_free,
        .register_host = side_register,
        .unregister_host = side_unregister,
        .destroy = side_destroy,
};

int sl_ggml_create(struct ggml_backend_device *dev, sl_device **ret_device, sl_error *reterr)
{
    struct ggml_backend_dev_props props;
    ggml_side *s = sl__alloc(1, sizeof *s);
    if (!s) {
        return sl__fail_nomem(reterr, sizeof *s, "a device");
    }
    int r = sl__mutex_init(&s->lock, reterr);
    if (r < 0) {
        sl__free(s);
        return r;
    }
    ggml_backend_dev_get_props(dev, &props);
    s->dev = dev;
    s->caps = props.caps;
    s->type = ggml_backend_dev_buffer_type(dev);
    s->pinned_type = props.caps.host_buffer ? ggml_backend_dev_host_buffer_type(dev) : NULL;
    copy_lower(s->name, sizeof s->name, ggml_backend_dev_name(dev));
    get_function(
            dev, "ggml_backend_register_host_buffer", &s->register_host, sizeof s->register_host);
    get_function(dev, "ggml_backend_unregister_host_buffer", &s->unregister_host,
            sizeof s->unregister_host);
    s->queue = ggml_backend_dev_init(dev, NULL);
    r = s->queue ? sl_device_create(&side_ops, s, ret_device, reterr)
                 : sl__fail(reterr, SL_EDEVICE, "%s: the back end does not start", s->name);
    if (r < 0) {
        side_destroy(s);
    }
    return r;
}

int sl_ggml_open(const char *name, sl_device **ret_device, sl_error *reterr)
{
    char wanted[64];
    char found[64];
    char shown[80];
    char all[256] = "";
    size_t n_all = 0;
    copy_lower(wanted, sizeof wanted, name);
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        ggml_backend_dev_t dev = ggml_backend_dev_get(i);
        copy_lower(found, sizeof found, ggml_backend_dev_name(dev));
        if (strcmp(found, wanted) == 0) {
            return sl_ggml_create(dev, ret_device, reterr);
        }
        int n = snprintf(all + n_all, sizeof all - n_all, "%s%s", i > 0 ? ", " : "", found);
        n_all += n > 0 && (size_t)n < sizeof all - n_all ? (size_t)n : 0;
    }
    return sl__fail(reterr, SL_ENOENT, "device %s: there is none of this name; there are: %s",
            sl__quote(shown, sizeof shown, name, strlen(name)), all);
}

bool sl_ggml_is(const sl_device *device)
{
    return sl_device_get_ops(device) == &side_ops;
}

struct ggml_backend_device *sl_ggml_dev(const sl_device *device)
{
    return ((const ggml_side *)sl_device_get_self(device))->dev;
}

struct ggml_backend *sl_ggml_queue(const sl_device *device)
{
    return ((const ggml_side *)sl_device_get_self(device))->queue;
}

struct ggml_backend_buffer *sl_ggml_buffer(const sl_buffer *buffer)
{
    return ((const ggml_bytes *)sl_buffer_get_impl(buffer))->buffer;
}

void *sl_ggml_base(const sl_buffer *buffer)
{
    return ggml_backend_buffer_get_base(sl_ggml_buffer(buffer));
}

int sl_ggml_view_init(sl_buffer *buffer, sl_ggml_view *ret_view, sl_error *reterr)
{
    const char *name = sl_device_name(sl_buffer_device(buffer));
    size_t align = ggml_backend_buft_get_alignment(ggml_backend_cpu_buffer_type());
    void *data = sl_buffer_host_data(buffer);
    if (sl_ggml_is(sl_buffer_device(buffer))) {
        *ret_view = (sl_ggml_view){.buffer = sl_ggml_buffer(buffer), .base = sl_ggml_base(buffer)};
        return 0;
    }
    if (!data) {
        return sl__fail(
                reterr, SL_EUNSUPPORTED, "%s: ggml cannot reach buffers of this device", name);
    }
    if ((uintptr_t)data % align != 0) {
        return sl__fail(reterr, SL_EINVAL,
                "%s: a buffer at %p cannot hold tensors; ggml needs an alignment of %zu bytes",
                name, data, align);
    }
    *ret_view = (sl_ggml_view){
            .buffer = ggml_backend_cpu_buffer_from_ptr(data, (size_t)sl_buffer_size(buffer)),
            .base = data,
            .is_own = true,
    };
    ggml_backend_buffer_set_usage(ret_view->buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    return 0;
}

void sl_ggml_view_done(sl_ggml_view *view)
{
    if (view->is_own) {
        ggml_backend_buffer_free(view->buffer);
    }
    memset(view, 0, sizeof *view);
}

void sl_ggml_queue_wait(struct ggml_backend *compute, const sl_event *event)
{
    const ggml_mark *mark = sl_event_get_impl(event);
    ggml_side *s = sl_device_get_self(sl_event_device(event));
    sl__mutex_lock(&s->lock);
    if (mark->is_recorded && mark->event) {
        ggml_backend_event_wait(compute, mark->event);
    } else if (mark->is_recorded) {
        ggml_backend_synchronize(s->queue);
    }
    sl__mutex_unlock(&s->lock);
}
