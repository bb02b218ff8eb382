#!/bin/sh
# Installs what is missing of packaging/debian-packages.txt, and touches nothing if all of it is there.
#
#   tools/setup.sh GROUP...   groups: run build test vulkan lint fuzz bench vm
#   tools/setup.sh --check GROUP...   only say what is missing; exit 1 if anything is
set -eu

list=$(dirname "$0")/../packaging/debian-packages.txt

say() { printf '%s\n' "setup: $*" >&2; }
die() { say "$*"; exit 1; }

packages_of() {
    awk -v groups=" $* " '!/^#/ && NF >= 2 && index(groups, " " $1 " ") { print $2, $3 }' "$list"
}

is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing_of() {
    packages_of "$@" | while read -r package command; do
        if [ -n "$command" ] && command -v "$command" >/dev/null 2>&1; then
            continue
        fi
        is_installed "$package" || printf '%s\n' "$package"
    done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        die "needs root to install packages, and there is no sudo; run as root: apt-get install $missing"
    fi
}

install_missing() {
    say "installing $missing"
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    as_root apt-get update -qq >"$log" 2>&1 || say "apt-get update failed, trying with the lists as they are"
    # Word splitting is wanted: one argument a package.
    # shellcheck disable=SC2086
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            $missing </dev/null >>"$log" 2>&1; then
        tail -n 15 "$log" >&2
        die "apt-get could not install: $missing"
    fi
}

only_check=false
if [ "${1:-}" = --check ]; then
    only_check=true
    shift
fi
[ $# -gt 0 ] || die "which groups? use one or more of: run build test vulkan lint fuzz bench vm"
for group; do
    [ -n "$(packages_of "$group")" ] || die "unknown group '$group'; use: run build test vulkan lint fuzz bench vm"
done
command -v dpkg-query >/dev/null || die "this is not Debian; install by hand what $list names, then use 'make all'"

missing=$(missing_of "$@" | tr '\n' ' ')
missing=${missing% }
[ -n "$missing" ] || exit 0
if $only_check; then
    die "missing: $missing (make setup installs them)"
fi
install_missing
