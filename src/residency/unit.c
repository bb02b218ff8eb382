/*
 * Two cuts run over the same list of tensors. Buffers are cut where the next tensor does not fit below the
 * largest allocation; slices are cut every so many bytes, through a tensor if it is larger than a slice. The
 * records of tensors are sorted by address at the end, so that a tensor's place is found by bisection.
 */
#include "residency/unit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Devices that use a mapping in place want ranges of whole pages. */
#define RANGE_ALIGN 4096

enum {
    CAP_TENSORS,
    CAP_BUFFERS,
    CAP_PIECES,
    CAP_SLICES
};

typedef struct layer_out {
    const char *unit_name;
    const sl__unit_limits *limits;
    sl__unit_layout *out;
    sl_error *reterr;
    uint64_t slice_bytes;
} layer_out;

void sl__unit_layout_done(sl__unit_layout *layout)
{
    sl__free(layout->tensors);
    sl__free(layout->buffers);
    sl__free(layout->pieces);
    sl__free(layout->slices);
    memset(layout, 0, sizeof *layout);
}

static int no_memory(const layer_out *l)
{
    return sl__fail(l->reterr, SL_ENOMEM, "out of memory: the layout of unit %s", l->unit_name);
}

static int too_large(const layer_out *l, const sl_tensor *tensor, uint64_t n_bytes, uint64_t max)
{
    char name[128];
    sl__quote(name, sizeof name, tensor->info->name.p, tensor->info->name.n);
    return sl__fail(l->reterr, SL_ELIMIT,
            "%s: tensor %s of unit %s takes %" PRIu64 " bytes, the largest allocation is %" PRIu64
            "; place the unit elsewhere",
            l->limits->device_name, name, l->unit_name, n_bytes, max);
}

/* Finds room for a tensor: in the last buffer, or in a new one. */
static int place_tensor(layer_out *l, const sl_tensor *tensor, sl__placed_tensor *ret)
{
    sl__unit_layout *out = l->out;
    uint64_t n_bytes = tensor->info->n_bytes;
    uint64_t room = l->limits->room ? l->limits->room(l->limits->ud, tensor) : n_bytes;
    uint64_t max = l->limits->max_alloc_bytes ? l->limits->max_alloc_bytes : UINT64_MAX / 4;
    room = room < n_bytes ? n_bytes : room;
    if (room > max) {
        return too_large(l, tensor, room, max);
    }
    uint64_t at = 0;
    bool fits = out->n_buffers > 0 &&
                sl__align_up_u64(out->buffers[out->n_buffers - 1], l->limits->alignment, &at);
    if (!fits || at > max - room) {
        if (!sl__grow((void **)&out->buffers, &out->cap[CAP_BUFFERS], out->n_buffers + 1,
                    sizeof *out->buffers)) {
            return no_memory(l);
        }
        at = 0;
        out->buffers[out->n_buffers] = 0;
        out->n_buffers++;
    }
    out->buffers[out->n_buffers - 1] = at + room;
    *ret = (sl__placed_tensor){tensor, out->n_buffers - 1, at, 0};
    return 0;
}

/* The slice that takes the next piece: the last one, or a new one if it is full or `is_new`. */
static sl__unit_slice *open_slice(layer_out *l, bool is_new)
{
    sl__unit_layout *out = l->out;
    sl__unit_slice *last = out->n_slices > 0 ? &out->slices[out->n_slices - 1] : NULL;
    if (last && !is_new && last->n_bytes < l->slice_bytes) {
        return last;
    }
    if (!sl__grow((void **)&out->slices, &out->cap[CAP_SLICES], out->n_slices + 1,
                sizeof *out->slices)) {
        return NULL;
    }
    last = &out->slices[out->n_slices];
    *last = (sl__unit_slice){out->n_pieces, 0, 0};
    out->n_slices++;
    return last;
}

/* Cuts a tensor into pieces. One that fits a slice whole is not cut. */
static int cut_tensor(layer_out *l, sl__placed_tensor *placed)
{
    sl__unit_layout *out = l->out;
    const sl_gguf_tensor *info = placed->tensor->info;
    uint64_t room = out->n_slices > 0 ? out->slices[out->n_slices - 1].n_bytes : 0;
    bool is_new = room > 0 && room < l->slice_bytes && info->n_bytes > l->slice_bytes - room;
    for (uint64_t done = 0; done < info->n_bytes; is_new = false) {
        sl__unit_slice *slice = open_slice(l, is_new);
        if (!slice || !sl__grow((void **)&out->pieces, &out->cap[CAP_PIECES], out->n_pieces + 1,
                              sizeof *out->pieces)) {
            return no_memory(l);
        }
        uint64_t n = l->slice_bytes - slice->n_bytes;
        n = n < info->n_bytes - done ? n : info->n_bytes - done;
        out->pieces[out->n_pieces] = (sl__unit_piece){placed->tensor->i_file, info->offset + done,
                (size_t)n, placed->i_buffer, placed->offset + done};
        out->n_pieces++;
        slice->n_pieces++;
        slice->n_bytes += n;
        done += n;
    }
    placed->i_arrival = out->n_slices - 1;
    return 0;
}

static int add_tensor(layer_out *l, const sl_tensor *tensor)
{
    sl__unit_layout *out = l->out;
    sl__placed_tensor placed = {.tensor = tensor};
    uint64_t limit = INT64_MAX;
    if (tensor->info->n_bytes > limit - out->n_file_bytes) {
        return sl__fail(l->reterr, SL_ELIMIT, "unit %s: more than 2^63 bytes", l->unit_name);
    }
    int r = place_tensor(l, tensor, &placed);
    if (r >= 0) {
        r = cut_tensor(l, &placed);
    }
    if (r >= 0 && !sl__grow((void **)&out->tensors, &out->cap[CAP_TENSORS], out->n_tensors + 1,
                          sizeof *out->tensors)) {
        r = no_memory(l);
    }
    if (r >= 0) {
        out->tensors[out->n_tensors] = placed;
        out->n_tensors++;
        out->n_file_bytes += tensor->info->n_bytes;
    }
    return r;
}

/* Opens a range of a file that begins with this tensor. */
static int open_range(layer_out *l, const sl_tensor *tensor, uint64_t begin)
{
    sl__unit_layout *out = l->out;
    bool has_room = sl__grow((void **)&out->buffers, &out->cap[CAP_BUFFERS], out->n_buffers + 1,
                            sizeof *out->buffers) &&
                    sl__grow((void **)&out->pieces, &out->cap[CAP_PIECES], out->n_pieces + 1,
                            sizeof *out->pieces);
    if (!has_room) {
        return no_memory(l);
    }
    out->buffers[out->n_buffers] = 0;
    out->pieces[out->n_pieces] = (sl__unit_piece){tensor->i_file, begin, 0, out->n_buffers, 0};
    out->n_buffers++;
    out->n_pieces++;
    return 0;
}

/* A range goes on while tensors follow each other in one file, up to the largest allocation. */
static int add_in_place(layer_out *l, const sl_tensor *tensor)
{
    sl__unit_layout *out = l->out;
    const sl_gguf_tensor *info = tensor->info;
    uint64_t max = l->limits->max_alloc_bytes ? l->limits->max_alloc_bytes : UINT64_MAX;
    uint64_t end = info->offset + info->n_bytes;
    sl__unit_piece *range = out->n_pieces > 0 ? &out->pieces[out->n_pieces - 1] : NULL;
    bool goes_on = range && range->i_file == tensor->i_file &&
                   info->offset >= range->file_offset + range->n_bytes &&
                   end - range->file_offset <= max;
    uint64_t begin = info->offset & ~(uint64_t)(RANGE_ALIGN - 1);
    if (!goes_on && end - begin > max) {
        return too_large(l, tensor, end - begin, max);
    }
    int r = goes_on ? 0 : open_range(l, tensor, begin);
    if (r >= 0 && !sl__grow((void **)&out->tensors, &out->cap[CAP_TENSORS], out->n_tensors + 1,
                          sizeof *out->tensors)) {
        r = no_memory(l);
    }
    if (r < 0) {
        return r;
    }
    range = &out->pieces[out->n_pieces - 1];
    range->n_bytes = (size_t)(end - range->file_offset);
    out->buffers[range->i_buffer] = range->n_bytes;
    out->tensors[out->n_tensors] =
            (sl__placed_tensor){tensor, range->i_buffer, info->offset - range->file_offset, 0};
    out->n_tensors++;
    out->n_file_bytes += info->n_bytes;
    return 0;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const sl__placed_tensor *)a)->tensor;
    uintptr_t y = (uintptr_t)((const sl__placed_tensor *)b)->tensor;
    return (x > y) - (x < y);
}

static int sort_tensors(layer_out *l)
{
    sl__unit_layout *out = l->out;
    if (out->n_tensors > 0) {
        qsort(out->tensors, out->n_tensors, sizeof *out->tensors, by_address);
    }
    for (size_t i = 1; i < out->n_tensors; i++) {
        if (out->tensors[i].tensor == out->tensors[i - 1].tensor) {
            char name[128];
            const sl_span *s = &out->tensors[i].tensor->info->name;
            return sl__fail(l->reterr, SL_EINVAL, "unit %s: tensor %s is given twice", l->unit_name,
                    sl__quote(name, sizeof name, s->p, s->n));
        }
    }
    return 0;
}

static uint64_t usual_slice_bytes(const sl_tensor *const *tensors, size_t n)
{
    uint64_t slice = 0;
    for (size_t i = 0; i < n && slice < SL__MOST_SLICE_BYTES; i++) {
        slice += tensors[i]->info->n_bytes / SL__SLICES_OF_A_UNIT;
    }
    slice = slice > SL__LEAST_SLICE_BYTES ? slice : SL__LEAST_SLICE_BYTES;
    return slice < SL__MOST_SLICE_BYTES ? slice : SL__MOST_SLICE_BYTES;
}

static int lay_out(layer_out *l, const sl_tensor *const *tensors, size_t n,
        int (*add)(layer_out *l, const sl_tensor *tensor))
{
    memset(l->out, 0, sizeof *l->out);
    l->slice_bytes =
            l->limits->slice_bytes ? l->limits->slice_bytes : usual_slice_bytes(tensors, n);
    int r = 0;
    for (size_t i = 0; r >= 0 && i < n; i++) {
        if (tensors[i]->info->n_bytes > 0) {
            r = add(l, tensors[i]);
        }
    }
    if (r >= 0) {
        r = sort_tensors(l);
    }
    if (r < 0) {
        sl__unit_layout_done(l->out);
    }
    return r;
}

int sl__unit_lay_out(const char *unit_name, const sl_tensor *const *tensors, size_t n,
        const sl__unit_limits *limits, sl__unit_layout *ret, sl_error *reterr)
{
    layer_out l = {.unit_name = unit_name, .limits = limits, .out = ret, .reterr = reterr};
    int r = lay_out(&l, tensors, n, add_tensor);
    for (size_t i = 0; r >= 0 && i < ret->n_buffers; i++) {
        /* A device takes memory in steps of its alignment: the account has to count it. */
        uint64_t rounded = 0;
        bool fits = sl__align_up_u64(ret->buffers[i], limits->alignment, &rounded) &&
                    (limits->max_alloc_bytes == 0 || rounded <= limits->max_alloc_bytes);
        ret->buffers[i] = fits ? rounded : ret->buffers[i];
        if (!sl__add_u64(ret->n_bytes, ret->buffers[i], &ret->n_bytes)) {
            r = sl__fail(reterr, SL_ELIMIT, "unit %s: more than 2^64 bytes", unit_name);
            sl__unit_layout_done(ret);
        }
    }
    return r;
}

int sl__unit_lay_in_place(const char *unit_name, const sl_tensor *const *tensors, size_t n,
        const sl__unit_limits *limits, sl__unit_layout *ret, sl_error *reterr)
{
    layer_out l = {.unit_name = unit_name, .limits = limits, .out = ret, .reterr = reterr};
    return lay_out(&l, tensors, n, add_in_place);
}

const sl__placed_tensor *sl__unit_find(const sl__unit_layout *layout, const sl_tensor *tensor)
{
    sl__placed_tensor key = {.tensor = tensor};
    if (layout->n_tensors == 0) {
        return NULL;
    }
    return bsearch(&key, layout->tensors, layout->n_tensors, sizeof key, by_address);
}
