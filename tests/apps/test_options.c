/*
 * The option table on every kind of line. Messages are caught in place of report.c's: what counts is the
 * status, the one line, and that values are stored whole or not at all.
 */
#include "options.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "option_value.h"
#include "report.h"
#include "test_support.h"

static char message[1024];

int report_usage(const char *command, const char *fmt, ...)
{
    va_list ap;
    (void)command;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    return 2;
}

typedef struct values {
    bool quiet;
    bool greedy;
    const char *out;
    int format;
    uint64_t seed;
    int32_t threads;
    float temperature;
    uint64_t budget;
    const char *ref_text;
    const char *ref_audio;
} values;

static const char *const formats[] = {"wav", "flac", "opus", NULL};

static const opt_def defs[] = {
        {.name = "quiet",
                .short_name = 'q',
                .kind = OPT_FLAG,
                .offset = offsetof(values, quiet),
                .help = "Say nothing."},
        {.name = "greedy",
                .short_name = 'g',
                .kind = OPT_FLAG,
                .offset = offsetof(values, greedy),
                .help = "No sampling."},
        {.name = "output",
                .short_name = 'o',
                .kind = OPT_STR,
                .offset = offsetof(values, out),
                .arg = "FILE",
                .help = "Output file."},
        {.name = "format",
                .kind = OPT_CHOICE,
                .offset = offsetof(values, format),
                .arg = "NAME",
                .help = "Kind of file.",
                .def = "flac",
                .choices = formats},
        {.name = "seed",
                .kind = OPT_U64,
                .offset = offsetof(values, seed),
                .arg = "N",
                .help = "Seed.",
                .def = "42"},
        {.name = "threads",
                .short_name = 't',
                .kind = OPT_I32,
                .offset = offsetof(values, threads),
                .arg = "N",
                .help = "Threads.",
                .min = 1,
                .max = 64},
        {.name = "temperature",
                .kind = OPT_F32,
                .offset = offsetof(values, temperature),
                .arg = "X",
                .help = "Heat.",
                .def = "0.8",
                .min = 0,
                .max = 2},
        {.name = "budget",
                .kind = OPT_BYTES,
                .offset = offsetof(values, budget),
                .arg = "SIZE",
                .help = "Memory."},
        {.name = "ref-text",
                .kind = OPT_STR,
                .offset = offsetof(values, ref_text),
                .arg = "TEXT",
                .help = "Words."},
        {.name = "ref-audio",
                .kind = OPT_STR,
                .offset = offsetof(values, ref_audio),
                .arg = "FILE",
                .help = "Sound."},
};

static const opt_rule rules[] = {
        {OPT_EXCLUDES, "greedy", "temperature"},
        {OPT_REQUIRES, "ref-text", "ref-audio"},
};

static const opt_command command = {
        .name = "try",
        .summary = "try things",
        .synopsis = "[OPTIONS] TEXT\n[OPTIONS] -f FILE",
        .about = "Tries things that are long enough to be wrapped when a person asks for help, "
                 "since that is "
                 "what happens to a paragraph.",
        .operand = "TEXT",
        .min_operands = 0,
        .max_operands = 1,
        .opts = defs,
        .n_opts = sizeof defs / sizeof defs[0],
        .rules = rules,
        .n_rules = sizeof rules / sizeof rules[0],
};

#define MAX_WORDS 8

/* Parses up to MAX_WORDS words, NULL-terminated. */
static int parse(const char *const *words, values *v, opt_result *result)
{
    static char storage[MAX_WORDS + 1][600];
    static char *argv[MAX_WORDS + 2];
    int argc = 1;
    argv[0] = storage[MAX_WORDS];
    snprintf(argv[0], sizeof storage[0], "try");
    for (size_t i = 0; words[i]; i++) {
        assert_true(i < MAX_WORDS);
        snprintf(storage[i], sizeof storage[i], "%s", words[i]);
        argv[argc++] = storage[i];
    }
    argv[argc] = NULL;
    message[0] = '\0';
    *v = (values){0};
    return opt_parse(&command, argc, argv, v, result);
}

static void test_defaults_come_from_the_table(void **state)
{
    values v;
    opt_result r;
    (void)state;
    assert_int_equal(parse((const char *const[]){NULL}, &v, &r), OPT_RUN);
    assert_false(v.quiet);
    assert_null(v.out);
    assert_int_equal(v.format, 1);
    assert_int_equal(v.seed, 42);
    assert_true(v.temperature > 0.79F && v.temperature < 0.81F);
    assert_int_equal(r.n_operands, 0);
    assert_false(opt_given(&r, "seed"));
}

static void test_every_form_of_an_option(void **state)
{
    values v;
    opt_result r;
    (void)state;
    assert_int_equal(parse((const char *const[]){"-qg", "--seed=18446744073709551615", "-t8",
                                   "--output", "-", "--format", "opus", "hello", NULL},
                             &v, &r),
            OPT_RUN);
    assert_true(v.quiet && v.greedy);
    assert_true(v.seed == UINT64_MAX);
    assert_int_equal(v.threads, 8);
    assert_string_equal(v.out, "-");
    assert_int_equal(v.format, 2);
    assert_int_equal(r.n_operands, 1);
    assert_string_equal(r.operands[0], "hello");
    assert_true(opt_given(&r, "seed") && !opt_given(&r, "temperature"));
}

static void test_options_may_follow_operands_and_end_at_two_dashes(void **state)
{
    values v;
    opt_result r;
    (void)state;
    assert_int_equal(parse((const char *const[]){"text", "-o", "x", NULL}, &v, &r), OPT_RUN);
    assert_string_equal(v.out, "x");
    assert_string_equal(r.operands[0], "text");
    assert_int_equal(parse((const char *const[]){"--", "--seed", NULL}, &v, &r), OPT_RUN);
    assert_int_equal(r.n_operands, 1);
    assert_string_equal(r.operands[0], "--seed");
    assert_int_equal(parse((const char *const[]){"-", NULL}, &v, &r), OPT_RUN);
    assert_string_equal(r.operands[0], "-");
}

static void test_G4_15_values_are_bytes(void **state)
{
    static const char *const names[] = {"\xE6\xA8\xA1\xE5\x9E\x8B \xE2\x9A\x92\xEF\xB8\x8F/x.gguf",
            "a\nb", "-dir/x", "~", "bad\377byte", " blank "};
    values v;
    opt_result r;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(parse((const char *const[]){"-o", names[i], NULL}, &v, &r), OPT_RUN);
        assert_string_equal(v.out, names[i]);
        assert_int_equal(parse((const char *const[]){"--", names[i], NULL}, &v, &r), OPT_RUN);
        assert_string_equal(r.operands[0], names[i]);
    }
}

typedef struct bad_line {
    const char *words[4];
    const char *part; /* of the message */
} bad_line;

static const bad_line bad_lines[] = {
        {{"--sed", "5"}, "unknown option '--sed' (did you mean '--seed'?)"},
        {{"--tempreature=1"}, "unknown option '--tempreature' (did you mean '--temperature'?)"},
        {{"--temp", "1"}, "unknown option '--temp' (did you mean '--temperature'?)"},
        {{"--temp=1"}, "unknown option '--temp' (did you mean '--temperature'?)"},
        {{"--temp"}, "unknown option '--temp' (did you mean '--temperature'?)"},
        {{"--qui"}, "unknown option '--qui' (did you mean '--quiet'?)"},
        {{"--xyzzy"}, "unknown option '--xyzzy'"},
        {{"--a\nb"}, "unknown option '--a\\x0ab'"},
        {{"-x"}, "unknown option '-x'"},
        {{"-qx"}, "unknown option '-x'"},
        {{"-\xff"}, "unknown option '-\\xff'"},
        {{"--quiet=yes"}, "--quiet takes no value"},
        {{"--help=yes"}, "--help takes no value"},
        {{"--seed"}, "--seed needs a value N"},
        {{"-o"}, "--output needs a value FILE"},
        {{"-o", "--seed", "5"}, "--output needs a value FILE, but the option '--seed' follows"},
        {{"-o", "-q"}, "--output needs a value FILE, but the option '-q' follows"},
        {{"--seed", "-o", "x"}, "--seed needs a value N, but the option '-o' follows"},
        {{"-o", "--"}, "--output needs a value FILE, but the option '--' follows"},
        {{"-o", "--help"}, "--output needs a value FILE, but the option '--help' follows"},
        {{"-o", ""}, "--output: '' is not a value of at least one byte"},
        {{"--output="}, "--output: '' is not a value of at least one byte"},
        {{"--seed", "-1"}, "--seed: '-1' is not a whole number"},
        {{"--seed", "1.5"}, "--seed: '1.5' is not a whole number"},
        {{"--seed", "18446744073709551616"}, "is not a whole number"},
        {{"--seed", "0x10"}, "is not a whole number"},
        {{"--seed", " 5"}, "is not a whole number"},
        {{"--seed", "5 "}, "is not a whole number"},
        {{"--seed", "+5"}, "is not a whole number"},
        {{"--seed", "1e3"}, "is not a whole number"},
        {{"--seed", "\xd9\xa3"}, "is not a whole number"},
        {{"-t", "0"}, "--threads: '0' is not a whole number from 1 to 64"},
        {{"-t", "65"}, "is not a whole number from 1 to 64"},
        {{"-t", "-3"}, "is not a whole number from 1 to 64"},
        {{"-t", "4294967297"}, "is not a whole number from 1 to 64"},
        {{"--temperature", "abc"}, "--temperature: 'abc' is not a number from 0 to 2"},
        {{"--temperature", "2.01"}, "is not a number from 0 to 2"},
        {{"--temperature", "-0.5"}, "is not a number from 0 to 2"},
        {{"--temperature", "nan"}, "is not a number from 0 to 2"},
        {{"--temperature", "inf"}, "is not a number from 0 to 2"},
        {{"--temperature", "0x1p0"}, "is not a number from 0 to 2"},
        {{"--temperature", "1e999"}, "is not a number from 0 to 2"},
        {{"--temperature", "0,5"}, "is not a number from 0 to 2"},
        {{"--temperature", "1.5x"}, "is not a number from 0 to 2"},
        {{"--temperature", "e"}, "is not a number from 0 to 2"},
        {{"--budget", "1.5G"}, "is not a size such as 4096, 512M or 2G"},
        {{"--budget", "G"}, "is not a size"},
        {{"--budget", "5X"}, "is not a size"},
        {{"--budget", "5iB"}, "is not a size"},
        {{"--budget", "5MM"}, "is not a size"},
        {{"--budget", "16777216T"}, "is not a size"},
        {{"--budget", "-1"}, "is not a size"},
        {{"--format", "flak"},
                "--format: 'flak' is not one of wav, flac, opus (did you mean 'flac'?)"},
        {{"--format", "zip"}, "--format: 'zip' is not one of wav, flac, opus"},
        {{"--format", "WAV"}, "is not one of wav, flac, opus"},
        {{"--seed", "1", "--seed=1"}, "--seed is given twice"},
        {{"-q", "-q"}, "--quiet is given twice"},
        {{"-g", "--temperature", "1"}, "--greedy and --temperature contradict each other"},
        {{"--ref-text", "words"}, "--ref-text has no effect without --ref-audio"},
        {{"two", "words"}, "'words' is one TEXT too many"},
};

static void test_each_bad_line_gets_one_message(void **state)
{
    values v;
    opt_result r;
    (void)state;
    for (size_t i = 0; i < sizeof bad_lines / sizeof bad_lines[0]; i++) {
        int status = parse(bad_lines[i].words, &v, &r);
        if (status != 2 || !strstr(message, bad_lines[i].part)) {
            fail_msg("line %zu (%s ...): status %d, message '%s', wanted '%s'", i,
                    bad_lines[i].words[0], status, message, bad_lines[i].part);
        }
        assert_null(strchr(message, '\n'));
    }
}

static void test_sizes_have_suffixes(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {{"0", 0}, {"4096", 4096}, {"1K", 1024}, {"512M", UINT64_C(512) << 20},
            {"2G", UINT64_C(2) << 30}, {"2GiB", UINT64_C(2) << 30}, {"2GB", UINT64_C(2) << 30},
            {"7B", 7}, {"16777215T", UINT64_C(16777215) << 40}};
    values v;
    opt_result r;
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const char *const words[] = {"--budget", sizes[i].text, NULL};
        assert_int_equal(parse(words, &v, &r), OPT_RUN);
        assert_true(v.budget == sizes[i].bytes);
    }
}

static void test_a_bad_value_leaves_the_member_alone(void **state)
{
    values v = {.temperature = 1.0F};
    (void)state;
    assert_false(opt_value_parse(&defs[6], "9", &v));
    assert_true(v.temperature == 1.0F);
    assert_true(opt_value_parse(&defs[6], ".25", &v));
    assert_true(v.temperature == 0.25F);
}

static char *printed(void (*print)(const opt_command *, FILE *))
{
    static char text[8192];
    FILE *f = tmpfile();
    assert_non_null(f);
    print(&command, f);
    rewind(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    return text;
}

static void test_help_has_every_option_and_fits_80_columns(void **state)
{
    (void)state;
    const char *text = printed(opt_print_help);
    for (size_t i = 0; i < command.n_opts; i++) {
        assert_non_null(strstr(text, defs[i].name));
    }
    assert_non_null(strstr(text, "-o, --output FILE"));
    assert_non_null(strstr(text, "(a whole number from 1 to 64)"));
    assert_non_null(strstr(text, "[default 0.8]"));
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        assert_true(n <= 80);
        line += n + (line[n] == '\n');
    }
}

static void test_manual_has_every_option_with_typeable_dashes(void **state)
{
    (void)state;
    const char *text = printed(opt_print_man);
    assert_non_null(strstr(text, "\\-\\-ref\\-audio"));
    assert_non_null(strstr(text, ".SS sluice try"));
    assert_non_null(strstr(text, "\\fIFILE\\fR"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_defaults_come_from_the_table),
            cmocka_unit_test(test_every_form_of_an_option),
            cmocka_unit_test(test_options_may_follow_operands_and_end_at_two_dashes),
            cmocka_unit_test(test_G4_15_values_are_bytes),
            cmocka_unit_test(test_each_bad_line_gets_one_message),
            cmocka_unit_test(test_sizes_have_suffixes),
            cmocka_unit_test(test_a_bad_value_leaves_the_member_alone),
            cmocka_unit_test(test_help_has_every_option_and_fits_80_columns),
            cmocka_unit_test(test_manual_has_every_option_with_typeable_dashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
