#include "sleep_plan.h"

#include <stdbool.h>
#include <string.h>

#define NS_PER_MS   UINT64_C(1000000)
#define MOST_DIGITS 9u

/* Reads digits and a unit; false if there is anything else. */
static bool parse_time(const char *text, size_t n, uint64_t *ret_ns)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"", 1000}, {"m", 60000}, {"h", 3600000}};
    uint64_t value = 0;
    size_t i = 0;
    while (i < n && i < MOST_DIGITS && text[i] >= '0' && text[i] <= '9') {
        value = 10 * value + (uint64_t)(text[i] - '0');
        i++;
    }
    for (size_t u = 0; i > 0 && u < sizeof units / sizeof units[0]; u++) {
        size_t n_unit = strlen(units[u].unit);
        if (n - i == n_unit && memcmp(text + i, units[u].unit, n_unit) == 0) {
            *ret_ns = value * units[u].ms * NS_PER_MS;
            return true;
        }
    }
    return false;
}

int duration_parse(const char *text, const char *what, uint64_t *ret_ns, sl_error *reterr)
{
    char quoted[64];
    if (!parse_time(text, strlen(text), ret_ns)) {
        return sl__fail(reterr, SL_EINVAL, "%s is '%s', need a time such as 500ms, 30s, 5m or 1h",
                what, sl__quote(quoted, sizeof quoted, text, strlen(text)));
    }
    return SL_OK;
}

static int parse_item(const char *item, size_t n, sleep_plan *plan, sl_error *reterr)
{
    char quoted[64];
    uint64_t ns = 0;
    bool is_item = n >= 3 && item[n - 2] == ':' && item[n - 1] >= '1' &&
                   item[n - 1] <= (char)('0' + SLEEP_LEVEL_MOST) && parse_time(item, n - 2, &ns);
    if (!is_item || ns == 0) {
        return sl__fail(reterr, SL_EINVAL,
                "--sleep-after has '%s', need TIME:LEVEL with a level from 1 to 3, as in 60s:1",
                sl__quote(quoted, sizeof quoted, item, n));
    }
    unsigned level = (unsigned)(item[n - 1] - '0');
    if (plan->after_ns[level] != 0) {
        return sl__fail(reterr, SL_EINVAL, "--sleep-after names level %u twice", level);
    }
    plan->after_ns[level] = ns;
    return SL_OK;
}

static int check_order(const sleep_plan *plan, sl_error *reterr)
{
    for (unsigned deep = 2; deep <= SLEEP_LEVEL_MOST; deep++) {
        for (unsigned light = 1; light < deep; light++) {
            if (plan->after_ns[deep] != 0 && plan->after_ns[light] >= plan->after_ns[deep]) {
                return sl__fail(reterr, SL_EINVAL,
                        "--sleep-after reaches level %u no later than level %u; deeper levels "
                        "need longer times",
                        deep, light);
            }
        }
    }
    return SL_OK;
}

int sleep_plan_parse(const char *text, sleep_plan *ret_plan, sl_error *reterr)
{
    sleep_plan plan = {0};
    int r = SL_OK;
    if (strcmp(text, "never") == 0) {
        *ret_plan = plan;
        return SL_OK;
    }
    for (;;) {
        size_t n = strcspn(text, ",");
        r = parse_item(text, n, &plan, reterr);
        if (r < 0 || text[n] == '\0') {
            break;
        }
        text += n + 1;
    }
    if (r == 0) {
        r = check_order(&plan, reterr);
    }
    if (r == 0) {
        *ret_plan = plan;
    }
    return r;
}

unsigned sleep_plan_level(const sleep_plan *plan, uint64_t idle_ns)
{
    unsigned level = 0;
    for (unsigned i = 1; i <= SLEEP_LEVEL_MOST; i++) {
        if (plan->after_ns[i] != 0 && idle_ns >= plan->after_ns[i]) {
            level = i;
        }
    }
    return level;
}

uint64_t sleep_plan_next_ns(const sleep_plan *plan, unsigned level)
{
    for (unsigned i = level + 1; i <= SLEEP_LEVEL_MOST; i++) {
        if (plan->after_ns[i] != 0) {
            return plan->after_ns[i];
        }
    }
    return UINT64_MAX;
}
