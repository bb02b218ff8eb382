#!/bin/sh
# Speaks one sentence with the demo voice into demo.wav and draws demo.png beside it.
#   tools/demo.sh [BUILD-FOLDER [TEXT]]
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
text=${2:-Please remember to lock the front door before you go to bed.}

stats=$(mktemp)
trap 'rm -f "$stats"' EXIT

# A number of the flat part of the statistics.
stat_of() { tr '{,}' '[\n*3]' <"$stats" | sed -n "s/^ *\"$1\": *\([-0-9.eE+]*\) *$/\1/p" | head -n 1; }

"$build/sluice" say -m models/demo/demo-voice-q8_0.gguf -t models/demo/tokenizer.json \
    --temperature 0.6 --seed 1 --quiet --stats "$stats" -o demo.wav "$text"
"$build/tools/spectrogram" demo.wav demo.png

awk -v audio="$(stat_of audio_s)" -v wall="$(stat_of wall_s)" -v rtf="$(stat_of rtf)" \
    -v first="$(stat_of first_audio_s)" -v peak="$(stat_of peak_rss_bytes)" -v text="$text" -v folder="$PWD" '
BEGIN {
    printf "\n  text            %s\n", text
    printf "  sound           %s/demo.wav, %.2f s\n", folder, audio
    printf "  picture         %s/demo.png\n", folder
    printf "  made in         %.2f s, real-time factor %.2f (below 1 is faster than speech)\n", wall, rtf
    printf "  first audio     after %.3f s\n", first
    printf "  peak memory     %.1f MB\n", peak / 1e6
}'
