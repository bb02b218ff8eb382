/*
 * Where a sentence ends, in any script, and the parts of a text that such a decision looks at.
 *
 * Rules, not a language model: a stop ends a sentence if a blank and no small letter follow it, and the word
 * in front of it is no known abbreviation, no initial and no number of a list; ! and ? need a blank;
 * the stops of scripts that write no blanks, and line ends, always end one. A sentence has a letter or a digit.
 *
 * Pure functions over UTF-8; any thread.
 */
#ifndef S2_TEXT_SENTENCE_H
#define S2_TEXT_SENTENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum s2_part_kind {
    S2_PART_OTHER,
    S2_PART_BLANK,
    S2_PART_LINE,        /* a line end */
    S2_PART_LETTER,      /* letters and digits */
    S2_PART_TAG,         /* [whisper] */
    S2_PART_STOP,        /* . and the ellipsis: may end a sentence */
    S2_PART_END,         /* ! and ?: end it if a blank follows */
    S2_PART_END_WIDE,    /* those of other scripts: end it */
    S2_PART_CLAUSE,      /* , ; : and dashes: end a clause if a blank follows */
    S2_PART_CLAUSE_WIDE, /* those of other scripts: end it */
    S2_PART_OPENER,      /* opening quotes and brackets */
    S2_PART_CLOSER,      /* closing ones */
    S2_PART_QUOTE,       /* quotes that do both */
} s2_part_kind;

/* A grapheme, or a whole tag. */
typedef struct s2_part {
    s2_part_kind kind;
    size_t n;    /* bytes */
    uint32_t cp; /* its first character */
} s2_part;

/* The part at the start of text[0..n_bytes-1] (n = 0 at the end); a tag of more than max_tag bytes is none. */
s2_part s2_part_at(const char *text, size_t n_bytes, size_t max_tag);

/* Blanks and line ends at the start, in bytes. */
size_t s2_skip_blanks(const char *text, size_t n_bytes);

/* True for . ! ? and their kin. */
bool s2_is_terminator(s2_part_kind kind);

/* True if digits stand in front of text[begin] and at text[end]: what is between them is part of a number. */
bool s2_is_between_digits(const char *text, size_t n_bytes, size_t begin, size_t end);

/*
 * Bytes of the sentence at the start of text[0..n_bytes-1], which begins with no blank; without the blanks
 * behind it. *ret_has_speech tells whether it holds a letter or a digit outside of tags; only the last
 * sentence of a text may hold none.
 */
size_t s2_sentence_len(const char *text, size_t n_bytes, size_t max_tag, bool *ret_has_speech);

/*
 * True if a clause ends with the part of n bytes at text + at: a mark that a blank follows, or a mark of a script
 * without blanks that does not stand between digits.
 */
bool s2_ends_clause(const char *text, size_t n_bytes, size_t at, s2_part part);

#endif
