/*
 * The split pattern of Qwen2 and Qwen3, by hand:
 *
 *   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 *
 * Every piece is found in one or two passes over it, so no text is slow and none needs a stack. A regex
 * engine would need limits here (a megabyte of blanks), and PCRE2 counts U+180E as a blank where the
 * reference does not. The tests compare the two.
 *
 * The reference uses the tables of Oniguruma, whose Unicode version depends on its release (14.0 or 15.1); the
 * ones here are those of utf8proc (15.0). Only letters and digits that are younger than that are affected.
 *
 * Pure function; any thread.
 */
#ifndef S2_TEXT_SPLIT_H
#define S2_TEXT_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The pattern as it is spelled in tokenizer.json. */
extern const char s2_split_pattern[];

/* Bytes of the piece at the start of text[0..n_bytes-1], which must be UTF-8: 1..n_bytes, 0 if n_bytes is 0. */
size_t s2_split_piece(const char *text, size_t n_bytes);

/* The classes of the pattern. */
typedef enum s2_char_class {
    S2_CHAR_OTHER,
    S2_CHAR_LETTER, /* \p{L} */
    S2_CHAR_NUMBER, /* \p{N} */
    S2_CHAR_BLANK,  /* \s: White_Space, but for the next one */
    S2_CHAR_LINE,   /* CR and LF */
} s2_char_class;

s2_char_class s2_char_class_of(uint32_t cp);

/* White_Space of Unicode, CR and LF included. */
bool s2_is_blank(uint32_t cp);

/* The line ends among them: LF, VT, FF, CR, NEL, U+2028, U+2029. */
bool s2_is_line_end(uint32_t cp);

#endif
