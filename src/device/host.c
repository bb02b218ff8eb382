/*
 * The computer's own memory as a device: mappings are used in place, and what must be writable is page-aligned
 * heap. Copies are done when upload returns, so the queue is always empty and an event always has happened.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "os/os_process.h"
#include "sluice/device.h"

typedef struct host_buffer {
    unsigned char *data;
    void *to_free; /* NULL for a wrapped one */
} host_buffer;

static int host_describe(void *self, sl_device_info *ret, sl_error *reterr)
{
    (void)self;
    (void)reterr;
    *ret = (sl_device_info){
            .name = "host",
            .description = "memory of this computer, used in place",
            .kind = SL_DEVICE_HOST,
            .alignment = 64,
            .can_wrap = true,
            .is_unified = true,
            .can_query = true,
    };
    return 0;
}

static int new_host_buffer(void *data, void *to_free, void **ret_buffer, sl_error *reterr)
{
    host_buffer *b = sl__alloc(1, sizeof *b);
    if (!b) {
        return sl__fail_nomem(reterr, sizeof *b, "a buffer");
    }
    b->data = data;
    b->to_free = to_free;
    *ret_buffer = b;
    return 0;
}

static int host_alloc(void *self, uint64_t n_bytes, void **ret_buffer, sl_error *reterr)
{
    (void)self;
    uint64_t n_whole;
    size_t page = sl__page_bytes();
    void *data = NULL;
    if (sl__align_up_u64(n_bytes, page, &n_whole) && n_whole <= SIZE_MAX / 2) {
        data = aligned_alloc(page, (size_t)n_whole);
    }
    if (!data) {
        return sl__fail(reterr, SL_ENOMEM, "host: out of memory: needed %llu bytes for a buffer",
                (unsigned long long)n_bytes);
    }
    int r = new_host_buffer(data, data, ret_buffer, reterr);
    if (r < 0) {
        free(data);
    }
    return r;
}

static int host_wrap(
        void *self, const void *data, uint64_t n_bytes, void **ret_buffer, sl_error *reterr)
{
    (void)self;
    (void)n_bytes;
    /* The one place where const is dropped: a wrapped buffer refuses uploads (device.c). */
    return new_host_buffer((void *)(uintptr_t)data, NULL, ret_buffer, reterr);
}

static int host_free(void *self, void *buffer, sl_error *reterr)
{
    (void)self;
    (void)reterr;
    host_buffer *b = buffer;
    free(b->to_free);
    sl__free(b);
    return 0;
}

static void *host_host_data(void *self, void *buffer)
{
    (void)self;
    return ((host_buffer *)buffer)->data;
}

static int host_upload(void *self, void *buffer, uint64_t offset, const void *src, size_t n_bytes,
        sl_error *reterr)
{
    (void)self;
    (void)reterr;
    memcpy(((host_buffer *)buffer)->data + offset, src, n_bytes);
    return 0;
}

static int host_download(
        void *self, void *buffer, uint64_t offset, void *dst, size_t n_bytes, sl_error *reterr)
{
    (void)self;
    (void)reterr;
    memcpy(dst, ((host_buffer *)buffer)->data + offset, n_bytes);
    return 0;
}

static int host_synchronize(void *self, sl_error *reterr)
{
    (void)self;
    (void)reterr;
    return 0;
}

/* Events have nothing to remember; the device itself stands for each of them. */
static int host_event_create(void *self, void **ret_event, sl_error *reterr)
{
    (void)reterr;
    *ret_event = self;
    return 0;
}

static int host_event_done(void *self, void *event, sl_error *reterr)
{
    (void)self;
    (void)event;
    (void)reterr;
    return 0;
}

static int host_event_query(void *self, void *event, sl_error *reterr)
{
    (void)self;
    (void)event;
    (void)reterr;
    return 1;
}

static void host_event_free(void *self, void *event)
{
    (void)self;
    (void)event;
}

static const sl_device_ops host_ops = {
        .describe = host_describe,
        .alloc = host_alloc,
        .wrap = host_wrap,
        .free = host_free,
        .host_data = host_host_data,
        .upload = host_upload,
        .download = host_download,
        .synchronize = host_synchronize,
        .event_create = host_event_create,
        .event_record = host_event_done,
        .event_wait = host_event_done,
        .event_query = host_event_query,
        .event_free = host_event_free,
};

int sl_device_create_host(sl_device **ret_device, sl_error *reterr)
{
    /* There is no state; the table stands for the object, which must not be NULL for events. */
    static const char host = 0;
    return sl_device_create(&host_ops, (void *)(uintptr_t)&host, ret_device, reterr);
}
