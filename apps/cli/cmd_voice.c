/* sluice voice: the folder of saved voices. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/mem.h"
#include "base/status.h"
#include "commands.h"
#include "report.h"
#include "s2/voice.h"
#include "suggest.h"
#include "voice_dir.h"

#define TEXT_BYTES 60 /* of a transcript in the list */

typedef struct voice_opts {
    const char *voice_dir;
    bool json;
} voice_opts;

#define VOICE_DIR_OPTION                                                                           \
    {                                                                                              \
        .name = "voice-dir", .kind = OPT_STR, .offset = offsetof(voice_opts, voice_dir),           \
        .arg = "DIR", .help = VOICE_DIR_HELP                                                       \
    }

static const opt_def show_defs[] = {
        VOICE_DIR_OPTION,
        {.name = "json",
                .kind = OPT_FLAG,
                .offset = offsetof(voice_opts, json),
                .help = "Write JSON."},
};
static const opt_def rm_defs[] = {VOICE_DIR_OPTION};

const opt_command cmd_voice_list_table = {
        .name = "voice list",
        .summary = "list the saved voices",
        .synopsis = "[--voice-dir DIR] [--json]",
        .about = "Lists the saved voices: name, frames, sample rate and the beginning of the "
                 "transcript.",
        .opts = show_defs,
        .n_opts = sizeof show_defs / sizeof show_defs[0],
};

const opt_command cmd_voice_show_table = {
        .name = "voice show",
        .summary = "show one voice",
        .synopsis = "[--voice-dir DIR] [--json] NAME|FILE.s2voice",
        .about = "Checks a voice and shows what it holds. A word of letters, digits, '_' and '-' "
                 "is the name "
                 "of a saved voice, anything else the path of a file.",
        .operand = "NAME or FILE",
        .min_operands = 1,
        .max_operands = 1,
        .opts = show_defs,
        .n_opts = sizeof show_defs / sizeof show_defs[0],
};

const opt_command cmd_voice_rm_table = {
        .name = "voice rm",
        .summary = "remove saved voices",
        .synopsis = "[--voice-dir DIR] NAME...",
        .about = "Removes saved voices by name. Paths are not accepted.",
        .operand = "NAME",
        .min_operands = 1,
        .max_operands = SIZE_MAX,
        .opts = rm_defs,
        .n_opts = sizeof rm_defs / sizeof rm_defs[0],
};

static void put_voice(sl__json *j, const char *name, const s2_voice *voice)
{
    sl__json_object(j);
    sl__json_put_cstr(j, "name", name);
    sl__json_put_u64(j, "frames", voice->n_frames);
    sl__json_put_u64(j, "codebooks", voice->n_codebooks);
    sl__json_put_u64(j, "codebook_size", voice->codebook_size);
    sl__json_put_u64(j, "sample_rate", voice->sample_rate);
    sl__json_put_cstr(j, "text", voice->text);
    sl__json_end(j);
}

static void print_row(const char *name, const s2_voice *voice)
{
    char text[TEXT_BYTES];
    printf("%-24s %6" PRIu32 " frames  %6" PRIu32 " Hz  %s\n", name, voice->n_frames,
            voice->sample_rate, sl__quote(text, sizeof text, voice->text, strlen(voice->text)));
}

/* One voice of the list; one that cannot be read is named and does not end the list. */
static int list_one(const char *dir, const char *name, sl__json *j, sl_error *reterr)
{
    s2_voice voice = {0};
    char *path = NULL;
    int r = voice_path_of(dir, name, &path, reterr);
    if (r >= 0) {
        r = s2_voice_load(path, &voice, reterr);
    }
    if (r >= 0 && j) {
        put_voice(j, name, &voice);
    } else if (r >= 0) {
        print_row(name, &voice);
    }
    s2_voice_done(&voice);
    sl__free(path);
    return r;
}

static int list(const char *dir, bool is_json, sl_error *reterr)
{
    sl__json j = {0};
    sl_error bad = {0};
    char **names = NULL;
    size_t n = 0;
    int r = s2_voice_list(dir, &names, &n, reterr);
    if (r < 0) {
        return r;
    }
    sl__json_array(&j);
    for (size_t i = 0; i < n; i++) {
        if (list_one(dir, names[i], is_json ? &j : NULL, &bad) < 0) {
            report_warning("voice list", "%s", bad.msg);
        }
    }
    sl__json_end(&j);
    if (is_json) {
        r = report_json(&j, reterr);
    }
    sl__json_done(&j);
    s2_voice_list_free(names, n);
    return r;
}

static int run_list(const opt_result *line, const voice_opts *opts, const char *dir)
{
    sl_error err = {0};
    int r = list(dir, opts->json, &err);
    return r < 0 ? report_error(line->command->name, &err) : 0;
}

static void print_voice(const char *path, const s2_voice *voice)
{
    char quoted[512];
    printf("file           %s\n", sl__quote(quoted, sizeof quoted, path, strlen(path)));
    printf("frames         %" PRIu32 "\n", voice->n_frames);
    printf("codebooks      %" PRIu32 " of %" PRIu32 " entries\n", voice->n_codebooks,
            voice->codebook_size);
    printf("sample rate    %" PRIu32 " Hz\n", voice->sample_rate);
    printf("transcript     ");
    /* Piece by piece, since a transcript may be longer than any buffer; pieces end between characters. */
    for (const char *s = voice->text; *s;) {
        size_t n = strlen(s);
        size_t piece = n < 100 ? n : 100;
        while (piece < n && (s[piece] & 0xC0) == 0x80) {
            piece++;
        }
        fputs(sl__quote(quoted, sizeof quoted, s, piece), stdout);
        s += piece;
    }
    fputc('\n', stdout);
}

static int run_show(const opt_result *line, const voice_opts *opts, const char *dir)
{
    sl_error err = {0};
    s2_voice voice = {0};
    sl__json j = {0};
    char *path = NULL;
    int r = voice_path_of(dir, line->operands[0], &path, &err);
    if (r >= 0) {
        r = s2_voice_load(path, &voice, &err);
    }
    if (r >= 0 && opts->json) {
        put_voice(&j, line->operands[0], &voice);
        r = report_json(&j, &err);
    } else if (r >= 0) {
        print_voice(path, &voice);
    }
    s2_voice_done(&voice);
    sl__free(path);
    return r < 0 ? report_error(line->command->name, &err) : 0;
}

static int remove_one(const char *dir, const char *name, sl_error *reterr)
{
    char quoted[512];
    char *path = NULL;
    int r = s2_voice_path(dir, name, &path, reterr);
    if (r >= 0 && unlink(path) != 0) {
        int os_errno = errno;
        r = sl__fail_os(reterr, os_errno, "cannot remove voice '%s' (%s)", name,
                sl__quote(quoted, sizeof quoted, path, strlen(path)));
    }
    s2_voice_path_free(path);
    return r;
}

static int run_rm(const opt_result *line, const voice_opts *opts, const char *dir)
{
    int status = 0;
    (void)opts;
    for (size_t i = 0; i < line->n_operands; i++) {
        sl_error err = {0};
        if (remove_one(dir, line->operands[i], &err) < 0) {
            status = report_error(line->command->name, &err);
        }
    }
    return status;
}

typedef struct voice_action {
    const char *name;
    const opt_command *table;
    int (*run)(const opt_result *line, const voice_opts *opts, const char *dir);
} voice_action;

static const voice_action actions[] = {
        {"list", &cmd_voice_list_table, run_list},
        {"show", &cmd_voice_show_table, run_show},
        {"rm", &cmd_voice_rm_table, run_rm},
};
#define N_ACTIONS (sizeof actions / sizeof actions[0])

static int run_action(const voice_action *action, int argc, char **argv)
{
    voice_opts opts = {0};
    opt_result line;
    sl_error err = {0};
    char *dir = NULL;
    int status = opt_parse(action->table, argc, argv, &opts, &line);
    if (status != OPT_RUN) {
        return status;
    }
    if (voice_dir(opts.voice_dir, &dir, &err) < 0) {
        return report_error(action->table->name, &err);
    }
    status = action->run(&line, &opts, dir);
    sl__free(dir);
    return status;
}

static int fail_unknown(const char *word)
{
    char quoted[80];
    suggest s = {.word = word, .n_bytes = strlen(word)};
    for (size_t i = 0; i < N_ACTIONS; i++) {
        suggest_offer(&s, actions[i].name);
    }
    sl__quote(quoted, sizeof quoted, word, strlen(word));
    if (s.best) {
        return report_usage("voice", "unknown command '%s' (did you mean '%s'?)", quoted, s.best);
    }
    return report_usage("voice", "unknown command '%s', use list, show or rm", quoted);
}

static void print_help(void)
{
    printf("Usage: sluice voice COMMAND [OPTIONS]\n\nCommands:\n");
    for (size_t i = 0; i < N_ACTIONS; i++) {
        printf("  %-6s%s\n", actions[i].name, actions[i].table->summary);
    }
    printf("\n  sluice voice COMMAND --help   options of a command\n");
}

int cmd_voice(int argc, char **argv)
{
    if (argc < 2) {
        return report_usage("voice", "needs a command: list, show or rm");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help();
        return 0;
    }
    for (size_t i = 0; i < N_ACTIONS; i++) {
        if (strcmp(argv[1], actions[i].name) == 0) {
            return run_action(&actions[i], argc - 1, argv + 1);
        }
    }
    return fail_unknown(argv[1]);
}
