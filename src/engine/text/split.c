#include "engine/text/split.h"

#include <utf8proc.h>

#include "base/utf8.h"

const char s2_split_pattern[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
                                "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

bool s2_is_blank(uint32_t cp)
{
    if (cp < 0x80) {
        return cp == ' ' || (cp >= 0x09 && cp <= 0x0D);
    }
    return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) ||
           cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

bool s2_is_line_end(uint32_t cp)
{
    return (cp >= 0x0A && cp <= 0x0D) || cp == 0x85 || cp == 0x2028 || cp == 0x2029;
}

static s2_char_class class_of_ascii(uint32_t cp)
{
    uint32_t lower = cp | 0x20;
    if (lower >= 'a' && lower <= 'z') {
        return S2_CHAR_LETTER;
    }
    if (cp >= '0' && cp <= '9') {
        return S2_CHAR_NUMBER;
    }
    if (cp == '\r' || cp == '\n') {
        return S2_CHAR_LINE;
    }
    return s2_is_blank(cp) ? S2_CHAR_BLANK : S2_CHAR_OTHER;
}

s2_char_class s2_char_class_of(uint32_t cp)
{
    if (cp < 0x80) {
        return class_of_ascii(cp);
    }
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);
    if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) {
        return S2_CHAR_LETTER;
    }
    if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) {
        return S2_CHAR_NUMBER;
    }
    return s2_is_blank(cp) ? S2_CHAR_BLANK : S2_CHAR_OTHER;
}

/* Class and length of the character at `at`; OTHER of length 0 at the end. */
static s2_char_class class_at(const char *text, size_t n_bytes, size_t at, size_t *ret_len)
{
    uint32_t cp = 0;
    *ret_len = sl__utf8_decode(text + at, n_bytes - at, &cp);
    return *ret_len > 0 ? s2_char_class_of(cp) : S2_CHAR_OTHER;
}

/* End of the run of characters of one class that begins at `at`. */
static size_t run_end(const char *text, size_t n_bytes, size_t at, s2_char_class class)
{
    size_t len = 0;
    while (at < n_bytes && class_at(text, n_bytes, at, &len) == class && len > 0) {
        at += len;
    }
    return at;
}

/* Small letter that the character at `at` matches without regard to case; 0 for none of interest. */
static char folded(const char *text, size_t n_bytes, size_t at, size_t *ret_len)
{
    uint32_t cp = 0;
    *ret_len = sl__utf8_decode(text + at, n_bytes - at, &cp);
    if (cp == 0x17F) {
        return 's'; /* the long s folds to s */
    }
    if (cp >= 0x80) {
        return '\0';
    }
    return (char)(cp | 0x20);
}

/* 's 't 're 've 'm 'll 'd at the start: its length, or 0. */
static size_t contraction(const char *text, size_t n_bytes)
{
    size_t len1 = 0;
    size_t len2 = 0;
    if (text[0] != '\'' || n_bytes < 2) {
        return 0;
    }
    char c1 = folded(text, n_bytes, 1, &len1);
    if (c1 == 's' || c1 == 't' || c1 == 'm' || c1 == 'd') {
        return 1 + len1;
    }
    char c2 = folded(text, n_bytes, 1 + len1, &len2);
    bool is_pair = ((c1 == 'r' || c1 == 'v') && c2 == 'e') || (c1 == 'l' && c2 == 'l');
    return is_pair ? 1 + len1 + len2 : 0;
}

/* A run of blanks and line ends at the start: up to its last line end, else all but its last blank. */
static size_t blank_piece(const char *text, size_t n_bytes)
{
    size_t at = 0;
    size_t len = 0;
    size_t last = 0;      /* start of the last character of the run */
    size_t lines_end = 0; /* behind the last line end of the run */
    s2_char_class class = class_at(text, n_bytes, 0, &len);
    while (len > 0 && (class == S2_CHAR_BLANK || class == S2_CHAR_LINE)) {
        last = at;
        at += len;
        lines_end = class == S2_CHAR_LINE ? at : lines_end;
        class = class_at(text, n_bytes, at, &len);
    }
    if (lines_end > 0) {
        return lines_end;
    }
    return at == n_bytes || last == 0 ? at : last;
}

size_t s2_split_piece(const char *text, size_t n_bytes)
{
    size_t len = 0;
    size_t len2 = 0;
    if (n_bytes == 0) {
        return 0;
    }
    size_t n = contraction(text, n_bytes);
    if (n > 0) {
        return n;
    }
    s2_char_class class = class_at(text, n_bytes, 0, &len);
    if (class == S2_CHAR_LETTER) {
        return run_end(text, n_bytes, len, S2_CHAR_LETTER);
    }
    if (class == S2_CHAR_NUMBER) {
        return len;
    }
    s2_char_class class2 = class_at(text, n_bytes, len, &len2);
    if (class != S2_CHAR_LINE && class2 == S2_CHAR_LETTER) {
        return run_end(text, n_bytes, len, S2_CHAR_LETTER);
    }
    if (class == S2_CHAR_OTHER || (text[0] == ' ' && len2 > 0 && class2 == S2_CHAR_OTHER)) {
        size_t end = run_end(text, n_bytes, len, S2_CHAR_OTHER);
        return run_end(text, n_bytes, end, S2_CHAR_LINE);
    }
    return blank_piece(text, n_bytes);
}
