#!/bin/sh
# soak.sh [SECONDS [no-rss]]: mixed clients against the program, for ten minutes unless told otherwise (soak.mjs).
. tests/server/serving.sh
command -v node >/dev/null || { echo 'skipped: no node'; exit 77; }
serve_start -m models/demo/demo-voice-q8_0.gguf -t models/demo/tokenizer.json --queue 8 --head-timeout 2s \
    --sleep-after 300ms:1,600ms:2,1s:3 || exit 1
result=0
node tests/server/soak.mjs "$url" "$pid" "${1:-600}" "${2:-}" || result=1
serve_stop || { echo "FAILED the server ended with status $?"; result=1; }
if [ $result != 0 ] || grep -q 'Sanitizer' "$scratch/serve.err"; then
    grep -A 40 'Sanitizer' "$scratch/serve.err" || tail -n 20 "$scratch/serve.err"
    result=1
fi
exit $result
