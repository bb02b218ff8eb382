#include "engine/text/json_doc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

void s2_json_done(s2_json_doc *doc)
{
    sl__free(doc->nodes);
    sl__free(doc->decoded);
    memset(doc, 0, sizeof *doc);
}

int s2_json_fail_at(
        const s2_json_doc *doc, size_t offset, int code, sl_error *reterr, const char *what)
{
    size_t line = 1;
    size_t line_start = 0;
    for (size_t i = 0; i < offset; i++) {
        if (doc->text[i] == '\n') {
            line++;
            line_start = i + 1;
        }
    }
    return sl__fail_at(reterr, code, offset, "%s: line %zu, column %zu: %s", doc->name, line,
            offset - line_start + 1, what);
}

int s2_json_fail(const s2_json_doc *doc, const s2_json_node *node, int code, sl_error *reterr,
        const char *fmt, ...)
{
    char what[384];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return s2_json_fail_at(doc, node ? node->offset : 0, code, reterr, what);
}

const s2_json_node *s2_json_first(const s2_json_node *node)
{
    return node + 1;
}

const s2_json_node *s2_json_next(const s2_json_doc *doc, const s2_json_node *node)
{
    bool is_group = node->kind == S2_JSON_ARRAY || node->kind == S2_JSON_OBJECT;
    return is_group ? &doc->nodes[node->link] : node + 1;
}

sl_span s2_json_span(const s2_json_doc *doc, const s2_json_node *node)
{
    if (node->kind != S2_JSON_STRING) {
        return (sl_span){doc->text + node->offset, node->kind == S2_JSON_NUMBER ? node->n : 0};
    }
    const char *p = node->is_decoded ? doc->decoded + node->link : doc->text + node->offset + 1;
    return (sl_span){p, node->n};
}

bool s2_json_is_str(const s2_json_doc *doc, const s2_json_node *node, const char *s)
{
    size_t n = strlen(s);
    return node && node->kind == S2_JSON_STRING && node->n == n &&
           memcmp(s2_json_span(doc, node).p, s, n) == 0;
}

const s2_json_node *s2_json_get(const s2_json_doc *doc, const s2_json_node *object, const char *key)
{
    if (!object || object->kind != S2_JSON_OBJECT) {
        return NULL;
    }
    const s2_json_node *at = s2_json_first(object);
    for (uint32_t k = 0; k < object->n; k++) {
        const s2_json_node *value = s2_json_next(doc, at);
        if (s2_json_is_str(doc, at, key)) {
            return value;
        }
        at = s2_json_next(doc, value);
    }
    return NULL;
}

bool s2_json_int(const s2_json_doc *doc, const s2_json_node *node, int64_t *ret)
{
    if (!node || node->kind != S2_JSON_NUMBER || node->n > 18) {
        return false;
    }
    const char *p = s2_json_span(doc, node).p;
    bool is_negative = p[0] == '-';
    int64_t v = 0;
    for (uint32_t k = is_negative; k < node->n; k++) {
        if (p[k] < '0' || p[k] > '9') {
            return false;
        }
        v = v * 10 + (p[k] - '0');
    }
    *ret = is_negative ? -v : v;
    return true;
}

const char *s2_json_kind_name(const s2_json_node *node)
{
    static const char *const names[S2_JSON_KIND_COUNT] = {
            [S2_JSON_NULL] = "null",
            [S2_JSON_FALSE] = "false",
            [S2_JSON_TRUE] = "true",
            [S2_JSON_NUMBER] = "a number",
            [S2_JSON_STRING] = "a string",
            [S2_JSON_ARRAY] = "an array",
            [S2_JSON_OBJECT] = "an object",
    };
    return node ? names[node->kind] : "nothing";
}
