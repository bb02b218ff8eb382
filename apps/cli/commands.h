/*
 * The commands of the program. Each lives in a file of its own with its option tables; main.c has the list.
 *
 * A command gets argv with its own name as argv[0] and returns the exit status of the process: 0, 1 for a
 * failure, 2 for a command line that must be corrected, 130 after an interrupt. Results go to standard
 * output, everything else to standard error (report.h). main flushes standard output and reports if that
 * fails.
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "options.h"

int cmd_bench(int argc, char **argv);
extern const opt_command cmd_bench_transfer_table;

int cmd_cached(int argc, char **argv);
extern const opt_command cmd_cached_table;

int cmd_doctor(int argc, char **argv);
extern const opt_command cmd_doctor_table;

int cmd_drop(int argc, char **argv);
extern const opt_command cmd_drop_table;

int cmd_inspect(int argc, char **argv);
extern const opt_command cmd_inspect_table;

int cmd_plan(int argc, char **argv);
extern const opt_command cmd_plan_table;

int cmd_run(int argc, char **argv);
extern const opt_command cmd_run_table;

int cmd_say(int argc, char **argv);
extern const opt_command cmd_say_table;

int cmd_serve(int argc, char **argv);
extern const opt_command cmd_serve_table;

int cmd_synth(int argc, char **argv);
extern const opt_command cmd_synth_table;

int cmd_voice(int argc, char **argv);
extern const opt_command cmd_voice_list_table;
extern const opt_command cmd_voice_show_table;
extern const opt_command cmd_voice_rm_table;

int cmd_warm(int argc, char **argv);
extern const opt_command cmd_warm_table;

#endif
