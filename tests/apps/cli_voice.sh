#!/bin/sh
# sluice voice: the folder of saved voices.
. tests/apps/check.sh
dir=$scratch/voices
mkdir "$dir"

# Little-endian words and a voice file: $1 path, $2 transcript; 2 codebooks of 8 entries, 3 frames, 44100 Hz.
word() { printf '%b' "\\0$(printf %o $(($1 & 255)))\\0$(printf %o $(($1 >> 8 & 255)))\\0$(printf %o $(($1 >> 16 & 255)))\\0$(printf %o $(($1 >> 24 & 255)))"; }
words() { for w; do word "$w"; done; }
make_voice() {
    {
        printf 'S2VOICE\000'
        words 1 2 3 44100 8 $((${#2} + 1)) 0 24 0
        printf '%s\000' "$2"
        words 0 1 2 3 4 5
    } >"$1"
}

make_voice "$dir/anna.s2voice" 'Hello there.'
make_voice "$dir/zoe-2.s2voice" 'Another one.'
check list 0 'anna *3 frames *44100 Hz  Hello there.
zoe-2 *Another one.' '' voice list --voice-dir "$dir"
check list_json 0 '\[{"name":"anna","frames":3,"codebooks":2,"codebook_size":8,"sample_rate":44100,"text":"Hello there."},{"name":"zoe-2"*}\]' '' \
    voice list --json --voice-dir "$dir"
check list_nowhere 0 '' '' voice list --voice-dir "$scratch/nowhere"
check show_name 0 '*frames *3*codebooks *2 of 8*Hello there.' '' voice show --voice-dir "$dir" anna
check show_file 0 '*Hello there.' '' voice show "$dir/anna.s2voice"
check show_json 0 '{"name":"anna"*}' '' voice show --json --voice-dir "$dir" anna
check show_missing 1 '' 'sluice voice show: *bob*' voice show --voice-dir "$dir" bob
check show_nothing 2 '' "sluice voice show: needs NAME or FILE; see 'sluice voice show --help'" voice show

head -c 60 "$dir/anna.s2voice" >"$dir/broken.s2voice"
check list_with_broken 0 'anna *zoe-2 *' 'sluice voice list: warning: *broken*' voice list --voice-dir "$dir"
check show_broken 1 '' 'sluice voice show: *broken*' voice show --voice-dir "$dir" broken

make_voice "$scratch/outside.s2voice" 'Keep me.'
check G4_20_rm_takes_no_path 2 '' 'sluice voice rm: *../outside*' voice rm --voice-dir "$dir" ../outside
check_that outside_is_there [ -f "$scratch/outside.s2voice" ]
check rm_missing 1 '' "sluice voice rm: cannot remove voice 'bob'*No such file*" voice rm --voice-dir "$dir" bob
check rm_goes_on 1 '' "sluice voice rm: *'bob'*" voice rm --voice-dir "$dir" bob broken
check_that broken_is_gone [ ! -e "$dir/broken.s2voice" ]
check rm 0 '' '' voice rm --voice-dir "$dir" anna zoe-2
check list_empty 0 '' '' voice list --voice-dir "$dir"
check list_empty_json 0 '\[\]' '' voice list --json --voice-dir "$dir"

check alone 2 '' "sluice voice: needs a command: list, show or rm; see 'sluice voice --help'" voice
check unknown 2 '' "sluice voice: unknown command 'lits' (did you mean 'list'?); see *" voice lits
check help 0 'Usage: sluice voice COMMAND*list*show*rm*' '' voice --help
check help_of_one 0 'Usage: sluice voice rm *NAME...*--voice-dir DIR*' '' voice rm --help

XDG_DATA_HOME=$scratch/data
export XDG_DATA_HOME
mkdir -p "$scratch/data/sluice/voices"
make_voice "$scratch/data/sluice/voices/def.s2voice" 'From the default folder.'
check default_folder 0 'def *From the default folder.' '' voice list
unset XDG_DATA_HOME
unset HOME
check no_folder 2 '' 'sluice voice list: no folder for voices*--voice-dir DIR' voice list
check_done
