#!/bin/sh
# The manual page renders without a warning, and every option that README.md and the page's hand-written part
# name for sluice is one of the program. The option sections themselves come from the program's tables.
set -eu
cd "$(dirname "$0")/../.."
cmake --preset release --log-level=ERROR >/dev/null
cmake --build build --target manual >/dev/null
status=0

warnings=$(LC_ALL=C.UTF-8 man --warnings -l build/sluice.1 2>&1 >/dev/null)
if [ -n "$warnings" ]; then
    printf 'sluice.1: %s\n' "$warnings"
    status=1
fi

known=$(build/sluice --man | sed 's/\\-/-/g' | grep -o -- '--[a-z][a-z-]*' | sort -u)
mentioned() {
    sed 's/\\-/-/g' packaging/man/sluice.1.in
    [ ! -f README.md ] || grep -E '(^|[^a-z])sluice (say|inspect|voice|synth)|^\| *`-' README.md
}
for option in $(mentioned | grep -o -- '--[a-z][a-z-]*' | sort -u); do
    case $option in --help | --version | --name) continue ;; esac
    printf '%s\n' "$known" | grep -qx -- "$option" || {
        printf '%s is mentioned, but sluice has no such option\n' "$option"
        status=1
    }
done
exit $status
