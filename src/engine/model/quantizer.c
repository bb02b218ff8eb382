#include "engine/model/quantizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/nn/bind.h"

#define MIN_NORM 1e-12F

typedef struct book {
    struct ggml_tensor *in_weight; /* [1, latent_dim, code_dim] */
    struct ggml_tensor *in_bias;
    struct ggml_tensor *out_weight; /* [1, code_dim, latent_dim] */
    struct ggml_tensor *out_bias;
    struct ggml_tensor *entries; /* [code_dim, n_entries] */
    uint32_t n_entries;
} book;

struct s2_quantizer {
    uint32_t n_books;
    uint32_t latent_dim;
    uint32_t code_dim;
    book books[S2_MAX_CODEBOOKS];
    /* The book at work, as F32. */
    float *projection; /* in_weight or out_weight */
    float *bias;       /* latent_dim or code_dim */
    float *directions; /* entries of length 1 */
    float *code;       /* code_dim */
    size_t n_bytes;
};

/* n elements from `first` on, as F32. */
static void read_floats(const struct ggml_tensor *t, size_t first, size_t n, float *dst)
{
    const char *src = (const char *)t->data + first * ggml_type_size(t->type);
    if (t->type == GGML_TYPE_F32) {
        memcpy(dst, src, n * sizeof *dst);
    } else {
        ggml_get_type_traits(t->type)->to_float(src, dst, (int64_t)n);
    }
}

static int bind_book(
        book *bk, const s2_quantizer *q, const s2_weights *weights, uint32_t i, sl_error *reterr)
{
    char prefix[96];
    int64_t latent = q->latent_dim;
    int64_t code = q->code_dim;
    if (i == 0) {
        snprintf(prefix, sizeof prefix, "c.quantizer.semantic_quantizer.quantizers.0");
    } else {
        snprintf(prefix, sizeof prefix, "c.quantizer.quantizer.quantizers.%u", i - 1);
    }
    const s2_wanted wanted[] = {
            {"in_proj.weight", S2_WEIGHT_VECTOR, {1, latent, code}, &bk->in_weight},
            {"in_proj.bias", S2_WEIGHT_VECTOR, {code, 1, 1}, &bk->in_bias},
            {"out_proj.weight", S2_WEIGHT_VECTOR, {1, code, latent}, &bk->out_weight},
            {"out_proj.bias", S2_WEIGHT_VECTOR, {latent, 1, 1}, &bk->out_bias},
            {"codebook.weight", S2_WEIGHT_VECTOR, {code, bk->n_entries, 1}, &bk->entries},
    };
    return s2_bind(weights, prefix, wanted, sizeof wanted / sizeof wanted[0], reterr);
}

static int alloc_tables(s2_quantizer *q, size_t max_entries, sl_error *reterr)
{
    size_t n_projection = (size_t)q->latent_dim * q->code_dim;
    size_t n_bias = q->latent_dim > q->code_dim ? q->latent_dim : q->code_dim;
    size_t n_directions = max_entries * q->code_dim;
    q->projection = sl__alloc(n_projection, sizeof(float));
    q->bias = sl__alloc(n_bias, sizeof(float));
    q->directions = sl__alloc(n_directions, sizeof(float));
    q->code = sl__alloc(q->code_dim, sizeof(float));
    q->n_bytes = (n_projection + n_bias + n_directions + q->code_dim) * sizeof(float);
    if (!q->projection || !q->bias || !q->directions || !q->code) {
        return sl__fail_nomem(reterr, q->n_bytes, "the codec's quantizer");
    }
    return SL_OK;
}

int s2_quantizer_create(const s2_codec_hparams *hp, const s2_weights *weights,
        s2_quantizer **ret_quantizer, sl_error *reterr)
{
    s2_quantizer *q = sl__alloc(1, sizeof *q);
    if (!q) {
        return sl__fail_nomem(reterr, sizeof *q, "the codec's quantizer");
    }
    q->n_books = hp->n_codebooks;
    q->latent_dim = hp->latent_dim;
    q->code_dim = hp->codebook_dim;
    int r = SL_OK;
    for (uint32_t i = 0; i < q->n_books && r == 0; i++) {
        q->books[i].n_entries = i == 0 ? hp->semantic_size : hp->residual_size;
        r = bind_book(&q->books[i], q, weights, i, reterr);
    }
    if (r == 0) {
        bool is_semantic_larger = hp->semantic_size > hp->residual_size;
        r = alloc_tables(q, is_semantic_larger ? hp->semantic_size : hp->residual_size, reterr);
    }
    if (r < 0) {
        s2_quantizer_free(&q);
        return r;
    }
    *ret_quantizer = q;
    return SL_OK;
}

void s2_quantizer_free(s2_quantizer **quantizer)
{
    if (!quantizer || !*quantizer) {
        return;
    }
    s2_quantizer *q = *quantizer;
    sl__free(q->projection);
    sl__free(q->bias);
    sl__free(q->directions);
    sl__free(q->code);
    sl__free(q);
    *quantizer = NULL;
}

size_t s2_quantizer_bytes(const s2_quantizer *quantizer)
{
    return sizeof *quantizer + quantizer->n_bytes;
}

static uint32_t clamp_code(int32_t code, uint32_t n_entries)
{
    if (code < 0) {
        return 0;
    }
    return (uint32_t)code < n_entries ? (uint32_t)code : n_entries - 1;
}

/* row += sign * (out_proj(entry) + bias); projection and bias hold the book's out_proj. */
static void add_entry(s2_quantizer *q, const book *bk, uint32_t code, float sign, float *row)
{
    read_floats(bk->entries, (size_t)code * q->code_dim, q->code_dim, q->code);
    for (uint32_t c = 0; c < q->latent_dim; c++) {
        const float *w = q->projection + (size_t)c * q->code_dim;
        float sum = q->bias[c];
        for (uint32_t k = 0; k < q->code_dim; k++) {
            sum += w[k] * q->code[k];
        }
        row[c] += sign * sum;
    }
}

static void load_out_projection(s2_quantizer *q, const book *bk)
{
    read_floats(bk->out_weight, 0, (size_t)q->latent_dim * q->code_dim, q->projection);
    read_floats(bk->out_bias, 0, q->latent_dim, q->bias);
}

void s2_quantizer_decode(
        s2_quantizer *quantizer, const int32_t *codes, uint32_t n_frames, float *ret_latents)
{
    s2_quantizer *q = quantizer;
    memset(ret_latents, 0, (size_t)n_frames * q->latent_dim * sizeof *ret_latents);
    for (uint32_t i = 0; i < q->n_books; i++) {
        const book *bk = &q->books[i];
        load_out_projection(q, bk);
        for (size_t t = 0; t < n_frames; t++) {
            uint32_t code = clamp_code(codes[t * q->n_books + i], bk->n_entries);
            add_entry(q, bk, code, 1.0F, ret_latents + t * q->latent_dim);
        }
    }
}

/* The entries of a book scaled to length 1. */
static void load_directions(s2_quantizer *q, const book *bk)
{
    read_floats(bk->entries, 0, (size_t)bk->n_entries * q->code_dim, q->directions);
    for (size_t i = 0; i < bk->n_entries; i++) {
        float *entry = q->directions + i * q->code_dim;
        float sum = 0.0F;
        for (uint32_t k = 0; k < q->code_dim; k++) {
            sum += entry[k] * entry[k];
        }
        float norm = sqrtf(sum);
        float scale = 1.0F / (norm > MIN_NORM ? norm : MIN_NORM);
        for (uint32_t k = 0; k < q->code_dim; k++) {
            entry[k] *= scale;
        }
    }
}

/* code = in_proj(row) + bias; projection and bias hold the book's in_proj. */
static void project_in(s2_quantizer *q, const float *row)
{
    for (uint32_t k = 0; k < q->code_dim; k++) {
        const float *w = q->projection + (size_t)k * q->latent_dim;
        float sum = q->bias[k];
        for (uint32_t c = 0; c < q->latent_dim; c++) {
            sum += w[c] * row[c];
        }
        q->code[k] = sum;
    }
}

/* The entry nearest in direction; the first of equals. */
static uint32_t nearest_entry(const s2_quantizer *q, const book *bk)
{
    uint32_t best = 0;
    float best_product = -INFINITY;
    for (uint32_t i = 0; i < bk->n_entries; i++) {
        const float *entry = q->directions + (size_t)i * q->code_dim;
        float product = 0.0F;
        for (uint32_t k = 0; k < q->code_dim; k++) {
            product += entry[k] * q->code[k];
        }
        if (product > best_product) {
            best_product = product;
            best = i;
        }
    }
    return best;
}

void s2_quantizer_encode(s2_quantizer *quantizer, float *latents, uint32_t n_frames,
        int32_t *ret_codes, size_t book_stride, float *ret_projected)
{
    s2_quantizer *q = quantizer;
    for (size_t i = 0; i < q->n_books; i++) {
        const book *bk = &q->books[i];
        int32_t *codes = ret_codes + i * book_stride;
        load_directions(q, bk);
        read_floats(bk->in_weight, 0, (size_t)q->latent_dim * q->code_dim, q->projection);
        read_floats(bk->in_bias, 0, q->code_dim, q->bias);
        for (size_t t = 0; t < n_frames; t++) {
            project_in(q, latents + t * q->latent_dim);
            codes[t] = (int32_t)nearest_entry(q, bk);
            if (ret_projected) {
                memcpy(ret_projected + (t * q->n_books + i) * q->code_dim, q->code,
                        q->code_dim * sizeof(float));
            }
        }
        load_out_projection(q, bk);
        for (size_t t = 0; t < n_frames; t++) {
            add_entry(q, bk, (uint32_t)codes[t], -1.0F, latents + t * q->latent_dim);
        }
    }
}
