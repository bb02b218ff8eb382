/*
 * An engine that computes nothing: the text says what it does, in words such as
 *
 *     frames=20 delay_ms=5 prefill_ms=100 fail=3 end=limit
 *
 * It makes `frames` frames (default 4), each after delay_ms; fails with SL_EDEVICE before frame number `fail`. With gated=1
 * frame i waits until the gate is above i. Samples are
 * a tone of 1 kHz, or with `noise` numbers that follow from seed, voice and place.
 *
 * 44.1 kHz, 2048 samples a frame.
 */
#ifndef FAKE_SPEAKER_H
#define FAKE_SPEAKER_H

#include <stdatomic.h>

#include "speaker.h"

#define FAKE_RATE  44100u
#define FAKE_FRAME 2048u

typedef struct fake_speaker {
    atomic_int open_ms;     /* how long open takes */
    atomic_int open_result; /* 0 or an error */
    atomic_int n_inside;    /* calls in work */
    atomic_int n_most_inside;
    atomic_int n_speaks;  /* begun */
    atomic_uint pause_ms; /* that the last one was asked for */
    atomic_int n_frames;
    atomic_int n_voices;
    atomic_int level;
    atomic_int gate;
    atomic_int n_sleeps;
    atomic_int is_open;
    bool (*should_stop)(void *ud);
    void *stop_ud;
} fake_speaker;

speaker fake_speaker_get(fake_speaker *f);

/* Sample i of a speech with `noise`. */
float fake_noise(uint64_t seed, uint32_t voice_frames, uint64_t i);

#endif
