/*
 * The text that describes a simulated device, read part by part. Every part says what was wrong with it itself,
 * since a person typed it on a command line.
 */
#include "device/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* A piece of the text that is being read. */
typedef struct part {
    const char *text; /* the whole, for messages */
    const char *key;
    size_t n_key;
    const char *value;
    size_t n_value;
} part;

typedef struct size_range {
    uint64_t least;
    uint64_t most;
} size_range;

static const char *const call_names[SL__SIM_CALL_COUNT] = {
        [SL__SIM_ALLOC] = "alloc",
        [SL__SIM_FREE] = "free",
        [SL__SIM_UPLOAD] = "upload",
        [SL__SIM_COPY] = "copy",
        [SL__SIM_EVENT] = "event",
        [SL__SIM_RECORD] = "record",
        [SL__SIM_WAIT] = "wait",
        [SL__SIM_PIN] = "pin",
        [SL__SIM_REGISTER] = "register",
        [SL__SIM_READ] = "read",
};

static const char *const fault_names[SL__SIM_FAULT_COUNT] = {
        [SL__SIM_FAIL] = "fail",
        [SL__SIM_SLOW] = "slow",
        [SL__SIM_LOST] = "lost",
        [SL__SIM_SHORT] = "short",
};

const char *sl__sim_call_name(sl__sim_call call)
{
    return (unsigned)call < SL__SIM_CALL_COUNT ? call_names[call] : "unknown";
}

static bool equals(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(s, word, n) == 0;
}

static size_t find_word(const char *s, size_t n, const char *const *words, size_t n_words)
{
    size_t i = 0;
    while (i < n_words && !equals(s, n, words[i])) {
        i++;
    }
    return i;
}

static int fail_part(const part *p, const char *needed, sl_error *reterr)
{
    char text[160];
    char shown[120];
    size_t n = (size_t)(p->value + p->n_value - p->key);
    return sl__fail(reterr, SL_EINVAL, "device %s: '%s' is not understood; %s",
            sl__quote(text, sizeof text, p->text, strlen(p->text)),
            sl__quote(shown, sizeof shown, p->key, n), needed);
}

static bool read_number(const char *s, size_t n, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9' || !sl__mul_u64(value, 10, &value) ||
                !sl__add_u64(value, (uint64_t)(s[i] - '0'), &value)) {
            return false;
        }
    }
    *ret = value;
    return n > 0;
}

static bool read_size(const char *s, size_t n, uint64_t *ret)
{
    static const char suffixes[] = "KMGT";
    unsigned shift = 0;
    const char *at = n > 0 ? strchr(suffixes, s[n - 1]) : NULL;
    if (at) {
        shift = 10 * (unsigned)(at - suffixes + 1);
        n--;
    }
    uint64_t value;
    return read_number(s, n, &value) && sl__mul_u64(value, UINT64_C(1) << shift, ret);
}

static int parse_size(const part *p, size_range range, uint64_t *ret, sl_error *reterr)
{
    uint64_t value;
    if (!read_size(p->value, p->n_value, &value)) {
        return fail_part(p,
                "write a whole number of bytes, or one with K, M, G or T behind it (256M)", reterr);
    }
    if (value < range.least || value > range.most) {
        char needed[96];
        snprintf(needed, sizeof needed, "from %" PRIu64 " to %" PRIu64 " bytes are possible",
                range.least, range.most);
        return fail_part(p, needed, reterr);
    }
    *ret = value;
    return 0;
}

static int parse_flag(const part *p, bool *ret, sl_error *reterr)
{
    bool yes = equals(p->value, p->n_value, "yes");
    if (!yes && !equals(p->value, p->n_value, "no")) {
        return fail_part(p, "write yes or no", reterr);
    }
    *ret = yes;
    return 0;
}

static int parse_fault(const part *p, sl__sim_fault_kind kind, sl__sim_spec *spec, sl_error *reterr)
{
    const char *colon = memchr(p->value, ':', p->n_value);
    size_t n_call = colon ? (size_t)(colon - p->value) : p->n_value;
    size_t call = find_word(p->value, n_call, call_names, SL__SIM_CALL_COUNT);
    uint64_t n = 0;
    if (call == SL__SIM_CALL_COUNT) {
        return fail_part(p,
                "write KIND:N with a kind of alloc, free, upload, copy, event, record, wait, pin, "
                "register, read",
                reterr);
    }
    if (!colon || !read_number(colon + 1, p->n_value - n_call - 1, &n) || n == 0) {
        return fail_part(p, "write which call, from 1: alloc:3", reterr);
    }
    if (kind == SL__SIM_SHORT && call != SL__SIM_READ) {
        return fail_part(p, "only read can be short", reterr);
    }
    if (spec->n_faults == SL__SIM_MAX_FAULTS) {
        return fail_part(p, "at most 8 failures can be asked for", reterr);
    }
    spec->faults[spec->n_faults] =
            (sl__sim_fault){.kind = kind, .call = (sl__sim_call)call, .n = n};
    spec->n_faults++;
    return 0;
}

typedef enum spec_key {
    KEY_LINK,
    KEY_MAX_ALLOC,
    KEY_ALIGN,
    KEY_PINNED,
    KEY_REGISTER,
    KEY_KEEP_PAGES,
    KEY_COUNT
} spec_key;

static int parse_setting(const part *p, spec_key key, sl__sim_spec *spec, sl_error *reterr)
{
    int r = 0;
    switch (key) {
    case KEY_LINK:
        return parse_size(p, (size_range){1, UINT64_MAX}, &spec->link_bytes_s, reterr);
    case KEY_MAX_ALLOC:
        return parse_size(p, (size_range){1, UINT64_MAX}, &spec->max_alloc_bytes, reterr);
    case KEY_ALIGN:
        r = parse_size(p, (size_range){1, UINT64_C(1) << 20}, &spec->alignment, reterr);
        if (r == 0 && (spec->alignment & (spec->alignment - 1)) != 0) {
            r = fail_part(p, "an alignment is a power of two", reterr);
        }
        return r;
    case KEY_PINNED:
        return parse_flag(p, &spec->has_pinned, reterr);
    case KEY_REGISTER:
        return parse_flag(p, &spec->can_register, reterr);
    case KEY_KEEP_PAGES:
        return parse_flag(p, &spec->keeps_pages, reterr);
    case KEY_COUNT:
    default:
        return fail_part(p,
                "parts are link=, max-alloc=, align=, pinned=, register=, keep-pages=, fail=, "
                "slow=, lost=, short=",
                reterr);
    }
}

static int parse_part(const part *p, unsigned *seen, sl__sim_spec *spec, sl_error *reterr)
{
    static const char *const names[KEY_COUNT] = {
            [KEY_LINK] = "link",
            [KEY_MAX_ALLOC] = "max-alloc",
            [KEY_ALIGN] = "align",
            [KEY_PINNED] = "pinned",
            [KEY_REGISTER] = "register",
            [KEY_KEEP_PAGES] = "keep-pages",
    };
    size_t fault = find_word(p->key, p->n_key, fault_names, SL__SIM_FAULT_COUNT);
    if (fault < SL__SIM_FAULT_COUNT) {
        return parse_fault(p, (sl__sim_fault_kind)fault, spec, reterr);
    }
    size_t key = find_word(p->key, p->n_key, names, KEY_COUNT);
    if (key < KEY_COUNT && (*seen & 1u << key) != 0) {
        return fail_part(p, "it is given twice", reterr);
    }
    *seen |= 1u << key;
    return parse_setting(p, (spec_key)key, spec, reterr);
}

/* The part that starts at `at`: KEY=VALUE, or KEY with an empty value, up to a comma or the end. */
static part cut_part(const char *text, const char *at)
{
    size_t n = strcspn(at, ",");
    const char *sign = memchr(at, '=', n);
    size_t n_key = sign ? (size_t)(sign - at) : n;
    return (part){
            .text = text,
            .key = at,
            .n_key = n_key,
            .value = sign ? sign + 1 : at + n,
            .n_value = sign ? n - n_key - 1 : 0,
    };
}

int sl__sim_parse(const char *text, sl__sim_spec *ret_spec, sl_error *reterr)
{
    sl__sim_spec spec = {.alignment = 256, .has_pinned = true};
    unsigned seen = 0;
    char shown[160];
    if (strncmp(text, "sim:", 4) != 0) {
        return sl__fail(reterr, SL_EINVAL,
                "device %s: a simulated device is written sim:SIZE, for instance sim:4G,link=12G",
                sl__quote(shown, sizeof shown, text, strlen(text)));
    }
    size_t n_size = strcspn(text + 4, ",");
    const part size = {.text = text, .key = text + 4, .value = text + 4, .n_value = n_size};
    int r = parse_size(&size, (size_range){1, UINT64_C(1) << 50}, &spec.n_bytes, reterr);
    const char *at = text + 4 + n_size;
    while (r == 0 && *at == ',') {
        part p = cut_part(text, at + 1);
        r = parse_part(&p, &seen, &spec, reterr);
        at = p.value + p.n_value;
    }
    if (r == 0) {
        *ret_spec = spec;
    }
    return r;
}
