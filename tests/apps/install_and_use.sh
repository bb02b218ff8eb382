#!/bin/sh
# Installs a finished build into a scratch prefix and uses the library from there, as a stranger would: by
# pkg-config, first shared, then static, as C and as C++.   BUILD-FOLDER LIBDIR CC
set -eu
build=$1 libdir=$2 cc=$3
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
model=tests/data/tiny/tiny-f16.gguf

fail() { printf 'FAILED: %s\n' "$*"; exit 1; }

cmake --install "$build" --prefix "$prefix" >"$prefix/log" || { cat "$prefix/log"; fail "install"; }
for file in bin/sluice "$libdir/libsluice.a" "$libdir/libsluice.so" "$libdir/pkgconfig/sluice.pc" \
        "$libdir/sluice/libsluice-preload.so" \
        include/sluice/sluice.h share/man/man1/sluice.1; do
    [ -e "$prefix/$file" ] || fail "$file is not installed"
done

cat >"$prefix/use.c" <<'END'
#include <sluice/sluice.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    sl_error err;
    sl_model *model;
    if (argc != 2 || sl_model_open(argv[1], &model, &err) < 0) {
        return 1;
    }
    printf("%llu tensors\n", (unsigned long long)sl_model_n_tensors(model));
    sl_model_close(&model);
    return 0;
}
END
cp "$prefix/use.c" "$prefix/use.cc"

export PKG_CONFIG_PATH="$prefix/$libdir/pkgconfig"
cflags=$(pkg-config --cflags sluice)
libs=$(pkg-config --libs sluice)
soname=$(objdump -p "$prefix/$libdir/libsluice.so" | sed -n 's/^ *SONAME *//p')
[ -e "$prefix/$libdir/$soname" ] || fail "soname '$soname' is no file"

# Flags are words.
# shellcheck disable=SC2086
{
    "$cc" -std=c11 -Wall -Wextra -Werror $cflags "$prefix/use.c" -o "$prefix/use-shared" $libs
    "$cc" -std=c11 $cflags "$prefix/use.c" -o "$prefix/use-static" "$prefix/$libdir/libsluice.a" -pthread
    c++ -std=c++17 -Wall -Wextra -Werror $cflags "$prefix/use.cc" -o "$prefix/use-cpp" $libs
}
export LD_LIBRARY_PATH="$prefix/$libdir"
wanted=$("$prefix/bin/sluice" inspect "$model" | sed -n 's/.*, \([0-9]* tensors\)$/\1/p')
for program in use-shared use-static use-cpp; do
    got=$("$prefix/$program" "$model") || fail "$program: exit status $?"
    [ "$got" = "$wanted" ] || fail "$program says '$got', sluice inspect says '$wanted'"
done

# Nothing but the public functions leaves the shared library.
odd=$(nm -D --defined-only "$prefix/$libdir/libsluice.so" | awk '{ print $3 }' | grep -v '^sl_[a-z0-9]' || true)
[ -z "$odd" ] || fail "libsluice.so exports $odd"
printf '1 passed, 0 failed\n'
