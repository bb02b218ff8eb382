/*
 * Frames of MPEG audio (MP3), as far as their lengths go. Pure functions; any thread.
 *
 *   FF Fx xx xx   header: version, layer, bitrate, rate; the length follows from them
 *
 * An MP3 file has no header of its own. Its first frame may be an empty one that holds "Xing" or "Info" and
 * the number of frames; libsndfile stops there, and without it at a guess from the first frame's bitrate.
 */
#ifndef S2_MPEG_FRAMES_H
#define S2_MPEG_FRAMES_H

#include <stddef.h>

#define S2_MPEG_HEAD_MAX 1500

/* Bytes of the frame that the 4 bytes of a header announce; 0 if they are no such header. */
size_t s2_mpeg_frame_bytes(const unsigned char *header);

/* A first frame that tells the truth, to be put in front of the bytes from `skip` on. */
typedef struct s2_mpeg_head {
    unsigned char bytes[S2_MPEG_HEAD_MAX];
    size_t n; /* 0 = none is needed (layer I and II) */
    size_t skip;
} s2_mpeg_head;

/* Counts the frames of all bytes, which begin with one, and makes the head. */
void s2_mpeg_make_head(const unsigned char *bytes, size_t n, s2_mpeg_head *ret_head);

#endif
