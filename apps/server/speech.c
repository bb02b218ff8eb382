/*
 * A synthesis from the first sample to the last byte. Nothing is sent before there is a sample: until then
 * a failure is an answer of its own, afterwards it is a stream that does not end properly.
 */
#include "speech.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "base/le_bytes.h"
#include "base/log.h"
#include "base/mem.h"
#include "base64.h"
#include "os/os_clock.h"
#include "sound_encoder.h"

#define WAV_HEAD_BYTES 44u
#define WHOLE_MOST     ((size_t)256 << 20) /* bytes of an answer that is made whole */

typedef struct run {
    const speech_context *context;
    job *j;
    s2_engine_info info;
    sound_encoder *encoder; /* NULL for WAV of floats */
    uint64_t begin_ns;
    uint64_t n_samples;
    size_t n_whole;          /* bytes so far of a whole answer */
    unsigned char *gathered; /* bytes of the current frame that are not sent yet */
    size_t n_gathered;
    size_t cap_gathered;
    uint32_t n_frames;
    uint32_t rate; /* of what is sent */
    bool has_head;
    sl_error err; /* of a callback; code 0 if none failed */
} run;

static reply_patience patience_of(const run *t)
{
    return (reply_patience){
            .stall_ns = t->context->opts->limits.stall_ns, .n_waiting = t->context->n_waiting};
}

static int gone(sl_error *reterr)
{
    return sl__fail(reterr, SL_ECANCELLED, "the client is gone");
}

/* One server-sent event with a piece of sound. */
static int write_event(run *t, const void *bytes, size_t n, sl_error *reterr)
{
    static const char head[] = "event: speech.audio.delta\n"
                               "data: {\"type\":\"speech.audio.delta\",\"audio\":\"";
    static const char tail[] = "\"}\n\n";
    reply_patience patience = patience_of(t);
    size_t n_all = sizeof head - 1 + base64_bound(n) + sizeof tail;
    char *text = sl__alloc(n_all, 1);
    if (!text) {
        return sl__fail_nomem(reterr, n_all, "an event");
    }
    memcpy(text, head, sizeof head - 1);
    size_t at = sizeof head - 1;
    at += base64_encode(bytes, n, text + at);
    memcpy(text + at, tail, sizeof tail);
    at += sizeof tail - 1;
    int r = reply_write(t->j->answer, text, at, &patience);
    sl__free(text);
    return r < 0 ? gone(reterr) : SL_OK;
}

/* Sends what a frame became: one chunk, or one event. */
static int send_gathered(run *t, sl_error *reterr)
{
    int r = SL_OK;
    reply_patience patience = patience_of(t);
    if (t->n_gathered > 0 && t->j->speech.framing == FRAMING_EVENTS) {
        r = write_event(t, t->gathered, t->n_gathered, reterr);
    } else if (t->n_gathered > 0) {
        r = reply_write(t->j->answer, t->gathered, t->n_gathered, &patience);
        r = r < 0 ? gone(reterr) : SL_OK;
    }
    t->n_gathered = 0;
    return r;
}

static int append_whole(run *t, const void *bytes, size_t n, sl_error *reterr)
{
    if (n > WHOLE_MOST - t->n_whole) {
        return sl__fail(reterr, SL_ELIMIT,
                "the sound has more than %zu bytes, the most that are sent in one piece; ask for a "
                "stream",
                WHOLE_MOST);
    }
    t->n_whole += n;
    int r = reply_append(t->j->answer, bytes, n);
    if (r == SL_ENOMEM) {
        return sl__fail_nomem(reterr, n, "the sound");
    }
    return r < 0 ? gone(reterr) : SL_OK;
}

/* Takes the encoder's bytes. */
static int take_bytes(void *ud, const void *bytes, size_t n, sl_error *reterr)
{
    run *t = ud;
    void *p = t->gathered;
    if (t->j->speech.framing == FRAMING_WHOLE) {
        return append_whole(t, bytes, n, reterr);
    }
    if (!sl__grow(&p, &t->cap_gathered, t->n_gathered + n, 1)) {
        return sl__fail_nomem(reterr, n, "the sound");
    }
    t->gathered = p;
    memcpy(t->gathered + t->n_gathered, bytes, n);
    t->n_gathered += n;
    return SL_OK;
}

static void add_sound_headers(const run *t)
{
    const job_speech *s = &t->j->speech;
    reply *answer = t->j->answer;
    reply_add_header(answer, "X-Seed", "%" PRIu64, s->seed);
    reply_add_header(answer, "X-Audio-Sample-Rate", "%" PRIu32, t->rate);
    reply_add_header(answer, "X-Audio-Channels", "1");
    if (s->format == S2_AUDIO_PCM) {
        reply_add_header(answer, "X-Audio-Encoding", "pcm_s16le");
    }
    if (s->framing != FRAMING_WHOLE) {
        reply_add_header(answer, "X-Accel-Buffering", "no");
        reply_set_endless(answer);
    }
    if (t->j->dialect == DIALECT_FORM) {
        reply_add_header(answer, "Content-Disposition",
                "attachment; filename=\"generated_audio.%s\"", s2_audio_format_name(s->format));
    }
}

/* Head and encoder, when the first samples are there. */
static int begin_sound(run *t, sl_error *reterr)
{
    const job_speech *s = &t->j->speech;
    uint32_t rate = sound_encoder_rate(s->format, t->info.sample_rate, s->rate);
    const char *type = sound_content_type(s->format);
    if (s->framing == FRAMING_EVENTS) {
        type = "text/event-stream";
    } else if (s->format == S2_AUDIO_PCM && t->j->dialect == DIALECT_FORM) {
        type = rate == 44100 ? "audio/L16; rate=44100; channels=1" : "audio/L16";
    }
    t->rate = rate;
    if (s->framing != FRAMING_WHOLE) {
        add_sound_headers(t); /* of a whole answer they are added when it is one */
    }
    size_t start = (size_t)((uint64_t)s->start_ms * rate / 1000 * 2);
    reply_hold(t->j->answer, s->framing == FRAMING_WHOLE ? SIZE_MAX : start);
    reply_begin(t->j->answer, 200, type);
    t->has_head = true;
    metrics_time(&t->context->metrics->first_audio, sl__now_ns() - t->begin_ns);
    if (s->is_float) {
        static const unsigned char empty[WAV_HEAD_BYTES];
        return take_bytes(t, empty, sizeof empty, reterr);
    }
    return sound_encoder_open(
            s->format, t->info.sample_rate, rate, take_bytes, t, &t->encoder, reterr);
}

static int take_floats(run *t, const float *samples, size_t n, sl_error *reterr)
{
    unsigned char bytes[4 * 256];
    int r = SL_OK;
    for (size_t done = 0; done < n && r == 0;) {
        size_t part = n - done < 256 ? n - done : 256;
        for (size_t i = 0; i < part; i++) {
            uint32_t bits = 0;
            memcpy(&bits, &samples[done + i], sizeof bits);
            sl__store_le(bytes + 4 * i, bits, 4);
        }
        r = take_bytes(t, bytes, 4 * part, reterr);
        done += part;
    }
    return r;
}

static int take_samples(void *ud, const float *samples, size_t n)
{
    run *t = ud;
    int r = SL_OK;
    if (reply_is_cancelled(t->j->answer)) {
        return 1;
    }
    if (!t->has_head) {
        r = begin_sound(t, &t->err);
    }
    if (r == 0) {
        r = t->encoder ? sound_encoder_write(t->encoder, samples, n, &t->err)
                       : take_floats(t, samples, n, &t->err);
    }
    if (r == 0) {
        r = send_gathered(t, &t->err);
    }
    t->n_samples += n;
    return r < 0;
}

static int take_frame(void *ud, const int32_t *codes)
{
    run *t = ud;
    (void)codes;
    t->n_frames++;
    atomic_fetch_add(&t->context->metrics->n_frames, 1);
    return 0;
}

/* WAV of 32-bit floats, as the form API sends it. */
static void fill_float_head(unsigned char head[WAV_HEAD_BYTES], uint32_t rate, uint32_t n_data)
{
    static const unsigned char plain[WAV_HEAD_BYTES] = {'R', 'I', 'F', 'F', 0, 0, 0, 0, 'W', 'A',
            'V', 'E', 'f', 'm', 't', ' ', 16, 0, 0, 0, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 32,
            0, 'd', 'a', 't', 'a', 0, 0, 0, 0};
    memcpy(head, plain, sizeof plain);
    sl__store_le(head + 4, n_data + WAV_HEAD_BYTES - 8, 4);
    sl__store_le(head + 24, rate, 4);
    sl__store_le(head + 28, 4 * (uint64_t)rate, 4);
    sl__store_le(head + 40, n_data, 4);
}

/* A whole answer gets the true sizes into the head of its WAV. */
static void complete_wav(run *t)
{
    const job_speech *s = &t->j->speech;
    unsigned char head[WAV_HEAD_BYTES];
    uint32_t n_data = (uint32_t)(t->n_whole - WAV_HEAD_BYTES);
    if (s->framing != FRAMING_WHOLE || s->format != S2_AUDIO_WAV) {
        return;
    }
    if (s->is_float) {
        fill_float_head(head, t->info.sample_rate, n_data);
        reply_patch(t->j->answer, 0, head, sizeof head);
        return;
    }
    sl__store_le(head, n_data + WAV_HEAD_BYTES - 8, 4);
    reply_patch(t->j->answer, 4, head, 4);
    sl__store_le(head, n_data, 4);
    reply_patch(t->j->answer, 40, head, 4);
}

/* The last event, as clients of the OpenAI API expect it. */
static int write_done_event(run *t, const s2_stats *stats, sl_error *reterr)
{
    char text[320];
    reply_patience patience = patience_of(t);
    int n = snprintf(text, sizeof text,
            "event: speech.audio.done\n"
            "data: "
            "{\"type\":\"speech.audio.done\",\"end\":\"%s\",\"usage\":{\"input_tokens\":%" PRIu32
            ",\"output_tokens\":%" PRIu32 ",\"total_tokens\":%" PRIu32 "}}\n\n",
            s2_end_name(stats->end), stats->n_prompt_columns, stats->n_frames,
            stats->n_prompt_columns + stats->n_frames);
    return reply_write(t->j->answer, text, (size_t)n, &patience) < 0 ? gone(reterr) : SL_OK;
}

static int finish_sound(run *t, const s2_stats *stats, sl_error *reterr)
{
    int r = t->encoder ? sound_encoder_finish(t->encoder, reterr) : SL_OK;
    if (r == 0) {
        r = send_gathered(t, reterr);
    }
    if (r == 0 && t->j->speech.framing == FRAMING_WHOLE) {
        add_sound_headers(t);
        complete_wav(t);
    }
    if (r == 0 && t->j->speech.framing == FRAMING_EVENTS) {
        r = write_done_event(t, stats, reterr);
    }
    return r;
}

static s2_speak_opts speak_opts_of(run *t)
{
    const job_speech *s = &t->j->speech;
    s2_speak_opts opts = s2_speak_defaults();
    opts.text = s->text;
    opts.text_bytes = s->text_bytes;
    opts.voices = s->has_voice ? &s->voice : NULL;
    opts.n_voices = s->has_voice ? 1 : 0;
    opts.temperature = s->temperature;
    opts.top_p = s->top_p;
    opts.top_k = s->top_k;
    opts.seed = s->seed;
    opts.max_frames = s->max_frames;
    opts.min_frames = s->min_frames;
    opts.segment_bytes = s->segment_bytes;
    opts.pause_ms = s->pause_ms;
    opts.wants_sound_early = s->framing != FRAMING_WHOLE;
    opts.on_samples = take_samples;
    opts.on_frame = take_frame;
    opts.ud = t;
    return opts;
}

/* The recording that came along becomes the voice of this one request. */
static int encode_recording(
        const speech_context *context, job *j, s2_voice *ret_voice, sl_error *reterr)
{
    const speaker *engine = &context->opts->engine;
    uint32_t rate = engine->ops->info(engine->ud).sample_rate;
    s2_audio audio = {0};
    int r = sound_decode(j->voice.sound, j->voice.n_sound, rate,
            context->opts->limits.recording_seconds, &audio, reterr);
    if (r < 0) {
        return r;
    }
    r = engine->ops->make_voice(
            engine->ud, audio.samples, audio.n, j->voice.text, ret_voice, reterr);
    s2_audio_done(&audio);
    return r;
}

/* A stream that has begun tells of an error by an event, if it has events, and by not ending properly. */
static void fail_late(run *t, const sl_error *err)
{
    sl__log(&t->context->opts->log, SL_LOG_ERROR, "request %" PRIu64 " ends in the middle: %s",
            reply_id(t->j->answer), err->msg);
    if (t->j->speech.framing == FRAMING_EVENTS) {
        sl__json json = {0};
        sl_error shown = *err;
        size_t n = 0;
        api_hide_folders(t->context->opts, &shown);
        sl__json_object(&json);
        sl__json_put_cstr(&json, "type", "error");
        sl__json_key(&json, "error");
        sl__json_object(&json);
        sl__json_put_cstr(&json, "message", shown.msg);
        sl__json_put_cstr(&json, "type", "server_error");
        sl__json_end(&json);
        sl__json_end(&json);
        const char *text = sl__json_text(&json, &n);
        bool is_sent = text && reply_try_write(t->j->answer, "event: error\ndata: ", 19) > 0 &&
                       reply_try_write(t->j->answer, text, n) > 0 &&
                       reply_try_write(t->j->answer, "\n\n", 2) > 0;
        (void)is_sent; /* the cut connection says it too */
        sl__json_done(&json);
    }
    reply_end(t->j->answer, false);
}

static void conclude(run *t, int r, const s2_stats *stats, const sl_error *err)
{
    metrics *m = t->context->metrics;
    reply *answer = t->j->answer;
    if (t->info.sample_rate > 0) {
        atomic_fetch_add(&m->audio_ms, t->n_samples * 1000 / t->info.sample_rate);
    }
    if (reply_is_cancelled(answer)) {
        bool is_stalled = reply_was_stalled(answer);
        atomic_fetch_add(is_stalled ? &m->n_stalled : &m->n_cancelled, 1);
        sl__log(&t->context->opts->log, SL_LOG_INFO,
                "request %" PRIu64 " cancelled after %" PRIu32 " frames: %s", reply_id(answer),
                t->n_frames, is_stalled ? "the client does not read" : "the client is gone");
        reply_end(answer, false);
    } else if (r == 0 && stats->end != S2_END_STOPPED) {
        atomic_fetch_add(&m->n_spoken, 1);
        reply_end(answer, true);
    } else {
        sl_error stopped = {0};
        if (r == 0 || r == SL_ECANCELLED) {
            sl__fail(&stopped, SL_EDEVICE, "the server is stopping; send the request again");
            err = &stopped;
        }
        atomic_fetch_add(&m->n_failed, 1);
        if (t->has_head && t->j->speech.framing != FRAMING_WHOLE) {
            fail_late(t, err);
        } else {
            api_fail_error(t->context->opts, answer, t->j->dialect, NULL, err);
        }
    }
}

int speech_run(const speech_context *context, job *j)
{
    const speaker *engine = &context->opts->engine;
    s2_stats stats = {0};
    sl_error err = {0};
    run t = {.context = context, .j = j, .begin_ns = sl__now_ns()};
    int r = SL_OK;
    t.info = engine->ops->info(engine->ud);
    if (j->has_recording) {
        r = encode_recording(context, j, &j->speech.voice, &err);
        j->speech.has_voice = r == 0;
    }
    if (r == 0) {
        s2_speak_opts opts = speak_opts_of(&t);
        r = engine->ops->speak(engine->ud, &opts, &stats, &err);
    }
    if (r == 0 && t.err.code < 0) {
        r = t.err.code;
        err = t.err;
    }
    if (r == 0 && stats.end != S2_END_STOPPED) {
        r = finish_sound(&t, &stats, &err);
    }
    conclude(&t, r, &stats, &err);
    sound_encoder_free(&t.encoder);
    sl__free(t.gathered);
    return r;
}

bool voice_exists(const char *dir, const char *name)
{
    char *path = NULL;
    bool is = s2_voice_path(dir, name, &path, NULL) == 0 && access(path, F_OK) == 0;
    s2_voice_path_free(path);
    return is;
}

static int save_voice(
        const speech_context *context, const job *j, const s2_voice *voice, sl_error *reterr)
{
    const char *dir = context->opts->voice_dir;
    char *path = NULL;
    if (!j->voice.may_replace && voice_exists(dir, j->voice.name)) {
        return sl__fail(reterr, SL_EEXIST,
                "there is a voice '%s' already; remove it first, or send overwrite=true",
                j->voice.name);
    }
    int r = s2_voice_path(dir, j->voice.name, &path, reterr);
    if (r == 0) {
        r = s2_voice_save(path, voice, reterr);
    }
    s2_voice_path_free(path);
    return r > 0 ? SL_OK : r;
}

static void send_voice(const speech_context *context, const job *j, const s2_voice *voice)
{
    const speaker *engine = &context->opts->engine;
    s2_engine_info info = engine->ops->info(engine->ud);
    sl__json json = {0};
    sl__json_object(&json);
    sl__json_put_cstr(&json, "id", j->voice.name);
    sl__json_put_cstr(&json, "object", "voice");
    sl__json_put_cstr(&json, "name", j->voice.name);
    sl__json_put_u64(&json, "frames", voice->n_frames);
    sl__json_put_f64(
            &json, "seconds", (double)voice->n_frames * info.frame_samples / info.sample_rate);
    sl__json_end(&json);
    api_send_json(j->answer, 201, &json);
}

int voice_run(const speech_context *context, job *j)
{
    s2_voice voice = {0};
    sl_error err = {0};
    int r = encode_recording(context, j, &voice, &err);
    if (r == 0 && reply_is_cancelled(j->answer)) {
        r = gone(&err);
    }
    if (r == 0) {
        r = save_voice(context, j, &voice, &err);
    }
    if (r == 0) {
        atomic_fetch_add(&context->metrics->n_voices_made, 1);
        send_voice(context, j, &voice);
    } else if (reply_is_cancelled(j->answer)) {
        atomic_fetch_add(&context->metrics->n_cancelled, 1);
        reply_end(j->answer, false);
    } else {
        atomic_fetch_add(&context->metrics->n_failed, 1);
        api_fail_error(context->opts, j->answer, j->dialect, NULL, &err);
    }
    s2_voice_done(&voice);
    return r;
}
