#!/bin/sh
# Populating inside real control groups: never killed, never above the limit less the reserve, and the line names the
# bound that decided. Limits are above the reserve of 2 GiB, which costs nothing: a model of 64 MiB fits into one and
# not into the other. A row of a table is printed for each.
#
#   SLUICE_CGROUP_MIB=4096 SLUICE_CGROUP_LIMITS="3072 5120 8192" SLUICE_CGROUP_DATA=real cgroup.sh
#
# does the same with a real model of 4 GiB on a disk, and shows beside it what MAP_POPULATE of the whole file does.
# SLUICE_CGROUP_DATA is holes, zeros (written ones, which the disk must give back) or real: random bytes.
. tests/apps/check.sh
unset SLUICE_POPULATE LLAMA_MMAP_POPULATE
: "${SLUICE_SHIM_PROBE:?a program that maps files}"
mib=${SLUICE_CGROUP_MIB:-64}
limits=${SLUICE_CGROUP_LIMITS:-2096 2304}
reserve_mib=2048
slack_mib=24 # programs, page tables, what the kernel counts in batches

# The folder of this process's group, where a child can be made. In version 2 a group with processes gives its children
# no limits, so the next one above that does is taken.
v1=$(sed -n 's/^[0-9]*:\([^:]*,\)\{0,1\}memory\(,[^:]*\)\{0,1\}:\(.*\)/\3/p' /proc/self/cgroup)
v2=$(sed -n 's/^0::\(.*\)/\1/p' /proc/self/cgroup)
v1=${v1%/} v2=${v2%/}
if [ -e "/sys/fs/cgroup/memory$v1/memory.limit_in_bytes" ]; then
    group=/sys/fs/cgroup/memory$v1/sluice-test-$$
    limit=memory.limit_in_bytes peak=memory.max_usage_in_bytes events=memory.oom_control
    bound_name='cgroup memory.limit_in_bytes'
else
    while [ -n "$v2" ] && ! grep -qw memory "/sys/fs/cgroup$v2/cgroup.subtree_control" 2>"$scratch/none"; do
        v2=${v2%/*}
    done
    group=/sys/fs/cgroup$v2/sluice-test-$$
    limit=memory.max peak=memory.peak events=memory.events bound_name='cgroup memory.max'
fi
skip() { echo "skipped: $*"; exit 77; }
[ -e "$(dirname "$group")/cgroup.procs" ] || skip "there are no control groups at $(dirname "$group")"
is_limited=no
if mkdir "$group" 2>"$scratch/none"; then
    ! echo $((2100 << 20)) 2>"$scratch/none" >"$group/$limit" || is_limited=yes
    [ -e "$group/$peak" ] || is_limited=no
    rmdir "$group"
fi
[ $is_limited = yes ] || skip "no control group with $limit and $peak can be made in $(dirname "$group")"
trap 'rmdir "$group" 2>"$scratch/none"; rm -rf "$scratch"' EXIT

model=$scratch/model.gguf
"$SLUICE_SHIM_PROBE" make "$model" 3 $((mib / 4)) $((mib / 4)) $((mib / 2))
case ${SLUICE_CGROUP_DATA:-holes} in
    real) source=/dev/urandom ;;
    zeros) source=/dev/zero ;;
    *) source= ;;
esac
if [ -n "$source" ]; then
    begin=$(($(stat -c %s "$model") - (mib << 20)))
    head -c "$begin" "$model" >"$scratch/head"
    { cat "$scratch/head" && head -c $((mib << 20)) "$source"; } >"$model"
    sync "$model"
fi

# In a new group with this limit of MiB: a command. Leaves its status, its peak in MiB, how many the kernel killed, and
# its output.
inside() {
    mkdir "$group" && echo $(($1 << 20)) >"$group/$limit"
    shift
    "$SLUICE_PROGRAM" drop "$model" >"$scratch/dropped"
    status=0
    sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@" >"$scratch/out" 2>&1 || status=$?
    peak_mib=$(($(cat "$group/$peak") >> 20))
    killed=$(sed -n 's/^oom_kill //p' "$group/$events")
    "$SLUICE_PROGRAM" drop "$model" >"$scratch/dropped"
    rmdir "$group"
    out=$(cat "$scratch/out")
}

echo '| limit MiB | model MiB | who | status | peak of the group MiB | |'
echo '|---|---|---|---|---|---|'
for mib_limit in $limits; do
    reserve=$reserve_mib
    [ $((mib_limit / 16)) -le $reserve ] || reserve=$((mib_limit / 16))
    most=$((mib_limit - reserve + slack_mib))
    inside "$mib_limit" "$SLUICE_PROGRAM" warm -q --units none "$model"
    echo "| $mib_limit | $mib | sluice warm | $status | $peak_mib | $(echo "$out" | head -1) |"
    check_that "killed_$mib_limit" [ "$killed" = 0 ]
    check_that "peak_$mib_limit" [ "$peak_mib" -le "$most" ]
    check_that "bound_$mib_limit" matches "*decided by $bound_name ($group/$limit)*" "$out"
    if [ $((mib + slack_mib)) -le $((mib_limit - reserve)) ]; then
        check_that "populated_$mib_limit" matches "*iB present (*, 0 B skipped*" "$out"
        check_that "status_$mib_limit" [ $status = 0 ]
    else
        check_that "skipped_$mib_limit" matches '*0 B present*' "$out"
        check_that "status_$mib_limit" [ $status = 1 ]
    fi
    inside "$mib_limit" "$SLUICE_PROGRAM" run --wait -- "$SLUICE_SHIM_PROBE" whole "$model"
    echo "| $mib_limit | $mib | sluice run, a program with MAP_POPULATE | $status | $peak_mib | $(echo "$out" | grep 'present' | sed 's/.*gguf: //') |"
    check_that "run_killed_$mib_limit" [ "$killed" = 0 ]
    check_that "run_peak_$mib_limit" [ "$peak_mib" -le "$most" ]
    check_that "run_status_$mib_limit" [ $status = 0 ]
    inside "$mib_limit" "$SLUICE_SHIM_PROBE" whole "$model"
    echo "| $mib_limit | $mib | the same program alone | $status | $peak_mib | |"
done
check_done
