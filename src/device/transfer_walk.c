#include "device/transfer_walk.h"

/* The piece at the cursor; moves past pieces of no bytes and those that are done. NULL = end of the slice. */
static const sl__piece *settle(const sl__walk *walk, sl__cursor *cursor)
{
    const sl__slice *slice = &walk->slices[cursor->i_slice];
    while (cursor->i_piece < slice->n_pieces &&
            cursor->n_done == slice->pieces[cursor->i_piece].n_bytes) {
        cursor->i_piece++;
        cursor->n_done = 0;
    }
    return cursor->i_piece < slice->n_pieces ? &slice->pieces[cursor->i_piece] : NULL;
}

/* Whether the piece continues the chunk; *ret_gap = bytes between them. */
static bool follows(
        const sl__walk *walk, const sl__chunk *chunk, const sl__piece *piece, uint64_t *ret_gap)
{
    uint64_t end = chunk->buffer_offset + chunk->n_bytes;
    if (!walk->joins || piece->buffer != chunk->buffer || piece->buffer_offset < end) {
        return false;
    }
    *ret_gap = piece->buffer_offset - end;
    return *ret_gap <= walk->max_gap && *ret_gap < walk->max_bytes - chunk->n_bytes;
}

/* Takes what fits of the piece at the cursor into the chunk, `gap` bytes behind what it has. */
static void take(const sl__walk *walk, const sl__piece *piece, uint64_t gap, sl__cursor *cursor,
        sl__chunk *chunk)
{
    uint64_t room = walk->max_bytes - chunk->n_bytes - gap;
    uint64_t left = piece->n_bytes - cursor->n_done;
    uint64_t n = left < room ? left : room;
    if (walk->window_bytes > 0) {
        uint64_t in_window =
                walk->window_bytes - (piece->offset + cursor->n_done) % walk->window_bytes;
        n = n < in_window ? n : in_window;
    }
    chunk->n_bytes += (size_t)(gap + n);
    cursor->n_done += n;
}

bool sl__walk_next(const sl__walk *walk, sl__cursor *cursor, sl__chunk *ret_chunk)
{
    if (cursor->i_slice == walk->n_slices) {
        return false;
    }
    sl__chunk chunk = {.i_slice = cursor->i_slice};
    const sl__piece *piece = settle(walk, cursor);
    chunk.start = *cursor;
    if (piece) {
        chunk.buffer = piece->buffer;
        chunk.buffer_offset = piece->buffer_offset + cursor->n_done;
        take(walk, piece, 0, cursor, &chunk);
        piece = settle(walk, cursor);
    }
    uint64_t gap;
    while (piece && cursor->n_done == 0 && follows(walk, &chunk, piece, &gap)) {
        take(walk, piece, gap, cursor, &chunk);
        piece = settle(walk, cursor);
    }
    chunk.ends_slice = !piece;
    if (!piece) {
        *cursor = (sl__cursor){.i_slice = cursor->i_slice + 1};
    }
    *ret_chunk = chunk;
    return true;
}

bool sl__walk_segment(const sl__walk *walk, const sl__chunk *chunk, sl__cursor *cursor, size_t *at,
        sl__segment *ret)
{
    const sl__piece *piece = settle(walk, cursor);
    if (!piece || *at == chunk->n_bytes) {
        return false;
    }
    uint64_t starts = piece->buffer_offset + cursor->n_done - chunk->buffer_offset;
    uint64_t left = piece->n_bytes - cursor->n_done;
    uint64_t room = chunk->n_bytes - starts;
    *ret = (sl__segment){
            .map = piece->map,
            .offset = piece->offset + cursor->n_done,
            .n_bytes = (size_t)(left < room ? left : room),
            .at = (size_t)starts,
    };
    cursor->n_done += ret->n_bytes;
    *at = ret->at + ret->n_bytes;
    return true;
}

uint64_t sl__slice_bytes(const sl__slice *slice)
{
    uint64_t n = 0;
    for (size_t i = 0; i < slice->n_pieces; i++) {
        n += slice->pieces[i].n_bytes;
    }
    return n;
}
