#!/bin/sh
# Speech in real control groups of version 2: with room for the weights beside the reserve, without, and in a group so
# small that the kernel takes weights back while they are in use. The samples are the same, and nobody is killed.
. tests/apps/check.sh
unset SLUICE_POPULATE LLAMA_MMAP_POPULATE
group=/sys/fs/cgroup/speech
model=$scratch/model.gguf
cp models/demo/demo-voice-q8_0.gguf "$model"
cp models/demo/tokenizer.json "$scratch/"
sync "$model"

# In a group with a memory.max of so many MiB.
speak() {
    mkdir $group && echo $(($1 << 20)) >$group/memory.max
    "$SLUICE_PROGRAM" drop "$model" >"$scratch/none"
    status=0
    # shellcheck disable=SC2016
    out=$(sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' $group "$SLUICE_PROGRAM" say -v --threads 1 -m "$model" \
        --seed 7 --max-frames 4 -o "$scratch/$1.wav" "Hi." 2>&1) || status=$?
    peak_mib=$(($(cat $group/memory.peak) >> 20))
    printf '| %s | %s | %s | %s |\n' "$1" "$status" "$peak_mib" "$(echo "$out" | grep 'present')"
    check_that "status_$1" [ $status = 0 ]
    check_that "killed_$1" grep -q '^oom_kill 0$' $group/memory.events
    check_that "peak_$1" [ $peak_mib -le "$1" ]
    n_full=$(sed -n 's/^max //p' $group/memory.events)
    rmdir $group
}

echo '| memory.max MiB | status | peak MiB | |'
echo '|---|---|---|---|'
speak 2304
check_that populated matches "*iB present (*, 0 B skipped*decided by cgroup memory.max ($group/memory.max)*" "$out"
speak 128
check_that skipped matches "*0 B present (*decided by cgroup memory.max ($group/memory.max)*" "$out"
check_that room_enough [ "$n_full" = 0 ]
speak 32
check_that no_room [ "$n_full" -gt 0 ]
for file in 128 32; do
    check_that "same_$file" cmp "$scratch/2304.wav" "$scratch/$file.wav"
done
check_done
