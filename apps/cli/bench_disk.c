#include "bench_disk.h"

#include <string.h>

#include "base/mem.h"
#include "device/transfer_walk.h"
#include "os/os_thread.h"

enum {
    READ_BYTES =
            1 << 20 /* of one read; 4 and 16 MiB leave the processor's cache, and were slower */
};

typedef struct reader {
    bench_disk *disk;
    unsigned char *memory; /* READ_BYTES */
    sl__thread thread;     /* not of the first one, which is the caller */
} reader;

struct bench_disk {
    reader *readers;
    size_t n_readers;
    unsigned char *memory;
    sl__mutex lock;
    bool has_lock;

    /* The run; the last three under the lock. */
    const sl__transfer_hooks *hooks;
    sl__walk walk;
    sl__cursor cursor;
    int status;
    sl_error error; /* if status < 0 */
};

int bench_disk_create(size_t n_threads, bench_disk **ret_disk, sl_error *reterr)
{
    bench_disk *d = sl__alloc(1, sizeof *d);
    if (!d) {
        return sl__fail_nomem(reterr, sizeof *d, "the readers");
    }
    d->readers = sl__alloc(n_threads, sizeof *d->readers);
    d->memory = sl__alloc(n_threads, READ_BYTES);
    d->n_readers = n_threads;
    int r = d->readers && d->memory
                    ? sl__mutex_init(&d->lock, reterr)
                    : sl__fail_nomem(reterr, n_threads * READ_BYTES, "what is read from the disk");
    if (r < 0) {
        bench_disk_free(&d);
        return r;
    }
    d->has_lock = true;
    memset(d->memory, 1, n_threads * READ_BYTES); /* pages that exist: a run makes none */
    for (size_t i = 0; i < n_threads; i++) {
        d->readers[i].disk = d;
        d->readers[i].memory = d->memory + i * READ_BYTES;
    }
    *ret_disk = d;
    return 0;
}

void bench_disk_free(bench_disk **disk)
{
    if (!disk || !*disk) {
        return;
    }
    if ((*disk)->has_lock) {
        sl__mutex_done(&(*disk)->lock);
    }
    sl__free((*disk)->readers);
    sl__free((*disk)->memory);
    sl__free(*disk);
    *disk = NULL;
}

static bool take(bench_disk *d, sl__chunk *ret_chunk)
{
    sl__mutex_lock(&d->lock);
    bool has_one = d->status == 0 && sl__walk_next(&d->walk, &d->cursor, ret_chunk);
    sl__mutex_unlock(&d->lock);
    return has_one;
}

/* Ends the run for all readers. */
static void fail(bench_disk *d, int status, const sl_error *error)
{
    sl__mutex_lock(&d->lock);
    if (d->status == 0) {
        d->status = status;
        d->error = *error;
    }
    sl__mutex_unlock(&d->lock);
}

static int read_chunk(reader *me, const sl__chunk *chunk, sl_error *reterr)
{
    const bench_disk *d = me->disk;
    sl__cursor cursor = chunk->start;
    sl__segment segment;
    size_t at = 0;
    int r = 0;
    if (me == &d->readers[0] && d->hooks->is_cancelled && d->hooks->is_cancelled(d->hooks->ud)) {
        return sl__fail(reterr, SL_ECANCELLED, "interrupted");
    }
    while (r == 0 && sl__walk_segment(&d->walk, chunk, &cursor, &at, &segment)) {
        r = sl_map_pread(segment.map, me->memory, segment.offset, segment.n_bytes, reterr);
    }
    return r;
}

static void read_all(void *ud)
{
    reader *me = ud;
    sl__chunk chunk;
    sl_error error = {0};
    int r = 0;
    while (r == 0 && take(me->disk, &chunk)) {
        r = read_chunk(me, &chunk, &error);
    }
    if (r < 0) {
        fail(me->disk, r, &error);
    }
}

int bench_disk_run(bench_disk *disk, const sl__slice *slices, size_t n_slices,
        const sl__transfer_hooks *hooks, sl_error *reterr)
{
    bench_disk *d = disk;
    sl_error error = {0};
    d->hooks = hooks;
    d->walk = (sl__walk){.slices = slices, .n_slices = n_slices, .max_bytes = READ_BYTES};
    d->cursor = (sl__cursor){0};
    d->status = 0;
    for (size_t i = 1; i < d->n_readers; i++) {
        int r = sl__thread_start(
                &d->readers[i].thread, "sluice-disk", read_all, &d->readers[i], &error);
        if (r < 0) {
            fail(d, r, &error);
            break;
        }
    }
    read_all(&d->readers[0]);
    for (size_t i = 1; i < d->n_readers; i++) {
        sl__thread_join(&d->readers[i].thread);
    }
    if (d->status < 0 && reterr) {
        *reterr = d->error;
    }
    return d->status;
}
