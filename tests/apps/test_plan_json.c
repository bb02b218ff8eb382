/* The JSON holds every number of the plan, as it is. */
#include "plan_json.h"

#include <jansson.h>
#include <string.h>

#include "plan_samples.h"
#include "random_plan.h"
#include "test_support.h"

#define GIB     (UINT64_C(1) << 30)
#define N_SEEDS 300

static json_t *parse(const plan_view *view)
{
    sl__json j = {0};
    json_error_t why;
    plan_put_json(view, NULL, &j);
    json_t *root = json_loads(sl__json_text(&j, NULL), JSON_REJECT_DUPLICATES, &why);
    if (!root) {
        fail_msg("no JSON: %s", why.text);
    }
    sl__json_done(&j);
    return root;
}

static const json_t *at(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    if (!v) {
        fail_msg("no key %s", key);
    }
    return v;
}

static uint64_t number(const json_t *object, const char *key)
{
    assert_true(json_is_integer(at(object, key)));
    return (uint64_t)json_integer_value(at(object, key));
}

static void expect_bytes(const json_t *object, sl_plan_bytes wanted)
{
    for (int k = 0; k < SL_MEM_KIND_COUNT; k++) {
        assert_int_equal(number(object, sl_mem_kind_name((sl_mem_kind)k)), wanted.kind[k]);
    }
    assert_int_equal(number(object, "total"), wanted.total);
}

static void expect_plan(const plan_view *view)
{
    json_t *root = parse(view);
    const sl_plan_request *q = view->request;
    bool fits = sl_plan_is_feasible(view->plan);
    assert_int_equal(json_is_true(at(root, "feasible")), fits);
    assert_int_equal(json_is_null(at(root, "refusal")), fits);
    assert_int_equal(number(root, "bytes_moved"), sl_plan_bytes_moved(view->plan));
    assert_true(json_number_value(at(root, "seconds")) == sl_plan_seconds(view->plan));
    assert_int_equal(json_array_size(at(root, "units")), q->n_units);
    assert_int_equal(json_array_size(at(root, "places")), q->n_places);
    for (size_t i = 0; i < q->n_places; i++) {
        const json_t *place = json_array_get(at(root, "places"), i);
        assert_int_equal(number(place, "floor_bytes"), sl_plan_floor(view->plan, i));
        expect_bytes(at(place, "peak_bytes"), sl_plan_peak_of_run(view->plan, i));
    }
    uint64_t moved = 0;
    assert_int_equal(json_array_size(at(root, "steps")), sl_plan_n_steps(view->plan));
    for (size_t s = 0; s < sl_plan_n_steps(view->plan); s++) {
        const json_t *step = json_array_get(at(root, "steps"), s);
        for (size_t i = 0; i < q->n_places; i++) {
            const json_t *place = json_array_get(at(step, "places"), i);
            expect_bytes(place, sl_plan_peak(view->plan, s, i));
            moved += number(place, "bytes_moved");
        }
    }
    assert_int_equal(moved, sl_plan_bytes_moved(view->plan));
    assert_int_equal(json_array_size(at(root, "events")), sl_plan_n_events(view->plan));
    json_decref(root);
}

static void test_random_plans_read_back(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        random_plan r;
        sl_plan *plan = rp_make_solved(seed, &r);
        plan_view view = {.request = &r.q, .plan = plan};
        expect_plan(&view);
        sl_plan_free(&plan);
    }
}

static void test_keys_of_a_plan_that_fits(void **state)
{
    (void)state;
    plan_sample s;
    sample_init(&s, GIB * 9 / 2, SL_POLICY_SWAP);
    s.places[1].budget_bytes = PLAN_NO_LIMIT;
    sample_solve(&s);
    json_t *root = parse(&s.view);
    assert_string_equal(json_string_value(at(root, "model")), "/models/s2-pro-q8_0.gguf");
    assert_string_equal(json_string_value(at(root, "policy")), "swap");
    assert_string_equal(json_string_value(at(root, "prefetch")), "budget");
    assert_int_equal(number(root, "frames"), 215);
    assert_true(json_is_null(at(json_array_get(at(root, "places"), 1), "budget_bytes")));
    assert_true(json_is_null(at(json_array_get(at(root, "places"), 1), "link_bytes_per_second")));
    const json_t *fast = json_array_get(at(root, "units"), 2);
    assert_string_equal(json_string_value(at(fast, "second_place")), "cpu");
    assert_string_equal(json_string_value(at(fast, "placement")), "vulkan0");
    const json_t *generate = json_array_get(at(root, "steps"), 1);
    assert_string_equal(json_string_value(at(generate, "phase")), "generate");
    assert_string_equal(json_string_value(at(at(generate, "units"), "slow")), "needed");
    assert_string_equal(json_string_value(at(at(generate, "units"), "codec.decoder")), "ahead");
    assert_true(json_number_value(at(generate, "begin_seconds")) > 0.9);
    assert_string_equal(
            json_string_value(at(at(root, "sources"), "budget of vulkan0")), "given by --vram");
    json_decref(root);
    sample_done(&s);
}

static void test_keys_of_a_refusal(void **state)
{
    (void)state;
    plan_sample s;
    sample_init(&s, 4 * GIB, SL_POLICY_SWAP);
    sample_solve(&s);
    json_t *root = parse(&s.view);
    const json_t *refusal = at(root, "refusal");
    assert_string_equal(json_string_value(at(refusal, "place")), "vulkan0");
    assert_int_equal(number(refusal, "budget_bytes"), 4 * GIB);
    assert_int_equal(number(refusal, "floor_bytes"), sl_plan_floor(s.plan, 0));
    assert_non_null(strstr(json_string_value(at(refusal, "message")), "place fast on cpu"));
    const json_t *fast = json_array_get(at(root, "units"), 2);
    assert_string_equal(json_string_value(at(fast, "placement")), "cpu");
    assert_true(json_is_null(at(json_array_get(at(root, "steps"), 0), "begin_seconds")));
    json_decref(root);
    /* With the budget that it names, it fits. */
    s.places[0].budget_bytes = sl_plan_floor(s.plan, 0);
    sample_solve(&s);
    assert_true(sl_plan_is_feasible(s.plan));
    sample_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_random_plans_read_back),
            cmocka_unit_test(test_keys_of_a_plan_that_fits),
            cmocka_unit_test(test_keys_of_a_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
