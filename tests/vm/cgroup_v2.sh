#!/bin/sh
# Control groups of version 2 of a real kernel, as root, from the group at the top: groups in groups, limits of both
# kinds, namespaces, mounts of a part, and what happens when memory runs short. Rows of a table are printed.
. tests/apps/check.sh
unset SLUICE_POPULATE LLAMA_MMAP_POPULATE
: "${SLUICE_SHIM_PROBE:?a program that writes models}"
top=/sys/fs/cgroup
slack_mib=40 # the program itself
unlimited=max

mib() { echo $(($1 << 20)); }
put() { echo "$2" >"$top/$1"; }

# A command in the group $1 of which /proc/self/cgroup tells.
# shellcheck disable=SC2016
inside() {
    group=$1
    shift
    sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$top/$group" "$@"
}

# A value of the budget in what doctor said.
said() {
    ram=${told#*'"ram":{'}
    printf '%s' "${ram%%'"bounds"'*}" | sed -n "s/.*\"$1\":\"\{0,1\}\([^\",]*\).*/\1/p"
}

# In $told is what doctor --json says: it must name this bound of so many MiB, and leave so many MiB.
expect() {
    case=$1 bound=$2 source=$3 limit_mib=$4 budget_mib=$5
    found_mib=$(($(said budget_bytes) >> 20))
    printf '| %s | %s (%s) | %s | %s |\n' "$case" "$(said decided_by)" "$(said source)" "$limit_mib" "$found_mib"
    check_that "${case}_bound" [ "$(said decided_by) $(said source)" = "$bound $source" ]
    check_that "${case}_limit" [ "$(said limit_bytes)" = "$(mib "$limit_mib")" ]
    check_that "${case}_budget" [ "$found_mib" -le "$budget_mib" ]
    check_that "${case}_budget_least" [ "$found_mib" -ge $((budget_mib - slack_mib)) ]
}

ask() {
    told=$(inside "$@" "$SLUICE_PROGRAM" doctor --json)
}

# Nobody was killed in either group, nor held up at its memory.high.
expect_peace() {
    case=$1
    for folder in outer outer/inner; do
        check_that "${case}_killed" grep -q '^oom_kill 0$' "$top/$folder/memory.events"
        check_that "${case}_high" grep -q '^high 0$' "$top/$folder/memory.events"
    done
}

model=$scratch/model.gguf
large=$scratch/large.gguf
"$SLUICE_SHIM_PROBE" make "$model" 3 128 128 256
"$SLUICE_SHIM_PROBE" make "$large" 3 1024 1024 2048
mkdir "$top/outer" && put outer/cgroup.subtree_control '+memory +cpu' && mkdir "$top/outer/inner"

echo '| where | decided by | limit MiB | budget MiB |'
echo '|---|---|---|---|'

told=$("$SLUICE_PROGRAM" doctor --json)
check_that top [ "$(said decided_by)" = 'host MemAvailable' ]
check_that top_says matches '*no memory limit of a control group is known*' "$told"

put outer/memory.max "$(mib 8192)"
put outer/memory.high "$(mib 3072)"
put outer/inner/memory.max "$(mib 5120)"
ask outer/inner
expect high_above 'cgroup memory.high' $top/outer/memory.high 3072 1024

# What fits below the lower limit above is read, what does not is not; nobody is held up.
out=$(inside outer/inner "$SLUICE_PROGRAM" warm -q --units none "$model" 2>&1)
check_that fits matches '512.0 MiB present *, 0 B skipped; *' "$out"
check_that fits_cached matches '*(100.0%)*' "$("$SLUICE_PROGRAM" cached "$model")"
check_that fits_peak [ $(($(cat $top/outer/memory.peak) >> 20)) -le $((1024 + slack_mib)) ]
ask outer/inner
expect own_cache 'cgroup memory.high' $top/outer/memory.high 3072 1024
out=$(inside outer/inner "$SLUICE_PROGRAM" warm -q --units none "$large" 2>&1)
check_that too_large matches "*decided by cgroup memory.high ($top/outer/memory.high)*" "$out"
check_that too_large_peak [ $(($(cat $top/outer/memory.peak) >> 20)) -le $((1024 + slack_mib)) ]
expect_peace peace

put outer/memory.high $unlimited
ask outer/inner
expect own_max 'cgroup memory.max' $top/outer/inner/memory.max 5120 3072
put outer/inner/memory.high "$(mib 2560)"
ask outer/inner
expect own_high 'cgroup memory.high' $top/outer/inner/memory.high 2560 512
put outer/inner/memory.high $unlimited
put outer/memory.max "$(mib 4096)"
ask outer/inner
expect max_above 'cgroup memory.max' $top/outer/memory.max 4096 2048
put outer/memory.max $unlimited

# Memory that is no file's cannot be taken back, whether this group holds it or another one below the same limit.
inside outer/inner dd if=/dev/zero of=/dev/shm/held bs=1M count=256 2>"$scratch/none"
ask outer/inner
expect held 'cgroup memory.max' $top/outer/inner/memory.max 5120 $((3072 - 256))
rm /dev/shm/held
mkdir $top/outer/other
inside outer/other dd if=/dev/zero of=/dev/shm/held bs=1M count=256 2>"$scratch/none"
put outer/memory.max "$(mib 4096)"
ask outer/inner
expect held_by_other 'cgroup memory.max' $top/outer/memory.max 4096 $((2048 - 256))
rm /dev/shm/held
rmdir $top/outer/other
put outer/memory.max $unlimited

# Groups without files of memory: the controller is not handed down, or its tasks are threads of the group above.
mkdir $top/outer/inner/plain
ask outer/inner/plain
expect no_files 'cgroup memory.max' $top/outer/inner/memory.max 5120 3072
put outer/inner/plain/cgroup.type threaded
# shellcheck disable=SC2016
told=$(inside outer/inner sh -c 'echo $$ >"$0/cgroup.threads" && exec "$@"' $top/outer/inner/plain \
    "$SLUICE_PROGRAM" doctor --json)
expect threaded 'cgroup memory.max' $top/outer/inner/memory.max 5120 3072
rmdir $top/outer/inner/plain

mkdir "$top/outer/a b:c"
put 'outer/a b:c/memory.max' "$(mib 2304)"
ask 'outer/a b:c'
expect odd_name 'cgroup memory.max' "$top/outer/a b:c/memory.max" 2304 256

# A container's view: its own namespace and mount, itself in a group below; a mount of its part alone, as without
# namespaces; and a namespace for which nobody mounted anew: where the group is cannot be known then, which is said.
in_mount() {
    inside "$1" /usr/bin/unshare "$2" sh -c "$3
        exec \"\$0\" doctor --json" "$SLUICE_PROGRAM"
}
told=$(in_mount outer/inner -Cm "umount $top && mount -t cgroup2 cgroup2 $top")
expect namespace 'cgroup memory.max' $top/memory.max 5120 3072
told=$(in_mount outer/inner -Cm "umount $top && mount -t cgroup2 cgroup2 $top && mkdir $top/sub && echo \$\$ >$top/sub/cgroup.procs &&
    echo +memory >$top/cgroup.subtree_control && echo $(mib 2304) >$top/sub/memory.max")
expect namespace_sub 'cgroup memory.max' $top/sub/memory.max 2304 256
put outer/inner/cgroup.subtree_control -memory
rmdir $top/outer/inner/sub
told=$(in_mount outer/inner -m "mount --bind $top/outer/inner $top")
expect bind_mount 'cgroup memory.max' $top/memory.max 5120 3072
told=$(in_mount 'outer/a b:c' -m "mount --bind '$top/outer/a b:c' $top")
expect bind_mount_odd_name 'cgroup memory.max' $top/memory.max 2304 256
told=$(in_mount outer/inner -C :)
check_that not_mounted matches '*the path leads out of the mount*"warning":true*' "$told"
rmdir "$top/outer/a b:c"

put outer/cpu.max '150000 100000'
told=$(inside outer/inner "$SLUICE_PROGRAM" doctor --json)
check_that cpu_quota matches '*"cpu_quota":2,*' "$told"
put outer/cpu.max 'max 100000'

# Somebody lowers the limit while the model is read: it stops, says why, and nobody is killed. That goes by each of the
# kernel's reports alone, too, for a budget that was given.
lower() {
    while [ "$(cat $top/outer/inner/memory.current)" -lt $(($1 + $(mib 32))) ]; do
        usleep 10000
    done
    put outer/inner/memory.high "$(mib 16)"
}
run_short() {
    case=$1 hide=$2 why=$3
    shift 3
    "$SLUICE_PROGRAM" drop "$large" >"$scratch/none"
    put outer/inner/memory.high $unlimited
    lower "$(cat $top/outer/inner/memory.current)" &
    status=0
    # shellcheck disable=SC2016
    out=$(inside outer/inner /usr/bin/unshare -m sh -c 'for i in $0; do mount --bind /dev/null "$i"; done; exec "$@"' \
        "$hide" "$SLUICE_PROGRAM" warm -q --units none "$@" "$large" 2>&1) || status=$?
    wait
    echo "| $case | $(echo "$out" | grep 'memory ran short') |" | head -n 1
    check_that "${case}_status" [ $status = 1 ]
    check_that "${case}_says" matches "*memory ran short, so it stopped ($why*" "$out"
    check_that "${case}_killed" grep -q '^oom_kill 0$' $top/outer/inner/memory.events
}
put outer/inner/memory.max "$(mib 8192)"
host=/proc/pressure/memory stalls=$top/outer/inner/memory.pressure events=$top/outer/inner/memory.events
echo '| in trouble | said |'
echo '|---|---|'
run_short by_anything '' /
run_short by_host "$stalls $events" "$host: " --ram 8G
run_short by_stalls "$host $events" "$stalls: " --ram 8G
run_short by_events "$host $stalls" "$events: high rose by " --ram 8G
rmdir $top/outer/inner $top/outer
check_done
