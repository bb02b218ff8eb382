/*
 * Finds the command and hands over. What holds for the whole process is arranged here: the three standard
 * descriptors exist (else a file that a command opens would become standard output), a reader that goes away
 * is an error and not a signal, and output that could not be written is a failure.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "commands.h"
#include "report.h"
#include "suggest.h"

#define MAX_TABLES 3

typedef struct command_row {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv);
    const opt_command *tables[MAX_TABLES + 1]; /* NULL-terminated, for the manual page */
} command_row;

static const command_row commands[] = {
        {"bench", "measure what this machine reaches", cmd_bench, {&cmd_bench_transfer_table}},
        {"cached", "show what of models is in the page cache", cmd_cached, {&cmd_cached_table}},
        {"doctor", "show what this machine leaves to Sluice, and why", cmd_doctor,
                {&cmd_doctor_table}},
        {"drop", "let go of the cached pages of models", cmd_drop, {&cmd_drop_table}},
        {"inspect", "show what is in a model file", cmd_inspect, {&cmd_inspect_table}},
        {"plan", "show what a request would take on which device when", cmd_plan,
                {&cmd_plan_table}},
        {"run", "run another program, its GGUF files populated within the RAM budget", cmd_run,
                {&cmd_run_table}},
        {"say", "speak a text", cmd_say, {&cmd_say_table}},
        {"serve", "speak for clients: an HTTP server and a page", cmd_serve, {&cmd_serve_table}},
        {"synth", "write a synthetic model", cmd_synth, {&cmd_synth_table}},
        {"voice", "list, show and remove saved voices", cmd_voice,
                {&cmd_voice_list_table, &cmd_voice_show_table, &cmd_voice_rm_table}},
        {"warm", "bring the weights of models into the page cache", cmd_warm, {&cmd_warm_table}},
};
#define N_COMMANDS (sizeof commands / sizeof commands[0])

static void print_help(FILE *out)
{
    fprintf(out,
            "Sluice speaks with S2 Pro models in GGUF files, in less memory than they take.\n\n"
            "Usage: sluice COMMAND [OPTIONS]\n\nCommands:\n");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        fprintf(out, "  %-10s%s\n", commands[i].name, commands[i].summary);
    }
    fprintf(out, "\n  sluice COMMAND --help   options of a command\n"
                 "  sluice --version        versions of Sluice and ggml\n");
}

/* The commands' part of the manual page; packaging/man/sluice.1.in has the rest. */
static void print_man(FILE *out)
{
    for (size_t i = 0; i < N_COMMANDS; i++) {
        for (size_t j = 0; commands[i].tables[j]; j++) {
            opt_print_man(commands[i].tables[j], out);
        }
    }
}

static int fail_unknown(const char *word)
{
    char quoted[80];
    suggest s = {.word = word, .n_bytes = strlen(word)};
    sl__quote(quoted, sizeof quoted, word, strlen(word));
    for (size_t i = 0; i < N_COMMANDS; i++) {
        suggest_offer(&s, commands[i].name);
    }
    const char *kind = *word == '-' ? "option" : "command";
    if (s.best) {
        return report_usage("", "unknown %s '%s' (did you mean '%s'?)", kind, quoted, s.best);
    }
    return report_usage("", "unknown %s '%s'", kind, quoted);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        print_help(stdout);
        return 0;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("sluice %s (ggml %s)\n", SLUICE_VERSION, SLUICE_GGML_VERSION);
        return 0;
    }
    if (strcmp(word, "--man") == 0) {
        print_man(stdout);
        return 0;
    }
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(word, commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    return fail_unknown(word);
}

/* A missing standard descriptor becomes one that fails in the direction it is used in. */
static void ensure_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            int mode = fd == 0 ? O_WRONLY : O_RDONLY;
            /* The lowest free number is fd. It is meant to outlive exec like any standard descriptor. */
            (void)open("/dev/null", mode); /* NOLINT(android-cloexec-open) */
        }
    }
}

static int finish_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return status;
    }
    if (errno != EPIPE) {
        char text[80];
        (void)strerror_r(errno, text, sizeof text);
        fprintf(stderr, "sluice: cannot write standard output: %s\n", text);
    }
    return status != 0 ? status : 1;
}

int main(int argc, char **argv)
{
    ensure_standard_descriptors();
    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    return finish_output(run(argc, argv));
}
