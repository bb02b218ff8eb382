#!/bin/sh
# Tests in real control groups of version 2, with kernels of Debian's in a virtual machine: a model of 4 GiB in groups
# of 3, 5 and 8 GiB, groups in groups, namespaces, memory that runs short, speech. The first kernel has no cachestat,
# the second has. The machine is emulated in software where /dev/kvm may not be used, so that it runs anywhere, and takes
# minutes.
#
#   tools/test_vm.sh [JOBS]
#
#   SLUICE_VM_SUITES      whose kernels, one after the other [bookworm bookworm-backports]
#   SLUICE_CGROUP_MIB, SLUICE_CGROUP_LIMITS, SLUICE_CGROUP_DATA   as of tests/apps/preload/cgroup.sh
set -eu
cd "$(dirname "$0")/.."
jobs=${1:-2}
guest_mib=9216
limit_s=1800
build='build-vulkan'
tests='test_os_cpu_quota test_os_page_cache test_cgroup test_cgroup_memory test_page_cache test_populate
    test_populate_run test_pressure test_ram_budget'

say() { printf '%s\n' "test_vm: $*" >&2; }
die() { say "NOT TESTED: $*"; exit 1; }

look_at_host() {
    [ "$(uname -sm)" = 'Linux x86_64' ] || die "the virtual machine is for Linux on x86_64, this is $(uname -sm)"
    free_mib=$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1024))
    [ $free_mib -ge $((guest_mib + 1024)) ] ||
        die "the virtual machine takes $guest_mib MiB of memory and 1 GiB must stay free, but $free_mib MiB are available"
    tools/setup.sh build test vm || die "see above what is missing; packaging/debian-packages.txt has the groups build, test and vm"
}

# A file, at the same place below $root; with the libraries that it needs.
copy_with_libraries() {
    mkdir -p "$root$(dirname "$2")"
    cp "$1" "$root$2"
    ldd "$1" | sed -n 's/^[^/]*\(\/[^ ]*\) (0x.*/\1/p' | while read -r library; do
        [ -e "$root$library" ] || { mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"; }
    done
}

# All that the machine has beside its disk: busybox, the kernel's modules, the programs and the tests.
make_root() {
    kernel=$1
    root=$scratch/root
    rm -rf "$root"
    mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/root" "$root/etc"
    echo 'root:x:0:0::/root:/bin/sh' >"$root/etc/passwd"
    cp "$kernel/bin/busybox" "$root/bin/"
    modules=$(cd "$kernel" && echo lib/modules/*)
    mkdir -p "$root/$modules/kernel/drivers"
    cp "$kernel/$modules"/modules.builtin "$kernel/$modules"/modules.order "$root/$modules/"
    cp -r "$kernel/$modules/kernel/drivers/virtio" "$kernel/$modules/kernel/drivers/block" "$root/$modules/kernel/drivers/"
    find "$root/$modules" -name '*.xz' -exec "$kernel/bin/busybox" unxz {} +
    for file in sluice libsluice-preload.so tests/shim_probe $tests; do
        [ -e "$build/$file" ] || file=tests/$file
        copy_with_libraries "$build/$file" "/sluice/build/$file"
    done
    copy_with_libraries /usr/bin/unshare /usr/bin/unshare
    for file in "$ggml"/lib/libggml-cpu-*.so; do
        copy_with_libraries "$file" "$file"
    done
    for file in tests/vm tests/apps/check.sh tests/apps/cli_doctor.sh tests/apps/preload/cgroup.sh models/demo; do
        mkdir -p "$root/sluice/$(dirname "$file")"
        cp -r "$file" "$root/sluice/$file"
    done
    cat >"$root/sluice/settings" <<EOF
export SLUICE_CGROUP_MIB=${SLUICE_CGROUP_MIB:-4096}
export SLUICE_CGROUP_LIMITS="${SLUICE_CGROUP_LIMITS:-3072 5120 8192}"
export SLUICE_CGROUP_DATA=${SLUICE_CGROUP_DATA:-holes}
EOF
    cp tests/vm/init.sh "$root/init"
    (cd "$root" && find . | "$kernel/bin/busybox" cpio -o -H newc 2>/dev/null) | gzip -1 >"$scratch/initrd"
}

# Zeros that are written to the disk take no room on this one.
boot() {
    rm -f "$scratch/disk"
    truncate -s 8G "$scratch/disk"
    PATH=$PATH:/sbin:/usr/sbin mkfs.ext4 -q -F "$scratch/disk"
    timeout --foreground $limit_s qemu-system-x86_64 -accel kvm -accel tcg -cpu max,-cx16 -machine q35 -m $guest_mib -smp 2 -nodefaults \
        -no-reboot -display none -serial stdio -kernel "$1"/boot/vmlinuz-* -initrd "$scratch/initrd" \
        -append 'console=ttyS0 quiet panic=-1 psi=1' \
        -drive "file=$scratch/disk,if=virtio,format=raw,cache=unsafe,discard=unmap,detect-zeroes=unmap" \
        </dev/null 2>"$scratch/qemu.err" | sed -u 's/\r$//' | tee "$scratch/console"
}

look_at_host
# The usual ggml is made for this processor, which the virtual machine does not have; the ready-made one finds out.
ggml=$(tools/fetch_ggml.sh --ready) || die "the ready-made ggml could not be fetched"
cmake --preset vulkan --log-level=NOTICE -DSLUICE_GGML_DIR="$ggml"
# Word splitting is wanted: one argument a target.
# shellcheck disable=SC2086
cmake --build "$build" -j "$jobs" --target sluice_cli sluice_preload shim_probe $tests
scratch=$(mktemp -d "${TMPDIR:-/tmp}/sluice-vm-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM HUP
failed=
for suite in ${SLUICE_VM_SUITES:-bookworm bookworm-backports}; do
    kernel=$(tools/fetch_kernel.sh "$suite") || die "there is no kernel of $suite"
    make_root "$kernel"
    boot "$kernel" || true
    if ! grep -q '^vm: Linux' "$scratch/console"; then
        cat "$scratch/qemu.err" >&2
        die "the virtual machine with the kernel of $suite did not start"
    fi
    grep -q '^vm: ended with status 0$' "$scratch/console" || failed="$failed $suite"
    grep -q '^vm: ended' "$scratch/console" || say "with the kernel of $suite it broke off, or took more than $limit_s s"
done
[ -z "$failed" ] || { say "failed with the kernel of:$failed"; exit 1; }
say 'all passed'
