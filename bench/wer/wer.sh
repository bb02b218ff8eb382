#!/bin/sh
# Word error rate of a voice: every sentence is spoken and then recognised by pocketsphinx, a weak recogniser
# with an open language model, so only the comparison means something. The baseline of the same run is flite's
# voice slt, which the demo voice was trained on.
#
#   bench/wer/wer.sh SLUICE BENCH_WER MODEL.gguf TOKENIZER.json [SENTENCES]
set -eu

sluice=$1
bench_wer=$2
model=$3
tokenizer=$4
sentences=${5:-$(dirname "$0")/sentences.txt}

for tool in pocketsphinx_continuous sox; do
    if ! command -v "$tool" >/dev/null; then
        echo "wer.sh: $tool is missing; tools/setup.sh bench installs it" >&2
        exit 77
    fi
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# recognise WAV: the words that pocketsphinx hears, on one line.
recognise() {
    sox "$1" -r 16000 -c 1 -b 16 "$work/in.wav" gain -n -3 pad 0.3 0.3
    pocketsphinx_continuous -infile "$work/in.wav" -logfn /dev/null 2>/dev/null | tr '\n' ' '
    echo
}

n=0
while IFS= read -r text; do
    n=$((n + 1))
    "$sluice" say -q -m "$model" -t "$tokenizer" --seed "$n" -o "$work/say.wav" -- "$text" </dev/null
    recognise "$work/say.wav" >>"$work/say.txt" </dev/null
    if command -v flite >/dev/null; then
        flite -voice slt -t "$text" -o "$work/flite.wav" </dev/null
        recognise "$work/flite.wav" >>"$work/flite.txt" </dev/null
    fi
done <"$sentences"

echo "voice,sentences,words,errors,wer_percent"
"$bench_wer" "$(basename "$model")" "$sentences" "$work/say.txt"
if [ -e "$work/flite.txt" ]; then
    "$bench_wer" "flite-slt" "$sentences" "$work/flite.txt"
fi
