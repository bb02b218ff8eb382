/*
 * Numbers are read by hand where C's own readers accept too much: no signs on counts, no blanks, no
 * hexadecimal, no "inf" or "nan", nothing behind the number. What does not fit is wrong, never clipped.
 */
#include "option_value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789"

static bool has_range(const opt_def *def)
{
    return def->min != 0 || def->max != 0;
}

static bool is_in_range(const opt_def *def, double v)
{
    return !has_range(def) || (v >= def->min && v <= def->max);
}

/* Reads the digits at *text and moves it behind them; false without digits or if the value wraps. */
static bool read_digits(const char **text, uint64_t *ret)
{
    size_t n = strspn(*text, DIGITS);
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t digit = (uint64_t)((*text)[i] - '0');
        if (v > (UINT64_MAX - digit) / 10) {
            return false;
        }
        v = v * 10 + digit;
    }
    *text += n;
    *ret = v;
    return n > 0;
}

static bool parse_u64(const opt_def *def, const char *text, uint64_t *dst)
{
    uint64_t v;
    if (!read_digits(&text, &v) || *text != '\0' || !is_in_range(def, (double)v)) {
        return false;
    }
    *dst = v;
    return true;
}

static bool parse_i32(const opt_def *def, const char *text, int32_t *dst)
{
    bool is_negative = *text == '-';
    uint64_t magnitude;
    text += is_negative;
    if (!read_digits(&text, &magnitude) || *text != '\0' || magnitude > (uint64_t)INT32_MAX) {
        return false;
    }
    int32_t v = is_negative ? -(int32_t)magnitude : (int32_t)magnitude;
    if (!is_in_range(def, v)) {
        return false;
    }
    *dst = v;
    return true;
}

static bool parse_f32(const opt_def *def, const char *text, float *dst)
{
    if (*text == '\0' || text[strspn(text, DIGITS "+-.eE")] != '\0') {
        return false;
    }
    char *end;
    double v = strtod(text, &end);
    if (*end != '\0' || !isfinite((float)v) || !is_in_range(def, v)) {
        return false;
    }
    *dst = (float)v;
    return true;
}

static bool parse_bytes(const opt_def *def, const char *text, uint64_t *dst)
{
    static const char units[] = "KMGT";
    uint64_t v;
    if (!read_digits(&text, &v)) {
        return false;
    }
    const char *unit = *text ? strchr(units, *text) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    text += unit != NULL;
    if (strcmp(text, "") != 0 && strcmp(text, "B") != 0 && (!unit || strcmp(text, "iB") != 0)) {
        return false;
    }
    if (v > UINT64_MAX >> shift || !is_in_range(def, (double)(v << shift))) {
        return false;
    }
    *dst = v << shift;
    return true;
}

static bool parse_choice(const opt_def *def, const char *text, int *dst)
{
    for (int i = 0; def->choices[i]; i++) {
        if (strcmp(def->choices[i], text) == 0) {
            *dst = i;
            return true;
        }
    }
    return false;
}

static bool parse_str(const char *text, const char **dst)
{
    if (*text == '\0') {
        return false;
    }
    *dst = text;
    return true;
}

static bool add_item(const char *text, opt_list *list)
{
    if (list->n == OPT_LIST_MAX || *text == '\0') {
        return false;
    }
    list->items[list->n] = text;
    list->n++;
    return true;
}

bool opt_value_parse(const opt_def *def, const char *text, void *values)
{
    void *member = (char *)values + def->offset;
    switch (def->kind) {
    case OPT_FLAG:
        *(bool *)member = true;
        return true;
    case OPT_STR:
        return parse_str(text, member);
    case OPT_LIST:
        return add_item(text, member);
    case OPT_CHOICE:
        return parse_choice(def, text, member);
    case OPT_U64:
        return parse_u64(def, text, member);
    case OPT_I32:
        return parse_i32(def, text, member);
    case OPT_F32:
        return parse_f32(def, text, member);
    case OPT_BYTES:
        return parse_bytes(def, text, member);
    case OPT_KIND_COUNT:
        break;
    }
    return false;
}

const char *opt_value_number(double v, char *buf, size_t buf_bytes)
{
    snprintf(buf, buf_bytes, "%.15g", v);
    return buf;
}

static const char *needs_choice(const opt_def *def, char *buf, size_t buf_bytes)
{
    size_t n = (size_t)snprintf(buf, buf_bytes, "one of ");
    for (size_t i = 0; def->choices[i] && n < buf_bytes; i++) {
        n += (size_t)snprintf(buf + n, buf_bytes - n, "%s%s", i > 0 ? ", " : "", def->choices[i]);
    }
    return buf;
}

const char *opt_value_needs(const opt_def *def, char *buf, size_t buf_bytes)
{
    static const char *const nouns[OPT_KIND_COUNT] = {
            [OPT_FLAG] = "a flag without value",
            [OPT_STR] = "a value of at least one byte",
            [OPT_LIST] = "a value of at least one byte, given at most 16 times",
            [OPT_CHOICE] = "",
            [OPT_U64] = "a whole number",
            [OPT_I32] = "a whole number",
            [OPT_F32] = "a number",
            [OPT_BYTES] = "a size such as 4096, 512M or 2G",
    };
    char min[32];
    char max[32];
    if (def->kind == OPT_CHOICE) {
        return needs_choice(def, buf, buf_bytes);
    }
    if (has_range(def)) {
        snprintf(buf, buf_bytes, "%s from %s to %s", nouns[def->kind],
                opt_value_number(def->min, min, sizeof min),
                opt_value_number(def->max, max, sizeof max));
    } else {
        snprintf(buf, buf_bytes, "%s", nouns[def->kind]);
    }
    return buf;
}
