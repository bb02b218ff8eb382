/*
 * The S2 speech engine: text and a voice in, samples out.
 *
 * Does not promise: several syntheses at once. An engine computes one request at a time; open several
 * engines on the same file for more (the mapping is shared by the system).
 *
 * Threads: one thread at a time uses an engine. Callbacks run on the calling thread and must not call into
 * the same engine.
 * Lifetime: options are copied at open; a request and what it points to must live until the call returns.
 */
#ifndef S2_ENGINE_H
#define S2_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "s2/placement.h"
#include "s2/voice.h"
#include "sluice/error.h"
#include "sluice/log.h"
#include "sluice/page_cache.h"
#include "sluice/residency.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct s2_engine s2_engine;

/* What is made present in memory before it is used, of the weights that are computed on in host memory. */
typedef enum s2_populate {
    S2_POPULATE_AUTO, /* what will be read, without gathered tables and very large tensors, if it fits */
    S2_POPULATE_OFF,
    S2_POPULATE_ALL, /* those too, and the encoder at once; still within the budget */
    S2_POPULATE_COUNT
} s2_populate;

/* Zeroed memory is a good default. */
typedef struct s2_memory_opts {
    s2_populate populate;
    bool has_ram; /* ram_bytes replaces the budget derived from the machine */
    uint64_t ram_bytes;
    uint64_t lazy_over_bytes; /* larger tensors are not populated; 0 = SL_LAZY_OVER_BYTES */
    sl_progress progress;     /* of populating; not 0 = give up opening */
} s2_memory_opts;

typedef struct s2_engine_opts {
    const char *model_path; /* GGUF; any shard of a split set */
    const char *
            tokenizer_path; /* NULL: MODEL.tokenizer.json, tokenizer.json beside it, or one folder up */
    uint32_t n_threads;     /* 0 = the processors that this process may use */
    s2_place_opts place;      /* devices and budgets */
    uint32_t expected_frames; /* of a request, for checking the budget at open; 0 = 1024 */
    bool expects_speech;      /* a text follows: begin early to fetch what speaking needs */
    bool expects_voice;       /* but a recording is made a voice first */
    sl_logger log;
    s2_memory_opts memory;
    bool (*should_stop)(void *ud); /* as s2_engine_set_stop, for opening too; may be NULL */
    void *stop_ud;
} s2_engine_opts;

/*
 * Maps the model, checks it, reads the tokenizer. Weights stay in the file's pages; nothing is copied. Last, the
 * pages that will be read in host memory are populated as opts->memory says, and one line of the log tells how
 * it went. Units that are wanted on devices are moved there when a request needs them.
 * Errors: SL_ENOENT, SL_EACCES, SL_EFORMAT, SL_EUNSUPPORTED, SL_ENOMEM, each naming file, key or tensor;
 * SL_ECHANGED and SL_EIO (weights that cannot be read), SL_ECANCELLED; those of s2_placement_open; SL_EBUDGET (a
 * device's budget does not hold the largest phase: names the smallest that does).
 */
int s2_engine_open(const s2_engine_opts *opts, s2_engine **ret_engine, sl_error *reterr);

/* Frees everything and sets *engine to NULL. Accepts NULL. */
void s2_engine_close(s2_engine **engine);

/*
 * Lets long work be left half way: should_stop is asked often, also in the middle of a frame, on a thread of
 * the engine. When it says true, speaking and decoding end as stopped, and making a voice fails with
 * SL_ECANCELLED. NULL removes it.
 */
void s2_engine_set_stop(s2_engine *engine, bool (*should_stop)(void *ud), void *ud);

/*
 * Units, places and ledger of this engine, to look at from any thread (sluice/residency.h); owned by the engine.
 */
sl_residency *s2_engine_residency(s2_engine *engine);

/* The devices of its places, in the order of the residency's; owned by the engine. */
const s2_placement *s2_engine_placement(const s2_engine *engine);

/*
 * Gives memory back between requests; the next request wakes. Levels: 1 = KV cache and compute buffers, 2 = all
 * weights off the devices, 3 = the page cache of the model's files too.
 * Errors: SL_EINVAL (level), SL_ECANCELLED, those of dropping pages.
 */
int s2_engine_sleep(s2_engine *engine, unsigned level, sl_error *reterr);

typedef struct s2_engine_info {
    uint32_t sample_rate;   /* Hz of the samples */
    uint32_t frame_samples; /* samples of one frame of codes */
    uint32_t n_codebooks;   /* codes of one frame */
    uint32_t codebook_size; /* codes are 0..codebook_size-1 */
    uint32_t n_ctx;         /* columns of prompt + frames that fit */
    uint32_t n_threads;
} s2_engine_info;
s2_engine_info s2_engine_get_info(const s2_engine *engine);

/* Why a synthesis ended. */
typedef enum s2_end {
    S2_END_SPEECH,  /* the model ended it */
    S2_END_LIMIT,   /* max_frames or the context: the speech is cut off */
    S2_END_STOPPED, /* a callback asked for it */
    S2_END_COUNT
} s2_end;
const char *s2_end_name(s2_end end); /* "speech", "limit", "stopped" */

/* Figures of a synthesis; times in nanoseconds of wall clock. */
typedef struct s2_stats {
    uint32_t n_segments;       /* pieces that the text was spoken in */
    uint32_t n_prompt_columns; /* of all prompts together */
    uint32_t n_frames;
    s2_end end;
    uint64_t prefill_ns;
    uint64_t slow_ns; /* slow AR, without prefill */
    uint64_t fast_ns;
    uint64_t sample_ns;
    uint64_t decode_ns;
    uint64_t first_audio_ns; /* from the call to the first samples handed out */
    uint64_t total_ns;
    uint64_t kv_bytes; /* largest so far */
    uint64_t compute_bytes;
} s2_stats;

typedef struct s2_speak_opts {
    const char *text; /* UTF-8; cleaned as the manual says before it is spoken */
    size_t text_bytes;
    const s2_voice *voices; /* recordings to imitate, usually one; n_voices may be 0 */
    size_t n_voices;
    float temperature; /* 0 = greedy choice */
    float top_p;
    int32_t top_k; /* 0 = no limit */
    uint64_t seed;
    uint32_t max_frames; /* of the whole text, at least 1 */
    uint32_t min_frames; /* speech does not end before */
    uint32_t
            segment_bytes; /* longer text is spoken in pieces cut at sentence borders; 0 = never cut */
    uint32_t pause_ms;     /* of silence between pieces, handed out as samples without codes */
    bool allow_control_tokens; /* <|...|> in the text means the token, not its characters */
    bool wants_sound_early; /* somebody listens: decode frames as they are made if the budget allows */

    /* Takes samples as they are made; non-zero ends the synthesis as stopped. May be NULL. */
    int (*on_samples)(void *ud, const float *samples, size_t n);
    /* Takes the codes of each frame, [n_codebooks]; non-zero ends the synthesis as stopped. May be NULL. */
    int (*on_frame)(void *ud, const int32_t *codes);
    void *ud;
} s2_speak_opts;

/* The defaults of the original: 0.8, 0.8, 30, 1024 frames; everything else zero. */
s2_speak_opts s2_speak_defaults(void);

/*
 * Speaks a text. Samples arrive one frame at a time, the first after one frame of work unless the plan decodes
 * after generating, and the same in every mode; what was handed out stays valid when the synthesis is stopped or cut off.
 * Errors: SL_EINVAL (text empty or not UTF-8, parameters, a voice of another model), SL_EBUDGET (this request does
 * not fit the budget: names the smallest), SL_EDEVICE, SL_ELIMIT (prompt longer than the context), SL_ECHANGED (model file truncated meanwhile), SL_ENOMEM, SL_EINTERNAL (the
 * model made no audio, or its logits are not numbers).
 */
int s2_engine_speak(
        s2_engine *engine, const s2_speak_opts *opts, s2_stats *ret_stats, sl_error *reterr);

/*
 * Decodes codes[n_frames][n_codebooks] (frame major) alone; on_samples as above.
 * Errors: SL_EINVAL (no frames), SL_ECHANGED, SL_ENOMEM.
 */
int s2_engine_decode(s2_engine *engine, const int32_t *codes, uint32_t n_frames,
        int (*on_samples)(void *ud, const float *samples, size_t n), void *ud, s2_stats *ret_stats,
        sl_error *reterr);

/*
 * Makes a voice of a recording at the model's sample rate and its transcript (not empty, UTF-8).
 * Errors: SL_EINVAL, SL_ELIMIT (longer than a voice may be), SL_ECHANGED, SL_ENOMEM.
 */
int s2_engine_make_voice(s2_engine *engine, const float *samples, size_t n_samples,
        const char *text, s2_voice *ret_voice, sl_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
