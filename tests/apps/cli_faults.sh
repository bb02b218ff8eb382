#!/bin/sh
# Every call of a simulated device fails once, the n-th of its kind for all n, while a text is spoken: the same sound
# comes out, or one line of what went wrong and no file at all (public failures G3-01, G3-05, G3-21, G3-26).
. tests/apps/check.sh
model=tests/data/tiny/tiny-f16.gguf
tokenizer=tests/data/tiny/tokenizer.json
N_MOST=40
n_failed_runs=0
n_good_runs=0

# speak OUTPUT DEVICE ARGS...: the status of the program; its messages are in $scratch/err.
speak() {
    output=$1 device=$2
    shift 2
    "$SLUICE_PROGRAM" say -q -m $model -t $tokenizer --threads 1 --seed 3 --max-frames 3 --device "$device" \
        -o "$output" "$@" 'Hello there.' 2>"$scratch/err" </dev/null
}
# One line that names the program and the device, and nothing left behind.
is_clean_failure() {
    [ "$1" -ge 1 ] && [ "$1" -le 99 ] && [ ! -e "$scratch/this.wav" ] && [ "$(wc -l <"$scratch/err")" = 1 ] &&
        grep -q '^sluice say: ' "$scratch/err"
}
# KIND:N failed or changed nothing.
is_as_it_should_be() {
    fault=$1
    shift
    rm -f "$scratch/this.wav"
    status=0
    speak "$scratch/this.wav" "sim:16M,$fault" "$@" || status=$?
    if [ "$status" = 0 ]; then
        n_good_runs=$((n_good_runs + 1))
        cmp "$scratch/whole.wav" "$scratch/this.wav"
    else
        n_failed_runs=$((n_failed_runs + 1))
        is_clean_failure "$status" || {
            printf 'status %s: ' "$status"
            cat "$scratch/err"
            false
        }
    fi
}

check_that spoken speak "$scratch/whole.wav" sim:16M
for kind in alloc upload copy event record wait pin read free; do
    n=1
    while [ $n -le $N_MOST ]; do
        before=$n_failed_runs
        check_that "fail_${kind}_$n" is_as_it_should_be "fail=$kind:$n"
        # Well behind the last call of the kind, nothing fails any more.
        [ "$n_failed_runs" = "$before" ] && [ $n -gt 5 ] && break
        n=$((n + 1))
    done
    check_that "lost_$kind" is_as_it_should_be "lost=$kind:2"
    check_that "lost_${kind}_late" is_as_it_should_be "lost=$kind:5"
done
check_that short_read is_as_it_should_be short=read:1
check_that short_read_late is_as_it_should_be short=read:3
check_that some_failed [ "$n_failed_runs" -gt 10 ]
check_that some_worked [ "$n_good_runs" -gt 10 ]
printf '%s runs failed cleanly, %s worked\n' "$n_failed_runs" "$n_good_runs"
check_done
