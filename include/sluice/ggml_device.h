/*
 * Any ggml back end as a device, through ggml's public C API: CPU, CUDA, Vulkan, Metal, SYCL, RPC.
 *
 * This is the library sluice_ggml, apart from libsluice, which knows nothing of ggml; it links with the static
 * libsluice. ggml's own headers are not needed here, only by who binds tensors to buffers. sluice.h leaves this
 * header out.
 *
 * Does not promise: errors where ggml has none. A back end that fails in a copy or a wait ends the process
 * (CUDA) or throws (Vulkan); only allocations are checked by ggml. Free bytes are what the back end says.
 *
 * A device has one queue: an instance of the back end of its own, which copies and computes nothing else.
 * Order it with an instance that computes by sl_ggml_queue_wait.
 *
 * Threads: as sluice/device.h says. Events are waited for under the lock of the queue, since some back ends
 * change the queue in it: a wait delays uploads of other threads.
 */
#ifndef SLUICE_GGML_DEVICE_H
#define SLUICE_GGML_DEVICE_H

#include <stdbool.h>

#include "sluice/api.h"
#include "sluice/device.h"
#include "sluice/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ggml_backend;
struct ggml_backend_buffer;
struct ggml_backend_device;

/*
 * Wraps a device of ggml's registry. Its name is ggml's in lower case ("cpu", "cuda0", "vulkan1"). For a CPU the
 * total and free bytes are unknown, as for every device in the computer's memory: the RAM budget knows better.
 * Errors: SL_EDEVICE (the back end does not start), SL_ENOMEM.
 */
SL_API int sl_ggml_create(
        struct ggml_backend_device *dev, sl_device **ret_device, sl_error *reterr);

/*
 * Finds a device of ggml's registry by that name, in any case, and wraps it.
 * Errors: SL_ENOENT names those that there are; those of sl_ggml_create.
 */
SL_API int sl_ggml_open(const char *name, sl_device **ret_device, sl_error *reterr);

/* Whether the device was made here. All functions but sl_ggml_view_init are for those and their buffers alone. */
SL_API bool sl_ggml_is(const sl_device *device);

SL_API struct ggml_backend_device *sl_ggml_dev(const sl_device *device);

/* The instance whose queue the copies are in. Owned by the device. */
SL_API struct ggml_backend *sl_ggml_queue(const sl_device *device);

/*
 * The buffer that tensors are bound to (ggml_backend_tensor_alloc), at addresses from sl_ggml_base on. Owned by
 * the sl_buffer; its usage is "weights".
 */
SL_API struct ggml_backend_buffer *sl_ggml_buffer(const sl_buffer *buffer);
SL_API void *sl_ggml_base(const sl_buffer *buffer);

/*
 * A buffer of any device in the eyes of ggml: one made here is what it is; one in host memory (host, sim) shows
 * as a CPU buffer over the same bytes, so that ggml's CPU back end computes on them.
 */
typedef struct sl_ggml_view {
    struct ggml_backend_buffer *buffer;
    void *base;
    bool is_own; /* made for the view */
} sl_ggml_view;

/*
 * Lifetime: done before the sl_buffer is freed, and no tensor is used any more then.
 * Errors: SL_EUNSUPPORTED (the host cannot reach the buffer), SL_EINVAL (less aligned than ggml needs).
 */
SL_API int sl_ggml_view_init(sl_buffer *buffer, sl_ggml_view *ret_view, sl_error *reterr);

/* Zeroes *view. Accepts zeroed memory. */
SL_API void sl_ggml_view_done(sl_ggml_view *view);

/*
 * Lets what is queued in `compute`, an instance of the same back end, from now on wait for the event. Where the
 * back end has no events, waits itself. Called by the thread that uses `compute`.
 */
SL_API void sl_ggml_queue_wait(struct ggml_backend *compute, const sl_event *event);

#ifdef __cplusplus
}
#endif

#endif
