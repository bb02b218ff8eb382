#include "source/mountinfo.h"

#include <stddef.h>
#include <string.h>

#include "base/mem.h"

#define N_FIXED_FIELDS 6 /* before the optional ones */

/* The part of s before the first `c`, which *s then begins behind; all of s if it has none. */
static sl_span cut(sl_span *s, char c)
{
    const char *at = s->n > 0 ? memchr(s->p, c, s->n) : NULL;
    sl_span head = {s->p, at ? (size_t)(at - s->p) : s->n};
    size_t n_gone = at ? head.n + 1 : head.n;
    *s = (sl_span){s->p + n_gone, s->n - n_gone};
    return head;
}

bool sl__line_next(sl_span *rest, sl_span *ret_line)
{
    if (rest->n == 0) {
        return false;
    }
    sl_span line = cut(rest, '\n');
    if (line.n > 0 && line.p[line.n - 1] == '\r') {
        line.n--;
    }
    *ret_line = line;
    return true;
}

bool sl__span_is(sl_span s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

bool sl__span_has_word(sl_span list, const char *word)
{
    while (list.n > 0) {
        if (sl__span_is(cut(&list, ','), word)) {
            return true;
        }
    }
    return false;
}

static bool is_absolute(sl_span path)
{
    return path.n > 0 && path.p[0] == '/';
}

static bool parse_line(sl_span line, sl__mount *ret)
{
    sl_span fixed[N_FIXED_FIELDS];
    if (line.n > 0 && memchr(line.p, '\0', line.n)) {
        return false;
    }
    for (size_t i = 0; i < N_FIXED_FIELDS; i++) {
        fixed[i] = cut(&line, ' ');
    }
    /* A dash inside a field is no separator: only the field that is nothing else. */
    bool has_separator = false;
    while (!has_separator && line.n > 0) {
        has_separator = sl__span_is(cut(&line, ' '), "-");
    }
    ret->root = fixed[3];
    ret->point = fixed[4];
    ret->fs_type = cut(&line, ' ');
    (void)cut(&line, ' ');
    ret->super_options = cut(&line, ' ');
    return has_separator && ret->fs_type.n > 0 && is_absolute(ret->root) && is_absolute(ret->point);
}

bool sl__mountinfo_next(sl_span *rest, sl__mount *ret)
{
    sl_span line;
    while (sl__line_next(rest, &line)) {
        if (parse_line(line, ret)) {
            return true;
        }
    }
    return false;
}

/* The byte of an escape "\ooo" at p, or 0 if there is none: a path holds no NUL. */
static unsigned char escaped_byte(const char *p, size_t n)
{
    unsigned v = 0;
    if (n < 4 || p[0] != '\\') {
        return 0;
    }
    for (size_t i = 1; i < 4; i++) {
        if (p[i] < '0' || p[i] > '7') {
            return 0;
        }
        v = v * 8 + (unsigned)(p[i] - '0');
    }
    return v < 256 ? (unsigned char)v : 0;
}

char *sl__mountinfo_decode(sl_span field)
{
    char *text = sl__strndup(field.p, field.n);
    size_t n = 0;
    if (!text) {
        return NULL;
    }
    for (size_t i = 0; i < field.n; n++) {
        unsigned char byte = escaped_byte(field.p + i, field.n - i);
        text[n] = byte ? (char)byte : field.p[i];
        i += byte ? 4 : 1;
    }
    text[n] = '\0';
    return text;
}
