#include "source/meminfo.h"

#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "source/mountinfo.h"

#define NO_LIMIT_FROM (UINT64_C(1) << 62)

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

static sl_span trim(sl_span s)
{
    while (s.n > 0 && is_blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && is_blank(s.p[s.n - 1])) {
        s.n--;
    }
    return s;
}

/* The next run of bytes that are no blanks; empty at the end. */
static sl_span next_word(sl_span *s)
{
    *s = trim(*s);
    sl_span word = {s->p, 0};
    while (word.n < s->n && !is_blank(s->p[word.n])) {
        word.n++;
    }
    *s = (sl_span){s->p + word.n, s->n - word.n};
    return word;
}

sl_span sl__skip_bom(sl_span text)
{
    bool has_bom = text.n >= 3 && memcmp(text.p, "\xEF\xBB\xBF", 3) == 0;
    return has_bom ? (sl_span){text.p + 3, text.n - 3} : text;
}

static bool is_number(sl_span s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9') {
            return false;
        }
    }
    return s.n > 0;
}

bool sl__span_u64(sl_span s, uint64_t *ret)
{
    uint64_t v = 0;
    if (!is_number(s)) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (!sl__mul_u64(v, 10, &v) || !sl__add_u64(v, (uint64_t)(s.p[i] - '0'), &v)) {
            return false;
        }
    }
    *ret = v;
    return true;
}

const char *sl__meminfo_name(sl__meminfo_field field)
{
    static const char *const names[SL_MEM_FIELD_COUNT] = {
            [SL_MEM_TOTAL] = "MemTotal",
            [SL_MEM_FREE] = "MemFree",
            [SL_MEM_AVAILABLE] = "MemAvailable",
            [SL_MEM_BUFFERS] = "Buffers",
            [SL_MEM_CACHED] = "Cached",
            [SL_MEM_SHMEM] = "Shmem",
            [SL_MEM_SRECLAIMABLE] = "SReclaimable",
    };
    return names[field];
}

/* "   123 kB" in bytes. */
static bool parse_kib(sl_span value, uint64_t *ret)
{
    uint64_t kib = 0;
    sl_span number = next_word(&value);
    sl_span unit = next_word(&value);
    bool is_kib = unit.n == 0 || sl__span_is(unit, "kB") || sl__span_is(unit, "KB");
    return is_kib && trim(value).n == 0 && sl__span_u64(number, &kib) &&
           sl__mul_u64(kib, 1024, ret);
}

void sl__meminfo_parse(sl_span text, sl__meminfo *ret)
{
    bool is_seen[SL_MEM_FIELD_COUNT] = {false};
    sl_span line;
    memset(ret, 0, sizeof *ret);
    text = sl__skip_bom(text);
    while (sl__line_next(&text, &line)) {
        const char *colon = line.n > 0 ? memchr(line.p, ':', line.n) : NULL;
        if (!colon) {
            continue;
        }
        sl_span name = trim((sl_span){line.p, (size_t)(colon - line.p)});
        sl_span value = {colon + 1, line.n - (size_t)(colon + 1 - line.p)};
        for (int i = 0; i < SL_MEM_FIELD_COUNT; i++) {
            if (!is_seen[i] && sl__span_is(name, sl__meminfo_name((sl__meminfo_field)i))) {
                is_seen[i] = true;
                ret->has[i] = parse_kib(value, &ret->bytes[i]);
            }
        }
    }
}

bool sl__meminfo_estimate(const sl__meminfo *info, uint64_t *ret_bytes)
{
    static const sl__meminfo_field parts[] = {
            SL_MEM_FREE, SL_MEM_BUFFERS, SL_MEM_CACHED, SL_MEM_SRECLAIMABLE};
    uint64_t sum = 0;
    if (!info->has[SL_MEM_FREE]) {
        return false;
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (info->has[parts[i]] && !sl__add_u64(sum, info->bytes[parts[i]], &sum)) {
            return false;
        }
    }
    /* Shared memory is counted in Cached, but cannot be reclaimed. */
    uint64_t shmem = info->has[SL_MEM_SHMEM] ? info->bytes[SL_MEM_SHMEM] : 0;
    *ret_bytes = sum > shmem ? sum - shmem : 0;
    return true;
}

sl__limit_kind sl__limit_parse(sl_span text, bool is_v1, uint64_t *ret_bytes)
{
    uint64_t v = 0;
    sl_span word = trim(sl__skip_bom(text));
    if (sl__span_is(word, "max") || (is_v1 && sl__span_is(word, "-1"))) {
        return SL_LIMIT_NONE;
    }
    if (!is_number(word)) {
        return SL_LIMIT_ABSURD;
    }
    if (!sl__span_u64(word, &v) || v >= NO_LIMIT_FROM) {
        return SL_LIMIT_NONE;
    }
    *ret_bytes = v;
    return SL_LIMIT_VALUE;
}

bool sl__stat_find(sl_span text, const char *name, unsigned n_skip, uint64_t *ret)
{
    sl_span line;
    text = sl__skip_bom(text);
    while (sl__line_next(&text, &line)) {
        if (!sl__span_is(next_word(&line), name)) {
            continue;
        }
        for (unsigned i = 0; i < n_skip; i++) {
            (void)next_word(&line);
        }
        return sl__span_u64(next_word(&line), ret);
    }
    return false;
}
