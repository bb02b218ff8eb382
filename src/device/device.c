/*
 * The cover over a device's table of functions: it checks what callers pass, so that no device has to, and it
 * checks what devices return, so that no caller meets a success without an object. Everything else is the
 * device's own. The count of live objects finds a device that is freed before what was made from it.
 */
#include "sluice/device.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "os/os_process.h"

struct sl_device {
    const sl_device_ops *ops;
    void *self;
    sl_device_info info; /* as of creation: everything in it but the free bytes stays */
    atomic_size_t n_objects;
};

struct sl_buffer {
    sl_device *device;
    void *impl;
    uint64_t n_bytes;
    bool is_wrapped;
};

struct sl_event {
    sl_device *device;
    void *impl;
};

struct sl_registration {
    sl_device *device;
    void *impl;
};

const char *sl_device_kind_name(sl_device_kind kind)
{
    static const char *const names[SL_DEVICE_KIND_COUNT] = {
            [SL_DEVICE_HOST] = "host",
            [SL_DEVICE_GPU] = "gpu",
            [SL_DEVICE_INTEGRATED] = "integrated",
            [SL_DEVICE_OTHER] = "other",
            [SL_DEVICE_SIM] = "sim",
    };
    unsigned i = (unsigned)kind;
    return i < SL_DEVICE_KIND_COUNT ? names[i] : "unknown";
}

static bool has_all(const sl_device_ops *ops)
{
    bool has_needed = ops->describe && ops->alloc && ops->free && ops->upload && ops->download &&
                      ops->synchronize && ops->event_create && ops->event_record &&
                      ops->event_wait && ops->event_free;
    bool has_pairs =
            !ops->pinned_alloc == !ops->pinned_free && !ops->register_host == !ops->unregister_host;
    return has_needed && has_pairs;
}

/* Names come from drivers: they are shown on terminals and compared with flags. */
static void clean_text(char *text, size_t n_bytes)
{
    text[n_bytes - 1] = '\0';
    for (char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7F) {
            *c = ' ';
        }
    }
}

static int describe(
        const sl_device_ops *ops, void *self, sl_device_info *ret_info, sl_error *reterr)
{
    sl_device_info info = {0};
    int r = ops->describe(self, &info, reterr);
    if (r < 0) {
        return r;
    }
    clean_text(info.name, sizeof info.name);
    clean_text(info.description, sizeof info.description);
    if (info.name[0] == '\0' || info.alignment == 0 ||
            (info.alignment & (info.alignment - 1)) != 0) {
        return sl__fail(reterr, SL_EINVAL,
                "a device describes itself with the name '%s' and the alignment %" PRIu64
                "; a name and a power of two are needed",
                info.name, info.alignment);
    }
    info.can_wrap = info.can_wrap && ops->wrap;
    info.has_pinned = info.has_pinned && ops->pinned_alloc;
    info.can_register = info.can_register && ops->register_host;
    info.can_query = info.can_query && ops->event_query;
    *ret_info = info;
    return 0;
}

int sl_device_create(const sl_device_ops *ops, void *self, sl_device **ret_device, sl_error *reterr)
{
    if (!ops || !has_all(ops)) {
        return sl__fail(
                reterr, SL_EINVAL, "a device's table of functions lacks one that is not optional");
    }
    sl_device *device = sl__alloc(1, sizeof *device);
    if (!device) {
        return sl__fail_nomem(reterr, sizeof *device, "a device");
    }
    int r = describe(ops, self, &device->info, reterr);
    if (r < 0) {
        sl__free(device);
        return r;
    }
    device->ops = ops;
    device->self = self;
    atomic_init(&device->n_objects, 0);
    *ret_device = device;
    return 0;
}

void sl_device_free(sl_device **device)
{
    if (!device || !*device) {
        return;
    }
    sl_device *d = *device;
    *device = NULL;
    assert(atomic_load(&d->n_objects) == 0);
    d->ops->synchronize(d->self, NULL);
    if (d->ops->destroy) {
        d->ops->destroy(d->self);
    }
    sl__free(d);
}

int sl_device_describe(sl_device *device, sl_device_info *ret_info, sl_error *reterr)
{
    return describe(device->ops, device->self, ret_info, reterr);
}

const char *sl_device_name(const sl_device *device)
{
    return device->info.name;
}

const sl_device_ops *sl_device_get_ops(const sl_device *device)
{
    return device->ops;
}

void *sl_device_get_self(const sl_device *device)
{
    return device->self;
}

int sl_device_synchronize(sl_device *device, sl_error *reterr)
{
    return device->ops->synchronize(device->self, reterr);
}

/* A success that has no object, or its failure. */
static int check_object(
        const sl_device *device, int r, const void *impl, const char *what, sl_error *reterr)
{
    if (r >= 0 && !impl) {
        return sl__fail(reterr, SL_EDEVICE, "%s: says that it made %s and returns none",
                device->info.name, what);
    }
    return r;
}

static int check_size(const sl_device *device, uint64_t n_bytes, sl_error *reterr)
{
    uint64_t max = device->info.max_alloc_bytes;
    if (n_bytes == 0) {
        return sl__fail(reterr, SL_EINVAL, "%s: a buffer of 0 bytes was asked for; at least 1",
                device->info.name);
    }
    if (max > 0 && n_bytes > max) {
        return sl__fail(reterr, SL_ELIMIT,
                "%s: a buffer of %" PRIu64 " bytes was asked for; its largest is %" PRIu64
                "; split it",
                device->info.name, n_bytes, max);
    }
    return 0;
}

/* Hands the buffer out, or frees it if the device made none. */
static int finish_buffer(sl_buffer *buffer, int r, sl_buffer **ret_buffer, sl_error *reterr)
{
    r = check_object(buffer->device, r, buffer->impl, "a buffer", reterr);
    if (r < 0) {
        sl__free(buffer);
        return r;
    }
    atomic_fetch_add(&buffer->device->n_objects, 1);
    *ret_buffer = buffer;
    return 0;
}

int sl_buffer_alloc(sl_device *device, uint64_t n_bytes, sl_buffer **ret_buffer, sl_error *reterr)
{
    int r = check_size(device, n_bytes, reterr);
    if (r < 0) {
        return r;
    }
    sl_buffer *buffer = sl__alloc(1, sizeof *buffer);
    if (!buffer) {
        return sl__fail_nomem(reterr, sizeof *buffer, "a buffer");
    }
    *buffer = (sl_buffer){.device = device, .n_bytes = n_bytes};
    r = device->ops->alloc(device->self, n_bytes, &buffer->impl, reterr);
    return finish_buffer(buffer, r, ret_buffer, reterr);
}

int sl_buffer_wrap(sl_device *device, const void *data, uint64_t n_bytes, sl_buffer **ret_buffer,
        sl_error *reterr)
{
    if (!device->info.can_wrap) {
        return sl__fail(reterr, SL_EUNSUPPORTED,
                "%s: cannot use host memory in place; allocate a buffer and upload to it",
                device->info.name);
    }
    int r = check_size(device, n_bytes, reterr);
    if (r < 0) {
        return r;
    }
    sl_buffer *buffer = sl__alloc(1, sizeof *buffer);
    if (!buffer) {
        return sl__fail_nomem(reterr, sizeof *buffer, "a buffer");
    }
    *buffer = (sl_buffer){.device = device, .n_bytes = n_bytes, .is_wrapped = true};
    r = device->ops->wrap(device->self, data, n_bytes, &buffer->impl, reterr);
    return finish_buffer(buffer, r, ret_buffer, reterr);
}

int sl_buffer_free(sl_buffer **buffer, sl_error *reterr)
{
    if (!buffer || !*buffer) {
        return 0;
    }
    sl_buffer *b = *buffer;
    *buffer = NULL;
    int r = b->device->ops->free(b->device->self, b->impl, reterr);
    atomic_fetch_sub(&b->device->n_objects, 1);
    sl__free(b);
    return r;
}

uint64_t sl_buffer_size(const sl_buffer *buffer)
{
    return buffer->n_bytes;
}

sl_device *sl_buffer_device(const sl_buffer *buffer)
{
    return buffer->device;
}

void *sl_buffer_get_impl(const sl_buffer *buffer)
{
    return buffer->impl;
}

void *sl_buffer_host_data(const sl_buffer *buffer)
{
    const sl_device_ops *ops = buffer->device->ops;
    return ops->host_data ? ops->host_data(buffer->device->self, buffer->impl) : NULL;
}

static int check_range(const sl_buffer *buffer, uint64_t offset, size_t n_bytes, sl_error *reterr)
{
    if (offset > buffer->n_bytes || n_bytes > buffer->n_bytes - offset) {
        return sl__fail(reterr, SL_EINVAL,
                "%s: a copy of %zu bytes at %" PRIu64 " of a buffer of %" PRIu64 " bytes",
                buffer->device->info.name, n_bytes, offset, buffer->n_bytes);
    }
    return 0;
}

int sl_buffer_upload(
        sl_buffer *buffer, uint64_t offset, const void *src, size_t n_bytes, sl_error *reterr)
{
    sl_device *device = buffer->device;
    int r = check_range(buffer, offset, n_bytes, reterr);
    if (r < 0 || n_bytes == 0) {
        return r;
    }
    if (buffer->is_wrapped) {
        return sl__fail(reterr, SL_EINVAL, "%s: a buffer over memory of others is only read",
                device->info.name);
    }
    return device->ops->upload(device->self, buffer->impl, offset, src, n_bytes, reterr);
}

int sl_buffer_download(
        sl_buffer *buffer, uint64_t offset, void *dst, size_t n_bytes, sl_error *reterr)
{
    sl_device *device = buffer->device;
    int r = check_range(buffer, offset, n_bytes, reterr);
    if (r < 0 || n_bytes == 0) {
        return r;
    }
    return device->ops->download(device->self, buffer->impl, offset, dst, n_bytes, reterr);
}

int sl_event_create(sl_device *device, sl_event **ret_event, sl_error *reterr)
{
    sl_event *event = sl__alloc(1, sizeof *event);
    if (!event) {
        return sl__fail_nomem(reterr, sizeof *event, "an event");
    }
    event->device = device;
    int r = device->ops->event_create(device->self, &event->impl, reterr);
    r = check_object(device, r, event->impl, "an event", reterr);
    if (r < 0) {
        sl__free(event);
        return r;
    }
    atomic_fetch_add(&device->n_objects, 1);
    *ret_event = event;
    return 0;
}

int sl_event_record(sl_event *event, sl_error *reterr)
{
    return event->device->ops->event_record(event->device->self, event->impl, reterr);
}

int sl_event_wait(sl_event *event, sl_error *reterr)
{
    return event->device->ops->event_wait(event->device->self, event->impl, reterr);
}

int sl_event_query(sl_event *event, sl_error *reterr)
{
    sl_device *device = event->device;
    if (device->info.can_query) {
        return device->ops->event_query(device->self, event->impl, reterr);
    }
    int r = sl_event_wait(event, reterr);
    return r < 0 ? r : 1;
}

void sl_event_free(sl_event **event)
{
    if (event && *event) {
        sl_device *device = (*event)->device;
        device->ops->event_free(device->self, (*event)->impl);
        atomic_fetch_sub(&device->n_objects, 1);
        sl__free(*event);
        *event = NULL;
    }
}

sl_device *sl_event_device(const sl_event *event)
{
    return event->device;
}

void *sl_event_get_impl(const sl_event *event)
{
    return event->impl;
}

static void *plain_pages(size_t n_bytes)
{
    /* The first byte of a page aligned block is touched by whoever fills it, not here. */
    size_t page = sl__page_bytes();
    size_t n_pages = n_bytes / page + (n_bytes % page != 0);
    return n_pages > SIZE_MAX / page ? NULL : aligned_alloc(page, n_pages * page);
}

int sl_pinned_alloc(sl_device *device, size_t n_bytes, sl_pinned *ret, sl_error *reterr)
{
    sl_pinned pinned = {.n_bytes = n_bytes, .device = device};
    if (n_bytes == 0) {
        return sl__fail(reterr, SL_EINVAL, "%s: 0 bytes of pinned memory were asked for",
                device->info.name);
    }
    if (device->info.has_pinned) {
        int r = device->ops->pinned_alloc(device->self, n_bytes, &pinned.data, &pinned.impl, NULL);
        pinned.is_pinned = r >= 0 && pinned.data && pinned.impl;
    }
    if (!pinned.is_pinned) {
        pinned.impl = NULL;
        pinned.data = plain_pages(n_bytes);
    }
    if (!pinned.data) {
        return sl__fail_nomem(reterr, n_bytes, "copies to a device");
    }
    atomic_fetch_add(&device->n_objects, 1);
    *ret = pinned;
    return 0;
}

void sl_pinned_free(sl_pinned *pinned)
{
    if (!pinned || !pinned->data) {
        return;
    }
    if (pinned->is_pinned) {
        pinned->device->ops->pinned_free(pinned->device->self, pinned->impl);
    } else {
        free(pinned->data);
    }
    atomic_fetch_sub(&pinned->device->n_objects, 1);
    memset(pinned, 0, sizeof *pinned);
}

int sl_register(sl_device *device, const void *data, uint64_t n_bytes,
        sl_registration **ret_registration, sl_error *reterr)
{
    if (!device->info.can_register) {
        return sl__fail(reterr, SL_EUNSUPPORTED,
                "%s: cannot copy from memory that it did not allocate", device->info.name);
    }
    if (n_bytes == 0) {
        return sl__fail(reterr, SL_EINVAL, "%s: 0 bytes were to be registered", device->info.name);
    }
    sl_registration *registration = sl__alloc(1, sizeof *registration);
    if (!registration) {
        return sl__fail_nomem(reterr, sizeof *registration, "a registration");
    }
    registration->device = device;
    int r = device->ops->register_host(device->self, data, n_bytes, &registration->impl, reterr);
    r = check_object(device, r, registration->impl, "a registration", reterr);
    if (r < 0) {
        sl__free(registration);
        return r;
    }
    atomic_fetch_add(&device->n_objects, 1);
    *ret_registration = registration;
    return 0;
}

void sl_unregister(sl_registration **registration)
{
    if (registration && *registration) {
        sl_device *device = (*registration)->device;
        device->ops->unregister_host(device->self, (*registration)->impl);
        atomic_fetch_sub(&device->n_objects, 1);
        sl__free(*registration);
        *registration = NULL;
    }
}
