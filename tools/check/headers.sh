#!/bin/sh
# Every header compiles alone: those of include/ as C11 and as C++17, those of src/ as C11.
set -u
cd "$(dirname "$0")/../.." || exit 1
status=0

# $1 header, rest: compiler and flags.
alone() {
    header=$1
    shift
    printf '#include "%s"\n#include "%s"\ntypedef int not_empty;\n' "$header" "$header" |
        "$@" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I include -I src - || {
        printf '%s\n' "$header: does not compile alone with: $*"
        status=1
    }
}

for header in include/*/*.h; do
    alone "${header#include/}" cc -std=c11 -x c
    alone "${header#include/}" c++ -std=c++17 -x c++
done
ggml=$(sed -n 's/^ggml_DIR:PATH=\(.*\)\/lib\/cmake\/ggml$/\1/p' build/CMakeCache.txt 2>/dev/null)
for header in $(git ls-files -co --exclude-standard 'src/*.h'); do
    alone "${header#src/}" cc -std=c11 -D_POSIX_C_SOURCE=200809L -isystem "${ggml:-/usr}/include" -x c
done
exit $status
