/*
 * What a command line of `say` may not mean: an output on top of an input or of another output, two streams on
 * one descriptor, a folder that cannot take a file that is only written at the end.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/status.h"
#include "file_roles.h"
#include "report.h"
#include "say.h"

static int check_text(const say_opts *opts, const opt_result *line)
{
    bool has_text = line->n_operands > 0 || opts->file;
    if (line->n_operands > 0 && opts->file) {
        return report_usage("say", "TEXT and --file contradict each other; give one of them");
    }
    if (opts->codes_in && has_text) {
        return report_usage("say", "TEXT and --codes-in contradict each other; give one of them");
    }
    if (!has_text && !opts->codes_in && !opts->save_voice) {
        return report_usage("say", "nothing to say; give TEXT, -f FILE or '-'");
    }
    if (!has_text && !opts->codes_in && (opts->output || opts->codes_out)) {
        return report_usage("say", "nothing to say into the output; give TEXT, -f FILE or '-'");
    }
    if ((has_text || opts->codes_in) && !opts->output && !opts->codes_out) {
        return report_usage("say", "no output; name one with -o FILE or -o -");
    }
    return OPT_RUN;
}

int say_check_line(const say_opts *opts, const opt_result *line)
{
    const char *text =
            line->n_operands > 0 && strcmp(line->operands[0], "-") == 0 ? "-" : opts->file;
    const file_role roles[] = {
            {"--model", opts->engine.model, false},
            {"--tokenizer", opts->engine.tokenizer, false},
            {"the text", text, false},
            {"--voice", opts->voice, false},
            {"--ref-audio", opts->ref_audio, false},
            {"--codes-in", opts->codes_in, false},
            {"--output", opts->output, true},
            {"--codes-out", opts->codes_out, true},
            {"--stats", opts->stats, true},
            {"--trace", opts->trace, true},
    };
    if (!opts->engine.model) {
        return report_usage("say", "no model; name one with -m MODEL.gguf");
    }
    int status = check_text(opts, line);
    if (status != OPT_RUN) {
        return status;
    }
    if (opts->min_frames > opts->max_frames) {
        return report_usage("say", "--min-frames %d is above --max-frames %d", opts->min_frames,
                opts->max_frames);
    }
    return file_roles_check("say", roles, sizeof roles / sizeof roles[0]);
}
