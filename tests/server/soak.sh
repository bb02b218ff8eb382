#!/bin/sh
# soak.sh [SECONDS [no-rss]]: mixed clients against the program, for ten minutes unless told otherwise (soak.mjs).
# SOAK_MODEL=FILE SOAK_TOKENIZER=FILE: another model than the demo voice; builds with sanitizers want the tiny one.
. tests/server/serving.sh
command -v node >/dev/null || { echo 'skipped: no node'; exit 77; }
model=${SOAK_MODEL:-models/demo/demo-voice-q8_0.gguf}
serve_start -m "$model" -t "${SOAK_TOKENIZER:-models/demo/tokenizer.json}" --queue 8 --head-timeout 2s \
    --sleep-after 300ms:1,600ms:2,1s:3 || exit 1
result=0
node tests/server/soak.mjs "$url" "$pid" "${1:-600}" "${2:-}" || result=1
serve_stop || { echo "FAILED the server ended with status $?"; result=1; }
if grep -q 'Sanitizer\|runtime error' "$scratch/serve.err"; then
    grep -A 40 'Sanitizer\|runtime error' "$scratch/serve.err"
    result=1
fi
[ $result = 0 ] || tail -n 20 "$scratch/serve.err"
exit $result
