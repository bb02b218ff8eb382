#!/bin/sh
# npm_ci.sh FOLDER: installs what FOLDER/package-lock.json pins into the cache, once, and prints the folder that
# has node_modules then. Nothing is written into FOLDER; scripts of packages do not run.
set -eu
cache=$("$(dirname "$0")/fetch_ggml.sh" --cache-dir)
hash=$(cat "$1/package.json" "$1/package-lock.json" | sha256sum | cut -c 1-16)
to=$cache/npm-$hash
if [ ! -d "$to" ]; then
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/npm.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    cp "$1/package.json" "$1/package-lock.json" "$work"
    (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --silent) >&2
    # Fails if another run was faster; then its folder is the one to use.
    mv -T "$work" "$to" 2>/dev/null || [ -d "$to" ]
fi
printf '%s\n' "$to"
