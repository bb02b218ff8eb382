/*
 * The simulated device's own state, shared by its parts: sim.c (account, queue, script) and sim_ranges.c (memory
 * that the queue reads by itself).
 */
#ifndef SL_DEVICE_SIM_IMPL_H
#define SL_DEVICE_SIM_IMPL_H

#include "device/sim.h"
#include "device/sim_queue.h"

/* Memory that the queue reads by itself: pinned (ours) or registered (the caller's). */
typedef struct sl__sim_range {
    struct sl__sim_range *next;
    const void *data;
    uint64_t n_bytes;
    void *to_free;
} sl__sim_range;

typedef struct sl__sim {
    sl__sim_queue queue;
    sl__sim_spec spec;
    sl__sim_stats stats;
    sl__sim_range *ranges;
} sl__sim;

/*
 * Counts a call and lets it fail if the script says so: then nothing else may be changed. The caller holds the
 * lock, which a slow call releases meanwhile.
 */
int sl__sim_enter(sl__sim *s, sl__sim_call call, sl_error *reterr) SL_MUST_CHECK;

/* At least n_bytes of whole pages, or NULL; free() them. */
void *sl__sim_pages(uint64_t n_bytes);

/* Whether the queue may read these bytes by itself. The caller holds the lock. */
bool sl__sim_is_pinned(const sl__sim *s, const void *data, uint64_t n_bytes);

/* Of the table of functions. */
int sl__sim_pinned_alloc(
        void *self, size_t n_bytes, void **ret_data, void **ret_impl, sl_error *reterr);
int sl__sim_register(
        void *self, const void *data, uint64_t n_bytes, void **ret_impl, sl_error *reterr);
void sl__sim_remove_range(void *self, void *impl);

#endif
