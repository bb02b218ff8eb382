#!/bin/sh
# Sourced by scripts that talk to the real program. SLUICE_PROGRAM is it.
#
#   serve_start ARGS...   starts `sluice serve` on a free port; sets $url and $pid, and waits until it is ready. Voices are
#                         in $voices, or in a folder of the scratch one
#   serve_stop            ends it in order; the exit status is the program's
: "${SLUICE_PROGRAM:?the program to test}"
if [ -z "${scratch:-}" ]; then
    scratch=$(mktemp -d)
    trap 'serve_kill; rm -rf "$scratch"' EXIT
fi
pid=

serve_kill() {
    [ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || true
    pid=
}

serve_start() {
    : >"$scratch/serve.out"
    "$SLUICE_PROGRAM" serve --port 0 --threads 1 --voice-dir "${voices:-$scratch/voices}" "$@" \
        >"$scratch/serve.out" 2>"$scratch/serve.err" </dev/null &
    pid=$!
    tries=0
    until grep -q ready: "$scratch/serve.err"; do
        tries=$((tries + 1))
        if [ $tries -gt 300 ] || ! kill -0 "$pid" 2>/dev/null; then
            echo "the server did not start:"
            cat "$scratch/serve.err"
            return 1
        fi
        sleep 0.1
    done
    # For the scripts that source this.
    # shellcheck disable=SC2034
    url=$(sed -n 's/^listening on //p' "$scratch/serve.out")
}

serve_stop() {
    kill "$pid"
    status=0
    wait "$pid" || status=$?
    pid=
    return $status
}
