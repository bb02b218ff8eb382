#include "multipart.h"

#include <string.h>
#include <strings.h>

#define BOUNDARY_MOST 70u

typedef struct cursor {
    const char *at;
    const char *end;
} cursor;

/* Finds `what` in the rest; NULL if it is not there. */
static const char *find(const cursor *c, const char *what, size_t n)
{
    const char *at = c->at;
    while (n > 0 && (size_t)(c->end - at) >= n) {
        const char *hit = memchr(at, what[0], (size_t)(c->end - at) - n + 1);
        if (!hit || memcmp(hit, what, n) == 0) {
            return hit;
        }
        at = hit + 1;
    }
    return NULL;
}

static bool begins_with(const char *text, size_t n, const char *prefix)
{
    size_t n_prefix = strlen(prefix);
    return n >= n_prefix && strncasecmp(text, prefix, n_prefix) == 0;
}

/* Value of the parameter `name` in "form-data; name=value; name=\"value\"". False if there is none. */
static bool get_parameter(
        const char *text, size_t n, const char *name, const char **ret, size_t *ret_n)
{
    size_t n_name = strlen(name);
    size_t i = 0;
    while (i < n) {
        while (i < n && text[i] != ';') {
            i++;
        }
        i++;
        while (i < n && (text[i] == ' ' || text[i] == '\t')) {
            i++;
        }
        bool is_it = i + n_name < n && strncasecmp(text + i, name, n_name) == 0 &&
                     text[i + n_name] == '=';
        size_t from = i;
        while (from < n && text[from] != '=' && text[from] != ';') {
            from++;
        }
        bool is_quoted = from + 1 < n && text[from] == '=' && text[from + 1] == '"';
        from += is_quoted ? 2 : 1;
        size_t to = from;
        while (to < n && text[to] != (is_quoted ? '"' : ';')) {
            to++;
        }
        if (is_it) {
            *ret = text + from;
            *ret_n = to - from;
            return !is_quoted || to < n;
        }
        i = to;
    }
    return false;
}

static int read_boundary(const char *type, char *buf, size_t *ret_n, sl_error *reterr)
{
    static const char lead[] = {'\r', '\n', '-', '-'};
    const char *value = NULL;
    size_t n = 0;
    if (!type || !begins_with(type, strlen(type), "multipart/form-data")) {
        return sl__fail(reterr, SL_EUNSUPPORTED, "Content-Type must be multipart/form-data");
    }
    if (!get_parameter(type, strlen(type), "boundary", &value, &n) || n == 0 || n > BOUNDARY_MOST) {
        return sl__fail(reterr, SL_EFORMAT, "Content-Type has no boundary of 1 to %u characters",
                BOUNDARY_MOST);
    }
    memcpy(buf, lead, sizeof lead);
    memcpy(buf + 4, value, n);
    *ret_n = n + 4;
    return SL_OK;
}

/* Reads one header line of a part. */
static int read_header(const char *line, size_t n, multipart_part *part, sl_error *reterr)
{
    static const char disposition[] = "Content-Disposition:";
    const char *value = NULL;
    size_t n_value = 0;
    if (!begins_with(line, n, disposition)) {
        return SL_OK;
    }
    if (!get_parameter(line, n, "name", &value, &n_value) || n_value == 0) {
        return sl__fail(reterr, SL_EFORMAT, "a part of the form has no name");
    }
    if (n_value >= sizeof part->name || memchr(value, '\0', n_value)) {
        return sl__fail(reterr, SL_ELIMIT,
                "a part of the form has a name of %zu bytes, at most %zu", n_value,
                sizeof part->name - 1);
    }
    memcpy(part->name, value, n_value);
    part->name[n_value] = '\0';
    part->is_file = get_parameter(line, n, "filename", &value, &n_value);
    return SL_OK;
}

static int read_headers(cursor *c, multipart_part *part, sl_error *reterr)
{
    for (;;) {
        const char *end = find(c, "\r\n", 2);
        if (!end) {
            return sl__fail(reterr, SL_EFORMAT, "the form ends in the middle of a part's head");
        }
        size_t n = (size_t)(end - c->at);
        const char *line = c->at;
        c->at = end + 2;
        if (n == 0) {
            break;
        }
        int r = read_header(line, n, part, reterr);
        if (r < 0) {
            return r;
        }
    }
    return part->name[0] != '\0' ? SL_OK
                                 : sl__fail(reterr, SL_EFORMAT, "a part of the form has no name");
}

static int add_part(multipart *m, const multipart_part *part, sl_error *reterr)
{
    char quoted[MULTIPART_NAME_BYTES];
    const char *const names[] = {part->name, NULL};
    if (multipart_find(m, names)) {
        return sl__fail(reterr, SL_EFORMAT, "the form has two parts named '%s'",
                sl__quote(quoted, sizeof quoted, part->name, strlen(part->name)));
    }
    if (m->n == MULTIPART_MAX_PARTS) {
        return sl__fail(reterr, SL_ELIMIT, "the form has more than %u parts", MULTIPART_MAX_PARTS);
    }
    m->parts[m->n++] = *part;
    return SL_OK;
}

/* After a boundary: "--" ends the form, a line end begins a part. 1 = a part, 0 = the end. */
static int after_boundary(cursor *c, sl_error *reterr)
{
    size_t n = (size_t)(c->end - c->at);
    if (n >= 2 && memcmp(c->at, "--", 2) == 0) {
        return 0;
    }
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t')) {
        c->at++;
    }
    if (c->end - c->at < 2 || memcmp(c->at, "\r\n", 2) != 0) {
        return sl__fail(reterr, SL_EFORMAT, "the form has no line end behind a boundary");
    }
    c->at += 2;
    return 1;
}

int multipart_parse(
        const char *content_type, const char *body, size_t n, multipart *ret, sl_error *reterr)
{
    char boundary[BOUNDARY_MOST + 4];
    size_t n_boundary = 0;
    int r = read_boundary(content_type, boundary, &n_boundary, reterr);
    ret->n = 0;
    if (r < 0) {
        return r;
    }
    cursor c = {.at = body, .end = body + n};
    /* The first boundary has no line end before it. */
    if (n < n_boundary - 2 || memcmp(body, boundary + 2, n_boundary - 2) != 0) {
        return sl__fail(reterr, SL_EFORMAT, "the form does not begin with its boundary");
    }
    c.at += n_boundary - 2;
    for (r = after_boundary(&c, reterr); r > 0; r = after_boundary(&c, reterr)) {
        multipart_part part = {0};
        r = read_headers(&c, &part, reterr);
        if (r < 0) {
            return r;
        }
        const char *end = find(&c, boundary, n_boundary);
        if (!end) {
            return sl__fail(reterr, SL_EFORMAT, "the form ends in the middle of a part");
        }
        part.data = c.at;
        part.n = (size_t)(end - c.at);
        c.at = end + n_boundary;
        r = add_part(ret, &part, reterr);
        if (r < 0) {
            return r;
        }
    }
    return r;
}

const multipart_part *multipart_find(const multipart *m, const char *const *names)
{
    for (; *names; names++) {
        for (size_t i = 0; i < m->n; i++) {
            if (strcmp(m->parts[i].name, *names) == 0) {
                return &m->parts[i];
            }
        }
    }
    return NULL;
}
