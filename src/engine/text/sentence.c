#include "engine/text/sentence.h"

#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "engine/text/grapheme.h"
#include "engine/text/split.h"

/* Longer runs in brackets are text, not tags. */
#define MAX_TAG_PARTS 64

/* Bytes in front of a stop that are looked at for an abbreviation. */
#define MAX_ABBREVIATION 24

typedef struct mark_row {
    uint32_t cp;
    s2_part_kind kind;
} mark_row;

/* Sorted by character. */
static const mark_row marks[] = {
        {0x21, S2_PART_END},           /* ! */
        {0x22, S2_PART_QUOTE},         /* " */
        {0x27, S2_PART_QUOTE},         /* ' */
        {0x28, S2_PART_OPENER},        /* ( */
        {0x29, S2_PART_CLOSER},        /* ) */
        {0x2C, S2_PART_CLAUSE},        /* , */
        {0x2E, S2_PART_STOP},          /* . */
        {0x3A, S2_PART_CLAUSE},        /* : */
        {0x3B, S2_PART_CLAUSE},        /* ; */
        {0x3F, S2_PART_END},           /* ? */
        {0x5B, S2_PART_OPENER},        /* [ */
        {0x5D, S2_PART_CLOSER},        /* ] */
        {0x7B, S2_PART_OPENER},        /* { */
        {0x7D, S2_PART_CLOSER},        /* } */
        {0xA1, S2_PART_OPENER},        /* inverted ! */
        {0xAB, S2_PART_QUOTE},         /* << */
        {0xBB, S2_PART_QUOTE},         /* >> */
        {0xBF, S2_PART_OPENER},        /* inverted ? */
        {0x37E, S2_PART_END},          /* Greek question mark */
        {0x387, S2_PART_CLAUSE},       /* Greek ano teleia */
        {0x589, S2_PART_END_WIDE},     /* Armenian full stop */
        {0x60C, S2_PART_CLAUSE_WIDE},  /* Arabic comma */
        {0x61B, S2_PART_CLAUSE_WIDE},  /* Arabic semicolon */
        {0x61E, S2_PART_END_WIDE},     /* Arabic triple dot */
        {0x61F, S2_PART_END_WIDE},     /* Arabic question mark */
        {0x6D4, S2_PART_END_WIDE},     /* Urdu full stop */
        {0x700, S2_PART_END_WIDE},     /* Syriac end of paragraph */
        {0x7F9, S2_PART_END_WIDE},     /* NKo exclamation mark */
        {0x964, S2_PART_END_WIDE},     /* danda */
        {0x965, S2_PART_END_WIDE},     /* double danda */
        {0x104A, S2_PART_CLAUSE_WIDE}, /* Myanmar little section */
        {0x104B, S2_PART_END_WIDE},    /* Myanmar section */
        {0x1362, S2_PART_END_WIDE},    /* Ethiopic full stop */
        {0x1363, S2_PART_CLAUSE_WIDE}, /* Ethiopic comma */
        {0x1364, S2_PART_CLAUSE_WIDE}, /* Ethiopic semicolon */
        {0x1367, S2_PART_END_WIDE},    /* Ethiopic question mark */
        {0x1368, S2_PART_END_WIDE},    /* Ethiopic paragraph separator */
        {0x166E, S2_PART_END_WIDE},    /* Canadian full stop */
        {0x17D4, S2_PART_END_WIDE},    /* Khmer khan */
        {0x17D5, S2_PART_END_WIDE},    /* Khmer bariyoosan */
        {0x1802, S2_PART_CLAUSE_WIDE}, /* Mongolian comma */
        {0x1803, S2_PART_END_WIDE},    /* Mongolian full stop */
        {0x2013, S2_PART_CLAUSE},      /* en dash */
        {0x2014, S2_PART_CLAUSE},      /* em dash */
        {0x2018, S2_PART_QUOTE},       /* left single quote; closes in German */
        {0x2019, S2_PART_CLOSER},      /* right single quote */
        {0x201A, S2_PART_OPENER},      /* low single quote */
        {0x201C, S2_PART_QUOTE},       /* left double quote; closes in German */
        {0x201D, S2_PART_CLOSER},      /* right double quote */
        {0x201E, S2_PART_OPENER},      /* low double quote */
        {0x2026, S2_PART_STOP},        /* ellipsis */
        {0x2039, S2_PART_QUOTE},       /* < */
        {0x203A, S2_PART_QUOTE},       /* > */
        {0x203C, S2_PART_END},         /* !! */
        {0x203D, S2_PART_END},         /* interrobang */
        {0x2047, S2_PART_END},         /* ?? */
        {0x2048, S2_PART_END},         /* ?! */
        {0x2049, S2_PART_END},         /* !? */
        {0x3001, S2_PART_CLAUSE_WIDE}, /* ideographic comma */
        {0x3002, S2_PART_END_WIDE},    /* ideographic full stop */
        {0x3008, S2_PART_OPENER}, {0x3009, S2_PART_CLOSER}, {0x300A, S2_PART_OPENER},
        {0x300B, S2_PART_CLOSER}, {0x300C, S2_PART_OPENER}, {0x300D, S2_PART_CLOSER},
        {0x300E, S2_PART_OPENER}, {0x300F, S2_PART_CLOSER}, {0x3010, S2_PART_OPENER},
        {0x3011, S2_PART_CLOSER}, {0x3014, S2_PART_OPENER}, {0x3015, S2_PART_CLOSER},
        {0x3016, S2_PART_OPENER}, {0x3017, S2_PART_CLOSER}, {0xFE41, S2_PART_OPENER},
        {0xFE42, S2_PART_CLOSER}, {0xFE43, S2_PART_OPENER}, {0xFE44, S2_PART_CLOSER},
        {0xFF01, S2_PART_END_WIDE}, /* fullwidth ! */
        {0xFF08, S2_PART_OPENER}, {0xFF09, S2_PART_CLOSER},
        {0xFF0C, S2_PART_CLAUSE_WIDE}, /* fullwidth , */
        {0xFF0E, S2_PART_END_WIDE},    /* fullwidth . */
        {0xFF1A, S2_PART_CLAUSE_WIDE}, /* fullwidth : */
        {0xFF1B, S2_PART_CLAUSE_WIDE}, /* fullwidth ; */
        {0xFF1F, S2_PART_END_WIDE},    /* fullwidth ? */
        {0xFF3B, S2_PART_OPENER}, {0xFF3D, S2_PART_CLOSER}, {0xFF5B, S2_PART_OPENER},
        {0xFF5D, S2_PART_CLOSER}, {0xFF61, S2_PART_END_WIDE}, /* halfwidth full stop */
        {0xFF62, S2_PART_OPENER}, {0xFF63, S2_PART_CLOSER},
        {0xFF64, S2_PART_CLAUSE_WIDE}, /* halfwidth comma */
};

static s2_part_kind mark_kind(uint32_t cp)
{
    size_t lo = 0;
    size_t hi = sizeof marks / sizeof marks[0];
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (marks[mid].cp == cp) {
            return marks[mid].kind;
        }
        lo = marks[mid].cp < cp ? mid + 1 : lo;
        hi = marks[mid].cp < cp ? hi : mid;
    }
    return S2_PART_OTHER;
}

/* Kind of a character that stands alone. */
static s2_part_kind kind_of(uint32_t cp)
{
    if (s2_is_line_end(cp)) {
        return S2_PART_LINE;
    }
    switch (s2_char_class_of(cp)) {
    case S2_CHAR_LETTER:
    case S2_CHAR_NUMBER:
        return S2_PART_LETTER;
    case S2_CHAR_BLANK:
    case S2_CHAR_LINE:
        return S2_PART_BLANK;
    case S2_CHAR_OTHER:
        break;
    }
    return mark_kind(cp);
}

static s2_part grapheme_part(const char *text, size_t n_bytes)
{
    uint32_t cp = 0;
    uint32_t first = 0;
    size_t n = s2_grapheme_len(text, n_bytes, &cp);
    bool is_alone = n > 0 && (sl__utf8_decode(text, n, &first) == n || (n == 2 && cp == '\r'));
    s2_part_kind kind = kind_of(cp);
    if (!is_alone && kind != S2_PART_LETTER) {
        kind = S2_PART_OTHER; /* a mark or blank that carries marks is none */
    }
    return (s2_part){.kind = kind, .n = n, .cp = cp};
}

/* Bytes of the tag at the start, or 0: [ ... ] on one line with something in it. */
static size_t tag_len(const char *text, size_t n_bytes, size_t max_tag)
{
    size_t at = 1;
    for (int n_parts = 0; n_parts < MAX_TAG_PARTS && at < n_bytes && at < max_tag; n_parts++) {
        s2_part part = grapheme_part(text + at, n_bytes - at);
        at += part.n;
        if (part.kind == S2_PART_LINE || part.cp == '[') {
            return 0;
        }
        if (part.cp == ']' && part.n == 1) {
            return n_parts > 0 && at <= max_tag ? at : 0;
        }
    }
    return 0;
}

s2_part s2_part_at(const char *text, size_t n_bytes, size_t max_tag)
{
    s2_part part = grapheme_part(text, n_bytes);
    if (part.cp == '[' && part.n == 1) {
        size_t n = tag_len(text, n_bytes, max_tag);
        if (n > 0) {
            part.kind = S2_PART_TAG;
            part.n = n;
        }
    }
    return part;
}

static bool is_blank_kind(s2_part_kind kind)
{
    return kind == S2_PART_BLANK || kind == S2_PART_LINE;
}

size_t s2_skip_blanks(const char *text, size_t n_bytes)
{
    size_t at = 0;
    while (at < n_bytes) {
        s2_part part = grapheme_part(text + at, n_bytes - at);
        if (!is_blank_kind(part.kind)) {
            break;
        }
        at += part.n;
    }
    return at;
}

bool s2_is_terminator(s2_part_kind kind)
{
    return kind == S2_PART_STOP || kind == S2_PART_END || kind == S2_PART_END_WIDE;
}

static bool is_digit(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_ND;
}

/* The character in front of text + at. */
static uint32_t char_before(const char *text, size_t at)
{
    uint32_t cp = 0;
    size_t begin = at;
    while (begin > 0 && at - begin < 4) {
        begin--;
        if (((unsigned char)text[begin] & 0xC0) != 0x80) {
            break;
        }
    }
    return at > 0 && sl__utf8_decode(text + begin, at - begin, &cp) > 0 ? cp : 0;
}

static uint32_t char_at(const char *text, size_t n_bytes, size_t at)
{
    uint32_t cp = 0;
    return sl__utf8_decode(text + at, n_bytes - at, &cp) > 0 ? cp : 0;
}

bool s2_is_between_digits(const char *text, size_t n_bytes, size_t begin, size_t end)
{
    return is_digit(char_before(text, begin)) && is_digit(char_at(text, n_bytes, end));
}

/* Terminators with the quotes and brackets that close behind them. */
typedef struct stop_run {
    size_t begin;
    size_t end;
    size_t n_stops; /* of all terminators, how many are mere stops */
    size_t n_terminators;
    bool is_wide;
    bool has_closer;
} stop_run;

/*
 * A quote that both opens and closes: behind a stop that needs a blank it closes, since a blank will be asked
 * for anyway; else only if it was opened.
 */
static bool quote_closes(const stop_run *run, uint32_t cp, bool is_quote_open)
{
    return cp == '"' ? is_quote_open || !run->is_wide : !run->is_wide;
}

static stop_run take_run(const char *text, size_t n_bytes, size_t at, bool is_quote_open)
{
    stop_run run = {.begin = at, .end = at};
    while (run.end < n_bytes) {
        s2_part part = grapheme_part(text + run.end, n_bytes - run.end);
        bool closes = part.kind == S2_PART_CLOSER ||
                      (part.kind == S2_PART_QUOTE && quote_closes(&run, part.cp, is_quote_open));
        if (!closes && !s2_is_terminator(part.kind)) {
            break;
        }
        is_quote_open = is_quote_open && part.cp != '"';
        run.has_closer = run.has_closer || closes;
        run.n_stops += part.kind == S2_PART_STOP;
        run.n_terminators += !closes;
        run.is_wide = run.is_wide || part.kind == S2_PART_END_WIDE;
        run.end += part.n;
    }
    return run;
}

static bool is_one_of(const char *const *words, size_t n_words, const char *p, size_t n)
{
    for (size_t i = 0; i < n_words; i++) {
        if (strlen(words[i]) == n && memcmp(words[i], p, n) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_title(const char *p, size_t n)
{
    static const char *const words[] = {"Mr", "Mrs", "Ms", "Mx", "Dr", "Drs", "Prof", "St", "Ste",
            "Mt", "Ft", "Rev", "Fr", "Hon", "Capt", "Cmdr", "Cpt", "Col", "Gen", "Lt", "Sgt", "Maj",
            "Adm", "Gov", "Sen", "Rep", "Supt", "Messrs", "Mme", "Mlle", "Sra", "Srta", "Hr", "Fam",
            "vs", "Vs", "approx", "ca", "cf", "bzw", "resp", "viz"};
    return is_one_of(words, sizeof words / sizeof words[0], p, n);
}

/* Words that are abbreviations if a number follows. */
static bool is_label(const char *p, size_t n)
{
    static const char *const words[] = {"No", "no", "Nos", "nos", "Nr", "nr", "Fig", "fig", "Figs",
            "figs", "Eq", "eq", "Vol", "vol", "Ch", "ch", "Sec", "sec", "Art", "art", "Abs", "p",
            "pp", "Jan", "Feb", "Mar", "Apr", "Jun", "Jul", "Aug", "Sep", "Sept", "Oct", "Nov",
            "Dec"};
    return is_one_of(words, sizeof words / sizeof words[0], p, n);
}

/* Letters in groups of at most two with stops between them: e.g, U.S, Ph.D */
static bool has_inner_stops(const char *p, size_t n)
{
    size_t n_stops = 0;
    size_t n_letters = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_stop = p[i] == '.';
        bool is_letter = s2_char_class_of((unsigned char)p[i]) == S2_CHAR_LETTER;
        n_letters = is_stop ? 0 : n_letters + 1;
        if ((!is_stop && !is_letter) || (unsigned char)p[i] >= 0x80 || n_letters > 2) {
            return false;
        }
        n_stops += is_stop;
    }
    return n_stops > 0;
}

/* A single capital letter other than the word I. */
static bool is_initial(const char *p, size_t n)
{
    uint32_t cp = 0;
    return n > 0 && sl__utf8_decode(p, n, &cp) == n && cp != 'I' &&
           utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_LU;
}

static bool is_number(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return false;
        }
    }
    return n > 0;
}

/* Where the word in front of text + end begins; at most MAX_ABBREVIATION bytes back. */
static size_t word_begin(const char *text, size_t end)
{
    size_t begin = end;
    while (begin > 0 && end - begin <= MAX_ABBREVIATION) {
        char c = text[begin - 1];
        if (s2_is_blank((unsigned char)c) || strchr("([{\"'-/", c)) {
            break;
        }
        begin--;
    }
    return begin;
}

/* True if the stop behind the word at `end` belongs to it; next is what follows the blanks. */
static bool is_abbreviation(const char *text, size_t end, s2_part next)
{
    size_t begin = word_begin(text, end);
    const char *p = text + begin;
    size_t n = end - begin;
    if (n == 0 || n > MAX_ABBREVIATION) {
        return false;
    }
    bool is_item = begin == 0 && is_number(p, n);
    return is_item || is_title(p, n) || has_inner_stops(p, n) || is_initial(p, n) ||
           (is_label(p, n) && is_digit(next.cp));
}

/* The first part behind `at` that is no blank, opening mark, quote or tag; n = 0 at a line end or the end. */
static s2_part next_word(const char *text, size_t n_bytes, size_t at)
{
    s2_part part = s2_part_at(text + at, n_bytes - at, SIZE_MAX);
    while (part.kind == S2_PART_BLANK || part.kind == S2_PART_OPENER ||
            part.kind == S2_PART_QUOTE || part.kind == S2_PART_TAG) {
        at += part.n;
        part = s2_part_at(text + at, n_bytes - at, SIZE_MAX);
    }
    if (part.kind == S2_PART_LINE) {
        part.n = 0;
    }
    return part;
}

/* A stop with a blank behind it that belongs to an abbreviation. */
static bool is_abbreviating(const char *text, size_t n_bytes, size_t at, s2_part part)
{
    return part.kind == S2_PART_STOP && text[at] == '.' &&
           is_abbreviation(text, at, next_word(text, n_bytes, at + part.n));
}

bool s2_ends_clause(const char *text, size_t n_bytes, size_t at, s2_part part)
{
    size_t end = at + part.n;
    if (part.kind == S2_PART_CLAUSE_WIDE || part.kind == S2_PART_END_WIDE) {
        return !s2_is_between_digits(text, n_bytes, at, end);
    }
    if (part.kind != S2_PART_CLAUSE && !s2_is_terminator(part.kind)) {
        return false;
    }
    bool has_blank = end == n_bytes || is_blank_kind(grapheme_part(text + end, n_bytes - end).kind);
    return has_blank && !is_abbreviating(text, n_bytes, at, part);
}

static bool is_small(s2_part part)
{
    return part.n > 0 && utf8proc_category((utf8proc_int32_t)part.cp) == UTF8PROC_CATEGORY_LL;
}

/* Does the sentence that begins at text end behind the run? */
static bool ends_sentence(const char *text, size_t n_bytes, const stop_run *run)
{
    s2_part after = s2_part_at(text + run->end, n_bytes - run->end, SIZE_MAX);
    if (after.n == 0 || after.kind == S2_PART_LINE) {
        return true;
    }
    if (run->is_wide) {
        /* A closing quote with more words behind it: somebody was quoted. */
        bool goes_on = run->has_closer && after.kind == S2_PART_LETTER;
        return !goes_on && !s2_is_between_digits(text, n_bytes, run->begin, run->end);
    }
    if (after.kind != S2_PART_BLANK && after.kind != S2_PART_TAG) {
        return false;
    }
    s2_part next = next_word(text, n_bytes, run->end);
    bool is_mere_stop = run->n_stops == run->n_terminators;
    if ((is_mere_stop || run->has_closer) && is_small(next)) {
        return false;
    }
    bool is_one_stop = is_mere_stop && run->n_terminators == 1 && text[run->begin] == '.';
    return !(is_one_stop && next.n > 0 && is_abbreviation(text, run->begin, next));
}

size_t s2_sentence_len(const char *text, size_t n_bytes, size_t max_tag, bool *ret_has_speech)
{
    size_t at = 0;
    size_t solid_end = 0; /* behind the last part that is no blank */
    bool is_quote_open = false;
    bool has_speech = false;
    bool is_done = false;
    while (at < n_bytes && !is_done) {
        s2_part part = s2_part_at(text + at, n_bytes - at, max_tag);
        if (s2_is_terminator(part.kind)) {
            stop_run run = take_run(text, n_bytes, at, is_quote_open);
            is_quote_open = is_quote_open && !run.has_closer;
            is_done = has_speech && ends_sentence(text, n_bytes, &run);
            at = run.end;
            solid_end = at;
            continue;
        }
        is_done = has_speech && part.kind == S2_PART_LINE;
        has_speech = has_speech || part.kind == S2_PART_LETTER;
        is_quote_open = is_quote_open != (part.cp == '"');
        at += part.n;
        solid_end = is_blank_kind(part.kind) ? solid_end : at;
    }
    *ret_has_speech = has_speech;
    return solid_end;
}
