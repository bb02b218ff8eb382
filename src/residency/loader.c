/*
 * Pieces of a layout know their file and buffer by index; here they become those of a transfer. The list lives for
 * one load: it is small beside what it moves.
 */
#include "residency/loader.h"

#include "base/mem.h"
#include "os/os_clock.h"

void sl__loader_done(sl__loader *l)
{
    sl__transfer_free(&l->transfer);
}

static bool is_cancelled(const sl__load_job *job)
{
    return job->hooks.is_cancelled && job->hooks.is_cancelled(job->hooks.ud);
}

static int alloc_buffers(sl__loader *l, const sl__load_job *job, sl_error *reterr)
{
    int r = 0;
    for (size_t i = 0; r >= 0 && i < job->layout->n_buffers; i++) {
        r = sl_buffer_alloc(l->device, job->layout->buffers[i], &job->buffers[i], reterr);
    }
    return r;
}

static int wrap_buffers(sl__loader *l, const sl__load_job *job, sl_error *reterr)
{
    int r = 0;
    for (size_t i = 0; r >= 0 && i < job->layout->n_buffers; i++) {
        const sl__unit_piece *range = &job->layout->pieces[i];
        const char *data = sl_map_data(sl_model_map(job->model, range->i_file));
        r = sl_buffer_wrap(
                l->device, data + range->file_offset, range->n_bytes, &job->buffers[i], reterr);
    }
    return r;
}

static void list_pieces(const sl__load_job *job, sl__piece *pieces, sl__slice *slices)
{
    const sl__unit_layout *layout = job->layout;
    for (size_t i = 0; i < layout->n_pieces; i++) {
        const sl__unit_piece *p = &layout->pieces[i];
        pieces[i] = (sl__piece){.map = sl_model_map(job->model, p->i_file),
                .offset = p->file_offset,
                .n_bytes = p->n_bytes,
                .buffer = job->buffers[p->i_buffer],
                .buffer_offset = p->buffer_offset};
    }
    for (size_t i = 0; i < layout->n_slices; i++) {
        const sl__unit_slice *s = &layout->slices[i];
        slices[i] = (sl__slice){pieces + s->first_piece, s->n_pieces, NULL};
    }
}

static int move(sl__loader *l, const sl__load_job *job, sl_error *reterr)
{
    size_t n_pieces = job->layout->n_pieces;
    size_t n_slices = job->layout->n_slices;
    sl__piece *pieces = sl__alloc(n_pieces, sizeof *pieces);
    sl__slice *slices = sl__alloc(n_slices, sizeof *slices);
    int r = 0;
    if (pieces && slices) {
        list_pieces(job, pieces, slices);
        r = sl__transfer_run(l->transfer, slices, n_slices, &job->hooks, reterr);
    } else {
        r = sl__fail_nomem(reterr, n_pieces * sizeof *pieces, job->unit_name);
    }
    sl__free(pieces);
    sl__free(slices);
    return r;
}

/* The trials of a first load take several routes. */
static const char *main_route(const sl__transfer_stats *before, const sl__transfer_stats *after)
{
    sl__route best = SL__ROUTE_AUTO;
    uint64_t most = 0;
    for (int i = 0; i < SL__ROUTE_COUNT; i++) {
        uint64_t n = after->route_bytes[i] - before->route_bytes[i];
        if (n > most) {
            most = n;
            best = (sl__route)i;
        }
    }
    return sl__route_name(best);
}

/* The transfer counts from its creation on, and padding too: the bytes are those of the unit. */
static int move_and_count(
        sl__loader *l, const sl__load_job *job, sl__load_figures *ret, sl_error *reterr)
{
    sl__transfer_stats before;
    sl__transfer_stats after;
    sl__transfer_get_stats(l->transfer, &before);
    int r = move(l, job, reterr);
    sl__transfer_get_stats(l->transfer, &after);
    ret->route = main_route(&before, &after);
    ret->n_bytes = job->layout->n_file_bytes;
    ret->n_stalls = after.n_stalls - before.n_stalls;
    return r;
}

int sl__loader_load(
        sl__loader *l, const sl__load_job *job, sl__load_figures *ret_figures, sl_error *reterr)
{
    bool has_bytes = job->layout->n_file_bytes > 0;
    sl__load_figures figures = {.route = job->is_in_place && has_bytes ? "in place" : NULL};
    uint64_t begin_ns = sl__now_ns();
    bool moves = !job->is_in_place && job->layout->n_slices > 0;
    int r = 0;
    if (is_cancelled(job)) {
        return sl__fail(reterr, SL_ECANCELLED, "unit %s: loading was cancelled", job->unit_name);
    }
    if (moves && !l->transfer) {
        r = sl__transfer_create(l->device, &l->opts, &l->transfer, reterr);
    }
    if (r >= 0) {
        r = job->is_in_place ? wrap_buffers(l, job, reterr) : alloc_buffers(l, job, reterr);
    }
    if (r >= 0 && moves) {
        r = move_and_count(l, job, &figures, reterr);
    }
    if (r >= 0) {
        figures.ns = sl__now_ns() - begin_ns;
        *ret_figures = figures;
    }
    return r;
}
