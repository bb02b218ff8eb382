#!/bin/sh
# sluice inspect on sound files, unsound files and what is no file at all.
. tests/apps/check.sh
model=tests/data/tiny/tiny-f16.gguf

check overview 0 "$model: *GGUF version 3*Metadata (* keys)*general.architecture*fish-speech*unit *slow *fast *codec.decoder *" \
    '' inspect $model
check units 0 "*unit *embed *lazy: 2,*slow *fast *lazy: 1,*codec.encoder *codec.quantizer *codec.decoder *" '' inspect --units $model
check tensors 0 '*embeddings.weight * f16 * embed * at *, lazy*' '' inspect --tensors $model
check json 0 '{"files":*"metadata":*"tensors":*"units":*"warnings":*}' '' inspect --json $model
check no_tensors_in_overview 0 '*' '' inspect $model
has_no_tensor_list() { ! grep -q attention.wqkv.weight "$scratch/out"; }
check_that no_tensor_list has_no_tensor_list
check json_and_tensors 0 '{"files":*' '' inspect --json --tensors $model
check G4_24_coarse_codec 0 '*' "sluice inspect: warning: * tensors of unit codec.* have fewer than 16 bits a weight (c.*)*" \
    inspect models/demo/demo-voice-q8_0.gguf

check no_file 2 '' "sluice inspect: needs FILE; see 'sluice inspect --help'" inspect
check two_files 2 '' "sluice inspect: 'b' is one FILE too many*" inspect a b
check unknown_option 2 '' "sluice inspect: unknown option '--tensros' (did you mean '--tensors'?); see 'sluice inspect --help'" \
    inspect --tensros $model
check flag_with_value 2 '' "sluice inspect: --json takes no value; see *" inspect --json=1 $model
check twice 2 '' "sluice inspect: --json is given twice; see *" inspect --json --json $model
check help 0 'Usage: sluice inspect *--tensors*--units*--json*' '' inspect --help

printf 'version https://git-lfs.example/spec/v1\n' >"$scratch/lfs"
: >"$scratch/empty"
head -c 100000 $model >"$scratch/cut"
mkfifo "$scratch/fifo"
check missing 1 '' "sluice inspect: *nowhere.gguf*" inspect "$scratch/nowhere.gguf"
check empty 1 '' "sluice inspect: *empty*" inspect "$scratch/empty"
check not_gguf 1 '' "sluice inspect: *lfs*" inspect "$scratch/lfs"
check truncated 1 '' "sluice inspect: *cut*" inspect "$scratch/cut"
check directory 1 '' "sluice inspect: *directory*" inspect "$scratch"
check fifo 1 '' "sluice inspect: *fifo*" inspect "$scratch/fifo"
check device 1 '' "sluice inspect: */dev/zero*" inspect /dev/zero
check tokenizer 1 '' "sluice inspect: *tokenizer.json*" inspect tests/data/tiny/tokenizer.json
for bad in missing empty not_gguf; do
    check_that "${bad}_is_one_line" [ "$(wc -l <"$scratch/err")" = 1 ]
done
check_done
