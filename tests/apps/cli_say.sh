#!/bin/sh
# sluice say on the tiny model: what it writes, what it refuses, and that a failure leaves no file behind.
. tests/apps/check.sh
model=tests/data/tiny/tiny-f16.gguf
tokenizer=tests/data/tiny/tokenizer.json
wav=$scratch/out.wav

# say NAME STATUS STDERR ARGS...: speaks at most 4 frames with the tiny model.
say() {
    name=$1 want=$2 message=$3
    shift 3
    check "$name" "$want" '' "$message" say -m $model -t $tokenizer --threads 1 --max-frames 4 "$@"
}
holds() { [ "$(head -c "$2" "$1" | tail -c 4)" = "$3" ]; }
is_absent() { [ ! -e "$1" ]; }

say speaks 0 '*' --seed 7 -o "$wav" 'Hello there.'
check_that wav_header holds "$wav" 4 RIFF
check_that wav_length [ "$(wc -c <"$wav")" -gt 44 ]
say quiet 0 '' -q --seed 7 -o "$scratch/again.wav" 'Hello there.'
check_that same_seed_same_bytes cmp "$wav" "$scratch/again.wav"
say route_of_loads 0 '*residency: unit slow: * KiB to sim in * ms, * GB/s by [pmr]*, [0-9]* stall*' -v --seed 7 --device sim:64M \
    -o "$scratch/moved.wav" 'Hello there.'
check_that moved_is_the_same cmp "$wav" "$scratch/moved.wav"
say other_seed 0 '' -q --seed 8 -o "$scratch/other.wav" 'Hello there.'
check_that other_seed_other_bytes [ "$(cksum <"$wav")" != "$(cksum <"$scratch/other.wav")" ]
say with_codes 0 '' -q --seed 7 --codes-out "$scratch/codes.npy" --stats "$scratch/stats.json" -o "$wav" 'Hello there.'
check_that npy_header holds "$scratch/codes.npy" 5 NUMP
for key in audio_s wall_s first_audio_s rtf peak_rss_bytes; do
    check_that "stats_have_$key" grep -q "\"$key\":[0-9]" "$scratch/stats.json"
done
check codes_in 0 '' '' say -q -m $model --codes-in "$scratch/codes.npy" -o "$scratch/decoded.wav"
check_that decoded_is_the_same cmp "$wav" "$scratch/decoded.wav"
printf 'Hello there.' >"$scratch/text"
say text_file 0 '' -q --seed 7 -f "$scratch/text" -o "$scratch/file.wav"
check_that text_file_is_the_same cmp "$wav" "$scratch/file.wav"
"$SLUICE_PROGRAM" say -q -m $model -t $tokenizer --threads 1 --max-frames 4 --seed 7 --format pcm -o - 'Hello there.' \
    >"$scratch/stream.pcm"
tail -c +45 "$wav" >"$scratch/file.pcm"
check_that stream_is_the_same cmp "$scratch/file.pcm" "$scratch/stream.pcm"

# An output that cannot be made, and one that fails on the way: the old file stays, nothing else appears.
mkdir "$scratch/only"
printf old >"$scratch/only/old.wav"
say bad_text_keeps_file '[12]' '*not UTF-8*0xff*' -o "$scratch/only/old.wav" "$(printf 'a\377')"
say empty_text '[12]' '*nothing to speak*' -o "$scratch/only/old.wav" ''
say blank_text '[12]' '*nothing to speak*' -o "$scratch/only/old.wav" '   '
check_that old_file_is_there [ "$(cat "$scratch/only/old.wav")" = old ]
check_that nothing_else_is_there [ "$(ls -A "$scratch/only")" = old.wav ]
say no_folder 1 '*none/x.wav*' -o "$scratch/none/x.wav" hi
say into_folder '[12]' '*directory*' -o "$scratch" hi
say full_disk 1 '*/dev/full*No space left*' -q -o /dev/full hi

# Files that are no models, tokenizers, voices, recordings or codes.
: >"$scratch/empty"
head -c 50000 $model >"$scratch/cut.gguf"
mkfifo "$scratch/fifo"
for bad in empty cut.gguf fifo nowhere .; do
    check "model_$bad" '[12]' '' 'sluice say: *' say -m "$scratch/$bad" -t $tokenizer -o "$scratch/x.wav" hi
    check "tokenizer_$bad" '[12]' '' 'sluice say: *' say -m $model -t "$scratch/$bad" -o "$scratch/x.wav" hi
    check "codes_$bad" '[12]' '' 'sluice say: *' say -m $model --codes-in "$scratch/$bad" -o "$scratch/x.wav"
    check "voice_$bad" '[12]' '' 'sluice say: *' say -m $model -t $tokenizer --voice "$scratch/$bad" -o "$scratch/x.wav" hi
    check "ref_$bad" '[12]' '' 'sluice say: *' say -m $model -t $tokenizer --ref-audio "$scratch/$bad" --ref-text words \
        -o "$scratch/x.wav" hi
    check "text_$bad" '[12]' '' 'sluice say: *' say -m $model -t $tokenizer -f "$scratch/$bad" -o "$scratch/x.wav"
    check_that "no_file_after_$bad" is_absent "$scratch/x.wav"
done

usage='; see '\''sluice say --help'\'
check no_model 2 '' "sluice say: *-m MODEL*$usage" say hi
say no_text 2 "sluice say: nothing to say*$usage" -o "$wav"
say unknown 2 "sluice say: unknown option '--tempreature' (did you mean '--temperature'?)$usage" --tempreature 1 hi
say missing_value 2 "sluice say: --seed needs a value N$usage" hi --seed
say option_as_value 2 "sluice say: --output needs a value FILE, but the option '--seed' follows *$usage" -o --seed 5 hi
say bad_number 2 "sluice say: --seed: 'x' is not a whole number$usage" --seed x hi
say out_of_range 2 "sluice say: --top-p: '1.5' is not a number from 0 to 1$usage" --top-p 1.5 hi
say bad_format 2 "sluice say: --format: 'wave' is not one of wav, *$usage" --format wave hi
say twice 2 "sluice say: --seed is given twice$usage" --seed 1 --seed 2 hi
say greedy_and_temperature 2 "sluice say: --greedy and --temperature contradict each other*$usage" --greedy --temperature 1 hi
say voice_and_ref 2 "sluice say: --voice and --ref-audio contradict each other*$usage" --voice a --ref-audio b --ref-text c hi
say ref_without_text 2 "sluice say: --ref-audio has no effect without --ref-text$usage" --ref-audio b hi
say two_texts 2 "sluice say: 'there' is one TEXT too many*$usage" hello there
cp $model "$scratch/model.gguf"
for out in "$scratch/model.gguf" "$scratch/./model.gguf"; do
    check output_is_model 2 '' '*--model and --output are the same file*' say -m "$scratch/model.gguf" -t $tokenizer -o "$out" hi
done
check_that model_is_still_there cmp -s $model "$scratch/model.gguf"
say output_is_text 2 '*the text and --output are the same file*' -f "$scratch/text" -o "$scratch/text"
say output_is_stats 2 '*--output and --stats are the same file*' -o "$wav" --stats "$wav" hi
say two_streams 2 '*--output and --codes-out are the same file*' -o - --codes-out - hi
say stats_nowhere 1 '*--stats */none/s.json: its folder*' -o "$wav" --stats "$scratch/none/s.json" hi
say codes_and_seed 2 '*--codes-in and --seed contradict*' --codes-in "$scratch/codes.npy" --seed 1 -o "$wav"
say upper_case_extension 0 '' -q -o "$scratch/x.MP3" hi
check_that mp3_is_no_wav [ "$(head -c 4 "$scratch/x.MP3")" != RIFF ]
say unknown_extension 0 '*warning: --output ends in*.xyz*writing wav*' -o "$scratch/x.xyz" hi
say text_before_the_first_tag 0 '' -q --stats "$scratch/stats.json" -o "$wav" 'Hello. <|speaker:0|>Hi.'
check_that text_before_the_first_tag_is_spoken grep -q '"segments":2' "$scratch/stats.json"
say bad_rate '[12]' '*5 Hz*' --sample-rate 5 -o "$wav" hi

# Whether a program has written a kilobyte of speech into a file here, which has no name where the system can do that.
is_speaking() {
    for fd in /proc/"$1"/fd/*; do
        case $(readlink "$fd") in
            "$scratch"/book) ;;
            "$scratch"/*) [ "$(stat -L -c %s "$fd")" -lt 1024 ] || return 0 ;;
        esac
    done
    return 1
}

# A book is spoken, and the program gets these signals while it speaks; then it has this status.
signal_in_speech() {
    want_status=$1
    shift
    rm -f "$wav"
    "$SLUICE_PROGRAM" say -q -m $model -t $tokenizer --threads 1 --segment 60 -f "$scratch/book" -o "$wav" &
    pid=$!
    # A minute is more than any build needs.
    for _ in $(seq 600); do
        ! is_speaking "$pid" || break
        sleep 0.1
    done
    named=$(remains)
    for signal in "$@"; do
        kill -"$signal" "$pid"
    done
    status=0
    wait "$pid" 2>"$scratch/killed" || status=$?
    [ "$status" = "$want_status" ]
}

# Names that begin with a dot where the sound goes.
remains() {
    find "$scratch" -name '.*' -type f
}

for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do printf 'One more sentence of a book that has no end. '; done >"$scratch/page"
for _ in 1 2 3 4 5 6 7 8 9 10; do cat "$scratch/page" "$scratch/page" "$scratch/page" "$scratch/page"; done >"$scratch/chapter"
cat "$scratch/chapter" "$scratch/chapter" "$scratch/chapter" "$scratch/chapter" >"$scratch/book"
# A termination (as an interrupt, which background jobs of a shell ignore) leaves a valid, shorter file and status 130,
# also when it comes twice, as timeout(1) sends it; one before the first sound leaves nothing.
for signals in TERM HUP 'TERM TERM'; do
    # shellcheck disable=SC2086
    check_that "ends_with_130_$signals" signal_in_speech 130 $signals
    check_that "interrupted_file_is_whole_$signals" [ "$(($(wc -c <"$wav") % 64))" = 44 ]
    check_that "nothing_else_remains_$signals" [ -z "$(remains)" ]
done
# What cannot be caught: nothing is left, unless this system gives files a name while they are written.
check_that killed signal_in_speech 137 KILL
check_that no_file_of_the_killed [ ! -e "$wav" ]
check_that nothing_remains_of_the_killed [ "$(remains)" = "$named" ]
check_done
