/*
 * Cuts slices into chunks: the bytes of one slot, that go to one range of one buffer. Pure.
 *
 * A cursor is a place in the list of slices; a chunk remembers where it starts, so that whoever fills it walks
 * the same pieces again. Nothing is allocated.
 */
#ifndef SL_DEVICE_TRANSFER_WALK_H
#define SL_DEVICE_TRANSFER_WALK_H

#include "device/transfer.h"

typedef struct sl__cursor {
    size_t i_slice;
    size_t i_piece;
    uint64_t n_done; /* bytes of the piece that earlier chunks took */
} sl__cursor;

typedef struct sl__chunk {
    sl__cursor start;
    size_t i_slice;
    sl_buffer *buffer; /* NULL if n_bytes is 0 */
    uint64_t buffer_offset;
    size_t n_bytes;  /* with gaps */
    bool ends_slice; /* the last one of its slice; an empty slice is one chunk of no bytes */
} sl__chunk;

typedef struct sl__walk {
    const sl__slice *slices;
    size_t n_slices;
    size_t max_bytes; /* of a chunk, at least 1 */
    uint64_t
            window_bytes; /* no chunk goes beyond a multiple of this in its file; 0 = none, 0 with joins */
    uint64_t max_gap; /* between pieces of a chunk, which may have several; see joins */
    bool joins;       /* false: a chunk is part of one piece */
} sl__walk;

/* The chunk at the cursor, which moves behind it; false at the end. */
bool sl__walk_next(const sl__walk *walk, sl__cursor *cursor, sl__chunk *ret_chunk);

/* Part of a chunk: bytes of one piece, and where they are in the chunk. */
typedef struct sl__segment {
    const sl_map *map;
    uint64_t offset; /* in the file */
    size_t n_bytes;
    size_t at; /* in the chunk */
} sl__segment;

/*
 * The segment of `chunk` at `at` bytes from its start, with `cursor` on it (chunk->start for at = 0); both move
 * behind it. False at the end of the chunk. A gap between segments shows as ret->at above the old *at.
 */
bool sl__walk_segment(const sl__walk *walk, const sl__chunk *chunk, sl__cursor *cursor, size_t *at,
        sl__segment *ret);

/* Bytes of a slice. */
uint64_t sl__slice_bytes(const sl__slice *slice);

#endif
