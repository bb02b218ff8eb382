#include "engine/model/synth_noise.h"

#include <string.h>

#include "ggml.h"

#include "base/mem.h"
#include "engine/sample/rng.h"
#include "os/os_out_file.h"

/* Values of the noise tile: whole blocks of every type, and a prime number of them, so that rows of the
 * usual lengths do not repeat. */
#define BLOCK_ELEMS 256
#define TILE_BLOCKS 4093
#define TILE_ELEMS  ((size_t)BLOCK_ELEMS * TILE_BLOCKS)
#define MAX_TILES   24

/* Noise in one type, mean and scale, as bytes of the file. */
typedef struct tile {
    uint32_t type;
    float mean;
    float scale;
    size_t n_bytes;
    char *bytes;
} tile;

typedef struct tile_cache {
    float *noise;  /* [TILE_ELEMS] of mean 0 and deviation 1 */
    float *scaled; /* [TILE_ELEMS] scratch */
    tile tiles[MAX_TILES];
    size_t n;
} tile_cache;

static void tile_cache_done(tile_cache *c)
{
    for (size_t i = 0; i < c->n; i++) {
        sl__free(c->tiles[i].bytes);
    }
    sl__free(c->noise);
    sl__free(c->scaled);
    memset(c, 0, sizeof *c);
}

static int tile_cache_init(tile_cache *c, uint64_t seed, sl_error *reterr)
{
    s2_rng rng;
    c->noise = sl__alloc(TILE_ELEMS, sizeof *c->noise);
    c->scaled = sl__alloc(TILE_ELEMS, sizeof *c->scaled);
    if (!c->noise || !c->scaled) {
        tile_cache_done(c);
        return sl__fail_nomem(reterr, TILE_ELEMS * sizeof *c->noise, "noise");
    }
    s2_rng_seed(&rng, seed);
    for (size_t i = 0; i < TILE_ELEMS; i++) {
        /* The sum of four uniform numbers: near enough to a bell, and bounded at 3.5 deviations. */
        double sum = 0;
        for (int k = 0; k < 4; k++) {
            sum += s2_rng_unit(&rng);
        }
        c->noise[i] = (float)((sum - 2.0) * 1.7320508075688772);
    }
    return SL_OK;
}

static int need_tile(
        tile_cache *c, const s2_synth_tensor *t, const tile **ret_tile, sl_error *reterr)
{
    for (size_t i = 0; i < c->n; i++) {
        tile *k = &c->tiles[i];
        if (k->type == t->type && !(k->mean < t->mean) && !(k->mean > t->mean) &&
                !(k->scale < t->scale) && !(k->scale > t->scale)) {
            *ret_tile = k;
            return SL_OK;
        }
    }
    if (c->n == MAX_TILES) {
        /* Rather make one again than keep them all. */
        c->n--;
        sl__free(c->tiles[c->n].bytes);
    }
    for (size_t i = 0; i < TILE_ELEMS; i++) {
        c->scaled[i] = t->mean + t->scale * c->noise[i];
    }
    tile *k = &c->tiles[c->n];
    enum ggml_type type = (enum ggml_type)t->type;
    *k = (tile){.type = t->type, .mean = t->mean, .scale = t->scale};
    k->n_bytes = ggml_row_size(type, (int64_t)TILE_ELEMS);
    k->bytes = sl__alloc(k->n_bytes, 1);
    if (!k->bytes) {
        return sl__fail_nomem(reterr, k->n_bytes, "noise");
    }
    if (type == GGML_TYPE_F32) {
        memcpy(k->bytes, c->scaled, k->n_bytes);
    } else {
        ggml_quantize_chunk(type, c->scaled, k->bytes, 0, TILE_BLOCKS, BLOCK_ELEMS, NULL);
    }
    c->n++;
    *ret_tile = k;
    return SL_OK;
}

static int write_tensor(sl__gguf_writer *w, tile_cache *cache, const s2_synth_tensor *t,
        uint64_t start, sl_error *reterr)
{
    const tile *k = NULL;
    enum ggml_type type = (enum ggml_type)t->type;
    uint64_t n_rows = t->ne[1] * t->ne[2];
    uint64_t left = n_rows * ggml_row_size(type, (int64_t)t->ne[0]);
    int r = need_tile(cache, t, &k, reterr);
    if (r < 0) {
        return r;
    }
    size_t block_bytes = k->n_bytes / TILE_BLOCKS;
    size_t at = (size_t)(start % TILE_BLOCKS) * block_bytes;
    while (left > 0 && r == 0) {
        size_t n = k->n_bytes - at;
        n = n < left ? n : (size_t)left;
        r = sl__gguf_writer_data(w, k->bytes + at, n, reterr);
        left -= n;
        at = 0;
    }
    return r;
}

static int check_rows(const s2_synth_list *list, sl_error *reterr)
{
    for (size_t i = 0; i < list->n; i++) {
        const s2_synth_tensor *t = &list->items[i];
        int64_t block = ggml_blck_size((enum ggml_type)t->type);
        if ((int64_t)t->ne[0] % block != 0) {
            return sl__fail(reterr, SL_EINVAL,
                    "type %s: row length %llu of %s, need a multiple of %lld",
                    ggml_type_name((enum ggml_type)t->type), (unsigned long long)t->ne[0], t->name,
                    (long long)block);
        }
    }
    return SL_OK;
}

static int write_tensors(const s2_synth_noise *noise, sl__gguf_writer *w, tile_cache *cache,
        const s2_synth_list *list, sl_error *reterr)
{
    s2_rng places;
    int r = 0;
    s2_rng_seed(&places, noise->seed + 1);
    for (size_t i = 0; i < list->n && r == 0; i++) {
        if (noise->should_stop && noise->should_stop()) {
            return sl__fail(reterr, SL_ECANCELLED, "stopped");
        }
        r = write_tensor(w, cache, &list->items[i], s2_rng_u32(&places), reterr);
    }
    return r;
}

static int write_all(const s2_synth_noise *noise, sl__gguf_writer *w, const s2_synth_list *list,
        const char *path, sl_error *reterr)
{
    sl__out_file *file = NULL;
    tile_cache cache = {0};
    int r = tile_cache_init(&cache, noise->seed, reterr);
    if (r == 0) {
        r = sl__out_file_open(path, 0666, &file, reterr);
    }
    if (r == 0) {
        r = sl__gguf_writer_begin(w, file, reterr);
    }
    if (r == 0) {
        r = write_tensors(noise, w, &cache, list, reterr);
    }
    if (r == 0) {
        r = sl__gguf_writer_finish(w, reterr);
    }
    if (r == 0) {
        r = sl__out_file_commit(&file, reterr);
    }
    sl__out_file_discard(&file);
    tile_cache_done(&cache);
    return r;
}

int s2_synth_noise_write(const s2_synth_noise *noise, sl__gguf_writer *w, const s2_synth_list *list,
        const char *path, sl_error *reterr)
{
    int r = check_rows(list, reterr);
    if (r == 0) {
        for (size_t i = 0; i < list->n; i++) {
            const s2_synth_tensor *t = &list->items[i];
            sl__gguf_put_tensor(w, t->name, t->type, t->n_dims, t->ne);
        }
        r = write_all(noise, w, list, path, reterr);
    }
    return r;
}
