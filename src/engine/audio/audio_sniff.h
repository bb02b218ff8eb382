/*
 * What kind of sound some bytes are, by content alone: names and tags lie. Pure; any thread.
 */
#ifndef S2_AUDIO_SNIFF_H
#define S2_AUDIO_SNIFF_H

#include <stdbool.h>
#include <stddef.h>

typedef enum s2_sound_kind {
    S2_SOUND_UNKNOWN,
    S2_SOUND_OTHER, /* recognised, but not one that is read here */
    S2_SOUND_RIFF,  /* WAV, RF64 */
    S2_SOUND_FLAC,
    S2_SOUND_OGG,
    S2_SOUND_MPEG /* MP3, or layer I or II */
} s2_sound_kind;

typedef struct s2_sound {
    s2_sound_kind kind;
    size_t start;     /* first byte behind ID3 tags and padding */
    const char *what; /* "MP4 or M4A (AAC)", for messages; static */
} s2_sound;

s2_sound s2_sound_sniff(const unsigned char *bytes, size_t n);

#endif
