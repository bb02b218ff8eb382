#!/bin/sh
# sluice synth: what it writes, what it refuses, and that nothing is left where it could not write.
. tests/apps/check.sh
small='--layers 1 --dim 32 --heads 1 --kv-heads 1 --head-dim 32 --ffn 32 --vocab 300'

# Names in the folder of the cases, but for the shell's own.
left() {
    (cd "$scratch" && find . -name '*gguf*' -o -name '*.part' | sort | tr '\n' ' ')
}

# shellcheck disable=SC2086
for preset in llama-dense llama-moe; do
    check "$preset" 0 '' "wrote $scratch/$preset.gguf in *" synth --preset $preset $small -o "$scratch/$preset.gguf"
    check "${preset}_is_a_model" 0 '*general.architecture * llama*token_type*' '' inspect "$scratch/$preset.gguf"
done
# shellcheck disable=SC2086
check few_experts 0 '' '*' synth --preset llama-moe --experts 2 $small -o "$scratch/llama-moe.gguf"
check few_experts_all_used 0 '*llama.expert_used_count *u32 *2*' '' inspect "$scratch/llama-moe.gguf"
check_that no_tokenizer_beside [ "$(left)" = './llama-dense.gguf ./llama-moe.gguf ' ]
rm "$scratch"/*.gguf

model=$scratch/x.gguf
check no_output 2 '' 'sluice synth: no output; *' synth --preset llama-moe
check no_effect_s2 2 '' 'sluice synth: --fast-dim has no effect with --preset llama-moe; *' \
    synth --preset llama-moe --fast-dim 64 -o "$model"
check no_effect_tokenizer 2 '' 'sluice synth: --tokenizer-out has no effect with --preset llama-dense; *' \
    synth --preset llama-dense --tokenizer-out "$scratch/t.json" -o "$model"
check no_effect_dense 2 '' 'sluice synth: --experts has no effect with --preset llama-dense; *' \
    synth --preset llama-dense --experts 4 -o "$model"
check no_effect_default 2 '' 'sluice synth: --experts-used has no effect with --preset s2-pro; *' \
    synth --experts-used 4 -o "$model"
check no_effect_embedding 2 '' 'sluice synth: --embedding-type has no effect with --preset tiny; *' \
    synth --preset tiny --embedding-type f16 -o "$model"
check bad_embedding_type 2 '' "sluice synth: --embedding-type 'f61' is no type of a matrix; *" \
    synth --preset llama-moe --embedding-type f61 -o "$model"
check bad_type 2 '' "sluice synth: --type 'q8' is no type of a matrix; *" synth --preset llama-moe --type q8 -o "$model"
check bad_codec_type 2 '' "sluice synth: --codec-type 'q8_0', need f16 or f32; *" synth --preset tiny --codec-type q8_0 -o "$model"
check bad_preset 2 '' 'sluice synth: *--preset*' synth --preset lama-moe -o "$model"
check too_many_used '[12]' '' 'sluice synth: 9 of 8 experts at a time, need 1 to 8' \
    synth --preset llama-moe --experts 8 --experts-used 9 -o "$model"
check small_vocabulary '[12]' '' 'sluice synth: vocabulary of 259, need at least 260: *' \
    synth --preset llama-dense --vocab 259 -o "$model"
check row_length '[12]' '' 'sluice synth: type q4_K: row length 32 of token_embd.weight, need a multiple of 256' \
    synth --preset llama-dense --dim 32 --type q4_k -o "$model"
check no_folder '[12]' '' "sluice synth: *$scratch/nowhere*" synth --preset llama-moe -o "$scratch/nowhere/x.gguf"
check_that nothing_refused_is_left [ -z "$(left)" ]

# A full disk, as a limit of the size of files: the error, and no part of a file.
full() {
    (ulimit -f 64 && exec "$SLUICE_PROGRAM" synth "$@" -o "$model") >"$scratch/out" 2>"$scratch/err" && return 1
    matches "sluice synth: $model: cannot write: *" "$(cat "$scratch/err")"
}
check_that full_llama full --preset llama-moe
check_that full_s2 full --preset tiny
check_that nothing_of_a_full_disk_is_left [ -z "$(left)" ]
check_done
