#!/bin/sh
# G4-15: paths are bytes. Every odd name works for reading, and messages about it stay one printable line.
. tests/apps/check.sh
model=tests/data/tiny/tiny-f16.gguf
root=$PWD

is_printable() { ! tr -d '\n' <"$1" | LC_ALL=C grep -q '[[:cntrl:]]'; }

try_name() {
    cp "$root/$model" "$scratch/$2" || return 0
    check "G4_15_$1" 0 '*GGUF version 3*' '' inspect "$scratch/$2"
    check "G4_15_$1_missing" 1 '' 'sluice inspect: *' inspect "$scratch/$2.not"
    check_that "G4_15_$1_one_line" [ "$(wc -l <"$scratch/err")" = 1 ]
    check_that "G4_15_$1_printable" is_printable "$scratch/err"
    rm -f "$scratch/$2"
}

mkdir "$scratch/模型 ⚒️ é"
try_name unicode '模型 ⚒️ é/x.gguf'
try_name blanks ' two  blanks '
try_name newline "$(printf 'line\nfeed.gguf')"
try_name escape "$(printf 'red\033[31m.gguf')"
try_name bad_utf8 "$(printf 'bad\377byte.gguf')"
try_name quote "it's \"x\".gguf"
try_name percent '%s%n.gguf'
try_name long "$(printf '%0250d' 7)"

cd "$scratch" || exit 1
cp "$root/$model" ./-dash.gguf
mkdir './~'
cp "$root/$model" './~/x.gguf'
check G4_15_dash_after_two_dashes 0 '-dash.gguf: *' '' inspect -- -dash.gguf
check G4_15_dash_with_folder 0 './-dash.gguf: *' '' inspect ./-dash.gguf
check G4_15_dash_is_an_option 2 '' "sluice inspect: unknown option '-d'; see *" inspect -dash.gguf
# A folder that is called ~ is meant.
# shellcheck disable=SC2088
check G4_15_tilde 0 '~/x.gguf: *' '' inspect '~/x.gguf'
cd "$root" || exit 1
check_done
