#!/bin/sh
# sluice doctor on machines that folders stand for; the derivation itself is tested in tests/source.
. tests/apps/check.sh
unset SLUICE_POPULATE LLAMA_MMAP_POPULATE
root=$scratch/machine

put() {
    mkdir -p "$root$(dirname "$1")"
    printf '%b' "$2" >"$root$1"
}
lay_out() {
    rm -rf "$root"
    mkdir -p "$root"
    put /proc/meminfo 'MemTotal: 33554432 kB\nMemFree: 1000 kB\nMemAvailable: 16777216 kB\n'
}
v2='35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n'

check here 0 'RAM budget *Derivation*MemTotal (/proc/meminfo)*' '' doctor
check G3_08_devices 0 '*Devices*name *kind *memory *free *largest *cpu *host *--device auto is *' '' doctor
check here_json 0 '{"version":*"ram":{"known":*"cpus":*}' '' doctor --json
check devices_json 0 '*"say":{*"device":"*"devices":?{"name":*"kind":"host",*"auto":*}?}' '' doctor --json
check help 0 'Usage: sluice doctor *--sysroot DIR*--json*' '' doctor --help

lay_out
check host 0 'RAM budget    14.0 GiB (15032385536 bytes), decided by host MemAvailable (/proc/meminfo)*' '' \
    doctor --sysroot "$root"
check host_json 0 '*"budget_bytes":15032385536,"available_bytes":17179869184,"limit_bytes":null,"total_bytes":34359738368,"decided_by":"host MemAvailable","source":"/proc/meminfo"*' '' \
    doctor --sysroot "$root" --json
check slash 0 '*"budget_bytes":15032385536,*' '' doctor --json --sysroot "$root/"
check no_cpus 0 '*"cpus":null,"cpu_quota":null,*' '' doctor --sysroot "$root" --json
check given 0 'RAM budget    1.0 GiB (1073741824 bytes), decided by given (--ram)*' '' \
    doctor --sysroot "$root" --ram 1G
check given_nothing 0 'RAM budget    0 B (0 bytes)*Population    nothing fits*' '' doctor --sysroot "$root" --ram 0

put /proc/self/cgroup '0::/user.slice/app.slice/job-1.scope\n'
put /proc/self/mountinfo "$v2"
put /sys/fs/cgroup/user.slice/app.slice/job-1.scope/memory.max 'max\n'
put /sys/fs/cgroup/user.slice/app.slice/memory.max '12884901888\n'
put /sys/fs/cgroup/user.slice/app.slice/memory.current '536870912\n'
put /sys/fs/cgroup/cpu.max '150000 100000\n'
check G2_01_ancestor 0 '*"budget_bytes":10200547328,"available_bytes":12348030976,"limit_bytes":12884901888,*"decided_by":"cgroup memory.max","source":"/sys/fs/cgroup/user.slice/app.slice/memory.max"*"cpu_quota":2,*' '' \
    doctor --sysroot "$root" --json
check G2_01_ancestor_text 0 'RAM budget    9.5 GiB (10200547328 bytes), decided by cgroup memory.max (/sys/fs/cgroup/user.slice/app.slice/memory.max)*12884901888  limit (/sys/fs/cgroup/user.slice/app.slice/memory.max)*' '' \
    doctor --sysroot "$root"

put /sys/fs/cgroup/user.slice/app.slice/job-1.scope/memory.max '12x\n'
check G2_03_absurd 0 '*warning: holds no limit that makes sense*job-1.scope/memory.max*' '' doctor --sysroot "$root"

lay_out
put /proc/meminfo ''
check G2_21_unknown 0 'RAM budget    unknown, so nothing is populated unless you give --ram BYTES*' '' \
    doctor --sysroot "$root"
check G2_21_unknown_json 0 '*"known":false,*"budget_bytes":0,"available_bytes":null,*"decided_by":null,"source":null,"bounds":[],*"populate":false,*' '' \
    doctor --sysroot "$root" --json
rm -rf "$root/proc"
check empty_folder 0 'RAM budget    unknown*' '' doctor --sysroot "$root"

lay_out
export SLUICE_POPULATE=0
check switched_off 0 '*Population    off: the environment has SLUICE_POPULATE set*' '' doctor --sysroot "$root"
check switched_off_json 0 '*"populate":false,"populate_switched_off_by":"SLUICE_POPULATE"*' '' doctor --sysroot "$root" --json
unset SLUICE_POPULATE
export LLAMA_MMAP_POPULATE=0
check switched_off_too 0 '*"populate_switched_off_by":"LLAMA_MMAP_POPULATE"*' '' doctor --sysroot "$root" --json
unset LLAMA_MMAP_POPULATE

check no_folder 1 '' "sluice doctor: --sysroot *nowhere: not found, need a folder *" doctor --sysroot "$scratch/nowhere"
check no_directory 2 '' "sluice doctor: --sysroot *meminfo: not a folder, *" doctor --sysroot "$root/proc/meminfo"
check operand 2 '' "sluice doctor: *x*" doctor x
check no_number 2 '' "sluice doctor: *--ram*" doctor --ram much

# The JSON is JSON, whatever a name holds.
if command -v python3 >"$scratch/which"; then
    lay_out
    put /proc/self/cgroup '0::/q"uo\\xy\n'
    put /proc/self/mountinfo "$v2"
    mkdir -p "$root/sys/fs/cgroup/q\"uo\\xy"
    printf 4294967296 >"$root/sys/fs/cgroup/q\"uo\\xy/memory.max"
    check quoted 0 '*"limit_bytes":4294967296,*' '' doctor --sysroot "$root" --json
    check_that quoted_is_json python3 -m json.tool "$scratch/out" "$scratch/pretty"
fi
check_done
