#include "source/pressure.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "os/os_file.h"
#include "source/meminfo.h"

#define MAX_FILE_BYTES (64u << 10)
#define N_COUNTERS     3
#define SOME_PERCENT   30
#define FULL_PERCENT   10

typedef enum place_kind {
    PLACE_STALLS,
    PLACE_EVENTS,
    PLACE_OOM,
    PLACE_KIND_COUNT
} place_kind;

struct sl__pressure_place {
    char *path; /* as the machine names it */
    place_kind kind;
    uint64_t counters[N_COUNTERS]; /* as last seen; stalls: microseconds of some, full */
};

/* What is counted in a place, in the order of its counters. */
static const char *const names[PLACE_KIND_COUNT][N_COUNTERS] = {
        [PLACE_STALLS] = {"some", "full", NULL},
        [PLACE_EVENTS] = {"high", "oom", "oom_kill"},
        [PLACE_OOM] = {"under_oom", "oom_kill", NULL},
};

/* The number behind "total=" in the line that begins with `name`. */
static bool find_total(const char *text, const char *name, uint64_t *ret)
{
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) != 0 || line[n] != ' ') {
            continue;
        }
        const char *end = line + strcspn(line, "\n");
        const char *at = strstr(line, "total=");
        if (!at || at >= end) {
            return false;
        }
        at += strlen("total=");
        return sl__span_u64((sl_span){at, (size_t)(end - at)}, ret);
    }
    return false;
}

/* Reads the counters of a place; those that it lacks stay as they are. False if it cannot be read. */
static bool look(const sl__pressure *p, const sl__pressure_place *place, uint64_t *counters)
{
    char *text = NULL;
    size_t n = 0;
    size_t n_path = strlen(p->root) + strlen(place->path) + 1;
    char *full = sl__alloc(n_path, 1);
    if (!full) {
        return false;
    }
    snprintf(full, n_path, "%s%s", p->root, place->path);
    int r = sl__read_file(full, "file", MAX_FILE_BYTES, &text, &n, NULL);
    sl__free(full);
    if (r < 0) {
        return false;
    }
    for (size_t i = 0; i < N_COUNTERS && names[place->kind][i]; i++) {
        if (place->kind == PLACE_STALLS) {
            (void)find_total(text, names[place->kind][i], &counters[i]);
        } else {
            (void)sl__stat_find((sl_span){text, n}, names[place->kind][i], 0, &counters[i]);
        }
    }
    sl__free(text);
    return true;
}

/* Adds DIR/NAME, where DIR are the first n_dir bytes of `source`, unless it is there or cannot be read. */
static int add(sl__pressure *p, const char *source, size_t n_dir, const char *name, place_kind kind)
{
    size_t n = n_dir + strlen(name) + 1;
    sl__pressure_place place = {.kind = kind, .path = sl__alloc(n, 1)};
    if (!place.path) {
        return SL_ENOMEM;
    }
    snprintf(place.path, n, "%.*s%s", (int)n_dir, source, name);
    bool is_known = false;
    for (size_t i = 0; i < p->n; i++) {
        is_known = is_known || strcmp(p->places[i].path, place.path) == 0;
    }
    if (is_known || !look(p, &place, place.counters)) {
        sl__free(place.path);
        return 0;
    }
    if (!sl__grow((void **)&p->places, &p->cap, p->n + 1, sizeof place)) {
        sl__free(place.path);
        return SL_ENOMEM;
    }
    p->places[p->n] = place;
    p->n++;
    return 0;
}

/* The files beside that of a limit. */
static int add_group(sl__pressure *p, const sl_ram_bound *bound)
{
    const char *slash = strrchr(bound->source, '/');
    size_t n_dir = slash ? (size_t)(slash - bound->source) + 1 : 0;
    if (bound->kind == SL_RAM_CGROUP_V1) {
        return add(p, bound->source, n_dir, "memory.oom_control", PLACE_OOM);
    }
    if (bound->kind != SL_RAM_CGROUP_MAX && bound->kind != SL_RAM_CGROUP_HIGH) {
        return 0;
    }
    int r = add(p, bound->source, n_dir, "memory.events", PLACE_EVENTS);
    return r < 0 ? r : add(p, bound->source, n_dir, "memory.pressure", PLACE_STALLS);
}

int sl__pressure_begin(const char *root, const sl_ram_budget *ram, uint64_t now_ns,
        sl__pressure *ret_pressure, sl_error *reterr)
{
    static const char host[] = "/proc/pressure/";
    sl__pressure p = {.root = root ? root : "", .since_ns = now_ns};
    int r = add(&p, host, strlen(host), "memory", PLACE_STALLS);
    for (size_t i = 0; i < ram->n_bounds && r >= 0; i++) {
        r = add_group(&p, &ram->bounds[i]);
    }
    if (r < 0) {
        sl__pressure_done(&p);
        return sl__fail_nomem(reterr, sizeof *p.places, "the watch of memory");
    }
    *ret_pressure = p;
    return 0;
}

void sl__pressure_done(sl__pressure *pressure)
{
    for (size_t i = 0; i < pressure->n; i++) {
        sl__free(pressure->places[i].path);
    }
    sl__free(pressure->places);
    *pressure = (sl__pressure){0};
}

static bool events_rose(const sl__pressure_place *place, const uint64_t *now, char *why, size_t n)
{
    for (size_t i = 0; i < N_COUNTERS && names[place->kind][i]; i++) {
        if (now[i] > place->counters[i]) {
            snprintf(why, n, "%s: %s rose by %llu", place->path, names[place->kind][i],
                    (unsigned long long)(now[i] - place->counters[i]));
            return true;
        }
    }
    return false;
}

static bool stalls_are_long(
        const sl__pressure_place *place, const uint64_t *now, uint64_t past_ns, char *why, size_t n)
{
    static const unsigned most[] = {SOME_PERCENT, FULL_PERCENT};
    for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
        uint64_t stalled_us = now[i] > place->counters[i] ? now[i] - place->counters[i] : 0;
        uint64_t percent = stalled_us / (past_ns / 100000 + 1);
        if (percent >= most[i]) {
            snprintf(why, n, "%s: %s tasks stood still %llu%% of the time", place->path,
                    i == 0 ? "some" : "all", (unsigned long long)(percent < 100 ? percent : 100));
            return true;
        }
    }
    return false;
}

bool sl__pressure_rose(sl__pressure *pressure, uint64_t now_ns, char *why, size_t why_bytes)
{
    uint64_t past_ns = now_ns - pressure->since_ns;
    bool is_time = past_ns >= SL_PRESSURE_MIN_NS;
    bool rose = false;
    for (size_t i = 0; i < pressure->n && !rose; i++) {
        sl__pressure_place *place = &pressure->places[i];
        uint64_t now[N_COUNTERS] = {0};
        bool is_stalls = place->kind == PLACE_STALLS;
        if ((is_stalls && !is_time) || !look(pressure, place, now)) {
            continue;
        }
        rose = is_stalls ? stalls_are_long(place, now, past_ns, why, why_bytes)
                         : events_rose(place, now, why, why_bytes);
        memcpy(place->counters, now, sizeof now);
    }
    if (is_time) {
        pressure->since_ns = now_ns;
    }
    return rose;
}
