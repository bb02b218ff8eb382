#include "engine/audio/mpeg_frames.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define HAS_FRAMES 1u /* flags of the Xing frame: which numbers follow */
#define HAS_BYTES  2u

#define ID3V1_BYTES 128u
#define GAP_MOST    4194304u /* a tag with a picture fits */

size_t s2_mpeg_frame_bytes(const unsigned char *h)
{
    /* kbit/s by [MPEG 1: layer I, II, III; MPEG 2: layer I, II and III][index] */
    static const uint16_t kbits[5][15] = {
            {0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
            {0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
            {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
            {0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
            {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
    };
    static const uint32_t rates[3] = {44100, 48000, 32000};
    unsigned version = (h[1] >> 3) & 3u; /* 3 = MPEG 1, 2 = MPEG 2, 0 = MPEG 2.5 */
    unsigned layer = 4 - ((h[1] >> 1) & 3u);
    unsigned i_kbits = h[2] >> 4;
    unsigned i_rate = (h[2] >> 2) & 3u;
    if (h[0] != 0xFF || (h[1] & 0xE0) != 0xE0 || version == 1 || layer == 4 || i_kbits == 0 ||
            i_kbits == 15 || i_rate == 3) {
        return 0;
    }
    uint32_t rate = rates[i_rate] >> (version == 3 ? 0 : version == 2 ? 1 : 2);
    unsigned row = version == 3 ? layer - 1 : layer == 1 ? 3 : 4;
    uint32_t bits = kbits[row][i_kbits] * 1000u;
    uint32_t pad = (h[2] >> 1) & 1u;
    if (layer == 1) {
        return ((size_t)(12 * bits / rate) + pad) * 4;
    }
    return (layer == 3 && version != 3 ? 72u : 144u) * bits / rate + pad;
}

static const unsigned char xing[4] = {'X', 'i', 'n', 'g'};

static unsigned layer_of(const unsigned char *header)
{
    return 4 - ((header[1] >> 1) & 3u);
}

static uint32_t load_be(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_be(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (unsigned char)(v >> (24 - 8 * i));
    }
}

/* Where "Xing" stands in the first frame: behind the header and what would be side information. */
static size_t tag_offset(const unsigned char *header)
{
    bool is_mpeg1 = ((header[1] >> 3) & 3u) == 3;
    bool is_mono = header[3] >> 6 == 3;
    if (is_mpeg1) {
        return 4 + (is_mono ? 17u : 32u);
    }
    return 4 + (is_mono ? 9u : 17u);
}

/* True if the frame of `frame` bytes holds the tag with room for its numbers. */
static bool has_tag(const unsigned char *bytes, size_t frame)
{
    size_t at = tag_offset(bytes);
    return frame >= at + 16 && frame <= S2_MPEG_HEAD_MAX &&
           (memcmp(bytes + at, xing, sizeof xing) == 0 || memcmp(bytes + at, "Info", 4) == 0);
}

/* Whole frames in the bytes; what is between them (tags, damage) is passed over, unless it does not end. */
static uint32_t count_frames(const unsigned char *bytes, size_t n, size_t at)
{
    uint32_t n_frames = 0;
    size_t gap = 0;
    while (at <= n && n - at >= 4 && gap < GAP_MOST) {
        size_t frame = s2_mpeg_frame_bytes(bytes + at);
        if (frame == 0) {
            at++;
            gap++;
        } else if (frame > n - at) {
            break;
        } else {
            at += frame;
            gap = 0;
            n_frames++;
        }
    }
    return n_frames;
}

/* The file's own first frame with its numbers set right: what else it says (delays) stays. */
static void correct_head(
        const unsigned char *bytes, size_t n, size_t frame, uint32_t n_frames, s2_mpeg_head *head)
{
    unsigned char *tag = head->bytes + tag_offset(bytes);
    memcpy(head->bytes, bytes, frame);
    head->n = frame;
    head->skip = frame;
    uint32_t flags = load_be(tag + 4);
    if (!(flags & HAS_FRAMES)) {
        head->n = 0;
        head->skip = 0; /* a frame without the number: rare, and as it was */
        return;
    }
    store_be(tag + 8, n_frames);
    if (n >= ID3V1_BYTES && memcmp(bytes + n - ID3V1_BYTES, "TAG", 3) == 0) {
        n -= ID3V1_BYTES; /* the decoder does not count a tag at the end */
    }
    if (flags & HAS_BYTES) {
        store_be(tag + 12, n < UINT32_MAX ? (uint32_t)n : UINT32_MAX);
    }
}

void s2_mpeg_make_head(const unsigned char *bytes, size_t n, s2_mpeg_head *ret_head)
{
    s2_mpeg_head *head = ret_head;
    size_t frame = n >= 4 ? s2_mpeg_frame_bytes(bytes) : 0;
    memset(head, 0, sizeof *head);
    if (frame == 0 || frame > n || layer_of(bytes) != 3) {
        return;
    }
    if (has_tag(bytes, frame)) {
        correct_head(bytes, n, frame, count_frames(bytes, n, frame), head);
        return;
    }
    uint32_t n_frames = count_frames(bytes, n, 0);
    memcpy(head->bytes, bytes, 4);
    head->bytes[1] |= 1u; /* no checksum */
    head->bytes[2] =
            (unsigned char)((head->bytes[2] & 0x0Du) | 0x90u); /* room enough, no padding */
    head->n = s2_mpeg_frame_bytes(head->bytes);
    unsigned char *tag = head->bytes + tag_offset(bytes);
    memcpy(tag, xing, sizeof xing);
    store_be(tag + 4, HAS_FRAMES);
    store_be(tag + 8, n_frames);
}
