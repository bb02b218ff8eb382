#!/bin/sh
# Puts the pinned ggml source, llama.cpp's header and its ggml-vocab-* models into the cache folder and prints where.
#
#   tools/fetch_ggml.sh              fetch unless there, print the source folder on standard output
#   tools/fetch_ggml.sh --where      print the folder without fetching; exit 1 if it is not filled
#   tools/fetch_ggml.sh --cache-dir  print the cache folder
#   tools/fetch_ggml.sh --ready      fetch ready-made libraries of the same ggml with every back end as a file of its
#                                    own, Vulkan among them, and of llama.cpp; print the prefix to give as
#                                    SLUICE_GGML_DIR
#
# The cache is $SLUICE_CACHE_DIR, or sluice below the user's cache folder. A source folder appears in it by
# one rename, when it is complete, so that an interrupted run leaves nothing that looks whole, and two runs
# at once end with the same folder. With the folder there nothing is fetched and no network is needed.
set -eu

pin=$(dirname "$0")/../packaging/ggml.pin

say() { printf '%s\n' "fetch_ggml: $*" >&2; }
die() { say "$*"; exit 1; }
pinned() { sed -n "s/^$1=//p" "$pin"; }

cache_dir() {
    if [ -n "${SLUICE_CACHE_DIR:-}" ]; then
        printf '%s\n' "$SLUICE_CACHE_DIR"
    elif [ -n "${XDG_CACHE_HOME:-}" ]; then
        printf '%s\n' "$XDG_CACHE_HOME/sluice"
    else
        home=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
        [ -n "$home" ] || die "no home folder is known; set SLUICE_CACHE_DIR to a folder for the ggml source"
        printf '%s\n' "$home/.cache/sluice"
    fi
}

# npm into its own throw-away cache; a broken download is tried again, then given up with npm's words.
download() {
    package=$2
    for try in 1 2 3; do
        if (cd "$1" && npm pack "$package" --ignore-scripts --silent --cache "$1/npm-cache" >npm.out 2>&1); then
            return 0
        fi
        say "download of $package failed (try $try of 3)"
        rm -rf "$1/npm-cache"
        [ "$try" = 3 ] || sleep "$try"
    done
    tail -n 5 "$1/npm.out" >&2
    die "cannot fetch $package with npm; check the network, or build with -DSLUICE_GGML_DIR=PREFIX of an installed ggml"
}

check_hash() {
    found=$(sha256sum <"$1" | cut -d' ' -f1)
    [ "$found" = "$sha256" ] ||
        die "$bundle of $package has SHA-256 $found, but packaging/ggml.pin needs $sha256; nothing of it was used"
}

# Keeps the ggml folder, its licence, llama.h and the vocabularies of the bundle in $1, as folder $2.
unpack() {
    git clone --quiet --no-checkout "$1" "$2"
    head=$(git -C "$2" rev-parse HEAD)
    [ "$head" = "$commit" ] || die "the bundle holds commit $head, but packaging/ggml.pin needs $commit"
    git -C "$2" checkout --quiet HEAD -- ggml LICENSE include/llama.h 'models/ggml-vocab-*'
    rm -rf "$2/.git"
}

fetch() {
    command -v npm >/dev/null || die "npm is missing; run tools/setup.sh build"
    command -v git >/dev/null || die "git is missing; run tools/setup.sh build"
    mkdir -p "$cache"
    tmp=$(mktemp -d "$cache/.fetch-XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
    trap 'exit 130' INT TERM HUP
    say "fetching $package (35 MB, once) into $cache"
    download "$tmp" "$package"
    tar -xzf "$tmp"/*.tgz -C "$tmp" "package/$bundle" || die "$package holds no $bundle"
    check_hash "$tmp/package/$bundle"
    unpack "$tmp/package/$bundle" "$tmp/source"
    # Fails if another run was faster; then its folder is the one to use.
    mv -T "$tmp/source" "$source" 2>/dev/null || [ -d "$source" ] || die "cannot create $source"
}

# What ggml's own build would install: headers of the source, the libraries, and how to link them.
fetch_ready() {
    command -v npm >/dev/null || die "npm is missing; run tools/setup.sh build"
    mkdir -p "$cache"
    tmp=$(mktemp -d "$cache/.fetch-XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
    trap 'exit 130' INT TERM HUP
    say "fetching $ready_package (27 MB, once) into $cache"
    download "$tmp" "$ready_package"
    found=$(sha256sum <"$(echo "$tmp"/*.tgz)" | cut -d' ' -f1)
    [ "$found" = "$ready_sha256" ] ||
        die "$ready_package has SHA-256 $found, but packaging/ggml.pin needs $ready_sha256; nothing of it was used"
    mkdir -p "$tmp/prefix/lib/cmake/ggml"
    tar -xzf "$tmp"/*.tgz -C "$tmp"
    cp "$tmp"/package/bins/*/libggml* "$tmp"/package/bins/*/libllama.*.so "$tmp/prefix/lib/"
    cp -r "$source/ggml/include" "$tmp/prefix/include"
    cp "$source/include/llama.h" "$tmp/prefix/include/"
    cp "$(dirname "$0")/../cmake/ggml/ready-config.cmake" "$tmp/prefix/lib/cmake/ggml/ggml-config.cmake"
    mv -T "$tmp/prefix" "$ready" 2>/dev/null || [ -d "$ready" ] || die "cannot create $ready"
}

package=$(pinned package)
bundle=$(pinned bundle)
sha256=$(pinned sha256)
commit=$(pinned commit)
ready_package=$(pinned ready_package)
ready_sha256=$(pinned ready_sha256)
cache=$(cache_dir)
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac
source=$cache/llama-source-$(printf '%.16s' "$sha256")
ready=$cache/llama-ready-$(printf '%.16s' "$ready_sha256")

case ${1:-} in
    --cache-dir) printf '%s\n' "$cache" ;;
    --where) printf '%s\n' "$source"; [ -d "$source" ] ;;
    '') [ -d "$source" ] || fetch; printf '%s\n' "$source" ;;
    --ready)
        [ -d "$source" ] || (fetch)
        [ -d "$ready" ] || (fetch_ready)
        printf '%s\n' "$ready"
        ;;
    *) die "unknown argument '$1'; use nothing, --where, --cache-dir or --ready" ;;
esac
