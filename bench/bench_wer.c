/*
 * Word errors between two files of one sentence a line.
 *
 *   bench_wer NAME REFERENCE HYPOTHESIS
 *
 * Words are compared without case and punctuation; errors are the least number of words to replace, insert
 * or leave out (Levenshtein distance), summed over the lines. Prints NAME,sentences,words,errors,percent.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_support.h"

#define MAX_LINE  4096
#define MAX_WORDS 256

typedef struct words {
    char text[MAX_LINE];
    const char *items[MAX_WORDS];
    size_t n;
} words;

/* Letters, digits and apostrophes make words; everything else separates them. */
static void split(words *w)
{
    char *p = w->text;
    w->n = 0;
    while (*p && w->n < MAX_WORDS) {
        while (*p && !isalnum((unsigned char)*p)) {
            p++;
        }
        char *begin = p;
        for (; isalnum((unsigned char)*p) || *p == '\''; p++) {
            *p = (char)tolower((unsigned char)*p);
        }
        char end = *p;
        *p = '\0';
        if (p > begin) {
            w->items[w->n++] = begin;
        }
        p += end != '\0';
    }
}

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

static size_t distance(const words *a, const words *b)
{
    size_t row[MAX_WORDS + 1];
    for (size_t j = 0; j <= b->n; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a->n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b->n; j++) {
            size_t up = row[j];
            size_t cost = strcmp(a->items[i - 1], b->items[j - 1]) != 0;
            row[j] = smallest(row[j] + 1, row[j - 1] + 1, diagonal + cost);
            diagonal = up;
        }
    }
    return row[b->n];
}

static FILE *open_text(const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f) {
        fprintf(stderr, "bench_wer: cannot open %s\n", path);
        _Exit(1);
    }
    return f;
}

int main(int argc, char **argv)
{
    static words want;
    static words got;
    size_t n_lines = 0;
    size_t n_words = 0;
    size_t n_errors = 0;
    if (argc != 4) {
        fprintf(stderr, "usage: bench_wer NAME REFERENCE HYPOTHESIS\n");
        return 2;
    }
    FILE *reference = open_text(argv[2]);
    FILE *hypothesis = open_text(argv[3]);
    while (fgets(want.text, sizeof want.text, reference)) {
        if (!fgets(got.text, sizeof got.text, hypothesis)) {
            got.text[0] = '\0';
        }
        split(&want);
        split(&got);
        n_lines++;
        n_words += want.n;
        n_errors += distance(&want, &got);
    }
    fclose(reference);
    fclose(hypothesis);
    if (n_words == 0) {
        fprintf(stderr, "bench_wer: %s has no words\n", argv[2]);
        return 1;
    }
    printf("%s,%zu,%zu,%zu,%.1f\n", argv[1], n_lines, n_words, n_errors,
            100.0 * (double)n_errors / (double)n_words);
    return 0;
}
