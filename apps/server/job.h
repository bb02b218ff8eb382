/*
 * What the one thread that uses the engine is asked to do, with everything that it needs: a job owns its texts
 * and voices and a reference to its answer.
 */
#ifndef SERVER_JOB_H
#define SERVER_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reply.h"
#include "s2/audio.h"
#include "s2/voice.h"

typedef enum job_kind {
    JOB_SPEAK, /* a text to sound */
    JOB_VOICE, /* a recording to a saved voice */
    JOB_SLEEP, /* the engine goes to a sleep level; 0 wakes it */
    JOB_KIND_COUNT
} job_kind;

/* How the sound is packed. */
typedef enum job_framing {
    FRAMING_STREAM, /* bytes of the format as they are made */
    FRAMING_EVENTS, /* server-sent events with base64 */
    FRAMING_WHOLE,  /* one answer of known length */
    FRAMING_COUNT
} job_framing;

/* Which API's errors are spoken. */
typedef enum job_dialect {
    DIALECT_OPENAI, /* {"error": {...}} */
    DIALECT_FORM,   /* the form API: one line of text */
    DIALECT_COUNT
} job_dialect;

typedef struct job_speech {
    char *text;
    size_t text_bytes;
    s2_voice voice;
    bool has_voice;
    float temperature;
    float top_p;
    int32_t top_k;
    uint64_t seed;
    uint32_t max_frames;
    uint32_t min_frames;
    uint32_t segment_bytes;
    uint32_t pause_ms; /* between pieces */
    s2_audio_format format;
    uint32_t rate;     /* Hz of the sound; 0 = the best of the format */
    bool is_float;     /* WAV of 32-bit floats; whole answers alone */
    uint32_t start_ms; /* of sound that is gathered before the first byte leaves */
    job_framing framing;
} job_speech;

typedef struct job_voice {
    char name[S2_VOICE_NAME_MAX_BYTES + 1]; /* empty = not saved: speech follows with it */
    char *text;                             /* transcript */
    unsigned char *sound;                   /* bytes of an audio file */
    size_t n_sound;
    atomic_size_t
            *n_held; /* account of all recordings that wait; n_sound is taken off it at the end */
    bool may_replace;
} job_voice;

typedef struct job job;
struct job {
    job *next; /* of a queue */
    job_kind kind;
    job_dialect dialect;
    job_speech speech;
    job_voice voice; /* also of a JOB_SPEAK that brings a recording along */
    bool has_recording;
    unsigned level; /* JOB_SLEEP */
    reply *answer;
    uint64_t queued_ns;
};

/* A job with everything zero that shares `answer`. Errors: SL_ENOMEM. */
int job_create(job_kind kind, reply *answer, job **ret_job, sl_error *reterr) SL_MUST_CHECK;

/* Accepts NULL; sets *j to NULL. */
void job_free(job **j);

#endif
