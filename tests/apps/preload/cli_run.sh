#!/bin/sh
# sluice run and libsluice-preload.so in front of a program that maps files: which pages come, and that all else is
# as it was. SLUICE_SHIM_PROBE is that program; it draws 4 MiB of a file as one letter.
. tests/apps/check.sh
unset SLUICE_POPULATE LLAMA_MMAP_POPULATE
: "${SLUICE_SHIM_PROBE:?the program to run}"
probe=$SLUICE_SHIM_PROBE
: "${SLUICE_GGML_PROBE:?and one on ggml}"
case $(stat -f -c %T "$scratch") in
    tmpfs | ramfs)
        echo "skipped: temporary files have no disk behind them here, so nothing can be dropped"
        exit 77
        ;;
esac

# 48 MiB, of which the tensor of 24 is lazy. Tensors begin behind the header, so the letter in which a lazy one
# begins has pages of the one before; the header is read with what the kernel reads ahead of it.
middle=$scratch/middle.gguf
last=$scratch/last.gguf
first=$scratch/first.gguf
broken=$scratch/broken.gguf
other=$scratch/other.bin
"$probe" make "$middle" 3 12 24 12
"$probe" make "$last" 3 12 12 24
"$probe" make "$first" 3 24 12 12
"$probe" make "$broken" 1 12 24 12
{ printf 'GGUX' && tail -c +5 "$middle"; } >"$other"
sync "$other"
picture='###+.....####'
whole='#############'

cold() {
    for file in "$first" "$middle" "$last" "$broken"; do
        "$SLUICE_PROGRAM" drop "$file" >"$scratch/dropped" 2>&1 || true
    done
    dd if="$other" iflag=nocache count=0 2>"$scratch/dropped"
}

# sluice run --lazy-over 16M --ram 1G ARGS. The kernel may take any page back at any time, and some reclaim all the
# while what no process has mapped, so a picture that is not as wanted is looked at again.
lazily() {
    name=$1 want_status=$2 want_out=$3 want_err=$4
    shift 4
    for _ in 1 2 3 4; do
        status=0
        "$SLUICE_PROGRAM" run --lazy-over 16M --ram 1G "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
        if matches "$want_out" "$(cat "$scratch/out")" && [ "$status" = "$want_status" ] &&
            matches "$want_err" "$(cat "$scratch/err")"; then
            n_cases=$((n_cases + 1))
            return 0
        fi
        cold
    done
    check "$name" "$want_status" "$want_out" "$want_err" run --lazy-over 16M --ram 1G "$@"
}

n_lines() {
    wc -l <"$scratch/err" | tr -d ' '
}

cold
lazily middle 0 "$picture" "sluice run: $middle: 24.0 MiB present *, 0 B skipped; budget 1.0 GiB, decided by given (--ram)" \
    --wait -- "$probe" whole "$middle"
lazily last 0 '######+.....*' "sluice run: $last: 24.0 MiB present*" --wait "$probe" whole "$last"
lazily first 0 '[+#][.+]....#######*' "sluice run: $first: 24.0 MiB present*" --wait "$probe" whole "$first"
cold
lazily background 0 "$picture" "*$middle: 24.0 MiB present*" --background "$probe" whole "$middle" '###+.....####'

for mode in writable hidden duplicate mmap64 parts threads advise unmap fork errors; do
    cold
    lazily "wait_$mode" 0 "$picture" '' -q --wait "$probe" $mode "$middle"
    cold
    lazily "aside_$mode" 0 "$picture" '' -q "$probe" $mode "$middle" '###+.....####'
done

# Once for each file, however often and by how many threads it is mapped; parts count by themselves.
cold
lazily twice 0 "$picture" '*24.0 MiB present*' --wait "$probe" twice "$middle"
check_that twice_is_one_line [ "$(n_lines)" = 1 ]
lazily threads_once 0 "$picture" '*24.0 MiB present*' --wait "$probe" threads "$middle"
check_that threads_is_one_line [ "$(n_lines)" = 1 ]
lazily parts_line 0 "$picture" '*' --wait "$probe" parts "$middle"
check_that parts_are_two_lines [ "$(n_lines)" = 2 ]

# Before main, and before anything of ours was ready.
cold
export SHIM_PROBE_EARLY="$middle"
lazily constructor 0 "$picture" "*$middle: 24.0 MiB present*" --wait "$probe" nothing "$middle"
unset SHIM_PROBE_EARLY

# The budget, and the switches; MAP_POPULATE is off whatever they say.
cold
check over_budget 0 '[.+]............' "sluice run: $middle: 0 B present *, 48.0 MiB skipped; budget 8.0 MiB*" \
    run --wait --ram 8M "$probe" whole "$middle"
cold
lazily off 0 '[.+]............' '' --populate off --wait "$probe" whole "$middle"
lazily all 0 "$whole" "*48.0 MiB present*" --populate all --wait "$probe" whole "$middle"
cold
export LLAMA_MMAP_POPULATE=0
lazily switch 0 '[.+]............' '' --wait "$probe" whole "$middle"
lazily switch_back 0 "$picture" '*24.0 MiB present*' --populate auto --wait "$probe" whole "$middle"
unset LLAMA_MMAP_POPULATE

# Advice to read everything ahead goes the way of MAP_POPULATE; a program that asks for a little at a time gets it.
cold
lazily off_advise 0 '[.+]............' '' --populate off --wait "$probe" advise "$middle"
cold
check over_budget_advise 0 '[.+]............' '*0 B present*' run --wait --ram 8M "$probe" advise "$middle"
cold
lazily advise_parts 0 "$whole" '*24.0 MiB present*' --wait "$probe" advise-parts "$middle"

# What is no GGUF, or cannot be read as one, is mapped as the program asks for.
cold
lazily no_gguf 0 "$whole" '' --wait "$probe" whole "$other"
lazily no_gguf_advise 0 "$whole" '' --wait "$probe" advise "$other"
lazily broken 0 "$whole" "sluice run: $broken: GGUF version 1, *; it is mapped as the program asks for" \
    --wait "$probe" whole "$broken"

# Kernels and sandboxes that refuse calls: the program goes on.
export SLUICE_RUN_RAM=1073741824 SLUICE_RUN_LAZY_OVER=16777216
for denied in madvise cachestat madvise,fadvise64,cachestat clone,clone3; do
    cold
    "$probe" deny $denied "$probe" nothing "$middle" >"$scratch/out" 2>&1 || [ $? != 77 ] || continue
    status=0
    "$SLUICE_PROGRAM" run -- "$probe" deny $denied "$probe" whole "$middle" >"$scratch/out" 2>"$scratch/err" || status=$?
    check_that "denied_$denied" [ $status = 0 ] || cat "$scratch/err"
done
unset SLUICE_RUN_RAM SLUICE_RUN_LAZY_OVER
lazily locked_in 0 'alive' '' --wait "$probe" locked-in "$middle"

# Little address space: ours must not take what the program needs.
lazily few_addresses 0 "$picture" '' -q sh -c "ulimit -v 150000; exec $probe whole $middle"
cold
lazily fewer_addresses 0 'a 0 of 12582912?b 0 of 25165824?c 0 of 12582912?0 major faults' '' \
    -q sh -c "ulimit -v 80000; exec $SLUICE_GGML_PROBE $middle"

# A program on ggml, which looks at all but the lazy tensor: it computes the same and waits for no disk.
cold
lazily ggml 0 'a 0 of 12582912?c 0 of 12582912?0 major faults' "*24.0 MiB present*" --wait "$SLUICE_GGML_PROBE" "$middle" b

# The program's own affairs.
lazily status 42 '*' '' -q --wait "$probe" status "$middle"
# shellcheck disable=SC2016
lazily signal 143 '' '*' -q --wait sh -c '"$0" signal "$1" || exit $?' "$probe" "$middle"
lazily stderr 0 '*' '' "$probe" stderr "$middle"
lazily arguments 0 'a b|--wait|*' '' sh -c 'printf "%s|" "$@"' sh 'a b' --wait
check missing 127 '' 'sluice run: cannot run nosuchprogram: *' run nosuchprogram
check forbidden 126 '' "sluice run: cannot run $middle: *" run "$middle"
check no_command 2 '' 'sluice run: needs COMMAND; *' run
check both 2 '' 'sluice run: --wait and --background contradict each other*' run --wait --background true
check unknown 2 '' "sluice run: unknown option '--hel' (did you mean '--help'?)*" run --hel true
check help 0 'Usage: sluice run *COMMAND*' '' run --help
check_done
