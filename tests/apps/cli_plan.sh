#!/bin/sh
# sluice plan: tables, JSON and pictures of what a request would take; refusals that name what would do.
. tests/apps/check.sh
model=tests/data/tiny/tiny-f16.gguf
tokenizer=tests/data/tiny/tokenizer.json

# plan NAME STATUS STDOUT STDERR ARGS...
plan() {
    name=$1 want=$2 out=$3 err=$4
    shift 4
    check "$name" "$want" "$out" "$err" plan -m $model --frames 8 --prompt 32 --threads 1 "$@"
}
# The bytes that a refusal in $scratch/err asks for.
needed() { sed -n 's/.* needs \([0-9]*\) bytes.*/\1/p' "$scratch/err"; }
is_absent() { [ ! -e "$1" ]; }

check help 0 'Usage: sluice plan *--vram BYTES*--overlay TRACE*' '' plan --help
plan fits 0 'Plan for tiny-f16.gguf: policy swap, 8 frames (*of speech)*device *budget *peak *floor *gpu *64.0 MiB*generate *gpu *decode *gpu *speeds are not known*Where the numbers come from*budget of gpu *--vram; a stand-in, this machine has no such device*' '' \
    --vram 64M
plan named 0 '*codec.decoder *cpu *' '' --vram 64M --device cuda7 --codec-cpu
plan no_device_needed 0 '*cuda7 *64.0 MiB*' '' --vram 64M --device cuda7
plan recording 0 '*encode *gpu *codec.encoder*' '' --vram 64M --recording
plan all_in_place 0 '*speak *cpu *The run moves nothing*' '' --device cpu
plan given_speeds 0 '*1.0 GiB/s*and takes *waiting for weights.*links *given by --link*computing *given by --frame-ms*' '' \
    --vram 64M --link 1G --frame-ms 20
plan sim_link 0 '*sim *100.0 MiB/s*link of the simulation*' '' --device sim:64M,link=100M
plan json 0 '{"model":"tests/data/tiny/tiny-f16.gguf","policy":"auto","prefetch":*"frames":8,*"feasible":true,"refusal":null,*"places":*"units":*"steps":*"events":*"sources":*"trace":null}' '' \
    --vram 64M --json --policy auto

# The budget that a refusal names works, and one byte less does not.
for policy in swap keep hot auto; do
    plan "too_small_$policy" 1 '*gpu *does not fit*phase needs*' \
        "sluice plan: gpu: the budget of 4096 bytes (4.0 KiB) is too small: policy $policy needs * bytes (*); give that much*" \
        --vram 4K --policy $policy
    floor=$(needed)
    plan "at_the_floor_$policy" 0 '*' '' --vram "$floor" --policy $policy
    plan "below_the_floor_$policy" 1 '*' "*policy $policy needs $floor bytes*" --vram $((floor - 1)) --policy $policy
done
plan keep_says_swap 1 '*' '*or use the policy swap, which needs *' --vram 4K --no-vram-swap
plan refused_json 1 '*"feasible":false,"refusal":{"code":"EBUDGET","message":"gpu: *"place":"gpu","budget_bytes":4096,"floor_bytes":*' \
    'sluice plan: gpu: *' --vram 4K --json

plan svg 0 'Plan for *' '' --vram 64M --svg "$scratch/plan.svg" --link 1G --frame-ms 20
check_that svg_is_whole grep -q '^</svg>$' "$scratch/plan.svg"
check_that svg_has_a_title grep -q 'Memory plan of tiny-f16.gguf' "$scratch/plan.svg"
plan svg_on_stdout 0 '<svg xmlns=*</svg>' '' --vram 64M --svg -
plan refused_svg 1 '*' '*is too small*' --vram 4K --svg "$scratch/refused.svg"
check_that refused_is_drawn grep -q 'Does not fit. gpu: the budget of 4096 bytes' "$scratch/refused.svg"
plan svg_nowhere '[!0]' '' '*--svg*none*' --vram 64M --svg "$scratch/none/plan.svg"
plan svg_on_model 2 '' '*--model and --svg are the same file*' --vram 64M --svg $model
check_that the_model_is_untouched test -s $model
plan two_on_stdout 2 '' '*--json and --svg - both*' --vram 64M --json --svg -

# What really happened, beside the plan.
check traced 0 '' '' say -q -m $model -t $tokenizer --threads 1 --seed 1 --max-frames 8 --device sim:64M \
    --trace "$scratch/trace.json" -o "$scratch/t.wav" 'Hello there.'
check overlay 0 '*The trace (policy swap)*planned *actual*sim *%*measured in the trace*' '' plan -m $model --threads 1 \
    --frames 8 --device sim:64M --overlay "$scratch/trace.json" --svg "$scratch/overlay.svg"
check_that overlay_is_drawn grep -q 'planned and actual memory' "$scratch/overlay.svg"
check overlay_json 0 '*"trace":{"policy":"swap","follows_plan":true,"dropped_events":0,"seconds":*' '' plan -m $model \
    --threads 1 --frames 8 --device sim:64M --overlay "$scratch/trace.json" --json
check_that loads_have_routes grep -Eq '"route":"(plain|pread|memcpy|registered)","stalls":[0-9]' "$scratch/trace.json"
sed 's/,"route":"[a-z ]*","stalls":[0-9]*//g' "$scratch/trace.json" >"$scratch/old.json"
check_that no_routes_in_an_old_one sh -c "! grep -q route '$scratch/old.json'"
check overlay_old 0 '*The trace (policy swap)*measured in the trace*' '' plan -m $model --threads 1 \
    --frames 8 --device sim:64M --overlay "$scratch/old.json"
plan overlay_none '[!0]' '' '*none.json*' --vram 64M --overlay "$scratch/none.json"
plan overlay_other '[!0]' '' '*--overlay *plan.svg: no JSON *needed is a file that*' --vram 64M --overlay "$scratch/plan.svg"
printf '{"traceEvents":[]}' >"$scratch/empty.json"
plan overlay_empty '[!0]' '' '*empty.json: JSON without *' --vram 64M --overlay "$scratch/empty.json" --svg "$scratch/e.svg"
check_that nothing_is_drawn is_absent "$scratch/e.svg"
plan overlay_device '[!0]' '' '*trace /dev/null: this is a device, *' --vram 64M --overlay /dev/null

check no_model 2 '' 'sluice plan: no model; *' plan --vram 4G
check no_such_model '[!0]' '' '*none.gguf*' plan -m "$scratch/none.gguf" --vram 4G
check no_gguf '[!0]' '' '*tokenizer.json*' plan -m $tokenizer --vram 4G
plan no_device '[!0]' '' '*nowhere0*' --device nowhere0
plan no_policy 2 '' '*--policy*' --policy never
plan contradiction 2 '' '*--hot-swap*' --hot-swap --no-vram-swap
plan no_frames 2 '' '*--frames*' --frames 0
plan no_budget 2 '' '*--vram*' --vram 0
plan operand 2 '' '*' extra
check_done
