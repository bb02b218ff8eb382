/*
 * Command line options: one table a command, from which parsing, --help and the manual page are made.
 *
 * Rules of the line: `--name value`, `--name=value`, `-n value`, `-nvalue`; flags may be clustered; options
 * and operands may be mixed; `--` ends the options; `-` alone is an operand. Names are not abbreviated, and
 * an option may be given once, unless it is a list: whoever gives it twice means two things. Values are bytes, passed on as they
 * are. Every command also knows -h and --help.
 *
 * Threads: getopt keeps static state; one parse at a time.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OPT_MAX 60 /* options of one command */

typedef enum opt_kind {
    OPT_FLAG,   /* bool: true if given */
    OPT_STR,    /* const char *: points into argv or the table; never empty */
    OPT_CHOICE, /* int: index into `choices` */
    OPT_U64,    /* uint64_t */
    OPT_I32,    /* int32_t */
    OPT_F32,    /* float, finite */
    OPT_LIST,   /* opt_list: may be given several times, in the order of the line */
    OPT_BYTES,  /* uint64_t: 4096, 512K, 64M, 2G, 1T in powers of 1024; "iB" or "B" may follow */
    OPT_KIND_COUNT
} opt_kind;

#define OPT_LIST_MAX 16

/* What an OPT_LIST was given: as OPT_STR each. */
typedef struct opt_list {
    const char *items[OPT_LIST_MAX];
    size_t n;
} opt_list;

typedef struct opt_def {
    const char *name; /* without dashes */
    char short_name;  /* or 0 */
    opt_kind kind;
    size_t offset;    /* of the member that takes the value, in the command's struct */
    const char *arg;  /* name of the value in help; NULL for a flag */
    const char *help; /* one sentence without range and default: those are appended */
    const char *def;  /* default as it would be typed, or NULL to leave the member alone */
    double min;       /* numbers: smallest and largest; both 0 = what the type holds */
    double max;
    const char *const *choices; /* OPT_CHOICE: NULL-terminated */
} opt_def;

typedef enum opt_rule_kind {
    OPT_EXCLUDES, /* a and b contradict each other */
    OPT_REQUIRES, /* a means nothing without b */
    OPT_RULE_KIND_COUNT
} opt_rule_kind;

typedef struct opt_rule {
    opt_rule_kind kind;
    const char *a; /* names of options */
    const char *b;
} opt_rule;

typedef struct opt_command {
    const char *name;     /* "say", "voice list" */
    const char *summary;  /* half a sentence, for lists of commands */
    const char *synopsis; /* what follows the name; lines are alternatives */
    const char *about;    /* a paragraph */
    const char *operand;  /* name of an operand in messages: "FILE"; NULL if there are none */
    size_t min_operands;
    size_t max_operands;
    bool ends_at_operand; /* what follows the first operand is no option, but an operand too */
    const opt_def *opts;
    size_t n_opts;
    const opt_rule *rules;
    size_t n_rules;
} opt_command;

/* What was on the line besides values. Operands point into argv. */
typedef struct opt_result {
    const opt_command *command;
    uint64_t given; /* bit i = option i of the table was on the line */
    char **operands;
    size_t n_operands;
} opt_result;

enum {
    OPT_RUN = -1 /* go on; other results of opt_parse are exit statuses */
};

/*
 * Sets the defaults in `values` (the command's struct), then what the line says; argv[0] is skipped.
 * Returns OPT_RUN, or the status to exit with: 0 after --help, 2 after one line about what is wrong.
 */
int opt_parse(
        const opt_command *command, int argc, char **argv, void *values, opt_result *ret_result);

/* True if the option was on the line; `name` must be in the table. */
bool opt_given(const opt_result *result, const char *name);

/* Help for people, wrapped for 80 columns. */
void opt_print_help(const opt_command *command, FILE *out);

/* Section of the command in the manual page, as roff. */
void opt_print_man(const opt_command *command, FILE *out);

#endif
