#!/bin/sh
# sluice bench transfer on simulated devices and in host memory: rows, files, refusals, interrupts.
. tests/apps/check.sh
TMPDIR=$scratch/tmp
export TMPDIR
mkdir "$TMPDIR"
sim=sim:8M,register=yes

is_empty() {
    [ -z "$(ls -A "$1")" ]
}
# all_rows PATTERN FILE: name, threads and of_disk of each row of a CSV file whose texts have no comma; all must match.
all_rows() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { print $at["name"], $at["threads"], "<" $at["of_disk"] ">" }' "$2" >"$scratch/rows"
    [ -s "$scratch/rows" ] && ! grep -qv -- "$1" "$scratch/rows"
}

check help 0 'Measures *sluice bench transfer*' '' bench --help
check transfer_help 0 'Usage: sluice bench transfer *--size BYTES*--device NAME*--threads N*--cold*--csv FILE*' '' \
    bench transfer --help
check nothing 2 '' "sluice bench: needs a command: transfer*" bench
check other 2 '' "sluice bench: unknown command 'transfers'; there is: transfer*" bench transfers

small='bench transfer --runs 1 --threads 1 --size 1M'
# shellcheck disable=SC2086
{
    check table 0 '1.0 MiB of noise to sim (*page cache warm*route *threads*GB/s*link *100.0%*set *1.00x*plain *pread *1 *memcpy *windows *register *registered *auto *auto took: *' '' \
        $small --device $sim
    check no_registering 0 '*windows     not possible: sim does not register memory*auto took: *' '' $small --device sim:8M
    check no_pinning 0 '*pins no memory: the limit is that of plain memory*' '' $small --device sim:8M,pinned=no
    check host 0 '1.0 MiB of noise to host (*link *set *auto *' '' $small --device cpu
    check small_buffers 0 '*pread *memcpy *' '' $small --device sim:8M,max-alloc=100000
    check json 0 '{"machine":"*","device":"sim","source":"noise","cold":false,"bytes":1048576,"limit_is_pinned":true,*"rows":[[]{"name":"link",*"of_limit":1,*"name":"auto",*' '' \
        $small --device $sim --json
    check cold 0 '*page cache cold*route *limit *disk *set *disk  *1 *100.0%*plain *auto took: *' '' \
        $small --device sim:8M --cold
    check cold_json 0 '*"cold":true,*"name":"set",*"name":"disk",*"threads":1,*"of_disk":1,*"name":"plain",*"of_disk":[0-9]*' '' \
        $small --device sim:8M --cold --json
    check warm_json 0 '*"of_disk":null,*' '' $small --device sim:8M --json
    check_that warm_json_no_disk [ "$out" = "${out%*\"disk\"*}" ]
    check_that warm_json_no_ratio [ "$out" = "${out%*\"of_disk\":[0-9]*}" ]
    check cold_csv 0 '*page cache cold*' '' $small --threads 2 --device $sim --machine here --cold --csv "$scratch/cold.csv"
    check_that cold_csv_ratios all_rows ' <[0-9][0-9]*[.][0-9][0-9]*>$' "$scratch/cold.csv"
    check_that cold_csv_threads [ "$(grep -c '^disk [12] ' "$scratch/rows")" = 2 ]
    check_that cold_csv_best grep -q '^disk [12] <1[.]0000>$' "$scratch/rows"
    check warm_csv 0 '*page cache warm*' '' $small --threads 2 --device $sim --machine here --csv "$scratch/warm.csv"
    check_that warm_csv_ratios all_rows ' <>$' "$scratch/warm.csv"
    check_that warm_csv_no_disk [ "$(grep -c '^disk ' "$scratch/rows")" = 0 ]
    check one_byte 0 '1 B of noise*' '' bench transfer --runs 1 --threads 1 --size 1 --device $sim
    check csv 0 'machine,device,source,cache,bytes,name,route,*"a ""b"", c","sim","noise",warm,1048576,link,*,auto,*' '' \
        $small --device $sim --csv - --machine 'a "b", c'
    check csv_file 0 '*auto took: *' '' $small --device $sim --csv "$scratch/rows.csv"
    check_that csv_rows grep -q '^"simulated .*",warm,1048576,memcpy,memcpy,1,' "$scratch/rows.csv"
    check threads 0 '*pread *1 *pread *3 *' '' $small --threads 3 --device sim:8M
    check ring 0 '*memcpy *1 *5x8K *' '' $small --device sim:8M --slots 5 --slot-bytes 8K

    check threads_zero 2 '' "sluice bench transfer: --threads: '0' is not a whole number from 1 to 256*" $small --threads 0
    check threads_word 2 '' "sluice bench transfer: --threads: 'all' is not *" $small --threads all
    check no_device 1 '' 'sluice bench transfer: device cuda7: there is none of this name*' $small --device cuda7
    check bad_sim 2 '' 'sluice bench transfer: device sim:much: *' $small --device sim:much
    check too_small 2 '' 'sluice bench transfer: --size: 1.0 MiB are more than the 512.0 KiB that sim has free; give less*' \
        $small --device sim:512K
    check model_and_size 2 '' "sluice bench transfer: *" $small --model x.gguf
    check no_folder_csv 1 '*' 'sluice bench transfer: *nowhere*' $small --device $sim --csv "$scratch/nowhere/rows.csv"
    check broken_device 1 '' 'sluice bench transfer: *' $small --device sim:8M,fail=upload:2
    check broken_copy 1 '' 'sluice bench transfer: *' $small --device sim:8M,fail=copy:3
    check lost_device 1 '' 'sluice bench transfer: *' $small --device sim:8M,lost=wait:2
    check refused_windows 0 '*windows     not possible: *' '' $small --device sim:8M,register=yes,fail=register:1
}
check size_zero 2 '' 'sluice bench transfer: *--size*' bench transfer --size 0
check too_much 1 '' 'sluice bench transfer: --size: a file of 512.0 TiB is to stay in memory*give less*' \
    bench transfer --size 512T --device cpu
check no_model 1 '' 'sluice bench transfer: *nowhere.gguf*' bench transfer -m "$scratch/nowhere.gguf" --device $sim
check no_gguf 1 '' 'sluice bench transfer: *check.sh*' bench transfer -m tests/apps/check.sh --device $sim
check_that nothing_left is_empty "$TMPDIR"

# Without $TMPDIR another folder is taken; killed in the middle, nothing is left.
TMPDIR=$scratch/no_such_folder
check other_folder 0 '*auto took: *' '' bench transfer --runs 1 --threads 1 --size 1M --device $sim
TMPDIR=$scratch/tmp
for signal in HUP TERM KILL; do
    "$SLUICE_PROGRAM" bench transfer --size 4M --device sim:8M,link=1M >"$scratch/out" 2>&1 &
    pid=$!
    sleep 0.3
    kill -$signal $pid
    status=0
    wait $pid 2>"$scratch/err" || status=$?
    check_that "killed_by_$signal" [ "$status" -ge 130 ]
    check_that "left_by_$signal" is_empty "$TMPDIR"
done
check_done
