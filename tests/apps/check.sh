#!/bin/sh
# Sourced by the cli_*.sh scripts: runs the program case by case. SLUICE_PROGRAM is the program.
#
#   check NAME STATUS STDOUT STDERR ARGS...   patterns as of `case`; '' = must be empty
#   check_done                                prints the count and ends with the status
#
# A failed case is printed with what the program wrote; the script goes on.
: "${SLUICE_PROGRAM:?the program to test}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
n_cases=0
n_failed=0

matches() {
    # The pattern is meant to be one.
    # shellcheck disable=SC2254
    case $2 in
        $1) return 0 ;;
    esac
    return 1
}

check() {
    name=$1 want_status=$2 want_out=$3 want_err=$4
    shift 4
    status=0
    "$SLUICE_PROGRAM" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
    out=$(cat "$scratch/out")
    err=$(cat "$scratch/err")
    n_cases=$((n_cases + 1))
    if matches "$want_status" "$status" && matches "$want_out" "$out" && matches "$want_err" "$err"; then
        return 0
    fi
    n_failed=$((n_failed + 1))
    printf 'FAILED %s: %s\n  status %s, wanted %s\n  stdout: %.600s\n  wanted: %s\n  stderr: %.600s\n  wanted: %s\n' \
        "$name" "$*" "$status" "$want_status" "$out" "$want_out" "$err" "$want_err"
}

# A fact about files or output beside the program's own: NAME, then a command that must succeed.
check_that() {
    name=$1
    shift
    n_cases=$((n_cases + 1))
    if ! "$@"; then
        n_failed=$((n_failed + 1))
        printf 'FAILED %s: %s\n' "$name" "$*"
    fi
}

check_done() {
    printf '%s cases, %s failed\n' "$n_cases" "$n_failed"
    [ "$n_failed" = 0 ]
}
