#!/bin/sh
# The program under valgrind with the golden model, alone and with a recording: no bad access, no leak.
# Skipped without valgrind, in sanitizer builds, and where ggml was built for instructions that valgrind
# does not know (AVX-512).
: "${SLUICE_PROGRAM:?the program to test}"
command -v valgrind >/dev/null || exit 77
if nm "$SLUICE_PROGRAM" 2>/dev/null | grep -q '__[at]san_init'; then
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
golden=tests/data/golden

run() {
    name=$1
    shift
    status=0
    valgrind --quiet --leak-check=full --error-exitcode=9 --log-file="$scratch/log" \
        "$SLUICE_PROGRAM" say -m "$golden/tiny-s2-f16.gguf" -t "$golden/tokenizer.json" --quiet \
        --greedy --threads 1 --max-frames 2 -o "$scratch/out.wav" "$@" "Hello" || status=$?
    if [ "$status" -ge 128 ] && grep -q 'Illegal opcode' "$scratch/log"; then
        echo "skipped: valgrind does not know this processor's instructions"
        exit 77
    fi
    if [ "$status" != 0 ] || [ ! -s "$scratch/out.wav" ]; then
        printf 'FAILED %s: status %s\n' "$name" "$status"
        cat "$scratch/log"
        exit 1
    fi
}

run plain
# A short one: valgrind makes it fifty times slower.
run recording --ref-audio tests/data/tiny/ref.wav --ref-text "Hi."
echo "no bad access, no leak"
