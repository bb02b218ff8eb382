/*
 * One request from text to samples:
 *
 *   clean -> cut into pieces -> for each piece: prompt -> session -> frame -> decoder -> samples out
 *
 * Text with speaker tags is cut into the original's batches, other text at sentence borders. A piece sees
 * what was spoken before as earlier messages, as the original does it; when a recording fixes the voice,
 * pieces of untagged text are independent of each other instead and share the prompt's beginning.
 *
 * Frames are decoded one at a time, as they are made or, if the plan says so, when all are made: samples do not
 * depend on when, nor on whether anybody listens.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/engine_impl.h"
#include "engine/session.h"
#include "engine/speech_out.h"
#include "engine/stage.h"
#include "engine/text/normalize.h"
#include "engine/text/segment.h"
#include "os/os_clock.h"

/* Nobody speaks this many letters a second: speech that ends sooner than its letters take was cut short. */
#define MAX_LETTERS_PER_SECOND 60

/* And nobody says a word in less than three frames. */
#define MIN_WORD_FRAMES 3

/* Columns of prompt and speech that a byte of text needs at most, usually; and those of a message around it. */
#define COLUMNS_PER_BYTE   4
#define COLUMNS_OF_MESSAGE 64

/*
 * Columns of earlier messages that a piece may see. Beyond, only the last piece is kept: the voice goes on from
 * it, and a book needs no more memory than a page.
 */
#define MAX_HISTORY_COLUMNS 2048

/* Bytes of a batch of speaker turns, as in the original. */
#define TURN_BATCH_BYTES 512

typedef struct job {
    s2_engine *e;
    const s2_speak_opts *opts;
    s2_stats *stats;
    uint64_t begin_ns;
    s2_control control; /* what <|...|> in texts means */
    char *text;         /* cleaned */
    size_t text_bytes;
    char **batches; /* pieces of tagged text; NULL otherwise */
    size_t n_batches;
    s2_segments segments;
    sl_span *pieces;
    size_t n_pieces;
    bool keeps_history; /* a piece sees the earlier ones */
    s2_prompt prompt;
    s2_sampler *sampler;
    s2_session session;
    int32_t *frame; /* [n_codebooks] */
    int32_t *codes; /* frame major, of the current piece, or of all if they are decoded after */
    size_t codes_cap;
    uint32_t n_codes;     /* frames in it */
    uint32_t first_frame; /* of the current piece in it */
    uint32_t n_generated; /* frames of all pieces so far */
    uint32_t n_prefix;    /* columns of the prompt that all pieces share */
    s2_extent extent;
    bool is_streaming; /* weights may still be arriving */
    s2_speech_out out;
} job;

s2_speak_opts s2_speak_defaults(void)
{
    s2_speak_opts opts = {
            .temperature = 0.8f,
            .top_p = 0.8f,
            .top_k = 30,
            .max_frames = 1024,
    };
    return opts;
}

static int check_voices(const s2_engine *e, const s2_speak_opts *opts, sl_error *reterr)
{
    const s2_hparams *hp = &e->hp;
    for (size_t i = 0; i < opts->n_voices; i++) {
        const s2_voice *v = &opts->voices[i];
        if (v->n_codebooks != hp->n_codebooks || v->codebook_size != hp->codebook_size ||
                v->sample_rate != hp->codec.sample_rate) {
            return sl__fail(reterr, SL_EINVAL,
                    "voice: made with %u codebooks of %u entries at %u Hz, this model has %u of %u "
                    "at %u Hz: make the voice again with this model",
                    v->n_codebooks, v->codebook_size, v->sample_rate, hp->n_codebooks,
                    hp->codebook_size, hp->codec.sample_rate);
        }
    }
    return SL_OK;
}

static bool is_blank(const char *text, size_t n)
{
    return strspn(text, " \t\n") >= n;
}

/* Frames that the letters and digits of a piece need at least; what stands in [brackets] is not spoken. */
static uint32_t least_frames(const s2_engine *e, sl_span text)
{
    uint64_t n_letters = 0;
    bool in_tag = false;
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        in_tag = c == '[' || (in_tag && c != ']');
        /* Above ASCII every character counts once, by its first byte. */
        bool is_letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                         (c >= 'a' && c <= 'z') || c >= 0xC0;
        n_letters += is_letter && !in_tag;
    }
    uint64_t per_frame = (uint64_t)MAX_LETTERS_PER_SECOND * e->hp.codec.frame_samples;
    uint32_t by_letters = (uint32_t)(n_letters * e->hp.codec.sample_rate / per_frame);
    return n_letters > 0 ? by_letters + MIN_WORD_FRAMES : 0;
}

static int cut_pieces(job *j, sl_error *reterr)
{
    const s2_speak_opts *opts = j->opts;
    size_t max_bytes = opts->segment_bytes ? opts->segment_bytes : SIZE_MAX;
    size_t n_batches = 0;
    int r = s2_text_batches(
            j->text, j->text_bytes, TURN_BATCH_BYTES, &j->batches, &n_batches, reterr);
    if (r < 0) {
        return r;
    }
    if (n_batches == 1 && strlen(j->batches[0]) > max_bytes) {
        r = s2_text_segment(j->text, j->text_bytes, max_bytes / 2, max_bytes, &j->segments, reterr);
        if (r < 0) {
            s2_batches_free(j->batches, n_batches);
            j->batches = NULL;
            return r;
        }
        s2_batches_free(j->batches, n_batches);
        j->batches = NULL;
        j->pieces = j->segments.items;
        j->n_pieces = j->segments.n;
        j->keeps_history = opts->n_voices == 0;
        return SL_OK;
    }
    j->n_batches = n_batches;
    j->pieces = sl__alloc(n_batches + 1, sizeof *j->pieces);
    if (!j->pieces) {
        return sl__fail_nomem(reterr, n_batches * sizeof *j->pieces, "a list of pieces");
    }
    /* The original drops what stands before the first speaker tag; here it is a piece of its own. */
    size_t n_lead = 0;
    if (s2_find_speaker_tag(j->text, j->text_bytes, &n_lead) > 0 && !is_blank(j->text, n_lead)) {
        j->pieces[j->n_pieces++] = (sl_span){j->text, n_lead};
    }
    for (size_t i = 0; i < n_batches; i++) {
        j->pieces[j->n_pieces++] = (sl_span){j->batches[i], strlen(j->batches[i])};
    }
    j->keeps_history = true;
    return SL_OK;
}

static int prepare_text(job *j, sl_error *reterr)
{
    const s2_speak_opts *opts = j->opts;
    int r = s2_text_normalize(opts->text, opts->text_bytes, &j->text, &j->text_bytes, reterr);
    if (r < 0) {
        return r;
    }
    if (is_blank(j->text, j->text_bytes)) {
        return sl__fail(reterr, SL_EINVAL, "text: nothing to speak, need at least one character");
    }
    return cut_pieces(j, reterr);
}

/* Puts the slow AR behind the system message. */
static int need_prefix(job *j, sl_error *reterr)
{
    s2_engine *e = j->e;
    uint32_t n_evaluated = 0;
    uint64_t begin_ns = sl__now_ns();
    int r = s2_prefix_need(&e->prefix, e->slow, j->prompt.columns, j->n_prefix,
            1 + e->hp.n_codebooks, &n_evaluated, reterr);
    j->stats->prefill_ns += sl__now_ns() - begin_ns;
    j->stats->n_prompt_columns += n_evaluated;
    return r;
}

static int build_prefix(job *j, sl_error *reterr)
{
    const s2_speak_opts *opts = j->opts;
    s2_reference *refs = sl__alloc(opts->n_voices, sizeof *refs);
    if (!refs) {
        return sl__fail_nomem(reterr, opts->n_voices * sizeof *refs, "references");
    }
    for (size_t i = 0; i < opts->n_voices; i++) {
        refs[i] = (s2_reference){
                .text = opts->voices[i].text,
                .text_bytes = strlen(opts->voices[i].text),
                .codes = opts->voices[i].codes,
                .n_frames = opts->voices[i].n_frames,
        };
    }
    int r = s2_prompt_begin(&j->e->layout, refs, opts->n_voices, j->control, &j->prompt, reterr);
    sl__free(refs);
    j->n_prefix = (uint32_t)j->prompt.n_columns;
    return r;
}

/* Keeps the codes of a frame. */
static int keep_frame(job *j, sl_error *reterr)
{
    uint32_t n_books = j->e->hp.n_codebooks;
    if (!sl__grow((void **)&j->codes, &j->codes_cap, ((size_t)j->n_codes + 1) * n_books,
                sizeof *j->codes)) {
        return sl__fail_nomem(reterr, (size_t)n_books * sizeof *j->codes, "generated codes");
    }
    memcpy(j->codes + (size_t)j->n_codes * n_books, j->frame, n_books * sizeof *j->frame);
    j->n_codes++;
    return SL_OK;
}

/* Numbers that are none come from broken weights: the file is to blame, and is named. */
static int blame_model(const job *j, int r, sl_error *reterr)
{
    if (r != SL_EINVAL || !reterr) {
        return r;
    }
    sl_error what = *reterr;
    return sl__fail(
            reterr, SL_EFORMAT, "%s: broken weights: %s", sl_model_path(j->e->model), what.msg);
}

static void note_memory(job *j)
{
    s2_engine *e = j->e;
    uint64_t kv = s2_slow_ar_kv_bytes(e->slow, NULL) + s2_fast_ar_kv_bytes(e->fast);
    uint64_t compute = s2_fast_ar_compute_bytes(e->fast);
    for (size_t i = 0; i < S2_MAX_PLACES; i++) {
        compute += s2_slow_ar_compute_bytes(e->slow, &e->computes[i]);
    }
    compute += e->decoder ? s2_codec_decoder_bytes(e->decoder) : 0;
    j->stats->kv_bytes = kv > j->stats->kv_bytes ? kv : j->stats->kv_bytes;
    j->stats->compute_bytes = compute > j->stats->compute_bytes ? compute : j->stats->compute_bytes;
}

/*
 * Begins generating: the phase, room in the cache for all of the request, and the shared beginning of the prompts.
 */
static int begin_generating(job *j, bool is_streaming, sl_error *reterr)
{
    s2_engine *e = j->e;
    int r = s2_stage_begin(e, 0, is_streaming, reterr);
    j->is_streaming = is_streaming;
    if (r == 0 && s2_stage_is_moved(e, S2_SLOT_SLOW)) {
        r = s2_slow_ar_reserve(e->slow, j->extent.n_positions, reterr);
    }
    bool is_early = e->decoder || !s2_stage_is_moved(e, S2_SLOT_CODEC_DECODER);
    if (r == 0 && is_early && s2_stage_decodes_together(e)) {
        /* One on the host is made before the first frame: memory that is short shows at once. */
        r = s2__engine_need_decoder(e, reterr);
    }
    return r < 0 ? r : need_prefix(j, reterr);
}

/* Weights that fail to arrive are asked for once more, all of them before anything is computed. */
static int generate_or_retry(job *j, sl_error *reterr)
{
    sl_error first = {0};
    int r = begin_generating(j, true, &first);
    bool is_load = r == SL_ENOMEM || r == SL_EDEVICE || r == SL_EIO;
    if (is_load) {
        sl__log(&j->e->log, SL_LOG_INFO, "once more: %s", first.msg);
        s2_stage_end(j->e);
        r = begin_generating(j, false, reterr);
    } else if (r < 0 && reterr) {
        *reterr = first;
    }
    return r;
}

/* Speaks one piece; 1 = stopped by a callback. */
static int speak_piece(job *j, size_t i_piece, sl_error *reterr)
{
    s2_engine *e = j->e;
    sl_span piece = j->pieces[i_piece];
    uint32_t least = least_frames(e, piece);
    uint32_t min_frames = j->opts->min_frames > least ? j->opts->min_frames : least;

    int r = s2_prompt_add_user(&e->layout, piece.p, piece.n, j->control, &j->prompt, reterr);
    if (r < 0) {
        return r;
    }
    const s2_session_start start = {
            .columns = j->prompt.columns,
            .n_columns = (uint32_t)j->prompt.n_columns,
            .n_shared = s2_slow_ar_n_past(e->slow),
            .min_frames = min_frames,
            .max_frames = j->opts->max_frames,
    };
    j->stats->n_prompt_columns += start.n_columns - start.n_shared;
    bool is_together = s2_stage_decodes_together(e);
    j->first_frame = is_together ? 0 : j->n_codes;
    j->n_codes = j->first_frame;
    r = s2_session_begin(&j->session, j->sampler, &start, j->stats, reterr);
    if (r < 0) {
        return r;
    }
    while (r == 0) {
        r = s2_session_next(&j->session, j->frame, reterr);
        if (r <= 0) {
            break;
        }
        r = keep_frame(j, reterr);
        if (r == 0 && is_together) {
            r = s2_speech_out_frame(&j->out, j->frame, reterr);
        }
    }
    if (!j->out.ahead) {
        note_memory(j); /* its thread owns the decoder: then when it has ended */
    }
    if (r != 0) {
        return blame_model(j, r, reterr);
    }
    if (j->session.end == S2_END_LIMIT) {
        j->stats->end = S2_END_LIMIT;
        sl__log(&e->log, SL_LOG_WARN,
                "piece %zu of %zu is cut off after %u frames, the limit of %s", i_piece + 1,
                j->n_pieces, j->session.n_frames,
                j->session.max_frames < j->opts->max_frames ? "the model's context" : "max frames");
    }
    if (j->session.n_frames == 0) {
        return sl__fail(reterr, SL_EINTERNAL,
                "no audio generated: the model ended the speech at once; try another seed");
    }
    return SL_OK;
}

/* Turns the codes of the piece from frame major to book major and puts it behind the prompt. */
static int append_answer(job *j, sl_error *reterr)
{
    uint32_t n_books = j->e->hp.n_codebooks;
    uint32_t n_frames = j->session.n_frames;
    int32_t *codes = sl__alloc((size_t)n_books * n_frames, sizeof *codes);
    if (!codes) {
        return sl__fail_nomem(reterr, (size_t)n_books * n_frames * 4, "generated codes");
    }
    const int32_t *history = j->codes + (size_t)j->first_frame * n_books;
    for (uint32_t t = 0; t < n_frames; t++) {
        for (uint32_t b = 0; b < n_books; b++) {
            codes[(size_t)b * n_frames + t] = history[(size_t)t * n_books + b];
        }
    }
    int r = s2_prompt_add_answer(&j->e->layout, codes, n_frames, &j->prompt, reterr);
    sl__free(codes);
    return r;
}

/* Says if piece i and its speech fit behind the prompt as it is. */
static bool has_room(const job *j, size_t i)
{
    size_t n = j->prompt.n_columns;
    size_t need = COLUMNS_OF_MESSAGE + COLUMNS_PER_BYTE * j->pieces[i].n;
    return n <= MAX_HISTORY_COLUMNS && need <= j->e->hp.n_ctx && n <= j->e->hp.n_ctx - need;
}

/* Makes the prompt that piece i > 0 is added to. */
static int continue_prompt(job *j, size_t i, sl_error *reterr)
{
    s2_engine *e = j->e;
    int r = j->keeps_history ? append_answer(j, reterr) : SL_OK;
    if (r < 0 || (j->keeps_history && has_room(j, i))) {
        return r;
    }
    j->prompt.n_columns = j->n_prefix;
    s2_slow_ar_rewind(e->slow, j->n_prefix);
    if (j->keeps_history) {
        sl_span last = j->pieces[i - 1];
        r = s2_prompt_add_user(&e->layout, last.p, last.n, j->control, &j->prompt, reterr);
        if (r == 0) {
            r = append_answer(j, reterr);
        }
        if (r == 0 && !has_room(j, i)) {
            j->prompt.n_columns = j->n_prefix;
        }
    }
    return r;
}

/* The second phase of a run that decodes after generating. */
static int decode_all(job *j, sl_error *reterr)
{
    uint32_t n_books = j->e->hp.n_codebooks;
    s2_stage_end(j->e);
    int r = s2_stage_begin(j->e, 1, false, reterr);
    if (r == 0) {
        r = s2__engine_need_decoder(j->e, reterr);
    }
    for (uint32_t i = 0; i < j->n_codes && r == 0; i++) {
        r = s2_speech_out_frame(&j->out, j->codes + (size_t)i * n_books, reterr);
    }
    return r < 0 ? blame_model(j, r, reterr) : r;
}

static int speak_pieces(job *j, sl_error *reterr)
{
    int r = SL_OK;
    for (size_t i = 0; i < j->n_pieces && r == 0; i++) {
        if (i > 0) {
            r = continue_prompt(j, i, reterr);
            r = r < 0 ? r : s2_speech_out_pause(&j->out, j->n_generated, reterr);
        }
        if (r == 0) {
            r = speak_piece(j, i, reterr);
        }
        j->n_generated += j->session.n_frames;
        j->stats->n_segments++;
    }
    if (r == 0 && !s2_stage_decodes_together(j->e)) {
        r = decode_all(j, reterr);
    } else if (r == 0) {
        r = blame_model(j, s2_speech_out_flush(&j->out, reterr), reterr);
    }
    if (r > 0) {
        j->stats->end = S2_END_STOPPED;
        r = SL_OK;
    }
    return r;
}

/* The columns of the longest prompt, and of the longest sequence. */
static int measure_prompts(job *j, sl_error *reterr)
{
    const s2_engine *e = j->e;
    size_t longest = 0;
    int r = SL_OK;
    for (size_t i = 0; i < j->n_pieces && r == 0; i++) {
        r = s2_prompt_add_user(
                &e->layout, j->pieces[i].p, j->pieces[i].n, j->control, &j->prompt, reterr);
        longest = j->prompt.n_columns > longest ? j->prompt.n_columns : longest;
        j->prompt.n_columns = j->n_prefix;
    }
    uint64_t history = j->keeps_history && j->n_pieces > 1 ? MAX_HISTORY_COLUMNS : 0;
    j->extent = s2_extent_of(&e->hp, longest + history, j->opts->max_frames);
    return r;
}

static int prepare_job(job *j, sl_error *reterr)
{
    s2_engine *e = j->e;
    const s2_speak_opts *opts = j->opts;
    s2_sample_params params = {opts->temperature, opts->top_p, opts->top_k};

    if (opts->max_frames == 0) {
        return sl__fail(reterr, SL_EINVAL, "max frames: 0, need at least 1");
    }
    int r = check_voices(e, opts, reterr);
    if (r == 0) {
        r = s2_sampler_create(&params, opts->seed, e->hp.codebook_size + 1, &j->sampler, reterr);
    }
    if (r == 0) {
        r = prepare_text(j, reterr);
    }
    if (r < 0) {
        return r;
    }
    j->frame = sl__alloc(e->hp.n_codebooks, sizeof *j->frame);
    if (!j->frame) {
        return sl__fail_nomem(reterr, e->hp.n_codebooks * sizeof *j->frame, "a frame");
    }
    r = s2_speech_out_init(&j->out, e, opts, j->stats, j->begin_ns, reterr);
    if (r < 0) {
        return r;
    }
    r = build_prefix(j, reterr);
    if (r == 0) {
        r = measure_prompts(j, reterr);
    }
    if (r == 0) {
        r = s2_stage_plan_speech(e, &j->extent, opts->wants_sound_early, reterr);
    }
    if (r == 0) {
        r = generate_or_retry(j, reterr);
    }
    return r < 0 ? r : s2_session_init(&j->session, &e->hp, e->slow, e->fast, reterr);
}

static void job_done(job *j)
{
    s2_speech_out_done(&j->out);
    if (j->batches) {
        s2_batches_free(j->batches, j->n_batches);
        sl__free(j->pieces);
    }
    s2_segments_done(&j->segments);
    s2_prompt_done(&j->prompt);
    s2_session_done(&j->session);
    s2_sampler_free(&j->sampler);
    sl__free(j->text);
    sl__free(j->frame);
    sl__free(j->codes);
}

int s2_engine_speak(
        s2_engine *engine, const s2_speak_opts *opts, s2_stats *ret_stats, sl_error *reterr)
{
    s2_stats stats = {0};
    job j = {
            .e = engine,
            .opts = opts,
            .stats = &stats,
            .begin_ns = sl__now_ns(),
            .control = opts->allow_control_tokens ? S2_CONTROL_PARSE : S2_CONTROL_AS_TEXT,
    };

    int r = prepare_job(&j, reterr);
    if (r == 0) {
        r = speak_pieces(&j, reterr);
    }
    if (r == SL_ECANCELLED) {
        stats.end = S2_END_STOPPED;
        r = SL_OK;
    }
    job_done(&j);
    note_memory(&j);
    s2_stage_finish(engine);
    stats.total_ns = sl__now_ns() - j.begin_ns;
    if (r == 0) {
        *ret_stats = stats;
    }
    return r;
}
