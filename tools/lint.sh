#!/bin/sh
# All linters; says which ones failed and shows what they said. LINT="name ..." runs only those.
set -u
cd "$(dirname "$0")/.." || exit 1
jobs=$(nproc)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=

c_files() { git ls-files -co --exclude-standard '*.c' '*.h'; }

format() { c_files | xargs clang-format-14 --dry-run -Werror; }

# gcc's own warning flags are in compile_commands.json too; on stderr are only counts of what was hidden.
tidy() {
    git ls-files -co --exclude-standard '*.c' | xargs -P "$jobs" -n 4 \
        clang-tidy-14 -p build --quiet --extra-arg=-Wno-unknown-warning-option 2>/dev/null
}

cpp_check() {
    cppcheck -q -j "$jobs" --std=c11 --language=c --enable=warning,performance,portability --inline-suppr \
        --error-exitcode=1 --suppress=missingIncludeSystem \
        --suppress=arrayIndexThenCheck -I include -I src src apps tools
}

# Tests misspell on purpose; the word list is of abbreviations that are right here.
spell() {
    git ls-files '*.md' '*.c' '*.h' '*.sh' '*.py' '*.cmake' '*.txt' packaging .ci | grep -v '^tests/\|^models/' |
        xargs codespell -L pres
}
shell() { git ls-files -co --exclude-standard '*.sh' .ci/run | xargs shellcheck; }
layers() { python3 tools/check/layers.py; }
twins() { python3 tools/check/twins.py; }
style() { python3 tools/check/style.py; }
headers() { tools/check/headers.sh; }
manual() { tools/check/manual.sh; }

# The API's contract, where npm can give the pinned linter.
openapi() {
    folder=$(tools/npm_ci.sh tools/redocly) || { echo 'left out: npm gave no linter'; return 0; }
    REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true \
        node "$folder/node_modules/@redocly/cli/bin/cli.js" lint --extends=recommended apps/server/openapi.yaml
}

# Several steps look into the configured build folder: where ggml's headers are, how files are compiled.
cmake --preset release --log-level=ERROR >/dev/null || exit 1
for step in ${LINT:-format style layers twins headers shell spell cpp_check manual openapi tidy}; do
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
