#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "npy.h"
#include "os/os_file.h"
#include "report.h"
#include "say.h"
#include "voice_dir.h"

#define MAX_TEXT_BYTES (UINT64_C(16) << 20)

/* A recording longer than this fills the context before anything is said. */
#define MAX_REFERENCE_SECONDS 120.0

void say_input_done(say_input *in)
{
    sl__free(in->text);
    sl__free(in->codes);
    s2_voice_done(&in->voice);
    memset(in, 0, sizeof *in);
}

int say_read_text(const say_opts *opts, const opt_result *line, say_input *in, sl_error *reterr)
{
    const char *path = opts->file;
    if (line->n_operands > 0 && strcmp(line->operands[0], "-") == 0) {
        path = "-";
    } else if (line->n_operands > 0) {
        in->text_bytes = strlen(line->operands[0]);
        in->text = sl__strndup(line->operands[0], in->text_bytes);
        return in->text ? SL_OK : sl__fail_nomem(reterr, in->text_bytes, "the text");
    }
    if (!path) {
        return SL_OK;
    }
    return sl__read_file(path, "text", MAX_TEXT_BYTES, &in->text, &in->text_bytes, reterr);
}

static int load_voice(const say_opts *opts, say_input *in, sl_error *reterr)
{
    char *dir = NULL;
    char *path = NULL;
    int r = voice_dir(opts->voice_dir, &dir, reterr);
    if (r == 0) {
        r = voice_path_of(dir, opts->voice, &path, reterr);
    }
    if (r == 0) {
        r = s2_voice_load(path, &in->voice, reterr);
    }
    sl__free(path);
    sl__free(dir);
    return r;
}

static int save_voice(const say_opts *opts, const s2_voice *voice, sl_error *reterr)
{
    char *dir = NULL;
    char *path = NULL;
    int r = voice_dir(opts->voice_dir, &dir, reterr);
    if (r == 0) {
        r = s2_voice_path(dir, opts->save_voice, &path, reterr);
    }
    if (r == 0) {
        r = s2_voice_save(path, voice, reterr);
    }
    if (path && r >= 0 && !opts->quiet) {
        char quoted[256];
        fprintf(stderr, "saved voice %s in %s%s\n", opts->save_voice,
                sl__quote(quoted, sizeof quoted, path, strlen(path)),
                r > 0 ? " (a new folder)" : "");
    }
    s2_voice_path_free(path);
    sl__free(dir);
    return r > 0 ? SL_OK : r;
}

static int encode_reference(
        const say_opts *opts, s2_engine *engine, say_input *in, sl_error *reterr)
{
    s2_audio audio = {0};
    uint32_t rate = s2_engine_get_info(engine).sample_rate;
    int r = s2_audio_read(opts->ref_audio, rate, MAX_REFERENCE_SECONDS, &audio, reterr);
    if (r < 0) {
        return r;
    }
    if (audio.n < (size_t)rate * S2_AUDIO_SHORT_MS / 1000 && !opts->quiet) {
        report_warning("say", "--ref-audio has %zu ms of sound; 10 to 30 seconds make a good voice",
                audio.n * 1000 / rate);
    }
    r = s2_engine_make_voice(engine, audio.samples, audio.n, opts->ref_text, &in->voice, reterr);
    s2_audio_done(&audio);
    if (r == 0 && opts->save_voice) {
        r = save_voice(opts, &in->voice, reterr);
    }
    return r;
}

int say_read_voice(const say_opts *opts, s2_engine *engine, say_input *in, sl_error *reterr)
{
    int r = SL_OK;
    if (opts->voice) {
        r = load_voice(opts, in, reterr);
    } else if (opts->ref_audio) {
        r = encode_reference(opts, engine, in, reterr);
    }
    in->has_voice = r == 0 && in->voice.codes;
    if (r == 0 && opts->codes_in) {
        s2_engine_info info = s2_engine_get_info(engine);
        r = npy_read_codes(opts->codes_in, info.n_codebooks, (int32_t)info.codebook_size - 1,
                &in->codes, &in->n_codes_frames, reterr);
    }
    return r;
}
