#!/bin/sh
# Checks the protocol of residency.pml in all its states, and that the check finds a rule that is missing.
# Exit status 77: spin or a compiler is not installed.
set -eu
cd "$(dirname "$0")"
if ! command -v spin >/dev/null || ! command -v cc >/dev/null; then
    echo "skipped: spin and cc are needed (Debian package spin)"
    exit 77
fi
model=$PWD/residency.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# $@: definitions. Prints the number of errors that the search found.
errors() {
    spin "$@" -a "$model" >spin.log
    cc -O1 -w -DSAFETY -o pan pan.c
    ./pan -m100000 -n >pan.log
    sed -n 's/.*errors: \([0-9]*\)$/\1/p' pan.log
}

n=$(errors)
grep -E 'states, stored|depth reached' pan.log
if [ "$n" != 0 ]; then
    spin -t -p -g "$model" | tail -n 40
    exit 1
fi
for rule in LEASE TURN; do
    if [ "$(errors -DBREAK_$rule)" = 0 ]; then
        echo "no error found without the rule $rule: the model checks nothing"
        exit 1
    fi
done
echo "ok"
