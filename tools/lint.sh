#!/bin/sh
# All linters; says which ones failed and shows what they said. LINT="name ..." runs only those.
set -u
cd "$(dirname "$0")/.." || exit 1
jobs=$(nproc)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=

c_files() { git ls-files -co --exclude-standard '*.c' '*.h'; }
sources() { git ls-files -co --exclude-standard '*.c' | sed 's|.*|/&$|'; }

format() { c_files | xargs clang-format-14 --dry-run -Werror; }

# Only the files of compile_commands.json that are ours; -quiet still counts suppressed warnings on stderr.
tidy() {
    cmake --preset release --log-level=ERROR >"$log.cmake" 2>&1 || { cat "$log.cmake"; return 1; }
    # Word splitting is wanted: one expression a file.
    # shellcheck disable=SC2046
    run-clang-tidy-14 -p build -j "$jobs" -quiet $(sources) >"$log.tidy" 2>/dev/null
    result=$?
    sed "s/$(printf '\033')\[[0-9;]*m//g" "$log.tidy" | grep -v '^clang-tidy-14 '
    rm -f "$log.cmake" "$log.tidy"
    return $result
}

cpp_check() {
    cppcheck -q -j "$jobs" --std=c11 --language=c --enable=warning,performance,portability --inline-suppr \
        --error-exitcode=1 --suppress=missingIncludeSystem \
        --suppress=arrayIndexThenCheck -I include -I src src apps tools
}

spell() {
    git ls-files '*.md' '*.c' '*.h' '*.sh' '*.py' '*.cmake' '*.txt' packaging | grep -v '^tests/data/\|^models/' |
        xargs codespell
}
shell() { git ls-files -co --exclude-standard '*.sh' .ci/run | xargs shellcheck; }
layers() { python3 tools/check/layers.py; }
twins() { python3 tools/check/twins.py; }
style() { python3 tools/check/style.py; }
headers() { tools/check/headers.sh; }
manual() { tools/check/manual.sh; }

for step in ${LINT:-format style layers twins headers shell spell cpp_check manual tidy}; do
    start=$(date +%s)
    if "$step" >"$log" 2>&1; then
        printf 'lint: %-10s ok, %s s\n' "$step" $(($(date +%s) - start))
    else
        cat "$log"
        printf 'lint: %-10s FAILED\n' "$step"
        failed="$failed $step"
    fi
done
[ -z "$failed" ] || { printf 'lint: failed:%s\n' "$failed"; exit 1; }
echo 'lint: all passed'
