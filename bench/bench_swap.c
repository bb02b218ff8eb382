/*
 * What a device holds and how long its moves take under each policy, planned and measured: the units of a model are
 * moved for one request (a recording, speech, decoding) on a simulated device, without computing.
 *
 *   bench_swap MODEL.gguf [DEVICE]      DEVICE as in `say`, default sim:8G,link=12G
 *
 * KV caches and compute buffers are those that the engine plans for 1024 frames, and are really allocated. One CSV line a
 * policy: the largest phase by itself; the peak that is planned, booked in the ledger, and held by the device's own
 * account; what is left when the request is over; bytes moved; seconds predicted and measured, both without
 * computing. Peaks are held against the plan and, for swap and hot, against the largest phase: a line that is not
 * within 5% fails the program.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "bench_support.h"
#include "device/sim.h"
#include "os/os_clock.h"
#include "s2/plan_model.h"
#include "sluice/model.h"
#include "sluice/residency.h"

#define MAX_UNITS   16
#define MAX_PHASES  4
#define MAX_SCRATCH 8
#define SIM_PLACE   1

typedef struct bench {
    sl_model *model;
    const sl_tensor **tensors; /* of all units, one after the other */
    s2_plan *made;
    sl_plan_request request;
    sl_plan_unit units[MAX_UNITS];
    sl_plan_phase phases[MAX_PHASES];
    sl_plan_scratch scratch[MAX_PHASES][MAX_SCRATCH];
    sl_plan *plan;
    sl_device *devices[2];
    sl_residency *residency;
} bench;

/* Tensors of a unit by name; the array has room. */
static size_t list_tensors(const sl_model *model, const char *unit, const sl_tensor **ret)
{
    size_t n = 0;
    bool is_codec_file = s2_unit_is_codec_file(model);
    for (uint64_t i = 0; i < sl_model_n_tensors(model); i++) {
        const sl_tensor *t = sl_model_tensor_at(model, i);
        if (strcmp(s2_unit_name(s2_unit_of(t->info->name, is_codec_file)), unit) == 0) {
            ret[n] = t;
            n++;
        }
    }
    return n;
}

static void plan_request(bench *b, const char *path, const char *device, sl_policy policy)
{
    sl_error err = {0};
    sl__sim_spec spec;
    bench_ok(sl__sim_parse(device, &spec, &err), &err);
    const s2_plan_opts opts = {.model_path = path,
            .place = {.device = device, .policy = policy, .decode = S2_DECODE_AFTER},
            .n_threads = 1,
            .begins_with_voice = true,
            .link_bytes_per_s = (double)spec.link_bytes_s};
    bench_ok(s2_plan_make(&opts, &b->made, &err), &err);
    b->request = *s2_plan_request(b->made);
    if (b->request.n_units > MAX_UNITS || b->request.n_places != 2 ||
            b->request.n_phases > MAX_PHASES) {
        bench_ok(
                sl__fail(&err, SL_EINVAL, "bench_swap: more units, places or phases than expected"),
                &err);
    }
}

/* The engine books scratch to the byte; here it is allocated, in steps of the device's alignment. */
static void align_scratch(bench *b)
{
    sl_error err = {0};
    sl_device_info info;
    bench_ok(sl_device_describe(b->devices[1], &info, &err), &err);
    for (size_t i = 0; i < b->request.n_phases; i++) {
        b->phases[i] = b->request.phases[i];
        b->phases[i].scratch = b->scratch[i];
        for (size_t k = 0; k < b->phases[i].n_scratch && k < MAX_SCRATCH; k++) {
            b->scratch[i][k] = b->request.phases[i].scratch[k];
            uint64_t n = b->scratch[i][k].n_bytes + info.alignment - 1;
            b->scratch[i][k].n_bytes = n - n % info.alignment;
        }
    }
    b->request.phases = b->phases;
}

/* The request's units on a residency of their own; the plan takes their sizes from there. */
static void open_residency(bench *b, const char *device)
{
    sl_error err = {0};
    bench_ok(sl_device_create_host(&b->devices[0], &err), &err);
    bench_ok(sl_device_create_sim(device, &b->devices[1], &err), &err);
    const sl_residency_place places[] = {{b->devices[0], b->request.places[0].budget_bytes},
            {b->devices[1], b->request.places[1].budget_bytes}};
    const sl_residency_opts opts = {.places = places, .n_places = 2, .policy = b->request.policy};
    bench_ok(sl_residency_open(&opts, &b->residency, &err), &err);
    for (size_t i = 0; i < b->request.n_units; i++) {
        size_t index = 0;
        b->units[i] = b->request.units[i];
        sl_unit_spec spec = {.name = b->units[i].name,
                .model = b->model,
                .tensors = b->tensors,
                .n_tensors = list_tensors(b->model, b->units[i].name, b->tensors),
                .i_place = b->units[i].i_place,
                .i_second = SL_PLAN_NONE};
        bench_ok(sl_residency_add_unit(b->residency, &spec, &index, &err), &err);
        b->units[i].i_second = SL_PLAN_NONE;
        b->units[i].n_bytes = sl_residency_unit_bytes(b->residency, index, b->units[i].i_place);
    }
    b->request.units = b->units;
    align_scratch(b);
    bench_ok(sl_plan_solve(&b->request, &b->plan, &err), &err);
    bench_ok(sl_plan_check(b->plan, &err), &err);
}

static void run_phase(bench *b, size_t i_step)
{
    sl_error err = {0};
    sl_phase *phase = NULL;
    sl_scratch *scratch[MAX_SCRATCH] = {0};
    const sl_plan_phase *planned = &b->request.phases[i_step];
    bench_ok(
            sl_phase_begin(b->residency, b->plan, i_step, planned->name, false, NULL, &phase, &err),
            &err);
    for (size_t k = 0; k < planned->n_scratch && k < MAX_SCRATCH; k++) {
        const sl_plan_scratch *s = &planned->scratch[k];
        bench_ok(sl_scratch_acquire(b->residency, s->i_place, s->kind, s->n_bytes,
                         s->i_place == SIM_PLACE, NULL, &scratch[k], &err),
                &err);
    }
    /* What is fetched ahead has the time that computing would take. */
    bench_ok(sl_residency_settle(b->residency, NULL, &err), &err);
    for (size_t k = 0; k < MAX_SCRATCH; k++) {
        sl_scratch_release(&scratch[k]);
    }
    sl_phase_end(&phase);
}

/* Prints the line of a policy; false if a peak is not where it has to be. */
static bool report(bench *b, double seconds)
{
    sl_error err = {0};
    sl_place_status place;
    sl__sim_stats stats;
    uint64_t largest = 0;
    bench_ok(sl_residency_settle(b->residency, NULL, &err), &err);
    bench_ok(sl_residency_place_status(b->residency, SIM_PLACE, &place, &err), &err);
    sl__sim_get_stats(b->devices[1], &stats);
    uint64_t planned = sl_plan_peak_of_run(b->plan, SIM_PLACE).total;
    sl_policy policy = b->request.policy;
    b->request.policy = SL_POLICY_SWAP;
    sl_plan *swapped = NULL;
    bench_ok(sl_plan_solve(&b->request, &swapped, &err), &err);
    largest = sl_plan_floor(swapped, SIM_PLACE);
    sl_plan_free(&swapped);
    printf("%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.3f,%.3f\n",
            sl_policy_name(policy), largest, planned, place.peak_total, stats.peak_bytes,
            place.used_total, sl_plan_bytes_moved(b->plan), sl_plan_seconds(b->plan), seconds);
    bool is_low = policy == SL_POLICY_SWAP || policy == SL_POLICY_HOT;
    bool is_as_planned = place.peak_total <= planned && place.peak_total * 100 >= planned * 95;
    bool is_small =
            !is_low || (stats.peak_bytes <= largest + largest / 20 && place.used_total == 0);
    return is_as_planned && is_small && stats.peak_bytes <= planned;
}

static bool run_policy(const char *path, const char *device, sl_policy policy)
{
    bench b = {0};
    sl_error err = {0};
    bench_ok(sl_model_open(path, &b.model, &err), &err);
    b.tensors = bench_alloc((size_t)sl_model_n_tensors(b.model) * sizeof(const sl_tensor *));
    plan_request(&b, path, device, policy);
    open_residency(&b, device);
    uint64_t begin_ns = sl__now_ns();
    for (size_t i = 0; i < sl_plan_n_steps(b.plan); i++) {
        run_phase(&b, i);
    }
    double seconds = (double)(sl__now_ns() - begin_ns) / 1e9;
    bool is_good = report(&b, seconds);
    sl_residency_close(&b.residency);
    sl_plan_free(&b.plan);
    s2_plan_free(&b.made);
    sl_device_free(&b.devices[1]);
    sl_device_free(&b.devices[0]);
    free(b.tensors);
    sl_model_close(&b.model);
    return is_good;
}

int main(int argc, char **argv)
{
    static const sl_policy policies[] = {
            SL_POLICY_KEEP, SL_POLICY_SWAP, SL_POLICY_HOT, SL_POLICY_AUTO};
    const char *device = argc > 2 ? argv[2] : "sim:8G,link=12G";
    bool is_good = true;
    if (argc < 2) {
        fprintf(stderr, "bench_swap MODEL.gguf [DEVICE]\n");
        return 2;
    }
    bench_print_machine();
    printf("# bench_swap %s %s\n", argv[1], device);
    printf("policy,largest_phase_bytes,planned_peak_bytes,ledger_peak_bytes,device_peak_bytes,"
           "idle_bytes,moved_bytes,predicted_s,measured_s\n");
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        is_good = run_policy(argv[1], device, policies[i]) && is_good;
    }
    return is_good ? 0 : 1;
}
