#!/bin/sh
# The frame: help, version, unknown commands, broken standard output.
. tests/apps/check.sh
program=$SLUICE_PROGRAM

check alone 2 '' '*Usage: sluice COMMAND*inspect*'
check help 0 '*Usage: sluice COMMAND*inspect*voice*' '' --help
check help_short 0 '*Usage: sluice COMMAND*' '' -h
check version 0 'sluice [0-9]*.[0-9]*.[0-9]* (ggml [0-9]*.[0-9]*)' '' --version
check unknown 2 '' "sluice: unknown command 'xyzzy'; see 'sluice --help'" xyzzy
check near 2 '' "sluice: unknown command 'inspct' (did you mean 'inspect'?); see 'sluice --help'" inspct
check option 2 '' "sluice: unknown option '--frobnicate'; see 'sluice --help'" --frobnicate
check control_bytes 2 '' "sluice: unknown command 'a\\\\x1b\\[31mb'; see *" "$(printf 'a\033[31mb')"
check empty_word 2 '' "sluice: unknown command ''; see *" ''
check man 0 '*.SS sluice inspect*.SS sluice voice list*' '' --man

# A pipe that nobody reads, a full disk, a closed descriptor: a status, never a signal, never silence.
fails_with() {
    status=0
    "$@" || status=$?
    [ "$status" = 1 ]
}
into_full() { "$program" --help >/dev/full 2>"$scratch/err"; }
into_closed() { "$program" --help >&- 2>"$scratch/err"; }
into_deaf_pipe() {
    mkfifo "$scratch/pipe"
    # Opened for both ends it does not block; then the reading end goes.
    # shellcheck disable=SC2094
    exec 7<>"$scratch/pipe" 8>"$scratch/pipe" 7<&-
    "$program" inspect --json models/demo/demo-voice-q8_0.gguf >&8 2>"$scratch/err"
}
check_that full_disk fails_with into_full
check_that full_disk_says_so grep -q 'cannot write standard output: No space left' "$scratch/err"
check_that closed_output fails_with into_closed
check_that closed_output_says_so grep -q 'cannot write standard output' "$scratch/err"
check_that deaf_pipe fails_with into_deaf_pipe
check_done
