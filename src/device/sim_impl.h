/*
 * The simulated device's own state, shared by its parts: sim.c (account, queue, script) and sim_ranges.c (pages
 * of buffers, and memory that the queue reads by itself).
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

/* Pages of a freed buffer. */
typedef struct sl__sim_spare {
    struct sl__sim_spare *next;
    uint64_t n_bytes;
} sl__sim_spare;

typedef struct sl__sim {
    sl__sim_queue queue;
    sl__sim_spec spec;
    sl__sim_stats stats;
    sl__sim_range *ranges;
    sl__sim_spare *spares; /* kept pages; each begins with its record */
} sl__sim;

/*
 * Counts a call and lets it fail if the script says so: then nothing else may be changed. The caller holds the
 * lock, which a slow call releases meanwhile.
 */
int sl__sim_enter(sl__sim *s, sl__sim_call call, sl_error *reterr) SL_MUST_CHECK;

/* The pages of a buffer: kept ones of that size, or new ones, or NULL. The caller does not hold the lock. */
void *sl__sim_take_pages(sl__sim *s, uint64_t n_bytes);
void sl__sim_give_pages(sl__sim *s, void *data, uint64_t n_bytes);
void sl__sim_free_spares(sl__sim *s);

/* Whether the queue may read these bytes by itself. The caller holds the lock. */
bool sl__sim_is_pinned(const sl__sim *s, const void *data, uint64_t n_bytes);

/* Of the table of functions. */
int sl__sim_pinned_alloc(
        void *self, size_t n_bytes, void **ret_data, void **ret_impl, sl_error *reterr);
int sl__sim_register(
        void *self, const void *data, uint64_t n_bytes, void **ret_impl, sl_error *reterr);
void sl__sim_remove_range(void *self, void *impl);

#endif
