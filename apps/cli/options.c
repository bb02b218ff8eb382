/*
 * getopt_long walks the line; the table says what the words mean. Two habits of getopt are taken back: it
 * accepts abbreviated names, which would change their meaning with every new option, and it takes the next
 * option for the value of one that lacks it (`-m --seed 5`).
 */
#include "options.h"

#include <assert.h>
#include <getopt.h>
#include <string.h>

#include "option_value.h"
#include "report.h"
#include "suggest.h"

#define LONG_BASE                                                                                  \
    256 /* getopt's value for long option i is LONG_BASE + i; short ones are characters */
#define VAL_HELP (LONG_BASE + OPT_MAX)

typedef struct tables {
    struct option longs[OPT_MAX + 2];
    char shorts[2 * OPT_MAX + 5];
} tables;

static void make_tables(const opt_command *command, tables *t)
{
    size_t n = 0;
    assert(command->n_opts <= OPT_MAX);
    memset(t, 0, sizeof *t);
    if (command->ends_at_operand) {
        t->shorts[n++] = '+';
    }
    t->shorts[n++] = ':'; /* missing values are told from unknown options */
    t->shorts[n++] = 'h';
    for (size_t i = 0; i < command->n_opts; i++) {
        const opt_def *def = &command->opts[i];
        int has_arg = def->kind == OPT_FLAG ? no_argument : required_argument;
        t->longs[i] = (struct option){def->name, has_arg, NULL, LONG_BASE + (int)i};
        if (def->short_name) {
            t->shorts[n++] = def->short_name;
        }
        if (def->short_name && has_arg == required_argument) {
            t->shorts[n++] = ':';
        }
    }
    t->longs[command->n_opts] = (struct option){"help", no_argument, NULL, VAL_HELP};
}

static const opt_def *find_short(const opt_command *command, int c)
{
    for (size_t i = 0; i < command->n_opts; i++) {
        if (command->opts[i].short_name && command->opts[i].short_name == c) {
            return &command->opts[i];
        }
    }
    return NULL;
}

static const opt_def *find_long(const opt_command *command, const char *name, size_t n)
{
    for (size_t i = 0; i < command->n_opts; i++) {
        const char *known = command->opts[i].name;
        if (strlen(known) == n && memcmp(known, name, n) == 0) {
            return &command->opts[i];
        }
    }
    return NULL;
}

static int fail_unknown_long(const opt_command *command, const char *word)
{
    char quoted[80];
    size_t n = strcspn(word, "=");
    suggest s = {.word = word + 2, .n_bytes = n - 2};
    sl__quote(quoted, sizeof quoted, word, n);
    for (size_t i = 0; i < command->n_opts; i++) {
        suggest_offer(&s, command->opts[i].name);
    }
    suggest_offer(&s, "help");
    if (s.best) {
        return report_usage(
                command->name, "unknown option '%s' (did you mean '--%s'?)", quoted, s.best);
    }
    return report_usage(command->name, "unknown option '%s'", quoted);
}

/* getopt said '?': an unknown letter, an unknown name, or a value for a flag. */
static int fail_unknown(const opt_command *command, int opt, const char *word)
{
    char quoted[80];
    if (opt == VAL_HELP) {
        return report_usage(command->name, "--help takes no value");
    }
    if (opt >= LONG_BASE) {
        return report_usage(
                command->name, "--%s takes no value", command->opts[opt - LONG_BASE].name);
    }
    if (opt == 0) {
        return fail_unknown_long(command, word);
    }
    char letter = (char)opt;
    sl__quote(quoted, sizeof quoted, &letter, 1);
    return report_usage(command->name, "unknown option '-%s'", quoted);
}

static int fail_missing(const opt_command *command, const opt_def *def, const char *instead)
{
    char quoted[80];
    if (!instead) {
        return report_usage(command->name, "--%s needs a value %s", def->name, def->arg);
    }
    sl__quote(quoted, sizeof quoted, instead, strlen(instead));
    return report_usage(command->name,
            "--%s needs a value %s, but the option '%s' follows (write --%s=%s if it is the value)",
            def->name, def->arg, quoted, def->name, quoted);
}

static bool is_known_option(const opt_command *command, const char *word)
{
    static const char *const always[] = {"--", "--help", "-h"};
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
        if (strcmp(word, always[i]) == 0) {
            return true;
        }
    }
    if (word[0] == '-' && word[1] == '-') {
        return find_long(command, word + 2, strcspn(word + 2, "="));
    }
    return word[0] == '-' && word[1] != '\0' && word[2] == '\0' && find_short(command, word[1]);
}

static int fail_value(const opt_command *command, const opt_def *def, const char *text)
{
    char quoted[120];
    char needs[200];
    sl__quote(quoted, sizeof quoted, text, strlen(text));
    opt_value_needs(def, needs, sizeof needs);
    suggest s = {.word = text, .n_bytes = strlen(text)};
    for (size_t i = 0; def->kind == OPT_CHOICE && def->choices[i]; i++) {
        suggest_offer(&s, def->choices[i]);
    }
    if (s.best) {
        return report_usage(command->name, "--%s: '%s' is not %s (did you mean '%s'?)", def->name,
                quoted, needs, s.best);
    }
    return report_usage(command->name, "--%s: '%s' is not %s", def->name, quoted, needs);
}

/* The value of option `def`, once; `word` is where getopt found the option. */
static int take_value(const opt_command *command, const opt_def *def, const char *word,
        const char *value, void *values, opt_result *result)
{
    uint64_t bit = UINT64_C(1) << (def - command->opts);
    bool is_own_word = value && !(value > word && value <= word + strlen(word));
    if ((result->given & bit) && def->kind != OPT_LIST) {
        return report_usage(command->name, "--%s is given twice", def->name);
    }
    if (is_own_word && is_known_option(command, value)) {
        return fail_missing(command, def, value);
    }
    if (!opt_value_parse(def, value ? value : "", values)) {
        return fail_value(command, def, value);
    }
    result->given |= bit;
    return OPT_RUN;
}

/* The word of argv that getopt has just taken an option from. */
static const char *current_word(char **argv)
{
    bool has_own_value = optarg && optarg == argv[optind - 1];
    return argv[optind - (has_own_value ? 2 : 1)];
}

static bool is_abbreviated(const char *word, const char *name)
{
    return strcspn(word + 2, "=") != strlen(name);
}

/* The option that getopt means by its value or by `optopt`; NULL for none of the table. */
static const opt_def *def_of(const opt_command *command, int opt)
{
    if (opt >= LONG_BASE && opt < LONG_BASE + OPT_MAX) {
        return &command->opts[opt - LONG_BASE];
    }
    return find_short(command, opt);
}

static int take_missing(const opt_command *command, const char *word)
{
    const opt_def *def = def_of(command, optopt);
    bool is_long = optopt >= LONG_BASE;
    if (!def || (is_long && is_abbreviated(word, def->name))) {
        return fail_unknown(command, is_long ? 0 : optopt, word);
    }
    return fail_missing(command, def, NULL);
}

/* Handles one result of getopt. */
static int take_option(
        const opt_command *command, int opt, char **argv, void *values, opt_result *result)
{
    const char *word = current_word(argv);
    if (opt == '?') {
        return fail_unknown(command, optopt, argv[optind - 1]);
    }
    if (opt == ':') {
        return take_missing(command, argv[optind - 1]);
    }
    const opt_def *def = def_of(command, opt);
    if (opt >= LONG_BASE && is_abbreviated(word, def ? def->name : "help")) {
        return fail_unknown(command, 0, word);
    }
    if (!def) {
        opt_print_help(command, stdout);
        return 0;
    }
    return take_value(command, def, word, optarg, values, result);
}

static int check_rules(const opt_command *command, const opt_result *result)
{
    for (size_t i = 0; i < command->n_rules; i++) {
        const opt_rule *rule = &command->rules[i];
        if (!opt_given(result, rule->a)) {
            continue;
        }
        bool has_b = opt_given(result, rule->b);
        if (rule->kind == OPT_EXCLUDES && has_b) {
            return report_usage(command->name,
                    "--%s and --%s contradict each other, give one of them", rule->a, rule->b);
        }
        if (rule->kind == OPT_REQUIRES && !has_b) {
            return report_usage(command->name, "--%s has no effect without --%s", rule->a, rule->b);
        }
    }
    return OPT_RUN;
}

static int check_operands(const opt_command *command, const opt_result *result)
{
    char quoted[120];
    if (result->n_operands < command->min_operands) {
        return report_usage(command->name, "needs %s", command->operand);
    }
    if (result->n_operands <= command->max_operands) {
        return OPT_RUN;
    }
    const char *extra = result->operands[command->max_operands];
    sl__quote(quoted, sizeof quoted, extra, strlen(extra));
    if (command->max_operands == 0) {
        return report_usage(command->name, "takes no operand, but '%s' is given", quoted);
    }
    return report_usage(command->name, "'%s' is one %s too many (quote text that has blanks)",
            quoted, command->operand);
}

static void set_defaults(const opt_command *command, void *values)
{
    for (size_t i = 0; i < command->n_opts; i++) {
        const opt_def *def = &command->opts[i];
        bool is_good = !def->def || opt_value_parse(def, def->def, values);
        assert(is_good);
        (void)is_good;
    }
}

int opt_parse(
        const opt_command *command, int argc, char **argv, void *values, opt_result *ret_result)
{
    tables t;
    make_tables(command, &t);
    set_defaults(command, values);
    *ret_result = (opt_result){.command = command};
    opterr = 0;
    optind = 0; /* glibc: start anew, also after another line */
    for (;;) {
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one parse at a time, see options.h */
        int opt = getopt_long(argc, argv, t.shorts, t.longs, NULL);
        if (opt == -1) {
            break;
        }
        int r = take_option(command, opt, argv, values, ret_result);
        if (r != OPT_RUN) {
            return r;
        }
    }
    ret_result->operands = argv + optind;
    ret_result->n_operands = (size_t)(argc - optind);
    int r = check_rules(command, ret_result);
    return r == OPT_RUN ? check_operands(command, ret_result) : r;
}

bool opt_given(const opt_result *result, const char *name)
{
    const opt_def *def = find_long(result->command, name, strlen(name));
    assert(def);
    return result->given >> (def - result->command->opts) & 1;
}
