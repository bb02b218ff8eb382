/*
 * sluice run: another program, with libsluice-preload.so in front of its C library. This process becomes that
 * program, so exit status, signals, descriptors and the terminal are its own.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/status.h"
#include "commands.h"
#include "engine_options.h"
#include "os/os_path.h"
#include "program_file.h"
#include "report.h"

#define SHIM "libsluice-preload.so"

/* As env(1) and the shells have them. */
#define STATUS_FORBIDDEN 126
#define STATUS_MISSING   127

typedef struct run_opts {
    uint64_t ram;
    int populate;
    uint64_t lazy_over;
    bool wait;
    bool background;
    bool quiet;
} run_opts;

static const opt_def defs[] = {
        {.name = "ram",
                .kind = OPT_BYTES,
                .offset = offsetof(run_opts, ram),
                .arg = "BYTES",
                .help = "A budget that replaces the derived one (see 'sluice doctor')."},
        {.name = "populate",
                .kind = OPT_CHOICE,
                .offset = offsetof(run_opts, populate),
                .arg = "WHICH",
                .help = "What is made present: all but very large tensors, nothing, or those too; "
                        "default: "
                        "auto, or what SLUICE_POPULATE says.",
                .choices = engine_populate_names},
        {.name = "lazy-over",
                .kind = OPT_BYTES,
                .offset = offsetof(run_opts, lazy_over),
                .arg = "BYTES",
                .help = "Leave out tensors larger than this; default: 4G."},
        {.name = "wait",
                .kind = OPT_FLAG,
                .offset = offsetof(run_opts, wait),
                .help = "Populate before the program goes on."},
        {.name = "background",
                .kind = OPT_FLAG,
                .offset = offsetof(run_opts, background),
                .help = "Populate while the program goes on, which is the default."},
        {.name = "quiet",
                .short_name = 'q',
                .kind = OPT_FLAG,
                .offset = offsetof(run_opts, quiet),
                .help = "Say only what went wrong."},
};

static const opt_rule rules[] = {{OPT_EXCLUDES, "wait", "background"}};

const opt_command cmd_run_table = {
        .name = "run",
        .summary = "run another program, its GGUF files populated within the RAM budget",
        .synopsis = "[OPTIONS] [--] COMMAND [ARGUMENT]...",
        .about = "Runs a program that maps GGUF files. Where it does, MAP_POPULATE and advice to "
                 "read "
                 "most of the file ahead are taken off, and what is worth it is made present "
                 "within the RAM budget, once for each file. Anything else is as before, and if it "
                 "cannot work, so are the GGUF files. The exit status is the program's; 126 and "
                 "127 mean that it cannot be run or was not found.",
        .operand = "COMMAND",
        .min_operands = 1,
        .max_operands = SIZE_MAX,
        .ends_at_operand = true,
        .opts = defs,
        .n_opts = sizeof defs / sizeof defs[0],
        .rules = rules,
        .n_rules = sizeof rules / sizeof rules[0],
};

/* Beside this program, as built, or below the library folder, as installed. */
static bool find_shim(char *path, size_t path_bytes)
{
    static const char *const near[] = {"", SLUICE_LIBDIR_FROM_BINDIR "/sluice/"};
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) {
        return false;
    }
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    int n_dir = slash ? (int)(slash - self) + 1 : 0;
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
        int n_path = snprintf(path, path_bytes, "%.*s%s%s", n_dir, self, near[i], SHIM);
        if (n_path > 0 && (size_t)n_path < path_bytes && access(path, R_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* The dynamic linker takes these apart in LD_PRELOAD. */
static bool can_be_named(const char *path)
{
    return strpbrk(path, " :$") == NULL;
}

static bool put(const char *name, const char *value)
{
    return setenv(name, value, 1) == 0; /* NOLINT(concurrency-mt-unsafe): one thread */
}

static bool put_bytes(const char *name, uint64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, n);
    return put(name, text);
}

static bool put_preload(const char *shim)
{
    const char *others = getenv("LD_PRELOAD"); /* NOLINT(concurrency-mt-unsafe): one thread */
    size_t n = strlen(shim) + (others ? strlen(others) : 0) + 2;
    char *value = sl__alloc(n, 1);
    if (!value) {
        return false;
    }
    snprintf(value, n, "%s%s%s", shim, others && *others ? ":" : "", others ? others : "");
    bool is_put = put("LD_PRELOAD", value);
    sl__free(value);
    return is_put;
}

static bool put_settings(const run_opts *opts, const opt_result *line, const char *shim)
{
    bool is_put = put("SLUICE_RUN_WAIT", opts->wait ? "1" : "0") &&
                  put("SLUICE_RUN_QUIET", opts->quiet ? "1" : "0") && put_preload(shim);
    if (is_put && opt_given(line, "ram")) {
        is_put = put_bytes("SLUICE_RUN_RAM", opts->ram);
    }
    if (is_put && opt_given(line, "lazy-over")) {
        is_put = put_bytes("SLUICE_RUN_LAZY_OVER", opts->lazy_over);
    }
    if (is_put && opt_given(line, "populate")) {
        is_put = put("SLUICE_POPULATE", engine_populate_names[opts->populate]);
    }
    return is_put;
}

/* Puts the shim in front of the program, or says why it runs without. */
static void arm(const run_opts *opts, const opt_result *line, program_kind kind, const char *path)
{
    char shim[4200];
    char shown[256];
    sl__quote(shown, sizeof shown, path, strlen(path));
    if (kind != PROGRAM_FINE) {
        report_warning("run", "%s %s, so nothing can be put in front of it; it runs as it is",
                shown, program_kind_text(kind));
        return;
    }
    if (!find_shim(shim, sizeof shim)) {
        report_warning("run", SHIM " is not beside this program; %s runs as it is", shown);
        return;
    }
    if (!can_be_named(shim)) {
        report_warning("run",
                "the path of " SHIM " has a blank, ':' or '$', which LD_PRELOAD cannot hold; %s "
                "runs as it is",
                shown);
        return;
    }
    if (!put_settings(opts, line, shim)) {
        report_warning("run", "no memory for the environment; %s runs as it is", shown);
    }
}

int cmd_run(int argc, char **argv)
{
    run_opts opts = {0};
    opt_result line;
    char path[4096];
    char shown[256];
    char why[80];
    int status = opt_parse(&cmd_run_table, argc, argv, &opts, &line);
    if (status != OPT_RUN) {
        return status;
    }
    const char *command = line.operands[0];
    program_kind kind = program_look(command, path, sizeof path);
    if (kind != PROGRAM_MISSING && kind != PROGRAM_FORBIDDEN) {
        arm(&opts, &line, kind, path);
    }
    /* main ignores it; the program is to find what programs find. */
    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    (void)execvp(command, line.operands);
    int os_error = errno;
    (void)strerror_r(os_error, why, sizeof why);
    fprintf(stderr, "sluice run: cannot run %s: %s\n",
            sl__quote(shown, sizeof shown, command, strlen(command)), why);
    return os_error == ENOENT ? STATUS_MISSING : STATUS_FORBIDDEN;
}
