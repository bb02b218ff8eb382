/*
 * The simulated device: host memory behind an account, a queue and a script of failures.
 *
 * One lock, the queue's, covers everything. Each operation first asks the script (sl__sim_enter); only then it
 * acts, so that a call that fails has changed nothing. What must not happen on a real device (memory freed under
 * a copy) is made harmless here and counted, for tests to see.
 */
#include "device/sim_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    SLOW_NS = 1000000000
};

typedef struct sim_buffer {
    unsigned char *data;
    uint64_t booked_bytes;
} sim_buffer;

typedef struct sim_event {
    uint64_t number; /* of the last copy before the mark */
} sim_event;

/* What the script says to this call; counts it. The caller holds the lock. */
static sl__sim_fault_kind next_fault(sl__sim *s, sl__sim_call call)
{
    uint64_t n = ++s->stats.n_calls[call];
    for (size_t i = 0; i < s->spec.n_faults; i++) {
        if (s->spec.faults[i].call == call && s->spec.faults[i].n == n) {
            return s->spec.faults[i].kind;
        }
    }
    return SL__SIM_FAULT_COUNT;
}

static int lose(sl__sim *s, sl_error *reterr)
{
    s->stats.is_lost = true;
    sl__sim_queue_drop_all(&s->queue);
    return sl__fail(reterr, SL_EDEVICE, "sim: the device is lost; free it and open it again");
}

static int fail_as_asked(sl__sim *s, sl__sim_call call, sl_error *reterr)
{
    int code = SL_EDEVICE;
    if (call == SL__SIM_ALLOC || call == SL__SIM_PIN) {
        code = SL_ENOMEM;
    } else if (call == SL__SIM_READ) {
        code = SL_EIO;
    }
    return sl__fail(reterr, code, "sim: call %" PRIu64 " of %s fails, as the device was told to",
            s->stats.n_calls[call], sl__sim_call_name(call));
}

int sl__sim_enter(sl__sim *s, sl__sim_call call, sl_error *reterr)
{
    sl__sim_fault_kind fault = next_fault(s, call);
    if (s->stats.is_lost || fault == SL__SIM_LOST) {
        return lose(s, reterr);
    }
    if (fault == SL__SIM_FAIL) {
        return fail_as_asked(s, call, reterr);
    }
    if (fault == SL__SIM_SLOW) {
        sl__sim_queue_delay(&s->queue, SLOW_NS);
    }
    return 0;
}

static sl__sim_verdict judge_copy(void *ud)
{
    sl__sim *s = ud;
    sl__sim_fault_kind fault = next_fault(s, SL__SIM_COPY);
    if (fault == SL__SIM_LOST) {
        lose(s, NULL);
    }
    if (s->stats.is_lost || fault == SL__SIM_FAIL) {
        return SL__SIM_COPY_FAILS;
    }
    return fault == SL__SIM_SLOW ? SL__SIM_COPY_IS_SLOW : SL__SIM_COPY_WORKS;
}

static int sim_describe(void *self, sl_device_info *ret, sl_error *reterr)
{
    sl__sim *s = self;
    sl__mutex_lock(&s->queue.lock);
    int r = s->stats.is_lost ? lose(s, reterr) : 0;
    *ret = (sl_device_info){
            .name = "sim",
            .kind = SL_DEVICE_SIM,
            .total_bytes = s->spec.n_bytes,
            .free_bytes = s->spec.n_bytes - s->stats.live_bytes,
            .max_alloc_bytes = s->spec.max_alloc_bytes,
            .alignment = s->spec.alignment,
            .is_async = true,
            .has_pinned = s->spec.has_pinned,
            .can_register = s->spec.can_register,
            .can_query = true,
    };
    snprintf(ret->description, sizeof ret->description,
            "simulated device: %" PRIu64 " bytes, link of %" PRIu64 " bytes/s (0 = no limit)",
            s->spec.n_bytes, s->spec.link_bytes_s);
    sl__mutex_unlock(&s->queue.lock);
    return r;
}

/* Books the bytes of a new buffer, before its memory is asked for. The caller holds the lock. */
static int book(sl__sim *s, uint64_t n_bytes, uint64_t *ret_booked, sl_error *reterr)
{
    uint64_t booked;
    uint64_t n_free = s->spec.n_bytes - s->stats.live_bytes;
    if (!sl__align_up_u64(n_bytes, s->spec.alignment, &booked) || booked > n_free) {
        return sl__fail(reterr, SL_ENOMEM,
                "sim: out of memory: needed %" PRIu64 " bytes for a buffer, %" PRIu64 " of %" PRIu64
                " are free",
                n_bytes, n_free, s->spec.n_bytes);
    }
    s->stats.live_bytes += booked;
    if (s->stats.live_bytes > s->stats.peak_bytes) {
        s->stats.peak_bytes = s->stats.live_bytes;
    }
    *ret_booked = booked;
    return 0;
}

static int sim_alloc(void *self, uint64_t n_bytes, void **ret_buffer, sl_error *reterr)
{
    sl__sim *s = self;
    uint64_t booked = 0;
    sl__mutex_lock(&s->queue.lock);
    int r = sl__sim_enter(s, SL__SIM_ALLOC, reterr);
    if (r == 0) {
        r = book(s, n_bytes, &booked, reterr);
    }
    sl__mutex_unlock(&s->queue.lock);
    if (r < 0) {
        return r;
    }
    sim_buffer *b = sl__alloc(1, sizeof *b);
    unsigned char *data = sl__sim_take_pages(s, booked);
    if (!b || !data) {
        sl__free(b);
        free(data);
        sl__mutex_lock(&s->queue.lock);
        s->stats.live_bytes -= booked;
        sl__mutex_unlock(&s->queue.lock);
        return sl__fail_nomem(reterr, (size_t)n_bytes, "a buffer of the simulated device");
    }
    if (s->spec.poisons) {
        memset(data, 0xA5, (size_t)booked);
    }
    *b = (sim_buffer){.data = data, .booked_bytes = booked};
    *ret_buffer = b;
    return 0;
}

static int sim_free(void *self, void *buffer, sl_error *reterr)
{
    sl__sim *s = self;
    sim_buffer *b = buffer;
    sl__mutex_lock(&s->queue.lock);
    size_t n_dropped = sl__sim_queue_drop_buffer(&s->queue, b);
    s->stats.n_misuses += n_dropped;
    int r = sl__sim_enter(s, SL__SIM_FREE, reterr);
    if (r == 0) {
        s->stats.live_bytes -= b->booked_bytes;
    } else {
        s->stats.lost_bytes += b->booked_bytes;
    }
    sl__mutex_unlock(&s->queue.lock);
    if (s->spec.poisons) {
        memset(b->data, 0xDD, (size_t)b->booked_bytes);
    }
    sl__sim_give_pages(s, b->data, b->booked_bytes);
    sl__free(b);
    if (r == 0 && n_dropped > 0) {
        r = sl__fail(
                reterr, SL_EDEVICE, "sim: a buffer was freed under %zu copies to it", n_dropped);
    }
    return r;
}

static void *sim_host_data(void *self, void *buffer)
{
    (void)self;
    return ((sim_buffer *)buffer)->data;
}

static int sim_upload(void *self, void *buffer, uint64_t offset, const void *src, size_t n_bytes,
        sl_error *reterr)
{
    sl__sim *s = self;
    sim_buffer *b = buffer;
    const sl__sim_copy copy = {
            .buffer = b, .dst = b->data + offset, .src = src, .n_bytes = n_bytes};
    sl__mutex_lock(&s->queue.lock);
    int r = sl__sim_enter(s, SL__SIM_UPLOAD, reterr);
    if (r == 0) {
        bool is_plain = !sl__sim_is_pinned(s, src, n_bytes);
        uint64_t number = sl__sim_queue_push(&s->queue, copy);
        if (is_plain) {
            s->stats.n_plain_uploads++;
            sl__sim_queue_wait(&s->queue, number);
        }
    }
    sl__mutex_unlock(&s->queue.lock);
    return r;
}

/* Waits for a copy and all before it. The caller holds the lock. */
static int wait_for(sl__sim *s, uint64_t number, sl_error *reterr)
{
    sl__sim_queue_wait(&s->queue, number);
    if (s->queue.first_failed > 0 && s->queue.first_failed <= number) {
        return s->stats.is_lost ? lose(s, reterr)
                                : sl__fail(reterr, SL_EDEVICE, "sim: a copy to the device failed");
    }
    return 0;
}

static int sim_synchronize(void *self, sl_error *reterr)
{
    sl__sim *s = self;
    sl__mutex_lock(&s->queue.lock);
    int r = wait_for(s, s->queue.n_ever, reterr);
    s->queue.first_failed = 0;
    if (r == 0) {
        r = sl__sim_enter(s, SL__SIM_WAIT, reterr);
    }
    sl__mutex_unlock(&s->queue.lock);
    return r;
}

static int sim_download(
        void *self, void *buffer, uint64_t offset, void *dst, size_t n_bytes, sl_error *reterr)
{
    sl__sim *s = self;
    const sim_buffer *b = buffer;
    sl__mutex_lock(&s->queue.lock);
    int r = wait_for(s, s->queue.n_ever, reterr);
    if (r == 0 && s->stats.is_lost) {
        r = lose(s, reterr);
    }
    sl__mutex_unlock(&s->queue.lock);
    if (r == 0) {
        memcpy(dst, b->data + offset, n_bytes);
    }
    return r;
}

static int sim_event_create(void *self, void **ret_event, sl_error *reterr)
{
    sl__sim *s = self;
    sim_event *e = sl__alloc(1, sizeof *e);
    if (!e) {
        return sl__fail_nomem(reterr, sizeof *e, "an event");
    }
    sl__mutex_lock(&s->queue.lock);
    int r = sl__sim_enter(s, SL__SIM_EVENT, reterr);
    s->stats.n_events += r == 0 ? 1 : 0;
    sl__mutex_unlock(&s->queue.lock);
    if (r < 0) {
        sl__free(e);
        return r;
    }
    *ret_event = e;
    return 0;
}

static int sim_event_record(void *self, void *event, sl_error *reterr)
{
    sl__sim *s = self;
    sl__mutex_lock(&s->queue.lock);
    int r = sl__sim_enter(s, SL__SIM_RECORD, reterr);
    if (r == 0) {
        ((sim_event *)event)->number = s->queue.n_ever;
    }
    sl__mutex_unlock(&s->queue.lock);
    return r;
}

static int sim_event_wait(void *self, void *event, sl_error *reterr)
{
    sl__sim *s = self;
    sl__mutex_lock(&s->queue.lock);
    int r = wait_for(s, ((sim_event *)event)->number, reterr);
    if (r == 0) {
        r = sl__sim_enter(s, SL__SIM_WAIT, reterr);
    }
    sl__mutex_unlock(&s->queue.lock);
    return r;
}

static int sim_event_query(void *self, void *event, sl_error *reterr)
{
    sl__sim *s = self;
    int r = 0;
    sl__mutex_lock(&s->queue.lock);
    uint64_t number = ((sim_event *)event)->number;
    if (sl__sim_queue_is_done(&s->queue, number)) {
        r = wait_for(s, number, reterr);
        r = r == 0 ? 1 : r;
    } else if (s->stats.is_lost) {
        r = wait_for(s, number, reterr);
    }
    sl__mutex_unlock(&s->queue.lock);
    return r;
}

static void sim_event_free(void *self, void *event)
{
    sl__sim *s = self;
    sl__mutex_lock(&s->queue.lock);
    s->stats.n_events--;
    sl__mutex_unlock(&s->queue.lock);
    sl__free(event);
}

static void sim_destroy(void *self)
{
    sl__sim *s = self;
    sl__sim_queue_done(&s->queue);
    sl__sim_free_spares(s);
    sl__free(s);
}

static const sl_device_ops sim_ops = {
        .describe = sim_describe,
        .alloc = sim_alloc,
        .free = sim_free,
        .host_data = sim_host_data,
        .upload = sim_upload,
        .download = sim_download,
        .synchronize = sim_synchronize,
        .event_create = sim_event_create,
        .event_record = sim_event_record,
        .event_wait = sim_event_wait,
        .event_query = sim_event_query,
        .event_free = sim_event_free,
        .pinned_alloc = sl__sim_pinned_alloc,
        .pinned_free = sl__sim_remove_range,
        .register_host = sl__sim_register,
        .unregister_host = sl__sim_remove_range,
        .destroy = sim_destroy,
};

int sl__sim_create(const sl__sim_spec *spec, sl_device **ret_device, sl_error *reterr)
{
    sl__sim *s = sl__alloc(1, sizeof *s);
    if (!s) {
        return sl__fail_nomem(reterr, sizeof *s, "a simulated device");
    }
    s->spec = *spec;
    s->queue.link_bytes_s = spec->link_bytes_s;
    s->queue.has_virtual_clock = spec->has_virtual_clock;
    s->queue.is_stepped = spec->is_stepped;
    s->queue.judge = judge_copy;
    s->queue.ud = s;
    int r = sl__sim_queue_init(&s->queue, reterr);
    if (r < 0) {
        sl__free(s);
        return r;
    }
    r = sl_device_create(&sim_ops, s, ret_device, reterr);
    if (r < 0) {
        sim_destroy(s);
    }
    return r;
}

int sl_device_create_sim(const char *spec, sl_device **ret_device, sl_error *reterr)
{
    sl__sim_spec parsed;
    int r = sl__sim_parse(spec, &parsed, reterr);
    return r < 0 ? r : sl__sim_create(&parsed, ret_device, reterr);
}

bool sl__sim_is(const sl_device *device)
{
    return sl_device_get_ops(device) == &sim_ops;
}

void sl__sim_get_stats(const sl_device *device, sl__sim_stats *ret)
{
    sl__sim *s = sl_device_get_self(device);
    sl__mutex_lock(&s->queue.lock);
    *ret = s->stats;
    ret->copied_bytes = s->queue.copied_bytes;
    ret->n_queued = s->queue.n;
    ret->now_ns = s->queue.now_ns;
    sl__mutex_unlock(&s->queue.lock);
}

void sl__sim_set_faults(sl_device *device, const sl__sim_fault *faults, size_t n_faults)
{
    sl__sim *s = sl_device_get_self(device);
    sl__mutex_lock(&s->queue.lock);
    s->spec.n_faults = n_faults < SL__SIM_MAX_FAULTS ? n_faults : SL__SIM_MAX_FAULTS;
    for (size_t i = 0; i < s->spec.n_faults; i++) {
        s->spec.faults[i] = faults[i];
    }
    memset(s->stats.n_calls, 0, sizeof s->stats.n_calls);
    s->stats.is_lost = false;
    sl__mutex_unlock(&s->queue.lock);
}

size_t sl__sim_step(sl_device *device, size_t n)
{
    sl__sim *s = sl_device_get_self(device);
    size_t n_done = 0;
    sl__mutex_lock(&s->queue.lock);
    while (n_done < n && sl__sim_queue_step(&s->queue)) {
        n_done++;
    }
    sl__mutex_unlock(&s->queue.lock);
    return n_done;
}

int sl__sim_read(void *sim_device, const sl_map *map, void *buf, uint64_t offset, size_t n_bytes,
        sl_error *reterr)
{
    sl__sim *s = sl_device_get_self(sim_device);
    sl__mutex_lock(&s->queue.lock);
    sl__sim_fault_kind fault = next_fault(s, SL__SIM_READ);
    if (fault == SL__SIM_SLOW) {
        sl__sim_queue_delay(&s->queue, SLOW_NS);
    }
    int r = fault == SL__SIM_FAIL ? fail_as_asked(s, SL__SIM_READ, reterr) : 0;
    if (fault == SL__SIM_LOST) {
        lose(s, NULL); /* the file is still there: only the device's next call fails */
    }
    sl__mutex_unlock(&s->queue.lock);
    if (fault == SL__SIM_SHORT) {
        return sl__fail_at(reterr, SL_ECHANGED, offset,
                "%s: the file ends at %" PRIu64 ", as the device was told to say", sl_map_path(map),
                offset);
    }
    return r < 0 ? r : sl_map_pread(map, buf, offset, n_bytes, reterr);
}
