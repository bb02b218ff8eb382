/* Two renderings of an option table: columns for a terminal, roff for the manual page. */
#include "options.h"

#include <string.h>

#include "option_value.h"

#define HELP_COLUMNS 80
#define TEXT_COLUMN  30

/* Help, range and default of an option as one text. */
static const char *full_help(const opt_def *def, char *buf, size_t buf_bytes)
{
    char needs[200];
    size_t n = (size_t)snprintf(buf, buf_bytes, "%s", def->help);
    bool has_range = def->min != 0 || def->max != 0 || def->kind == OPT_CHOICE;
    if (has_range && n < buf_bytes) {
        n += (size_t)snprintf(
                buf + n, buf_bytes - n, " (%s)", opt_value_needs(def, needs, sizeof needs));
    }
    if (def->def && n < buf_bytes) {
        snprintf(buf + n, buf_bytes - n, " [default %s]", def->def);
    }
    return buf;
}

/* Prints words from `column` on, wrapped to HELP_COLUMNS with `indent` blanks before later lines. */
static void print_wrapped(const char *text, size_t column, size_t indent, FILE *out)
{
    while (*text) {
        size_t n = strcspn(text, " \n");
        if (column > indent && column + 1 + n > HELP_COLUMNS) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", (int)n, text);
        column += n;
        text += n;
        text += strspn(text, " \n");
    }
    fputc('\n', out);
}

static void print_option(const opt_def *def, FILE *out)
{
    char left[80];
    char text[600];
    char letter[8] = "    ";
    if (def->short_name) {
        snprintf(letter, sizeof letter, "-%c, ", def->short_name);
    }
    int n = snprintf(left, sizeof left, "  %s--%s%s%s", letter, def->name, def->arg ? " " : "",
            def->arg ? def->arg : "");
    fprintf(out, "%s", left);
    if (n + 2 > TEXT_COLUMN) {
        fprintf(out, "\n%*s", TEXT_COLUMN, "");
    } else {
        fprintf(out, "%*s", TEXT_COLUMN - n, "");
    }
    print_wrapped(full_help(def, text, sizeof text), TEXT_COLUMN, TEXT_COLUMN, out);
}

void opt_print_help(const opt_command *command, FILE *out)
{
    const char *line = command->synopsis;
    for (const char *head = "Usage:"; *line; head = "      ") {
        size_t n = strcspn(line, "\n");
        fprintf(out, "%s sluice %s %.*s\n", head, command->name, (int)n, line);
        line += n + (line[n] == '\n');
    }
    fputc('\n', out);
    print_wrapped(command->about, 0, 0, out);
    fprintf(out, "\nOptions:\n");
    for (size_t i = 0; i < command->n_opts; i++) {
        print_option(&command->opts[i], out);
    }
    static const opt_def help = {
            .name = "help", .short_name = 'h', .kind = OPT_FLAG, .help = "Show this text."};
    print_option(&help, out);
}

/* Text as roff: hyphens that may be typed, no accidental requests. */
static void print_roff(const char *text, size_t n, FILE *out)
{
    if (n > 0 && (text[0] == '.' || text[0] == '\'')) {
        fputs("\\&", out);
    }
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '-') {
            fputs("\\-", out);
        } else if (text[i] == '\\') {
            fputs("\\e", out);
        } else {
            fputc(text[i], out);
        }
    }
}

static void print_man_option(const opt_def *def, FILE *out)
{
    char text[600];
    fprintf(out, ".TP\n");
    if (def->short_name) {
        fprintf(out, "\\fB\\-%c\\fR, ", def->short_name);
    }
    fprintf(out, "\\fB\\-\\-");
    print_roff(def->name, strlen(def->name), out);
    fprintf(out, "\\fR");
    if (def->arg) {
        fprintf(out, " \\fI%s\\fR", def->arg);
    }
    fputc('\n', out);
    full_help(def, text, sizeof text);
    print_roff(text, strlen(text), out);
    fputc('\n', out);
}

void opt_print_man(const opt_command *command, FILE *out)
{
    const char *line = command->synopsis;
    fprintf(out, ".SS sluice %s\n", command->name);
    while (*line) {
        size_t n = strcspn(line, "\n");
        fprintf(out, "\\fBsluice %s\\fR ", command->name);
        print_roff(line, n, out);
        line += n + (line[n] == '\n');
        fprintf(out, *line ? "\n.br\n" : "\n");
    }
    fprintf(out, ".PP\n");
    print_roff(command->about, strlen(command->about), out);
    fputc('\n', out);
    for (size_t i = 0; i < command->n_opts; i++) {
        print_man_option(&command->opts[i], out);
    }
}
