#!/bin/busybox sh
# shellcheck shell=dash
# The first process of the virtual machine that tools/test_vm.sh starts: brings up what the tests need, runs them, says
# on the console how they ended, and switches off.
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin HOME=/root TMPDIR=/tmp

set_up() {
    mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t devtmpfs devtmpfs /dev &&
        mkdir -p /dev/shm && mount -t tmpfs tmpfs /dev/shm &&
        mount -t cgroup2 cgroup2 /sys/fs/cgroup &&
        depmod && modprobe -a virtio_pci virtio_blk && mount -t ext4 /dev/vda /tmp
}

cd /sluice || exit 1
if set_up; then
    sh tests/vm/guest.sh
    echo "vm: ended with status $?"
else
    echo 'vm: could not be set up'
fi
umount /tmp
echo o >/proc/sysrq-trigger
sleep 60
