/* The parts of `sluice say`: its options, its inputs, its outputs. For cmd_say.c and say_*.c alone. */
#ifndef CLI_SAY_H
#define CLI_SAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine_options.h"
#include "options.h"
#include "s2/audio.h"
#include "s2/engine.h"

typedef struct say_opts {
    engine_options engine;
    const char *file;
    const char *output;
    const char *voice;
    const char *voice_dir;
    const char *ref_audio;
    const char *ref_text;
    const char *save_voice;
    const char *codes_in;
    const char *codes_out;
    const char *stats;
    const char *trace;
    uint64_t seed;
    float temperature;
    float top_p;
    int32_t top_k;
    int32_t max_frames;
    int32_t min_frames;
    int32_t segment_bytes;
    int32_t sample_rate;
    int format; /* index into the choices: s2_audio_format */
    bool greedy;
    bool stream;
    bool allow_control_tokens;
    bool quiet;
    bool verbose;
} say_opts;

/* What is to be spoken, and with which voice. Zeroed memory is empty. */
typedef struct say_input {
    char *text;
    size_t text_bytes;
    s2_voice voice;
    bool has_voice;
    int32_t *codes; /* of --codes-in, frame major */
    uint32_t n_codes_frames;
} say_input;

void say_input_done(say_input *in);

/* What the option table cannot say. Returns OPT_RUN, or the status to exit with after one line. */
int say_check_line(const say_opts *opts, const opt_result *line);

/* Text from the operand, a file or standard input; none if only a voice is saved or codes are decoded. */
int say_read_text(const say_opts *opts, const opt_result *line, say_input *in,
        sl_error *reterr) SL_MUST_CHECK;

/* The voice of --voice, or the recording of --ref-audio, encoded and saved if asked for. */
int say_read_voice(
        const say_opts *opts, s2_engine *engine, say_input *in, sl_error *reterr) SL_MUST_CHECK;

/* Figures of a run for people and for programs. */
typedef struct say_report {
    s2_stats stats;
    s2_engine_info info;
    uint64_t seed;
    uint64_t load_ns;        /* opening the model */
    uint64_t voice_ns;       /* reading or encoding the voice */
    uint64_t first_audio_ns; /* from the start of the command; 0 if there was none */
    uint64_t wall_ns;        /* of the whole command */
    uint64_t peak_anon_bytes;
    uint64_t n_samples;
} say_report;

/* Writes the figures as JSON, atomically. */
int say_write_stats(const char *path, const say_report *report, sl_error *reterr) SL_MUST_CHECK;

/* One line on standard error. */
void say_print_summary(const say_report *report, const char *output);

#endif
