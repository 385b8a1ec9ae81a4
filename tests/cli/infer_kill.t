#!/bin/bash
# infer_kill.t - dnn-infer gives the same bytes on any number of ranks, and after signals; it computes
# only what is missing, and starts again if anything that decides the results has changed.  Then it
# is killed a few times; make stress does it for a long time.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"
# shellcheck source=tests/infer_lib.sh
. "${srcdir:-.}/tests/infer_lib.sh"
here=$(cd "$srcdir" && pwd)
tmp=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/dnn-infer.XXXXXX")") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache
make_model
cp -r seg other
make_volumes tiles 2 300 32 24
make_volumes batches 600 8

# begin RANKS DIR MODE OPTION...: infer in the background; sets $pid; its output is in the file output
begin() {
    local launch=() formats=hdf5,npy,nifti,png,overlay
    [ "$1" = 1 ] || launch=("$MPIEXEC" -n "$1")
    [ "$3" = tiles ] || formats=hdf5,npy
    : > output
    "${launch[@]}" dnn-infer seg/model.dnn "$3" --output "$2" --format $formats --content values,classes \
        --set deterministic=true --set inference.gzip=true --set data.test_batch_size=3 "${@:4}" > output 2>&1 &
    pid=$!
}
# ended STATUS [MESSAGE]: it ends with this status and this line
ended() {
    local status=0
    wait_for over || { echo "it does not end"; kill -KILL "$pid"; }
    wait "$pid" 2> /dev/null || status=$?
    [ "$status" = "$1" ] || echo "status $status, not $1: $(cat output)"
    [ -z "${2-}" ] || grep -qE "^dnn-infer: (rank [0-9]*: )?$2" output || echo "no \"$2\": $(cat output)"
}
# shellcheck disable=SC2317  # called through wait_for
over() {
    ! kill -0 "$pid" 2> /dev/null
}
# infer STATUS RANKS DIR MODE OPTION...
infer() {
    begin "${@:2}"
    ended "$1"
}
# some DIR: parts of the outputs are complete
# shellcheck disable=SC2317
some() {
    over || [ "$(cat "$1"/.outputs.tmp/journal.* | wc -c)" -ge 800 ]
}
# interrupt DIR SIGNAL RANKS MODE: interrupted when parts are complete
interrupt() {
    local to
    rm -rf "$1"
    begin "$3" "$1" "$4"
    wait_for some "$1"
    to=$pid
    [ "$3" = 1 ] || to=$(cut -d ' ' -f "$3" "/proc/$pid/task/$pid/children")
    kill "-$2" "$to"
    if [ "$2" = KILL ]; then
        ended 137
    else
        ended 75 'stopped before all samples were'
    fi
    find "$1" -type f -not -path '*/.outputs.tmp/*'
}
# computed: tiles or samples in the last output
computed() {
    sed -nE 's/^inference: (stopped at [0-9]* %, )?([0-9]+)(\/[0-9]+)? (tiles|samples) in .*/\2/p' output
}
# continues: it has continued; prints what it says otherwise
continues() {
    grep -q "resuming an interrupted run: [1-9][0-9]* of $1 parts are complete" output || cat output
}

declare -A all parts=([tiles]=400 [batches]=600)
for mode in tiles batches; do
    result "$mode: one rank" "$(infer 0 1 want-$mode $mode)"
    all[$mode]=$(begin 1 again $mode && ended 0 && computed)
    for ranks in 2 3 4; do
        result "$mode: $ranks ranks, the same bytes" "$(
            infer 0 $ranks ranks $mode
            differs want-$mode ranks
            rm -rf ranks)"
    done
done

for mode in tiles batches; do
    for signal in TERM USR1; do
        result "$mode: SIG$signal: status 75, and no file has its final name" "$(interrupt run $signal 1 $mode)"
        first=$(grep -o '^inference: .*' output)
        result "$mode: the same command computes only the rest, with the same bytes" "$(
            began=$(computed)
            [ "${began:-0}" -gt 0 ] || echo "nothing was computed: $first"
            infer 0 1 run $mode
            continues "${parts[$mode]}"
            # Tiles of the row that was interrupted are computed again.
            [ "$(computed)" -lt "${all[$mode]}" ] || echo "$(computed) of ${all[$mode]}"
            differs want-$mode run)"
    done
    for ranks in 3 2; do
        result "$mode: a signal to one rank of $ranks" "$(interrupt run USR1 $ranks $mode)"
        result "$mode: continued on $((5 - ranks)) ranks" "$(
            infer 0 $((5 - ranks)) run $mode
            continues "${parts[$mode]}"
            differs want-$mode run)"
    done
    result "$mode: kill -9" "$(interrupt run KILL 1 $mode)"
    result "$mode: continued on two ranks" "$(
        infer 0 2 run $mode
        continues "${parts[$mode]}"
        differs want-$mode run)"
    result "$mode: other settings start again" "$(
        interrupt run USR1 1 $mode
        infer 0 1 run $mode --set inference.activation=none
        ! grep 'resuming' output || cat output
        infer 0 1 none-$mode $mode --set inference.activation=none
        differs none-$mode run)"
    rm -rf run
done
result "a run that is complete is computed again" "$(
    infer 0 2 run tiles
    infer 0 1 run tiles
    [ "$(computed)" = "${all[tiles]}" ] || cat output
    differs want-tiles run)"
result "other weights in the same file start again" "$(
    guarded dnn-train -q --kernels heuristic --set dir=better --set seed=6 train.json
    interrupt run USR1 1 tiles
    cp better/model.dnn seg/model.dnn
    infer 0 1 run tiles
    ! grep 'resuming' output || cat output
    infer 0 1 changed tiles
    differs changed run
    cp other/model.dnn seg/model.dnn)"
result "another scan of the same name starts again" "$(
    interrupt run USR1 1 tiles
    cp tiles/0.nii 0.nii
    cp tiles/1.nii tiles/0.nii
    infer 0 1 run tiles
    ! grep 'resuming' output || cat output
    cmp run/0.npy run/1.npy
    cp 0.nii tiles/0.nii)"
result "a second run in the same directory is refused" "$(
    rm -rf run
    begin 1 run tiles
    wait_for some run
    guarded dnn-infer seg/model.dnn tiles --output run > second 2>&1 && echo 'no error'
    grep -q 'another run is writing its outputs there' second || cat second
    ended 0)"

bash "$here/tests/infer_kill.sh" 12 25 > killed
mapfile -t lines < killed
for line in "${lines[@]}"; do
    case $line in
    'ok '*) result "killed: ${line#*- }" '' ;;
    'not ok '*) result "killed: ${line#*- }" "${lines[*]}" ;;
    '# '*) echo "$line" ;;
    esac
done
result "the kills are complete" "$(grep -q '^1\.\.' killed || cat killed)"
finish
