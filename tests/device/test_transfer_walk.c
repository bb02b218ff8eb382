/* Chunks of slices, by example and against the plain list of all bytes. Buffers and maps are only names here. */
#include "test_support.h"

#include <string.h>

#include "device/transfer_walk.h"

enum {
    MAX_PIECES = 8,
    BUFFER_BYTES = 256
};

static char names[4];

static sl_buffer *buffer_name(size_t i)
{
    return (sl_buffer *)(void *)&names[i];
}

static const sl_map *map_name(void)
{
    return (const sl_map *)(const void *)&names[3];
}

static sl__piece piece(uint64_t offset, uint64_t n_bytes, size_t i_buffer, uint64_t buffer_offset)
{
    return (sl__piece){.map = map_name(),
            .offset = offset,
            .n_bytes = n_bytes,
            .buffer = buffer_name(i_buffer),
            .buffer_offset = buffer_offset};
}

static void test_an_empty_list_has_no_chunk(void **state)
{
    (void)state;
    const sl__walk walk = {.max_bytes = 10, .joins = true};
    sl__cursor cursor = {0};
    sl__chunk chunk;
    assert_false(sl__walk_next(&walk, &cursor, &chunk));
}

static void test_an_empty_slice_is_one_chunk_of_no_bytes(void **state)
{
    (void)state;
    const sl__piece zero = piece(5, 0, 0, 7);
    const sl__slice slices[] = {{0}, {.pieces = &zero, .n_pieces = 1}};
    const sl__walk walk = {.slices = slices, .n_slices = 2, .max_bytes = 10, .joins = true};
    sl__cursor cursor = {0};
    sl__chunk chunk;
    for (size_t i = 0; i < 2; i++) {
        assert_true(sl__walk_next(&walk, &cursor, &chunk));
        assert_int_equal(chunk.i_slice, i);
        assert_int_equal(chunk.n_bytes, 0);
        assert_true(chunk.ends_slice);
        sl__cursor at_start = chunk.start;
        sl__segment segment;
        size_t at = 0;
        assert_false(sl__walk_segment(&walk, &chunk, &at_start, &at, &segment));
    }
    assert_false(sl__walk_next(&walk, &cursor, &chunk));
}

static void test_neighbours_share_a_chunk_and_padding_is_bridged(void **state)
{
    (void)state;
    const sl__piece pieces[] = {
            piece(100, 10, 0, 0), piece(200, 5, 0, 16), piece(0, 3, 0, 40), piece(50, 4, 1, 0)};
    const sl__slice slice = {.pieces = pieces, .n_pieces = 4};
    const sl__walk walk = {
            .slices = &slice, .n_slices = 1, .max_bytes = 100, .max_gap = 7, .joins = true};
    sl__cursor cursor = {0};
    sl__chunk chunk;
    sl__segment segment;
    size_t at = 0;
    assert_true(sl__walk_next(&walk, &cursor, &chunk));
    assert_int_equal(chunk.n_bytes, 21); /* 10, a gap of 6, 5 */
    assert_false(chunk.ends_slice);
    sl__cursor inner = chunk.start;
    assert_true(sl__walk_segment(&walk, &chunk, &inner, &at, &segment));
    assert_int_equal(segment.at, 0);
    assert_int_equal(segment.offset, 100);
    assert_int_equal(segment.n_bytes, 10);
    assert_true(sl__walk_segment(&walk, &chunk, &inner, &at, &segment));
    assert_int_equal(segment.at, 16);
    assert_int_equal(segment.offset, 200);
    assert_int_equal(segment.n_bytes, 5);
    assert_false(sl__walk_segment(&walk, &chunk, &inner, &at, &segment));

    assert_true(sl__walk_next(&walk, &cursor, &chunk)); /* the gap of 19 is too wide */
    assert_int_equal(chunk.buffer_offset, 40);
    assert_int_equal(chunk.n_bytes, 3);
    assert_true(sl__walk_next(&walk, &cursor, &chunk)); /* another buffer */
    assert_ptr_equal(chunk.buffer, buffer_name(1));
    assert_true(chunk.ends_slice);
    assert_false(sl__walk_next(&walk, &cursor, &chunk));
}

/* A small generator, so that every run is the same. */
static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

static void copy_by_chunks(const sl__walk *walk, const unsigned char *file,
        unsigned char buffers[2][BUFFER_BYTES], size_t *ret_ends)
{
    sl__cursor cursor = {0};
    sl__chunk chunk;
    while (sl__walk_next(walk, &cursor, &chunk)) {
        sl__cursor inner = chunk.start;
        sl__segment segment;
        size_t at = 0;
        unsigned char *dst = buffers[chunk.buffer == buffer_name(1)] + chunk.buffer_offset;
        assert_true(chunk.n_bytes <= walk->max_bytes);
        while (sl__walk_segment(walk, &chunk, &inner, &at, &segment)) {
            memcpy(dst + segment.at, file + segment.offset, segment.n_bytes);
        }
        assert_int_equal(at, chunk.n_bytes);
        *ret_ends += chunk.ends_slice ? 1 : 0;
    }
}

static void test_random_slices_put_every_byte_in_its_place(void **state)
{
    (void)state;
    uint32_t seed = 1;
    unsigned char file[1024];
    for (size_t i = 0; i < sizeof file; i++) {
        file[i] = (unsigned char)(next_random(&seed) | 1);
    }
    for (int round = 0; round < 3000; round++) {
        sl__piece pieces[MAX_PIECES];
        unsigned char expected[2][BUFFER_BYTES] = {{0}};
        unsigned char found[2][BUFFER_BYTES] = {{0}};
        uint64_t end[2] = {0, 0};
        size_t n = next_random(&seed) % (MAX_PIECES + 1);
        for (size_t i = 0; i < n; i++) {
            size_t b = next_random(&seed) % 4 == 0;
            uint64_t n_bytes = next_random(&seed) % 20;
            uint64_t at = end[b] + next_random(&seed) % 12;
            pieces[i] = piece(next_random(&seed) % 1000, n_bytes, b, at);
            memcpy(expected[b] + at, file + pieces[i].offset, n_bytes);
            end[b] = at + n_bytes;
        }
        size_t n_first = n > 0 ? next_random(&seed) % n : 0;
        const sl__slice slices[] = {{.pieces = pieces, .n_pieces = n_first},
                {.pieces = pieces + n_first, .n_pieces = n - n_first}};
        const sl__walk walk = {.slices = slices,
                .n_slices = 2,
                .max_bytes = 1 + next_random(&seed) % 40,
                .max_gap = next_random(&seed) % 9,
                .joins = next_random(&seed) % 3 != 0};
        size_t n_ends = 0;
        copy_by_chunks(&walk, file, found, &n_ends);
        assert_int_equal(n_ends, 2);
        assert_memory_equal(found, expected, sizeof found);
    }
}

static void test_bytes_of_a_slice(void **state)
{
    (void)state;
    const sl__piece pieces[] = {piece(0, 10, 0, 0), piece(0, 0, 0, 10), piece(0, 5, 0, 100)};
    const sl__slice slice = {.pieces = pieces, .n_pieces = 3};
    assert_int_equal(sl__slice_bytes(&slice), 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_an_empty_list_has_no_chunk),
            cmocka_unit_test(test_an_empty_slice_is_one_chunk_of_no_bytes),
            cmocka_unit_test(test_neighbours_share_a_chunk_and_padding_is_bridged),
            cmocka_unit_test(test_random_slices_put_every_byte_in_its_place),
            cmocka_unit_test(test_bytes_of_a_slice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
