#!/bin/sh
# sluice serve as a person starts it: its options, what it refuses, files, signals, sockets of others.
. tests/apps/check.sh
. tests/server/serving.sh
trap 'serve_kill; rm -rf "$scratch"' EXIT
command -v curl >/dev/null || { echo 'skipped: no curl'; exit 77; }
model=tests/data/tiny/tiny-f16.gguf
tokenizer=tests/data/tiny/tokenizer.json

refuses() {
    name=$1 message=$2
    shift 2
    check "$name" '[12]' '' "sluice serve: *$message*" serve "$@"
}
refuses no_model 'no model'
refuses absent_model 'nowhere.gguf' -m "$scratch/nowhere.gguf" --port 0
refuses no_host 'no.such.host.invalid' -m $model -t $tokenizer --host no.such.host.invalid
refuses bad_port 'port' -m $model --port 65536
refuses bad_sleep '60s:9' -m $model --sleep-after 60s:9
refuses sleep_order 'longer times' -m $model --sleep-after 60s:2,90s:1
refuses bad_time 'stop-timeout' -m $model --stop-timeout soon
refuses bad_voice "nobody" -m $model --voice nobody --voice-dir "$scratch/none"
refuses voice_is_no_path '../x' -m $model --voice ../x --voice-dir "$scratch/none"
refuses absent_key 'nokey' -m $model --api-key-file "$scratch/nokey"
printf 'short\n' >"$scratch/short"
refuses short_key '8 or more' -m $model --api-key-file "$scratch/short"
printf 'two words long\n' >"$scratch/blank"
refuses blank_key 'without blanks' -m $model --api-key-file "$scratch/blank"
refuses quiet_and_verbose 'contradict' -m $model -q -v
check_that no_folder_was_made [ ! -e "$scratch/none" ]
export SLUICE_API_KEY=tiny
refuses short_variable 'SLUICE_API_KEY' -m $model
unset SLUICE_API_KEY

json='Content-Type: application/json'
ask() { curl -s -m 60 -o "$scratch/body" -w '%{http_code}' "$@"; }

# A first run, as the manual shows it.
serve_start -m $model -t $tokenizer || exit 1
check_that health [ "$(ask "$url/health")" = 200 ]
check_that page [ "$(ask "$url/")" = 200 ]
check_that speaks [ "$(ask "$url/v1/audio/speech" -H "$json" \
    -d '{"input":"hi","response_format":"wav","max_frames":4,"seed":1}')" = 200 ]
check_that is_wav [ "$(head -c 4 "$scratch/body")" = RIFF ]
# The server's sound is the program's.
"$SLUICE_PROGRAM" say -q -m $model -t $tokenizer --threads 1 --max-frames 4 --seed 1 --format pcm -o - hi >"$scratch/said"
tail -c +45 "$scratch/body" >"$scratch/served"
check_that same_as_say cmp "$scratch/said" "$scratch/served"
refuses port_in_use 'another program listens' -m $model -t $tokenizer --port "${url##*:}"
check_that stops_with_0 serve_stop
check_that said_no_text sh -c "! grep -q '\"hi\"\\|input' '$scratch/serve.err'"

# A key from a file; the log never shows it.
printf 'correct-horse-battery\nsecond line\n' >"$scratch/key"
serve_start -v -m $model -t $tokenizer --api-key-file "$scratch/key" || exit 1
check_that no_key [ "$(ask "$url/v1/models")" = 401 ]
check_that wrong_key [ "$(ask "$url/v1/models" -H 'Authorization: Bearer correct-horse')" = 401 ]
check_that right_key [ "$(ask "$url/v1/models" -H 'Authorization: Bearer correct-horse-battery')" = 200 ]
check_that health_needs_none [ "$(ask "$url/health")" = 200 ]
check_that key_not_logged sh -c "! grep -q correct-horse '$scratch/serve.err'"

# Signals: while a stream runs; a hang-up without a terminal is nothing.
kill -HUP "$pid"
curl -s -m 60 -o "$scratch/cut" "$url/v1/audio/speech" -H "$json" -H 'X-API-Key: correct-horse-battery' \
    -d '{"input":"A long text.","response_format":"pcm","max_frames":900,"min_frames":900}' &
client=$!
sleep 0.3
check_that hangup_is_nothing kill -0 "$pid"
begin=$(date +%s)
check_that stops_with_a_stream serve_stop
check_that stops_in_time [ $(($(date +%s) - begin)) -le 15 ]
wait $client || true

# kill -9 while voices are saved: every file is complete or not there.
serve_start -m $model -t $tokenizer || exit 1
i=0
while [ $i -lt 12 ]; do
    curl -s -m 20 -o "$scratch/voice.$i" "$url/v1/audio/voices" -F "name=v$i" -F transcript=abc -F file=@tests/data/tiny/ref.wav &
    i=$((i + 1))
done
tries=0
until [ -e "$scratch/voices/v2.s2voice" ] || [ $tries -gt 400 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
kill -9 "$pid"
wait
pid=
for file in "$scratch"/voices/*.s2voice; do
    [ -e "$file" ] || continue
    name=$(basename "$file" .s2voice)
    check "voice_is_whole_$name" 0 '*' '' voice show "$name" --voice-dir "$scratch/voices"
    check_that "mode_$name" [ "$(stat -c %a "$file")" = 600 ]
done
check_that some_voices_are_there [ -e "$scratch/voices/v2.s2voice" ]

# Awkward names work byte for byte, and an API's answer stays JSON.
odd="$scratch/模型 ⚒️ é/-x"
mkdir -p "$odd"
cp $model "$odd/~a b.gguf"
voices=$odd
serve_start -m "$odd/~a b.gguf" -t $tokenizer || exit 1
check_that odd_voice [ "$(ask "$url/v1/audio/voices" -F name=v -F transcript=abc -F file=@tests/data/tiny/ref.wav)" = 201 ]
check_that odd_voice_is_there [ -s "$odd/v.s2voice" ]
check_that odd_model [ "$(ask "$url/v1/models")" = 200 ]
check_that odd_model_name grep -q '"id":"~a b"' "$scratch/body"
check_that odd_stops serve_stop
voices=

# A full disk: a new voice fails, an old one stays as it is. The disk is a real one where that is permitted.
disk=$scratch/disk
mkdir "$disk"
if mount -t tmpfs -o size=16k,mode=700 none "$disk" 2>/dev/null; then
    trap 'serve_kill; umount "$disk"; rm -rf "$scratch"' EXIT
    voices=$disk
    serve_start -m $model -t $tokenizer || exit 1
    add() {
        ask "$url/v1/audio/voices" -F "name=$1" -F transcript=abc -F overwrite=true -F file=@tests/data/tiny/ref.wav
    }
    check_that room_for_one [ "$(add one)" = 201 ]
    cp "$disk/one.s2voice" "$scratch/one.before"
    head -c 16384 /dev/zero >"$disk/filler" 2>/dev/null || true
    check_that full_for_another [ "$(add two)" = 507 ]
    check_that full_for_the_same [ "$(add one)" = 507 ]
    check_that message_has_no_path sh -c "! grep -q '$disk' '$scratch/body'"
    check_that old_voice_is_whole cmp "$disk/one.s2voice" "$scratch/one.before"
    check_that nothing_else_is_there [ "$(ls -A "$disk")" = "filler
one.s2voice" ]
    rm "$disk/filler"
    check_that room_again [ "$(add two)" = 201 ]
    # A folder that is read-only from one moment to the next.
    mount -o remount,ro "$disk"
    check_that read_only_refuses [ "$(add three)" = 500 ]
    check_that read_only_still_speaks [ "$(ask "$url/v1/audio/speech" -H "$json" \
        -d '{"input":"hi","voice":"one","max_frames":4}')" = 200 ]
    check_that read_only_keeps [ "$(ask -X DELETE "$url/v1/audio/voices/one")" = 500 ]
    check_that stops serve_stop
else
    echo 'left out: full and read-only disks (mounting is not permitted here)'
fi

# A socket that the service manager holds: what it accepts is served, and its port is said.
if command -v python3 >/dev/null; then
    python3 - "$SLUICE_PROGRAM" $model $tokenizer >"$scratch/inherit" 2>&1 <<'END'
import os, socket, sys, urllib.request
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(8)
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.bind("\0sluice-test-%d" % os.getpid())
notify.settimeout(30)
pid = os.fork()
if pid == 0:
    os.dup2(s.fileno(), 3)
    os.set_inheritable(3, True)
    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", NOTIFY_SOCKET="@sluice-test-%d" % os.getppid())
    os.execv(sys.argv[1], [sys.argv[1], "serve", "-m", sys.argv[2], "-t", sys.argv[3], "--threads", "1"])
assert notify.recv(100) == b"READY=1"
assert urllib.request.urlopen("http://127.0.0.1:%d/health" % s.getsockname()[1]).status == 200
os.kill(pid, 15)
assert notify.recv(100) == b"STOPPING=1"
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
print("inherited")
END
    check_that inherits_a_socket grep -q '^inherited$' "$scratch/inherit"
fi
check_done
