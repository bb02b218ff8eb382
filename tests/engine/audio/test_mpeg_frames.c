#include "engine/audio/mpeg_frames.h"

#include <stdlib.h>
#include <string.h>

#include "audio_zoo.h"
#include "test_support.h"

static void test_frame_sizes(void **state)
{
    static const struct {
        unsigned char head[4];
        size_t want;
    } rows[] = {
            {{0xFF, 0xFB, 0x90, 0xC4}, 417}, /* layer III, 128 kbit/s, 44.1 kHz */
            {{0xFF, 0xFB, 0x92, 0xC4}, 418}, /* with padding */
            {{0xFF, 0xFB, 0xE4, 0x00}, 960}, /* 320 kbit/s, 48 kHz */
            {{0xFF, 0xF3, 0x80, 0xC4}, 208}, /* MPEG 2, 64 kbit/s, 22.05 kHz */
            {{0xFF, 0xE3, 0x48, 0xC4}, 288}, /* MPEG 2.5, 32 kbit/s, 8 kHz */
            {{0xFF, 0xFD, 0xC4, 0x00}, 768}, /* layer II, 256 kbit/s, 48 kHz */
            {{0xFF, 0xFF, 0x94, 0x00}, 288}, /* layer I, 288 kbit/s, 48 kHz */
            {{0xFF, 0xFB, 0x00, 0x00}, 0},   /* free format */
            {{0xFF, 0xFB, 0xF0, 0x00}, 0},   /* no such bitrate */
            {{0xFF, 0xFB, 0x9C, 0x00}, 0},   /* no such rate */
            {{0xFF, 0xEB, 0x90, 0x00}, 0},   /* no such version */
            {{0xFF, 0xF1, 0x50, 0x80}, 0},   /* AAC */
            {{0xFE, 0xFB, 0x90, 0x00}, 0},
            {{0xFF, 0xDB, 0x90, 0x00}, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(s2_mpeg_frame_bytes(rows[i].head), rows[i].want);
    }
}

static s2_mpeg_head make_head(zoo_bytes *b)
{
    s2_mpeg_head head;
    unsigned char *copy = malloc(b->n + (b->n == 0));
    assert_non_null(copy);
    if (b->n > 0) {
        memcpy(copy, b->p, b->n);
    }
    s2_mpeg_make_head(copy, b->n, &head);
    free(copy);
    assert_true(head.skip <= b->n);
    zoo_done(b);
    return head;
}

static void put_frame(zoo_bytes *b, const char *header)
{
    zoo_put(b, header, 4);
    zoo_put_zeros(b, s2_mpeg_frame_bytes((const unsigned char *)header) - 4);
}

static void expect_count(const s2_mpeg_head *head, size_t tag_at, uint32_t n_frames)
{
    const unsigned char *tag = head->bytes + tag_at;
    assert_int_equal(s2_mpeg_frame_bytes(head->bytes), head->n);
    assert_int_equal(tag[7] & 1, 1);
    assert_int_equal(tag[8] << 24 | tag[9] << 16 | tag[10] << 8 | tag[11], n_frames);
}

/* Frames of different lengths, something between them, and a cut one at the end. */
static void test_frames_are_counted(void **state)
{
    zoo_bytes b = {0};
    (void)state;
    put_frame(&b, "\xFF\xFB\x90\xC4");
    put_frame(&b, "\xFF\xFB\xE0\xC4");
    zoo_put(&b, "junk", 4);
    put_frame(&b, "\xFF\xFB\x12\xC4");
    zoo_put(&b, "\xFF\xFB\x90\xC4 cut", 8);
    s2_mpeg_head head = make_head(&b);
    assert_memory_equal(head.bytes + 21, "Xing", 4);
    assert_int_equal(head.skip, 0);
    expect_count(&head, 21, 3);
    put_frame(&b, "\xFF\xF3\x14\x00"); /* MPEG 2, 8 kbit/s: too small for the numbers itself */
    put_frame(&b, "\xFF\xF3\x14\x00");
    head = make_head(&b);
    expect_count(&head, 21, 2);
}

static void test_an_own_count_is_set_right(void **state)
{
    zoo_bytes b = {0};
    (void)state;
    put_frame(&b, "\xFF\xFB\x90\x44"); /* stereo */
    memcpy(b.p + 36, "Info\0\0\0\x0F\0\0\0\x63\0\0\0\x63", 16);
    b.p[200] = 77; /* what stands behind the numbers */
    put_frame(&b, "\xFF\xFB\x90\x44");
    put_frame(&b, "\xFF\xFB\x90\x44");
    s2_mpeg_head head = make_head(&b);
    assert_int_equal(head.skip, 417);
    assert_int_equal(head.bytes[200], 77);
    expect_count(&head, 36, 2);
    assert_int_equal(head.bytes[36 + 14] << 8 | head.bytes[36 + 15], 3 * 417);
}

static void test_nothing_to_count(void **state)
{
    zoo_bytes b = {0};
    (void)state;
    assert_int_equal(make_head(&b).n, 0);
    zoo_put(&b, "\xFF\xFB\x90", 3);
    assert_int_equal(make_head(&b).n, 0);
    zoo_put(&b, "\xFF\xFB\x90\xC4", 4); /* less than one frame */
    assert_int_equal(make_head(&b).n, 0);
    put_frame(&b, "\xFF\xFD\xC4\x00"); /* layer II */
    assert_int_equal(make_head(&b).n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_frame_sizes),
            cmocka_unit_test(test_frames_are_counted),
            cmocka_unit_test(test_an_own_count_is_set_right),
            cmocka_unit_test(test_nothing_to_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
