#!/bin/sh
# sluice warm, cached and drop on copies of the demo model. SLUICE_SHIM_PROBE maps the file in another process.
. tests/apps/check.sh
: "${SLUICE_SHIM_PROBE:?a program that maps files}"
unset SLUICE_POPULATE LLAMA_MMAP_POPULATE
model=$scratch/model.gguf
case $(stat -f -c %T "$scratch") in
    tmpfs | ramfs)
        echo "skipped: temporary files have no disk behind them here, so nothing can be dropped"
        exit 77
        ;;
esac
cp models/demo/demo-voice-q8_0.gguf "$model"
sync "$model"

# Whole percents of a unit that are cached. The kernel may take any page back at any time, so what must be warm is
# compared with nine tenths (fast: its lazy table is left out).
percent() {
    "$SLUICE_PROGRAM" cached "$model" | sed -n "s/^  $1 .* \([0-9]*\)\.[0-9]%.*/\1/p"
}

# What the kernel says, by another program where there is one.
is_cold() {
    ! command -v fincore >"$scratch/which" || [ "$(fincore -b -n -o RES "$model" | tr -d ' ')" = 0 ]
}

check drop 0 "$model: * dropped, 0 B left" '' drop "$model"
check_that cold_after_drop is_cold
check cold 0 "$model: 0 B of 32.4 MiB cached (0.0%)*slow *0 B of *0.0%  ................................*" '' cached "$model"
check warm 0 "27.2 MiB present (* cached before), 0 B skipped; budget *, decided by *" '' warm --ram 1G "$model"
check warm_units 0 '*slow * ###*codec.decoder * ###*' '' cached "$model"
for unit in slow codec.encoder codec.quantizer codec.decoder; do
    check_that "warm_$unit" [ "$(percent $unit)" -ge 90 ]
done
check warm_again 0 "27.2 MiB present (2[4-7].? MiB of it were cached before), *" '' warm --ram 2M "$model"
check cached_json 0 '{"path":"*","bytes":34021856,"cached_bytes":*"units":{"embed":{*"slow":{"bytes":12131072,"cached_bytes":1[12]??????}*}}' '' \
    cached --json "$model"

# One unit alone: what is not asked for stays cold, but for the page at its edge.
check drop_all 0 '*' '' drop "$model"
check warm_one 0 '7.2 MiB present*' '' warm --ram 1G --threads 4 --units codec.decoder "$model"
check one_is_warm 0 '*codec.encoder *0 B of *0.0%*codec.decoder *' '' cached "$model"
check_that one_is_warm_enough [ "$(percent codec.decoder)" -ge 90 ]
check drop_units 0 "$model: * dropped, 0 B left" '' drop --units codec "$model"
check dropped_units 0 '*codec.quantizer * 0.0%*codec.decoder * 0.0%*' '' cached "$model"
check warm_two 0 '*' '' warm --ram 1G --units fast,codec "$model"
for unit in fast codec.encoder codec.quantizer codec.decoder; do
    check_that "two_are_warm_$unit" [ "$(percent $unit)" -ge 75 ]
done

# Too little: a file goes whole or not at all.
check drop_for_budget 0 '*' '' drop "$model"
check over_budget 1 '0 B present *, 27.2 MiB skipped; budget 1.0 MiB, decided by given (--ram)' \
    'sluice warm: 27.2 MiB in 1 file were skipped, the budget is 1.0 MiB; *' warm --ram 1M "$model"
check nothing_lazy 0 '0 B present*' '' warm --ram 1G --lazy-over 0 "$model"

# Another process maps the file, or has a part of it locked: what cannot be dropped is counted, and the status says so.
# When it is gone, everything goes.
hold() {
    mkfifo "$scratch/input.$1"
    "$SLUICE_SHIM_PROBE" "$1" "$model" <"$scratch/input.$1" >"$scratch/held" 2>&1 &
    holder=$!
    exec 9>"$scratch/input.$1"
    # A minute is more than it needs.
    for _ in $(seq 600); do
        if grep -q ready "$scratch/held" || ! kill -0 $holder 2>"$scratch/none"; then
            break
        fi
        sleep 0.1
    done
    grep -q ready "$scratch/held"
}
let_go() {
    exec 9>&-
    wait $holder
}
check drop_before_held 0 '*' '' drop "$model"
hold hold
check held 1 "$model: * dropped, 32.4 MiB left" \
    "sluice drop: $model: 32.4 MiB (* pages) stay cached; another process maps or locks them" drop "$model"
check held_units 1 "$model: * dropped, 1*MiB left" \
    "sluice drop: $model: 1*MiB (* pages) stay cached; another process maps or locks them" drop --units slow "$model"
check held_is_cached 0 "$model: 32.4 MiB of 32.4 MiB cached (100.0%)*" '' cached "$model"
let_go
check held_no_more 0 "$model: * dropped, 0 B left" '' drop "$model"
check_that held_no_more_is_cold is_cold
check warm_before_locked 0 '*' '' warm --ram 1G "$model"
if hold lock; then
    check locked 1 "$model: * dropped, [1-9].* MiB left" \
        "sluice drop: $model: [1-9].* MiB (* pages) stay cached; another process maps or locks them" drop "$model"
    let_go
else
    echo 'left out: a MiB cannot be locked here'
    exec 9>&-
fi
check locked_no_more 0 "$model: * dropped, 0 B left" '' drop "$model"

# Named twice, opened once.
check twice 0 "27.2 MiB present*" '' warm --ram 1G "$model" "$scratch/../$(basename "$scratch")/model.gguf"
check drop_twice 0 "$model: * dropped, 0 B left" '' drop "$model" "$model"

export SLUICE_POPULATE=0
check switched_off 1 '' 'sluice warm: SLUICE_POPULATE switches population off; *' warm "$model"
unset SLUICE_POPULATE

for command in warm drop cached; do
    check "${command}_help" 0 "Usage: sluice $command *FILE...*" '' $command --help
    check "${command}_no_file" 2 '' "sluice $command: needs FILE*" $command
    check "${command}_missing" 1 '' "sluice $command: *nowhere.gguf*" $command "$scratch/nowhere.gguf"
    check "${command}_no_gguf" 1 '' "sluice $command: *tokenizer.json*" $command models/demo/tokenizer.json
    check "${command}_folder" 2 '' "sluice $command: *directory*" $command "$scratch"
done
for command in warm drop; do
    check "${command}_unknown_unit" 2 '' "sluice $command: --units: 'sloe' is no unit (did you mean 'slow'?); see *" \
        $command --units slow,sloe "$model"
    check "${command}_empty_unit" 2 '' "sluice $command: --units: '' is no unit*" $command --units slow, "$model"
done
check_done
