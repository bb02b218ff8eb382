#include "settings.h"

#include <stdlib.h>
#include <string.h>

#include "sluice/populate.h"

static const char *get(const char *name)
{
    const char *value =
            getenv(name); /* NOLINT(concurrency-mt-unsafe): nothing here sets variables */
    return value && *value ? value : NULL;
}

/* A number of bytes in decimal; false if the variable is not set, or is no such number. */
static bool get_bytes(shim_settings *s, const char *name, uint64_t *ret)
{
    uint64_t n = 0;
    const char *value = get(name);
    if (!value) {
        return false;
    }
    for (const char *c = value; *c; c++) {
        uint64_t digit = (uint64_t)(unsigned char)*c - '0';
        if (digit > 9 || n > (UINT64_MAX - digit) / 10) {
            s->bad = name;
            return false;
        }
        n = n * 10 + digit;
    }
    *ret = n;
    return true;
}

static bool is_set(const char *name)
{
    const char *value = get(name);
    return value && strcmp(value, "0") != 0;
}

shim_settings shim_settings_read(void)
{
    shim_settings s = {.lazy_over_bytes = SL_LAZY_OVER_BYTES};
    const char *populate = get(SHIM_ENV_POPULATE);
    s.ram.has_given = get_bytes(&s, SHIM_ENV_RAM, &s.ram.given_bytes);
    (void)get_bytes(&s, SHIM_ENV_LAZY_OVER, &s.lazy_over_bytes);
    if (populate && strcmp(populate, "all") == 0) {
        s.lazy_over_bytes = UINT64_MAX;
    }
    s.is_off = sl_populate_switched_off() != NULL;
    s.is_waiting = is_set(SHIM_ENV_WAIT);
    s.is_quiet = is_set(SHIM_ENV_QUIET);
    return s;
}
