#!/bin/sh
# All that is tested in the virtual machine, one part after the other. The file settings has what cgroup.sh is to use.
# shellcheck source=/dev/null
. ./settings
export SLUICE_PROGRAM="$PWD/build/sluice" SLUICE_SHIM_PROBE="$PWD/build/tests/shim_probe"
n_failed=0

part() {
    name=$1
    shift
    begin=$(cut -d. -f1 /proc/uptime)
    status=0
    "$@" >"/tmp/$name.log" 2>&1 || status=$?
    took=$(($(cut -d. -f1 /proc/uptime) - begin))
    case $status in
        0) printf 'vm: %-22s ok, %s s\n' "$name" "$took" ;;
        77) printf 'vm: %-22s skipped\n' "$name" ;;
        *)
            n_failed=$((n_failed + 1))
            printf 'vm: %-22s FAILED with status %s, %s s\n' "$name" "$status" "$took"
            ;;
    esac
    # Tables, and all that went wrong or was left out.
    if [ "$status" = 0 ]; then
        grep -e '^|' -e SKIPPED -e ' cases, ' "/tmp/$name.log"
    else
        cat "/tmp/$name.log"
    fi
}

echo "vm: Linux $(uname -r), $(sed -n 's/MemTotal: *//p' /proc/meminfo) of memory"
echo '+memory +cpu' >/sys/fs/cgroup/cgroup.subtree_control || exit 1
for test in build/tests/test_*; do
    part "$(basename "$test")" "$test"
done
part cli_doctor sh tests/apps/cli_doctor.sh
part speech sh tests/vm/speech.sh
part cgroup_v2 sh tests/vm/cgroup_v2.sh
part cgroup sh tests/apps/preload/cgroup.sh
echo "vm: $n_failed parts failed"
[ $n_failed = 0 ]
