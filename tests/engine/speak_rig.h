/* An engine on devices, as tests of its residency need it: a text in, the hash of its samples out. */
#ifndef TEST_SPEAK_RIG_H
#define TEST_SPEAK_RIG_H

#include <stddef.h>
#include <stdint.h>

#include "s2/engine.h"

/* Bytes that a device of the tests has; the small model fits many times. */
#define RIG_DEVICE "sim:16M"

/* Writes DIR/rig.gguf with a context of four steps of the cache, and its tokenizer; gives its path. */
const char *rig_write_model(char path[512], const char *dir);

/* For a group of tests: writes and removes the model that they share. */
extern char rig_model[512]; /* its path */
extern char *rig_dir;       /* where it is */
int rig_set_up(void **state);
int rig_tear_down(void **state);

/* Everything on one device. */
s2_place_opts rig_place(
        const char *device, sl_policy policy, s2_decode_when decode, uint64_t vram_bytes);

/* Options with one thread, for requests of up to max_frames. */
s2_engine_opts rig_opts(const char *model, const s2_place_opts *place, uint32_t max_frames);

/* Opens or fails the test. */
s2_engine *rig_open(const char *model, const s2_place_opts *place, uint32_t max_frames);

/* The smallest budget of the device for requests of up to max_frames, whatever the budget of `place` is. */
uint64_t rig_floor(const char *model, const s2_place_opts *place, uint32_t max_frames);

/* Opening is refused, and the message names the floor. */
void rig_expect_refused(
        const char *model, const s2_place_opts *place, uint32_t max_frames, uint64_t floor);

/* What a request handed out. */
typedef struct spoken {
    uint64_t hash; /* of the samples */
    size_t n_samples;
    uint32_t n_frames;
    s2_end end;
    uint32_t n_segments;
    uint32_t n_prompt_columns; /* that were evaluated */
} spoken;

/* Greedy, one frame at least for each of max_frames, so that a request has a known length. */
int rig_try(s2_engine *e, const char *text, uint32_t max_frames, spoken *ret, sl_error *reterr);

/* The same with changed options; callbacks are replaced. */
int rig_try_opts(s2_engine *e, const s2_speak_opts *given, spoken *ret, sl_error *reterr);

/* Or fails the test. */
spoken rig_speak(s2_engine *e, const char *text, uint32_t max_frames);

/* Says RIG_TEXT with the shared model on the CPU, which is what everything else must sound like. */
#define RIG_TEXT "ab c. de f"
spoken rig_speak_on_cpu(uint32_t max_frames);

void assert_same_sound(const spoken *a, const spoken *b, const char *what);

/* Index of a unit of the residency by its name; fails the test without it. */
size_t rig_unit(s2_engine *e, const char *name);
sl_unit_status rig_unit_status(s2_engine *e, const char *name);
sl_place_status rig_place_status(s2_engine *e, size_t i_place);

/* Waits until nothing is under way: a request may end when all has arrived and the mover has not said so yet. */
void rig_settle(s2_engine *e);

/* Loads and evictions of all units that are moved. */
typedef struct rig_moves {
    uint64_t n_loads;
    uint64_t n_evicted;
    uint64_t epochs;
    size_t n_resident;
} rig_moves;
rig_moves rig_count_moves(s2_engine *e);

/* Nothing of any kind is booked on a place, but for what the device did not take back. */
void assert_nothing_held(s2_engine *e, size_t i_place, const char *what);

#endif
