#!/bin/sh
# Budgets and policies change where weights are and when, never the sound: on a simulated device every budget from the
# smallest that works to one for everything gives the same bytes, and a smaller one is refused with that budget named.
# What is held at most is what was planned, or up to 5% less.
. tests/apps/check.sh
model=tests/data/tiny/tiny-f16.gguf
tokenizer=tests/data/tiny/tokenizer.json
text='The first sentence. And then the second one, which is longer.'

# say NAME STATUS STDERR OUTPUT ARGS...
say() {
    name=$1 want=$2 err=$3 output=$4
    shift 4
    check "$name" "$want" '' "$err" say -q -m $model -t $tokenizer --threads 1 --seed 3 --max-frames 6 -o "$output" \
        --device sim:16M "$@" "$text"
}
is_absent() { [ ! -e "$1" ]; }
# The peak in the trace of the last run against the plan of such a request.
is_as_planned() {
    columns=$(sed -n 's/.*"prompt_columns":\([0-9]*\).*/\1/p' "$scratch/stats.json")
    "$SLUICE_PROGRAM" plan -m $model --threads 1 --device sim:16M --frames 6 --prompt "$columns" \
        --overlay "$scratch/trace.json" "$@" >"$scratch/plan.txt" || return 1
    percent=$(sed -n 's/^  sim .* \([0-9]*\)\.[0-9]%.*/\1/p' "$scratch/plan.txt")
    [ -n "$percent" ] && [ "$percent" -ge 95 ] && ! grep -q 'more than planned' "$scratch/plan.txt"
}

say whole 0 '' "$scratch/whole.wav" --policy keep
for policy in swap keep hot auto; do
    for decode in together after; do
        what=${policy}_$decode
        options="--policy $policy --decode $decode"
        # The options are words.
        # shellcheck disable=SC2086
        say "refused_$what" 1 "*sim: the budget of 4096 bytes * policy $policy needs * bytes*" "$scratch/no.wav" --vram 4K $options
        check_that "nothing_is_left_$what" is_absent "$scratch/no.wav"
        floor=$(sed -n 's/.* needs \([0-9]*\) bytes.*/\1/p' "$scratch/err")
        # shellcheck disable=SC2086
        say "below_the_floor_$what" 1 "*needs $floor bytes*" "$scratch/no.wav" --vram $((floor - 1)) $options
        for budget in "$floor" $((floor * 5 / 4)) 16M; do
            # shellcheck disable=SC2086
            say "${what}_$budget" 0 '' "$scratch/this.wav" --vram "$budget" $options --trace "$scratch/trace.json" \
                --stats "$scratch/stats.json"
            check_that "same_bytes_${what}_$budget" cmp "$scratch/whole.wav" "$scratch/this.wav"
            # shellcheck disable=SC2086
            check_that "as_planned_${what}_$budget" is_as_planned --vram "$budget" $options
        done
    done
done
for options in --codec-cpu --fast-decoder-cpu --codebook-cpu '--gpu-layers 1' '--place codec.encoder=cpu'; do
    # shellcheck disable=SC2086
    say "placed$options" 0 '' "$scratch/this.wav" $options
    check_that "same_bytes_placed$options" cmp "$scratch/whole.wav" "$scratch/this.wav"
done
# Pieces of one text keep what they share: each unit is brought once, in a file and in a stream.
loads_each_once() {
    for unit in embed slow fast codec.decoder; do
        n=$(grep -o "\"name\":\"$unit\",\"ph\":\"X\",\"pid\":1,\"tid\":[0-9]*,\"cat\":\"load\"" "$scratch/trace.json" | wc -l)
        [ "$n" -eq 1 ] || return 1
    done
}
for policy in swap keep hot auto; do
    say "G3_27_file_$policy" 0 '' "$scratch/this.wav" --segment 24 --policy $policy --trace "$scratch/trace.json"
    check_that "G3_27_loads_$policy" loads_each_once
    "$SLUICE_PROGRAM" say -q -m $model -t $tokenizer --threads 1 --seed 3 --max-frames 6 --device sim:16M --segment 24 \
        --policy $policy --trace "$scratch/trace.json" --format wav -o - "$text" >"$scratch/stream.wav"
    check_that "G3_27_loads_stream_$policy" loads_each_once
    tail -c +45 "$scratch/this.wav" >"$scratch/file.pcm"
    tail -c +45 "$scratch/stream.wav" >"$scratch/stream.pcm"
    check_that "G3_27_same_sound_$policy" cmp "$scratch/file.pcm" "$scratch/stream.pcm"
done
check_done
