/*
 * How the tensors of a unit lie on a device: in which buffer at which offset, and in which slices they arrive.
 *
 * Pure: reads the tensors' records, not their bytes. Tensors keep the order in which they are given; that is
 * the order in which they arrive.
 *
 * Does not promise: that a device can allocate the buffers.
 *
 * Lifetime: points to the tensor records of the model, which must outlive the layout.
 */
#ifndef SL_RESIDENCY_UNIT_H
#define SL_RESIDENCY_UNIT_H

#include "base/status.h"
#include "sluice/model.h"

/* By default a unit has some two dozen slices, so that computing begins when a part of it is there. */
#define SL__SLICES_OF_A_UNIT  24
#define SL__LEAST_SLICE_BYTES (UINT64_C(1) << 20)
#define SL__MOST_SLICE_BYTES  (UINT64_C(64) << 20)

/* Limits of a device. */
typedef struct sl__unit_limits {
    const char *device_name;
    uint64_t alignment;       /* of tensors; a power of two */
    uint64_t max_alloc_bytes; /* 0 = not known: one buffer is tried */
    uint64_t slice_bytes;     /* 0 = by the unit's size */
    /* Room that a tensor takes, at least its bytes; NULL = just its bytes. */
    uint64_t (*room)(void *ud, const sl_tensor *tensor);
    void *ud;
} sl__unit_limits;

typedef struct sl__placed_tensor {
    const sl_tensor *tensor;
    size_t i_buffer;
    uint64_t offset;  /* in the buffer */
    size_t i_arrival; /* the tensor is there when this slice and all before it have arrived */
} sl__placed_tensor;

/* Bytes of one tensor that go in one copy. */
typedef struct sl__unit_piece {
    uint32_t i_file;
    uint64_t file_offset;
    size_t n_bytes;
    size_t i_buffer;
    uint64_t buffer_offset;
} sl__unit_piece;

typedef struct sl__unit_slice {
    size_t first_piece;
    size_t n_pieces;
    uint64_t n_bytes;
} sl__unit_slice;

/* Zeroed memory is the layout of a unit without bytes: nothing to allocate, nothing to wait for. */
typedef struct sl__unit_layout {
    sl__placed_tensor *tensors; /* without those of no bytes */
    size_t n_tensors;
    uint64_t *buffers; /* bytes of each */
    size_t n_buffers;
    sl__unit_piece *pieces;
    size_t n_pieces;
    sl__unit_slice *slices;
    size_t n_slices;
    uint64_t n_bytes;      /* of the buffers */
    uint64_t n_file_bytes; /* of the tensors */
    size_t cap[4];         /* of the arrays above */
} sl__unit_layout;

/*
 * Lays out n tensors. Tensors of no bytes are left out.
 * Errors: SL_ELIMIT with the tensor's name if one alone is larger than the largest allocation, or if the sum
 * is above 2^63; SL_EINVAL if a tensor is given twice; SL_ENOMEM. *ret is empty then.
 */
int sl__unit_lay_out(const char *unit_name, const sl_tensor *const *tensors, size_t n,
        const sl__unit_limits *limits, sl__unit_layout *ret, sl_error *reterr) SL_MUST_CHECK;

/*
 * Lays out tensors that are used where they are mapped: each buffer is a range of a file that begins at a multiple
 * of 4096, given by the piece of the same index, and no slice moves. n_bytes is 0: nothing is allocated.
 * Errors: as above.
 */
int sl__unit_lay_in_place(const char *unit_name, const sl_tensor *const *tensors, size_t n,
        const sl__unit_limits *limits, sl__unit_layout *ret, sl_error *reterr) SL_MUST_CHECK;

/* Frees the arrays. Accepts zeroed memory. */
void sl__unit_layout_done(sl__unit_layout *layout);

/* Where a tensor is, or NULL if it is not in the layout. Cost: logarithmic. */
const sl__placed_tensor *sl__unit_find(const sl__unit_layout *layout, const sl_tensor *tensor);

#endif
