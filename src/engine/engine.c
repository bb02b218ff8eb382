/*
 * Opening a model and the two jobs that need no generation: decoding codes and encoding a recording. The
 * codec's halves are made when they are first needed: a voice from a file never touches the encoder.
 */
#include "s2/engine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "engine/engine_impl.h"
#include "engine/stage.h"
#include "os/os_clock.h"
#include "os/os_process.h"

/* Opens MODEL.tokenizer.json, tokenizer.json beside the model, or tokenizer.json one folder up. */
static int open_tokenizer_near(
        const char *model_path, s2_tokenizer **ret_tokenizer, sl_error *reterr)
{
    const char *slash = strrchr(model_path, '/');
    int dir_bytes = slash ? (int)(slash - model_path) + 1 : 0;
    int stem_bytes = (int)strlen(model_path);
    if (stem_bytes > 5 && strcmp(model_path + stem_bytes - 5, ".gguf") == 0) {
        stem_bytes -= 5;
    }
    const struct {
        int n;
        const char *suffix;
    } near[] = {
            {stem_bytes, ".tokenizer.json"},
            {dir_bytes, "tokenizer.json"},
            {dir_bytes, "../tokenizer.json"},
    };
    int r = SL_ENOENT;
    for (size_t i = 0; i < sizeof near / sizeof near[0] && r == SL_ENOENT; i++) {
        size_t n = (size_t)near[i].n + strlen(near[i].suffix) + 1;
        char *path = sl__alloc(n, 1);
        if (!path) {
            return sl__fail_nomem(reterr, n, "a path");
        }
        snprintf(path, n, "%.*s%s", near[i].n, model_path, near[i].suffix);
        r = s2_tokenizer_open(path, ret_tokenizer, reterr);
        sl__free(path);
    }
    if (r == SL_ENOENT) {
        char quoted[256];
        return sl__fail(reterr, SL_ENOENT,
                "%s: no tokenizer.json beside the model or one folder up; name it with -t FILE",
                sl__quote(quoted, sizeof quoted, model_path, strlen(model_path)));
    }
    return r;
}

static int open_text(s2_engine *e, const s2_engine_opts *opts, sl_error *reterr)
{
    int r = opts->tokenizer_path ? s2_tokenizer_open(opts->tokenizer_path, &e->tokenizer, reterr)
                                 : open_tokenizer_near(opts->model_path, &e->tokenizer, reterr);
    if (r < 0) {
        return r;
    }
    return s2_prompt_layout_init(&e->layout, e->tokenizer, e->hp.n_codebooks, e->hp.codebook_size,
            e->hp.semantic_begin, e->hp.n_vocab, reterr);
}

static bool begins_with(sl_span name, const char *prefix)
{
    size_t n = strlen(prefix);
    return name.n >= n && memcmp(name.p, prefix, n) == 0;
}

/*
 * Says if the parts are stored too coarsely that are known to suffer: below 8 bits a weight the fast AR
 * tends to miss the end of speech, and the codec hums.
 */
static void warn_coarse_types(const s2_engine *e)
{
    static const struct {
        const char *prefix;
        const char *part;
    } parts[] = {{"fast_", "fast AR"}, {"c.", "codec"}};
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
        for (uint64_t i = 0; i < sl_model_n_tensors(e->model); i++) {
            const sl_gguf_tensor *t = sl_model_tensor_at(e->model, i)->info;
            sl_tensor_type_info type;
            if (begins_with(t->name, parts[k].prefix) && sl_tensor_type(t->type, &type) &&
                    type.block_bytes < type.block_elems) {
                sl__log(&e->log, SL_LOG_WARN,
                        "the %s has %s weights; below q8_0 it may sound wrong or not end",
                        parts[k].part, type.name);
                break;
            }
        }
    }
}

static bool is_on_host(void *ud, s2_unit_id unit)
{
    const s2_engine *e = ud;
    return s2_planner_wanted(&e->planner, (s2_slot)unit) == 0;
}

/* Makes the pages of units present that are computed on in place. */
static int populate(s2_engine *e, unsigned unit_mask, sl_error *reterr)
{
    const s2_host_units units = {.mask = unit_mask, .is_on_host = is_on_host, .ud = e};
    return s2_host_pages_populate(&e->pages, e->model, &units, reterr);
}

static int open_weights(s2_engine *e, sl_error *reterr)
{
    int r = s2_weights_open(e->model, &e->planner.head.tensor, &e->weights, reterr);
    if (r == 0 && e->planner.n_first < e->hp.slow.n_layer) {
        s2_weights_split_slow(e->weights, e->planner.n_first);
    }
    return r < 0 ? r : s2_stage_need_ars(e, reterr);
}

int s2_engine_open(const s2_engine_opts *opts, s2_engine **ret_engine, sl_error *reterr)
{
    uint32_t n_cpus = opts->n_threads == 1 ? 1 : sl__n_cpus();
    uint32_t n_threads = opts->n_threads ? opts->n_threads : n_cpus;
    s2_engine *e = sl__alloc(1, sizeof *e);
    if (!e) {
        return sl__fail_nomem(reterr, sizeof *e, "an engine");
    }
    e->log = opts->log;
    if (n_threads > n_cpus) {
        /* ggml's threads wait for each other by spinning: more of them than processors stand still. */
        sl__log(&e->log, SL_LOG_WARN, "%u threads asked for, %u processors: using %u", n_threads,
                n_cpus, n_cpus);
        n_threads = n_cpus;
    }
    e->n_threads = n_threads;
    int r = s2_host_pages_init(&opts->memory, &e->log, &e->pages, reterr);
    if (r == 0) {
        r = sl_model_open(opts->model_path, &e->model, reterr);
    }
    if (r == 0) {
        r = s2_hparams_read(e->model, &e->hp, reterr);
    }
    if (r == 0) {
        r = s2_stage_open(e, opts, reterr);
    }
    e->expects_speech = opts->expects_speech;
    if (r == 0 && opts->expects_speech && !opts->expects_voice) {
        s2_stage_fetch_ahead(e);
    }
    if (r == 0) {
        r = open_text(e, opts, reterr);
    }
    if (r == 0) {
        r = open_weights(e, reterr);
    }
    if (r == 0) {
        s2_engine_set_stop(e, opts->should_stop, opts->stop_ud);
        r = populate(e, S2_HOST_UNITS_OPEN, reterr);
    }
    if (r < 0) {
        s2_engine_close(&e);
        return r;
    }
    warn_coarse_types(e);
    *ret_engine = e;
    return SL_OK;
}

void s2_engine_close(s2_engine **engine)
{
    if (!engine || !*engine) {
        return;
    }
    s2_engine *e = *engine;
    s2_stage_close(e);
    s2_weights_close(&e->weights);
    s2_tokenizer_close(&e->tokenizer);
    sl_model_close(&e->model);
    s2_host_pages_done(&e->pages);
    sl__free(e);
    *engine = NULL;
}

void s2_engine_set_stop(s2_engine *engine, bool (*should_stop)(void *ud), void *ud)
{
    for (size_t i = 0; i < S2_MAX_PLACES; i++) {
        s2_compute_set_stop(&engine->computes[i], should_stop, ud);
    }
    s2_compute_set_stop(&engine->codec_compute, should_stop, ud);
    engine->pages.should_stop = should_stop;
    engine->pages.stop_ud = ud;
}

s2_engine_info s2_engine_get_info(const s2_engine *engine)
{
    s2_engine_info info = {
            .sample_rate = engine->hp.codec.sample_rate,
            .frame_samples = engine->hp.codec.frame_samples,
            .n_codebooks = engine->hp.n_codebooks,
            .codebook_size = engine->hp.codebook_size,
            .n_ctx = engine->hp.n_ctx,
            .n_threads = engine->n_threads,
    };
    return info;
}

const char *s2_end_name(s2_end end)
{
    static const char *const names[S2_END_COUNT] = {
            [S2_END_SPEECH] = "speech",
            [S2_END_LIMIT] = "limit",
            [S2_END_STOPPED] = "stopped",
    };
    return (unsigned)end < S2_END_COUNT ? names[end] : "unknown";
}

sl_residency *s2_engine_residency(s2_engine *engine)
{
    return engine->residency;
}

const s2_placement *s2_engine_placement(const s2_engine *engine)
{
    return engine->placement;
}

int s2__engine_need_decoder(s2_engine *e, sl_error *reterr)
{
    if (e->decoder) {
        s2_codec_decoder_reset(e->decoder);
        return SL_OK;
    }
    s2_compute *compute = NULL;
    int r = s2_stage_need_codec_compute(e, &compute, reterr);
    if (r == 0) {
        r = s2_codec_decoder_create(&e->hp, e->weights, compute, &e->decoder, reterr);
    }
    return r < 0 ? r : s2_codec_decoder_prepare(e->decoder, reterr);
}

int s2_engine_decode(s2_engine *engine, const int32_t *codes, uint32_t n_frames,
        int (*on_samples)(void *ud, const float *samples, size_t n), void *ud, s2_stats *ret_stats,
        sl_error *reterr)
{
    size_t frame_samples = engine->hp.codec.frame_samples;
    uint64_t begin_ns = sl__now_ns();
    s2_stats stats = {0};
    const s2_extent extent = {.n_prompt = 1, .n_positions = 2, .n_frames = n_frames};

    if (n_frames == 0) {
        return sl__fail(reterr, SL_EINVAL, "codes: no frames, need at least one");
    }
    float *samples = sl__alloc(frame_samples, sizeof *samples);
    if (!samples) {
        return sl__fail_nomem(reterr, frame_samples * sizeof *samples, "a frame of samples");
    }
    int r = s2_stage_plan(engine, S2_PHASE_DECODE, &extent, reterr);
    if (r == 0) {
        r = s2_stage_begin(engine, 0, false, reterr);
    }
    if (r == 0) {
        r = s2__engine_need_decoder(engine, reterr);
    }
    for (uint32_t i = 0; i < n_frames && r == 0; i++) {
        r = s2_codec_decoder_push(
                engine->decoder, codes + (size_t)i * engine->hp.n_codebooks, 1, samples, reterr);
        if (r == 0) {
            r = sl_model_check(engine->model, reterr);
        }
        if (r < 0) {
            break;
        }
        stats.n_frames++;
        stats.first_audio_ns = i == 0 ? sl__now_ns() - begin_ns : stats.first_audio_ns;
        if (on_samples && on_samples(ud, samples, frame_samples) != 0) {
            stats.end = S2_END_STOPPED;
            break;
        }
    }
    if (r == SL_ECANCELLED) {
        stats.end = S2_END_STOPPED;
        r = SL_OK;
    }
    sl__free(samples);
    stats.total_ns = sl__now_ns() - begin_ns;
    stats.decode_ns = stats.total_ns;
    stats.compute_bytes = engine->decoder ? s2_codec_decoder_bytes(engine->decoder) : 0;
    s2_stage_finish(engine);
    if (r == 0) {
        *ret_stats = stats;
    }
    return r;
}

static int check_recording(const s2_engine *e, const float *samples, size_t n_samples,
        const char *text, sl_error *reterr)
{
    size_t n_text = strlen(text);
    if (n_text == 0 || sl__utf8_valid_prefix(text, n_text) != n_text) {
        return sl__fail(reterr, SL_EINVAL, "reference text: %s",
                n_text == 0 ? "empty, need the exact transcript of the recording" : "not UTF-8");
    }
    if (n_samples == 0) {
        return sl__fail(reterr, SL_EINVAL, "reference audio: no samples");
    }
    if (n_samples / e->hp.codec.frame_samples >= S2_VOICE_MAX_FRAMES) {
        return sl__fail(reterr, SL_ELIMIT, "reference audio: %zu samples, at most %d frames of %u",
                n_samples, S2_VOICE_MAX_FRAMES, e->hp.codec.frame_samples);
    }
    for (size_t i = 0; i < n_samples; i++) {
        if (!isfinite(samples[i])) {
            return sl__fail(reterr, SL_EINVAL, "reference audio: sample %zu is not a number", i);
        }
    }
    return SL_OK;
}

int s2_engine_make_voice(s2_engine *engine, const float *samples, size_t n_samples,
        const char *text, s2_voice *ret_voice, sl_error *reterr)
{
    const s2_hparams *hp = &engine->hp;
    s2_codec_encoder *encoder = NULL;
    s2_voice voice = {
            .n_codebooks = hp->n_codebooks,
            .sample_rate = hp->codec.sample_rate,
            .codebook_size = hp->codebook_size,
    };
    int r = check_recording(engine, samples, n_samples, text, reterr);
    if (r < 0) {
        return r;
    }
    r = populate(engine, S2_HOST_UNITS_VOICE, reterr);
    if (r == 0) {
        r = s2_stage_plan_voice(engine, reterr);
    }
    if (r == 0) {
        r = s2_stage_begin(engine, 0, false, reterr);
    }
    if (r < 0) {
        return r;
    }
    r = s2_codec_encoder_create(
            hp, engine->weights, s2_stage_compute(engine, S2_SLOT_CODEC_ENCODER), &encoder, reterr);
    if (r < 0) {
        goto out;
    }
    voice.n_frames = s2_codec_encoder_n_frames(encoder, n_samples);
    voice.text = sl__strndup(text, strlen(text));
    voice.codes = sl__alloc((size_t)voice.n_codebooks * voice.n_frames, sizeof *voice.codes);
    if (!voice.text || !voice.codes) {
        r = sl__fail_nomem(reterr, (size_t)voice.n_codebooks * voice.n_frames * 4, "a voice");
        goto out;
    }
    r = s2_codec_encoder_run(encoder, samples, n_samples, voice.codes, reterr);
    if (r == 0) {
        r = sl_model_check(engine->model, reterr);
    }
out:
    s2_codec_encoder_free(&encoder);
    if (engine->expects_speech) {
        s2_stage_end(engine);
    } else {
        s2_stage_finish(engine);
    }
    if (r < 0) {
        s2_voice_done(&voice);
        return r;
    }
    *ret_voice = voice;
    return SL_OK;
}
