#!/bin/sh
# Puts a kernel of Debian's for virtual machines, and busybox, into the cache folder, unpacked and not installed, and
# prints where they are: boot/vmlinuz-*, lib/modules/*, bin/busybox.
#
#   tools/fetch_kernel.sh [SUITE]   default: the suite of this Debian; bookworm-backports has a newer kernel
#
# The packages are those of the group guest in packaging/debian-packages.txt, from the mirror that apt uses; neither
# apt's own lists nor anything else of the system is touched, and no root is needed. With the folder there nothing is
# fetched.
set -eu
here=$(dirname "$0")
keys=/usr/share/keyrings/debian-archive-keyring.gpg

say() { printf '%s\n' "fetch_kernel: $*" >&2; }
die() { say "$*"; exit 1; }

apt() {
    command=$1
    shift
    "apt-$command" -o Dir::Etc::SourceList="$tmp/sources.list" -o Dir::Etc::SourceParts="$tmp/none" \
        -o Dir::State::Lists="$tmp/lists" -o Dir::Cache="$tmp/cache" -o APT::Sandbox::User= "$@"
}

# The mirrors that apt has of this Debian, and the wanted suite beside it.
write_sources() {
    options=arch=amd64
    [ ! -e "$keys" ] || options="$options signed-by=$keys"
    apt-get indextargets --format "\$(REPO_URI) \$(CODENAME)" \
        'Created-By: Packages' 'Origin: Debian' 'Component: main' |
        while read -r uri found; do
            printf 'deb [%s] %s %s main\n' "$options" "$uri" "$found"
            [ "$found" != "$release" ] || [ "$suite" = "$release" ] ||
                printf 'deb [%s] %s %s main\n' "$options" "$uri" "$suite"
        done >"$tmp/sources.list"
    [ -s "$tmp/sources.list" ] || die "apt names no mirror of Debian; run apt-get update, or look at /etc/apt/sources.list"
}

# A package that only points at that of the newest kernel gives its name.
real_name() {
    pointed=$(apt cache -t "$suite" depends "$1" | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
    printf '%s\n' "${pointed:-$1}"
}

fetch() {
    command -v apt-get >/dev/null || die "this is not Debian: there is no apt-get"
    mkdir -p "$cache"
    tmp=$(mktemp -d "$cache/.kernel-XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
    trap 'exit 130' INT TERM HUP
    mkdir -p "$tmp/none" "$tmp/lists" "$tmp/cache/archives/partial" "$tmp/root"
    write_sources
    say "fetching a kernel of $suite (30 MB, once) into $cache"
    apt get update -qq >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; die "apt-get found no packages of $suite"; }
    awk '$1 == "guest" { print $2 }' "$here/../packaging/debian-packages.txt" >"$tmp/packages"
    while read -r package; do
        name=$(real_name "$package")
        (cd "$tmp" && apt get download -qq -t "$suite" "$name") >"$tmp/log" 2>&1 ||
            { cat "$tmp/log" >&2; die "apt-get could not download $name of $suite"; }
    done <"$tmp/packages"
    for deb in "$tmp"/*.deb; do
        dpkg -x "$deb" "$tmp/root"
    done
    # Fails if another run was faster; then its folder is the one to use.
    mv -T "$tmp/root" "$folder" 2>/dev/null || [ -d "$folder" ] || die "cannot create $folder"
}

release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
suite=${1:-$release}
case $suite in
    '' | *[!a-z0-9-]*) die "'$suite' is no suite of Debian; give one such as bookworm" ;;
esac
cache=$("$here/fetch_ggml.sh" --cache-dir)
folder=$cache/kernel-$suite
[ -d "$folder" ] || (fetch)
printf '%s\n' "$folder"
