#include "xml_check.h"

#include <stdbool.h>
#include <string.h>

#define DEPTH_MAX      32
#define NAME_MAX_BYTES 32

typedef struct checker {
    const char *at;
    char open[DEPTH_MAX][NAME_MAX_BYTES];
    size_t depth;
} checker;

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == ':';
}

static bool take_name(checker *c, char name[NAME_MAX_BYTES])
{
    size_t n = 0;
    while (is_name_char(c->at[n])) {
        n++;
    }
    if (n == 0 || n >= NAME_MAX_BYTES) {
        return false;
    }
    memcpy(name, c->at, n);
    name[n] = '\0';
    c->at += n;
    return true;
}

static bool take_entity(checker *c)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++) {
        size_t n = strlen(entities[i]);
        if (strncmp(c->at, entities[i], n) == 0) {
            c->at += n;
            return true;
        }
    }
    return false;
}

/* Characters up to `end`, which is not taken. */
static bool take_text(checker *c, char end)
{
    while (*c->at && *c->at != end) {
        bool is_bad = *c->at == '<' || ((unsigned char)*c->at < 0x20 && *c->at != '\n');
        if (is_bad || (*c->at == '&' && !take_entity(c))) {
            return false;
        }
        c->at += *c->at && *c->at != end && *c->at != '&' && *c->at != '<';
    }
    return true;
}

static bool take_attributes(checker *c)
{
    char name[NAME_MAX_BYTES];
    while (*c->at == ' ') {
        while (*c->at == ' ') {
            c->at++;
        }
        if (!take_name(c, name) || c->at[0] != '=' || c->at[1] != '"') {
            return false;
        }
        c->at += 2;
        if (!take_text(c, '"') || *c->at != '"') {
            return false;
        }
        c->at++;
    }
    return true;
}

static bool take_tag(checker *c)
{
    char name[NAME_MAX_BYTES];
    c->at++;
    if (*c->at == '/') {
        c->at++;
        bool closes = take_name(c, name) && *c->at == '>' && c->depth > 0 &&
                      strcmp(c->open[c->depth - 1], name) == 0;
        c->depth -= closes;
        c->at += closes;
        return closes;
    }
    if (!take_name(c, name) || !take_attributes(c) || c->depth == DEPTH_MAX) {
        return false;
    }
    if (strncmp(c->at, "/>", 2) == 0) {
        c->at += 2;
        return c->depth > 0;
    }
    memcpy(c->open[c->depth], name, sizeof name);
    c->depth++;
    c->at++;
    return c->at[-1] == '>';
}

const char *xml_find_fault(const char *text)
{
    checker c = {.at = text};
    do {
        if (*c.at != '<' || !take_tag(&c)) {
            return c.at;
        }
        if (c.depth > 0 && !take_text(&c, '<')) {
            return c.at;
        }
    } while (c.depth > 0);
    return strcmp(c.at, "\n") == 0 ? NULL : c.at;
}

size_t count_of(const char *text, const char *needle)
{
    size_t n = 0;
    for (const char *at = strstr(text, needle); at; at = strstr(at + 1, needle)) {
        n++;
    }
    return n;
}
