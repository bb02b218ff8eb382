/*
 * Fused windowed attention over rings of K and V. Each head belongs to one thread, which writes its part of
 * the new positions and then reads. The rotation is applied for each pair of query and key by their
 * distance, so that no position is ever a large number.
 */
#include <math.h>
#include <string.h>

#include "engine/nn/codec_kernel_parts.h"

typedef struct head_job {
    const s2_attention *a;
    const struct ggml_tensor *qkv;
    struct ggml_tensor *k;
    struct ggml_tensor *v;
    const float *rope;
    size_t slot;
    size_t n_past;
    size_t head;
} head_job;

/* dst[0..half) = the even elements of src, dst[half..) = the odd ones. */
static void split_pairs(const float *src, size_t half, float *dst)
{
    for (size_t i = 0; i < half; i++) {
        dst[i] = src[2 * i];
        dst[half + i] = src[2 * i + 1];
    }
}

/* One head's part of row t of the queries (0), keys (1) or values (2). */
static const float *head_row(const head_job *job, size_t which, size_t t)
{
    size_t width = (size_t)job->a->n_head * job->a->head_dim;
    return (const float *)job->qkv->data + (3 * t + which) * width + job->head * job->a->head_dim;
}

static float *ring_row(const head_job *job, struct ggml_tensor *ring, size_t slot)
{
    return (float *)ring->data + slot * (size_t)ring->ne[0] + job->head * job->a->head_dim;
}

static void keep_new_rows(const head_job *job, size_t n_time)
{
    size_t dim = job->a->head_dim;
    for (size_t t = 0; t < n_time; t++) {
        size_t slot = (job->slot + t) % job->a->n_ring;
        split_pairs(head_row(job, 1, t), dim / 2, ring_row(job, job->k, slot));
        memcpy(ring_row(job, job->v, slot), head_row(job, 2, t), dim * sizeof(float));
    }
}

/* Softmax over the window of query t, oldest first, and the weighted sum of the values. */
static void attend(const head_job *job, size_t t, float *scores, float *q, float *out)
{
    const s2_simd *simd = s2_simd_best();
    size_t dim = job->a->head_dim;
    size_t half = dim / 2;
    size_t n_ring = job->a->n_ring;
    size_t n_seen = s2_min(job->a->window, job->n_past + t + 1);
    float scale = 1.0F / sqrtf((float)dim);
    float max = -INFINITY;
    float sum = 0.0F;
    split_pairs(head_row(job, 0, t), half, q);
    for (size_t i = 0; i < n_seen; i++) {
        size_t distance = n_seen - 1 - i;
        size_t slot = (job->slot + t + n_ring - distance) % n_ring;
        const float *angles = job->rope + distance * dim;
        scores[i] = scale *
                    simd->rotated_dot(q, ring_row(job, job->k, slot), angles, angles + half, half);
        max = scores[i] > max ? scores[i] : max;
    }
    memset(out, 0, dim * sizeof *out);
    for (size_t i = 0; i < n_seen; i++) {
        size_t slot = (job->slot + t + n_ring - (n_seen - 1 - i)) % n_ring;
        float weight = expf(scores[i] - max);
        sum += weight;
        simd->add_scaled(out, ring_row(job, job->v, slot), weight, dim);
    }
    for (size_t i = 0; i < dim; i++) {
        out[i] /= sum;
    }
}

/* Sources: qkv, k, v, where, rope. */
static void run_attention(struct ggml_tensor *dst, int ith, int nth, void *user)
{
    const s2_attention *a = user;
    const int32_t *where = dst->src[3]->data;
    float scores[S2_ATTENTION_MAX_WINDOW];
    float q[S2_ATTENTION_MAX_HEAD];
    head_job job = {.a = a,
            .qkv = dst->src[0],
            .k = dst->src[1],
            .v = dst->src[2],
            .rope = dst->src[4]->data,
            .slot = (size_t)where[0],
            .n_past = (size_t)where[1]};
    s2_range heads = s2_share(a->n_head, ith, nth);
    for (size_t h = heads.begin; h < heads.end; h++) {
        job.head = h;
        keep_new_rows(&job, (size_t)dst->ne[1]);
        for (size_t t = 0; t < (size_t)dst->ne[1]; t++) {
            float *out = (float *)dst->data + t * (size_t)dst->ne[0] + h * a->head_dim;
            attend(&job, t, scores, q, out);
        }
    }
}

struct ggml_tensor *s2_kernel_attention(const s2_build *b, const s2_attention *attention,
        struct ggml_tensor *qkv, struct ggml_tensor *k, struct ggml_tensor *v,
        struct ggml_tensor *where, struct ggml_tensor *rope)
{
    struct ggml_tensor *args[] = {qkv, k, v, where, rope};
    int64_t width = (int64_t)attention->n_head * attention->head_dim;
    return s2_kernel_custom(b, width, qkv->ne[1], args, 5, run_attention, attention);
}
