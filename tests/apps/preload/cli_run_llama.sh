#!/bin/sh
# sluice run in front of llama.cpp: the ready-made libllama of the pinned release, and models that sluice synth writes.
# The logits are the same with and without, what is lazy is not read to load, and advice to read all of the file ahead
# does not bring it in.
#
#   SLUICE_LLAMA_PROBE_OBJECT=llama_probe.c.o cli_run_llama.sh
#   ... SLUICE_LLAMA_TABLE=1 cli_run_llama.sh     prints a row for each first run, cold, instead; with large models
#
# SLUICE_LLAMA_DIR: where the models of the table go (3.3 GB); default: a folder that is removed.
. tests/apps/check.sh
unset SLUICE_POPULATE LLAMA_MMAP_POPULATE

skip() {
    echo "skipped: $*"
    exit 77
}

[ "$(uname -sm)" = 'Linux x86_64' ] || skip "the ready-made libllama is for Linux on x86_64, this is $(uname -sm)"
[ -n "${SLUICE_LLAMA_PROBE_OBJECT:-}" ] || skip "llama.h was not there when this was configured; tools/fetch_ggml.sh fetches it"
prefix=$(tools/fetch_ggml.sh --ready) || skip "the ready-made libllama could not be fetched"
case $(stat -f -c %T "$scratch") in
    tmpfs | ramfs) skip "temporary files have no disk behind them here, so nothing can be dropped" ;;
esac

# The processor's back ends alone; the library is linked here, since it may be fetched after this was configured.
probe=$scratch/llama_probe
mkdir "$scratch/backends"
ln -s "$prefix"/lib/libggml-cpu-*.so "$scratch/backends"
"${CC:-cc}" "$SLUICE_LLAMA_PROBE_OBJECT" "$prefix"/lib/libllama.*.so "$prefix"/lib/libggml.*.so \
    "$prefix/lib/libggml-base.so" -Wl,-rpath,"$prefix/lib" -o "$probe"

# Bytes of a file that are cached.
cached() {
    "$SLUICE_PROGRAM" cached --json "$1" | sed 's/,"units".*//;s/.*"cached_bytes"://'
}

# What the program says of what it computed.
computed() {
    grep '^token\|^logits' "$1"
}

# A first run, from a cold cache: MODEL, then the command. Leaves its output in $scratch/out and what is cached.
first_run() {
    file=$1
    shift
    "$SLUICE_PROGRAM" drop "$file" >"$scratch/dropped"
    "$@" >"$scratch/out" 2>"$scratch/err" || { cat "$scratch/err" && return 1; }
    n_cached=$(cached "$file")
}

# Whether so many hundredths of a file are cached: FILE, at least, at most.
is_cached() {
    percent=$((n_cached * 100 / $(stat -c %s "$1")))
    [ "$percent" -ge "$2" ] && [ "$percent" -le "$3" ]
}

# The kernel may take any page back at any time, so what is not as wanted is looked at again.
first_run_until() {
    condition=$1
    shift
    for _ in 1 2 3 4; do
        first_run "$@" || return 1
        if $condition "$file"; then
            return 0
        fi
    done
    echo "  $n_cached bytes of $(stat -c %s "$file") cached; $(tr '\n' ';' <"$scratch/out")"
    return 1
}

is_whole() { is_cached "$1" 95 100; }
is_half_at_most() { is_cached "$1" 0 50; }
waits_for_nothing() { is_whole "$1" && grep -q '^computed .* faults 0 major' "$scratch/out"; }

# What the same computes alone, behind the shim before it goes on, and beside it.
same_logits() {
    first_run "$1" "$probe" "$scratch/backends" "$1" 16 8 1 || return 1
    computed "$scratch/out" >"$scratch/alone"
    for how in --wait --background; do
        first_run "$1" "$SLUICE_PROGRAM" run -q --ram 1G --lazy-over 4M $how "$probe" "$scratch/backends" "$1" 16 8 1 ||
            return 1
        computed "$scratch/out" | cmp -s - "$scratch/alone" || return 1
    done
    [ "$(wc -l <"$scratch/alone")" = 10 ]
}

run_cases() {
    dense=$scratch/dense.gguf
    moe=$scratch/moe.gguf
    check synth_dense 0 '' "wrote $dense in *" synth --preset llama-dense --layers 4 --dim 512 --heads 8 --kv-heads 4 \
        --ffn 2048 --vocab 16384 -o "$dense"
    check synth_moe 0 '' "wrote $moe in *" synth --preset llama-moe --layers 4 --dim 256 --heads 4 --kv-heads 2 \
        --head-dim 64 --ffn 512 --vocab 8192 -o "$moe"
    check_that dense_logits same_logits "$dense"
    check_that moe_logits same_logits "$moe"
    check_that alone_reads_all first_run_until is_whole "$moe" "$probe" "$scratch/backends" "$moe" 0 0 1
    check_that lazy_is_not_read first_run_until is_half_at_most "$moe" \
        "$SLUICE_PROGRAM" run --ram 1G --lazy-over 4M --wait "$probe" "$scratch/backends" "$moe" 0 0 1
    check_that lazy_line matches "sluice run: $moe: * present *, 0 B skipped; budget 1.0 GiB, *" "$(cat "$scratch/err")"
    check_that over_budget_is_not_read first_run_until is_half_at_most "$dense" \
        "$SLUICE_PROGRAM" run --ram 8M --wait "$probe" "$scratch/backends" "$dense" 0 0 1
    check_that dense_waits_for_nothing first_run_until waits_for_nothing "$dense" \
        "$SLUICE_PROGRAM" run -q --ram 1G --wait "$probe" "$scratch/backends" "$dense" 16 8 1
    check_done
}

# The numbers of a line of the program: NAME, then the field that awk prints.
field() {
    awk -v name="$1" -v field="$2" '$1 == name { print $field }' "$scratch/out"
}

row() {
    name=$1 who=$2
    shift 2
    first_run "$@"
    echo "| $name | $who | $(field loaded 2) | $(field prompt 2) | $(field all 2) | $(field all 5) / $(field all 7) |" \
        "$((n_cached >> 20)) | $(field logits 2) |"
}

# Three times each way: NAME of the row, MODEL, what is lazy, tokens of the prompt, tokens behind it.
rows_of() {
    name=$1 model=$2 lazy_over=$3
    set -- "$probe" "$scratch/backends" "$model" "$4" "$5" 2
    for _ in 1 2 3; do
        row "$name" alone "$model" "$@"
        for how in --wait --background; do
            row "$name" "sluice run $how" "$model" "$SLUICE_PROGRAM" run -q --lazy-over "$lazy_over" $how "$@"
        done
    done
}

print_table() {
    where=${SLUICE_LLAMA_DIR:-$scratch}
    "$SLUICE_PROGRAM" synth --preset llama-dense --layers 12 -o "$where/dense.gguf"
    "$SLUICE_PROGRAM" synth --preset llama-moe --layers 6 --dim 1024 --heads 8 --kv-heads 8 --ffn 512 --vocab 262144 \
        --embedding-type f32 -o "$where/moe.gguf"
    echo '| model | way | loaded ms | prompt ms | all ms | faults, major / minor | cached at the end MiB | logits |'
    echo '|---|---|---|---|---|---|---|---|'
    rows_of 'dense' "$where/dense.gguf" 4G 4 2
    rows_of 'MoE, table lazy' "$where/moe.gguf" 512M 4 2
}

if [ -n "${SLUICE_LLAMA_TABLE:-}" ]; then
    print_table
else
    run_cases
fi
