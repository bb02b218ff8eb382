#!/bin/sh
# Clients that nobody here wrote: the official openai package, curl, and ffprobe on what they got. Skipped without
# node or if npm cannot give the pinned package.
. tests/server/serving.sh
command -v node >/dev/null || { echo 'skipped: no node'; exit 77; }
packages=$(tools/npm_ci.sh tests/server/clients) || { echo 'skipped: npm gave no openai package'; exit 77; }
export SLUICE_TEST_KEY=key-of-a-test
SLUICE_API_KEY=$SLUICE_TEST_KEY
export SLUICE_API_KEY
serve_start -m models/demo/demo-voice-q8_0.gguf -t models/demo/tokenizer.json || exit 1
result=0
node tests/server/clients/openai_client.mjs "$url" "$packages" "$scratch" tests/data/demo/ref-rms.wav || result=1

if command -v ffprobe >/dev/null; then
    for format in mp3 opus flac wav; do
        codec=$(ffprobe -v error -show_entries stream=codec_name,channels -of csv=p=0 "$scratch/speech.$format")
        echo "ffprobe: $format: $codec"
        case $format/$codec in
            mp3/mp3,1 | opus/opus,1 | flac/flac,1 | wav/pcm_s16le,1) ;;
            *) echo "FAILED ffprobe $format"; result=1 ;;
        esac
    done
else
    echo 'left out: ffprobe (not installed; libsndfile reads every format in test_sound_encoder)'
fi

if command -v curl >/dev/null; then
    curl -sf -m 60 -o "$scratch/curl.pcm" "$url/v1/audio/speech" -H "Authorization: Bearer $SLUICE_TEST_KEY" \
        -H 'Content-Type: application/json' \
        -d '{"model":"tts-1","voice":"alloy","input":"Hello there.","seed":11,"response_format":"pcm"}'
    cmp "$scratch/curl.pcm" "$scratch/speech.pcm" || { echo 'FAILED curl gets the same'; result=1; }
fi
serve_stop || { echo 'FAILED the server ended badly'; cat "$scratch/serve.err"; result=1; }
exit $result
