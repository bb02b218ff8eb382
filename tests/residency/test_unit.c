/* Layouts of random tensors keep all limits; sizes from the public cases are cut as they must be. */
#include <stdio.h>
#include <string.h>

#include "test_support.h"

#include "base/mem.h"
#include "random_plan.h"
#include "residency/unit.h"

#define N_MAX   24
#define N_SEEDS 5000

typedef struct tensors {
    sl_gguf_tensor info[N_MAX];
    sl_tensor tensor[N_MAX];
    const sl_tensor *list[N_MAX];
    size_t n;
    uint64_t file_bytes;
} tensors;

static void add(tensors *t, const char *name, uint64_t n_bytes)
{
    t->info[t->n] = (sl_gguf_tensor){
            .name = {name, strlen(name)}, .offset = t->file_bytes, .n_bytes = n_bytes};
    t->tensor[t->n] = (sl_tensor){&t->info[t->n], 0};
    t->list[t->n] = &t->tensor[t->n];
    t->file_bytes += n_bytes;
    t->n++;
}

static void expect_pieces_cover_tensors(const tensors *t, const sl__unit_layout *l)
{
    size_t i_piece = 0;
    for (size_t i = 0; i < t->n; i++) {
        const sl__placed_tensor *p = sl__unit_find(l, t->list[i]);
        assert_int_equal(p == NULL, t->info[i].n_bytes == 0);
        for (uint64_t done = 0; done < t->info[i].n_bytes; i_piece++) {
            const sl__unit_piece *piece = &l->pieces[i_piece];
            assert_int_equal(piece->file_offset, t->info[i].offset + done);
            assert_int_equal(piece->i_buffer, p->i_buffer);
            assert_int_equal(piece->buffer_offset, p->offset + done);
            assert_true(i_piece <
                        l->slices[p->i_arrival].first_piece + l->slices[p->i_arrival].n_pieces);
            done += piece->n_bytes;
            assert_true(done <= t->info[i].n_bytes);
        }
    }
    assert_int_equal(i_piece, l->n_pieces);
}

static void expect_slices(const sl__unit_layout *l, uint64_t slice_bytes)
{
    size_t next = 0;
    for (size_t i = 0; i < l->n_slices; i++) {
        uint64_t n_bytes = 0;
        assert_int_equal(l->slices[i].first_piece, next);
        for (size_t k = 0; k < l->slices[i].n_pieces; k++, next++) {
            n_bytes += l->pieces[next].n_bytes;
        }
        assert_int_equal(n_bytes, l->slices[i].n_bytes);
        assert_true(n_bytes > 0 && n_bytes <= slice_bytes);
    }
    assert_int_equal(next, l->n_pieces);
}

static void expect_buffers(
        const tensors *t, const sl__unit_layout *l, const sl__unit_limits *limits)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < l->n_buffers; i++) {
        assert_true(l->buffers[i] > 0 && l->buffers[i] <= limits->max_alloc_bytes);
        sum += l->buffers[i];
    }
    assert_int_equal(sum, l->n_bytes);
    for (size_t i = 0; i < l->n_tensors; i++) {
        const sl__placed_tensor *a = &l->tensors[i];
        assert_int_equal(a->offset % limits->alignment, 0);
        assert_true(a->offset + a->tensor->info->n_bytes <= l->buffers[a->i_buffer]);
        for (size_t k = 0; k < i; k++) {
            const sl__placed_tensor *b = &l->tensors[k];
            assert_true(a->i_buffer != b->i_buffer ||
                        a->offset + a->tensor->info->n_bytes <= b->offset ||
                        b->offset + b->tensor->info->n_bytes <= a->offset);
        }
    }
    assert_int_equal(l->n_file_bytes, t->file_bytes);
}

static void test_random_layouts_keep_all_limits(void **state)
{
    (void)state;
    size_t n_refused = 0;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        uint64_t s = seed * 0x9E3779B97F4A7C15u + 1;
        tensors t = {.n = 0};
        sl_error err = {0};
        sl__unit_layout l;
        uint64_t largest = 0;
        size_t n = (size_t)rp_below(&s, N_MAX);
        for (size_t i = 0; i < n; i++) {
            add(&t, "t", rp_below(&s, 4) ? rp_below(&s, 100) : 0);
            largest = t.info[i].n_bytes > largest ? t.info[i].n_bytes : largest;
        }
        sl__unit_limits limits = {.device_name = "gpu0",
                .alignment = 1ull << rp_below(&s, 6),
                .max_alloc_bytes = 40 + rp_below(&s, 200),
                .slice_bytes = 1 + rp_below(&s, 120)};
        int r = sl__unit_lay_out("u", t.list, t.n, &limits, &l, &err);
        assert_int_equal(r, largest > limits.max_alloc_bytes ? SL_ELIMIT : 0);
        if (r >= 0) {
            expect_pieces_cover_tensors(&t, &l);
            expect_slices(&l, limits.slice_bytes);
            expect_buffers(&t, &l, &limits);
        }
        n_refused += r < 0;
        sl__unit_layout_done(&l);
    }
    assert_true(n_refused > 100 && n_refused < N_SEEDS / 2);
}

/* The text embedding of S2 Pro in three types, and limits that drivers report. */
static void test_G3_06_largest_allocations_of_drivers(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {797573120, 1595146240, 423710720};
    static const uint64_t limits[] = {4294967292, 4133625856, 1073741824, 256 << 20, 0};
    for (size_t i = 0; i < 3 * 5; i++) {
        tensors t = {.n = 0};
        sl_error err = {0};
        sl__unit_layout l;
        sl__unit_limits limit = {
                .device_name = "vulkan0", .alignment = 64, .max_alloc_bytes = limits[i / 3]};
        add(&t, "layers.0.attention.wqkv.weight", 30 << 20);
        add(&t, "embeddings.weight", sizes[i % 3]);
        int r = sl__unit_lay_out("embed", t.list, t.n, &limit, &l, &err);
        if (limits[i / 3] != 0 && sizes[i % 3] > limits[i / 3]) {
            assert_int_equal(r, SL_ELIMIT);
            assert_non_null(strstr(err.msg, "vulkan0: tensor embeddings.weight of unit embed"));
        } else {
            assert_ok(r, &err);
            assert_true(l.n_buffers <= 2);
            assert_int_equal(l.n_file_bytes, sizes[i % 3] + (30 << 20));
        }
        sl__unit_layout_done(&l);
    }
}

static void test_G3_04_nothing_to_allocate_is_no_failure(void **state)
{
    (void)state;
    tensors t = {.n = 0};
    sl_error err = {0};
    sl__unit_layout l;
    sl__unit_limits limits = {.device_name = "gpu0", .alignment = 1, .max_alloc_bytes = 1};
    assert_ok(sl__unit_lay_out("u", t.list, 0, &limits, &l, &err), &err);
    add(&t, "a", 0);
    add(&t, "b", 0);
    assert_ok(sl__unit_lay_out("u", t.list, t.n, &limits, &l, &err), &err);
    assert_int_equal(l.n_buffers, 0);
    assert_int_equal(l.n_slices, 0);
    assert_null(sl__unit_find(&l, t.list[0]));
    sl__unit_layout_done(&l);
}

static void test_a_tensor_given_twice_is_refused(void **state)
{
    (void)state;
    tensors t = {.n = 0};
    sl_error err = {0};
    sl__unit_layout l;
    sl__unit_limits limits = {.device_name = "gpu0", .alignment = 1};
    add(&t, "a", 5);
    t.list[1] = t.list[0];
    assert_int_equal(sl__unit_lay_out("u", t.list, 2, &limits, &l, &err), SL_EINVAL);
    assert_non_null(strstr(err.msg, "tensor a is given twice"));
    assert_int_equal(l.n_buffers, 0);
}

static uint64_t padded(void *ud, const sl_tensor *tensor)
{
    (void)ud;
    return tensor->info->n_bytes + 7;
}

static void test_a_device_may_want_more_room_than_bytes(void **state)
{
    (void)state;
    tensors t = {.n = 0};
    sl_error err = {0};
    sl__unit_layout l;
    sl__unit_limits limits = {.device_name = "gpu0", .alignment = 1, .room = padded};
    add(&t, "a", 5);
    add(&t, "b", 5);
    assert_ok(sl__unit_lay_out("u", t.list, 2, &limits, &l, &err), &err);
    assert_int_equal(sl__unit_find(&l, t.list[1])->offset, 12);
    assert_int_equal(l.n_bytes, 24);
    assert_int_equal(l.n_file_bytes, 10);
    sl__unit_layout_done(&l);
}

static void test_tensors_in_place_lie_in_whole_ranges_of_their_file(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        uint64_t s = seed * 0x9E3779B97F4A7C15u + 1;
        tensors t = {.n = 0, .file_bytes = rp_below(&s, 10000)};
        uint64_t begin = t.file_bytes;
        sl_error err = {0};
        sl__unit_layout l;
        size_t n = (size_t)rp_below(&s, N_MAX);
        for (size_t i = 0; i < n; i++) {
            add(&t, "t", rp_below(&s, 4) ? rp_below(&s, 3000) : 0);
            t.tensor[i].i_file = i > n / 2;
        }
        sl__unit_limits limits = {.device_name = "host",
                .alignment = 1,
                .max_alloc_bytes = 8192 + rp_below(&s, 9000)};
        assert_ok(sl__unit_lay_in_place("u", t.list, t.n, &limits, &l, &err), &err);
        assert_int_equal(l.n_bytes, 0);
        assert_int_equal(l.n_slices, 0);
        assert_int_equal(l.n_file_bytes, t.file_bytes - begin);
        for (size_t i = 0; i < t.n; i++) {
            const sl__placed_tensor *p = sl__unit_find(&l, t.list[i]);
            assert_int_equal(p == NULL, t.info[i].n_bytes == 0);
            const sl__unit_piece *range = p ? &l.pieces[p->i_buffer] : NULL;
            assert_true(!p || range->i_file == t.tensor[i].i_file);
            assert_true(!p || range->file_offset + p->offset == t.info[i].offset);
            assert_true(!p || p->offset + t.info[i].n_bytes <= range->n_bytes);
            assert_true(!p || (range->file_offset % 4096 == 0 &&
                                      range->n_bytes <= limits.max_alloc_bytes));
        }
        sl__unit_layout_done(&l);
    }
}

static void test_every_failing_allocation_is_clean(void **state)
{
    (void)state;
    tensors t = {.n = 0};
    sl__unit_limits limits = {
            .device_name = "gpu0", .alignment = 1, .max_alloc_bytes = 9, .slice_bytes = 4};
    for (size_t i = 0; i < N_MAX; i++) {
        add(&t, "a", 5);
    }
    int r = SL_ENOMEM;
    long n = 0;
    for (; r == SL_ENOMEM; n++) {
        sl_error err = {0};
        sl__unit_layout l;
        sl__mem_fail_after(n);
        r = sl__unit_lay_out("u", t.list, t.n, &limits, &l, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(err.code, r);
        assert_int_equal(l.n_tensors, r < 0 ? 0 : N_MAX);
        sl__unit_layout_done(&l);
    }
    assert_int_equal(r, 0);
    assert_true(n > 4);
}

int main(void)
{
    printf("seeds 1 to %d\n", N_SEEDS);
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_random_layouts_keep_all_limits),
            cmocka_unit_test(test_G3_06_largest_allocations_of_drivers),
            cmocka_unit_test(test_G3_04_nothing_to_allocate_is_no_failure),
            cmocka_unit_test(test_a_tensor_given_twice_is_refused),
            cmocka_unit_test(test_a_device_may_want_more_room_than_bytes),
            cmocka_unit_test(test_tensors_in_place_lie_in_whole_ranges_of_their_file),
            cmocka_unit_test(test_every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
