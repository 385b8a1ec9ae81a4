#!/bin/bash
# output.t - files of outputs are the same on any number of ranks, after interruptions at any
# place, and after damage of the temporary directory.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
set -u
# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"
build=${top_builddir:-.}
prog=$(realpath "$build/tests/output_run")
inject=$(realpath "${DNN_INJECT_SO:-$build/tests/inject.so}")
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-output.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
all=hdf5,npy,nifti,tiff,png,overlay

# run RANKS DIR KIND FORMATS KILL SETTINGS [FLAGS]: its output is in the file output
run() {
    local ranks=$1 how=()
    shift
    [ "$ranks" = 1 ] || how=("${MPIEXEC:-mpiexec}" -n "$ranks")
    guarded "${how[@]}" "$prog" "$1" "$2" "$3" values,classes 0 "$4" "$5" "${6-}" > output 2>&1
}
# done_by RANKS COUNT DIR...: run it to its end; prints errors, also if it has not computed COUNT
# units ("": any number)
done_by() {
    local ranks=$1 count=$2 status=0
    shift 2
    run "$ranks" "$@" || status=$?
    [ "$status" = 0 ] || echo "status $status: $(cat output)"
    [ -z "$count" ] || [ "$(tail -n 1 output)" = "$count" ] || echo "not $count units: $(cat output)"
}
# differs A B: print how the directories differ; ADIOS2's files depend on the number of ranks
differs() { diff -r -q -x '*.bp' "$1" "$2"; }
fresh() { rm -rf "$1"; }

# ---- ranks ----

for kind in volumes vectors; do
    formats=$all
    [ "$kind" = volumes ] || formats=hdf5,npy,csv,json,bp5
    result "$kind, 1 rank" "$(done_by 1 '' "$kind-1" "$kind" $formats -1 '' gzip)"
    sleep 1.1 # so that times in files would differ
    for ranks in 2 3 4; do
        result "$kind, $ranks ranks: the same bytes" "$(
            done_by $ranks '' "$kind-$ranks" "$kind" $formats -1 '' gzip
            differs "$kind-1" "$kind-$ranks")"
    done
done
[ -d volumes-1 ] || exit 1
units=$(tail -n 1 output)
run 1 whole volumes $all -1 ''
units=$(tail -n 1 output)

# ---- killed between units ----

dir=killed
for kill in 1 5 11 22; do
    for ranks in 1 3; do
        fresh $dir
        result "killed after $kill units, continued by $ranks" "$(
            run 1 $dir volumes $all $kill same
            [ $? = 137 ] || cat output
            [ -z "$(find $dir -type f -not -path '*/.outputs.tmp/*')" ] || find $dir
            done_by $ranks $((units - kill)) $dir volumes $all -1 same
            differs whole $dir
            find $dir -name '.*')"
    done
done
fresh $dir
result "several interruptions, also by the caller" "$(
    run 1 $dir volumes $all 3 same
    run 1 $dir volumes $all 6 same
    done_by 2 $((units - 9)) $dir volumes $all -2 same
    done_by 4 0 $dir volumes $all -1 same
    differs whole $dir)"
fresh $dir
result "stopped after the commit: files are complete, the next run has nothing to compute" "$(
    done_by 2 "$units" $dir volumes $all,bp5 -3 same
    differs whole $dir | grep -v 'Only in .*outputs.tmp$'
    done_by 3 0 $dir volumes $all,bp5 -1 same
    differs whole $dir
    find $dir -name '.*')"
fresh $dir
result "some ranks are killed" "$(
    run 3 $dir volumes $all 2 same && echo 'not killed'
    done_by 1 '' $dir volumes $all -1 same
    [ "$(tail -n 1 output)" -le $((units - 2)) ] || cat output
    differs whole $dir)"
fresh $dir
result "other settings start again" "$(
    run 1 $dir volumes $all 4 same
    done_by 1 "$units" $dir volumes $all -1 other
    differs whole $dir)"
fresh $dir
result "other samples start again" "$(
    run 1 $dir masks $all 4 same
    done_by 1 "$units" $dir volumes $all -1 same
    differs whole $dir)"
fresh $dir
result "without settings nothing is kept" "$(
    run 1 $dir volumes $all 4 ''
    done_by 1 "$units" $dir volumes $all -2 ''
    find $dir -mindepth 1)"
result "a complete directory is overwritten at the end only" "$(
    cp -r whole $dir-old && cp -r whole/b.npy $dir-old/other
    run 1 $dir-old masks $all 4 same
    differs whole $dir-old | grep -v 'Only in .*\(other\|outputs.tmp\)$'
    done_by 1 "$units" $dir-old volumes $all -1 same
    differs whole $dir-old | grep -v 'Only in .*other$')"
result "names of outputs do not leave the directory, and are unique" "$(
    run 1 names/in two npy -1 '' outside || cat output
    [ "$(cd names && find . -name a.npy | sort | xargs)" = \
        "./in/mask/scans/a.npy ./in/mask~2/scans/a.npy" ] || find names)"
# committed: interrupted between the renaming of outputs.h5 and of other files
committed() {
    fresh $dir
    run 1 $dir few hdf5,npy -2 same
    touch $dir/.outputs.tmp/committing
    mv $dir/.outputs.tmp/outputs.h5 $dir/
}
committed
result "the rest of a commit, with a copy that the first run did not make" "$(
    done_by 1 0 $dir few hdf5,npy -1 same copy
    cmp $dir/outputs.h5 $dir/co/py.h5)"
committed
rm $dir/.outputs.tmp/0/1.2
result "a file of an interrupted commit is gone" "$(
    run 1 $dir few hdf5,npy -1 same && echo 'no error'
    grep -q "^$dir/scans/a~2.npy: was complete in an interrupted run, but is missing now; remove $dir/.outputs.tmp" output ||
        cat output)"
fresh $dir
result "BP5, CSV and JSON after an interruption; an older BP5 file is replaced" "$(
    run 1 $dir vectors bp5 -1 ''
    cp -r $dir $dir-bp
    run 1 $dir vectors bp5,csv,json,npy,hdf5 17 same
    done_by 3 23 $dir vectors bp5,csv,json,npy,hdf5 -1 same
    differs vectors-1 $dir
    diff -q -r $dir/outputs.bp $dir-bp/outputs.bp > same
    [ -s same ] || echo 'the same BP5 file')"

# ---- damage ----

# damaged NAME UNITS COMMAND...: interrupted after 8 units, then the command is run in the temporary
# directory; the rest has at least so many units
damaged() {
    local what=$1 least=$2
    shift 2
    fresh $dir
    result "$what" "$(
        run 1 $dir volumes $all 8 same
        (cd $dir/.outputs.tmp && "$@")
        done_by 2 '' $dir volumes $all -1 same
        [ "$(tail -n 1 output)" -ge "$least" ] || echo "too few units: $(tail -n 1 output)"
        differs whole $dir)"
}
# shellcheck disable=SC2317  # called by damaged
flip() { # flip FILE OFFSET
    printf '\xff' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
# shellcheck disable=SC2317
flip_all() {
    local at
    for ((at = 0; at < $(stat -c %s "$1"); at += 16)); do flip "$1" $((at + 5)); done
}
damaged "the journal is cut" $((units - 7)) truncate -s 130 journal.0
damaged "a byte of the journal is flipped" $((units - 7)) flip journal.0 22
damaged "all records are flipped" "$units" flip_all journal.0
damaged "bytes are inserted" $((units - 8)) sed -i '1s/^/xyz/' journal.0
damaged "the journal is empty" "$units" truncate -s 0 journal.0
damaged "the settings are damaged" "$units" flip settings 20
damaged "the settings are cut" "$units" truncate -s 40 settings
damaged "the HDF5 file is gone" "$units" rm outputs.h5
damaged "scratch is cut" "$units" truncate -s 100 scratch
damaged "files of samples are gone" "$units" rm -r 0
damaged "the HDF5 file is cut" "$units" truncate -s 3000 outputs.h5
damaged "a file of a sample is cut" $((units - 7)) truncate -s -1 0/5.2

# ---- a failure at every place ----

# injected CALL WHAT STEP: every such call of a run fails in turn, in steps; the next run
# completes it
injected() {
    local n bad='' call=$1 what=$2 status
    for ((n = 1; n < 200; n += $3)); do
        fresh $dir
        rm -f log
        ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS-} LD_PRELOAD=$inject \
            DNN_INJECT="$call:$n:$what" DNN_INJECT_UNDER=$tmp/$dir DNN_INJECT_LOG=$tmp/log \
            guarded "$prog" "$tmp/$dir" few "$few" values,classes 0 -1 same gzip > one 2>&1
        status=$?
        [ -s log ] || break
        [ "$what" = KILL ] || [ $status = 0 ] || grep -q "$dir" one ||
            bad+="$call $n: status $status: $(cat one)"$'\n'
        guarded "$prog" "$tmp/$dir" few "$few" values,classes 0 -1 same gzip > two 2>&1 || bad+=$(cat two)
        bad+=$(differs few "$dir" && find "$dir" -name '.*')
    done
    [ "$n" -gt 3 ] || bad+="only $n calls"
    result "$call: $what, steps of $3" "$bad"
}
few=hdf5,nifti,png
if [ -e "$inject" ]; then
    run 1 few few $few -1 '' gzip
    injected rename KILL 1
    injected unlink KILL 3
    injected open KILL 7
    injected rename EIO 4
    injected fsync EIO 5
    injected write ENOSPC 5
else
    skip "a failure at every place" "$inject is not built"
fi
fresh $dir
result "a full disk" "$(
    (trap '' XFSZ && ulimit -f 2 && run 1 $dir volumes npy -1 same) && echo 'no error'
    grep -qx "$dir/.*: cannot be written: File too large" output || cat output
    done_by 1 '' $dir volumes npy -1 same
    differs whole $dir | grep -v 'Only in whole')"

# ---- messages ----

# refused NAME TEXT DIR KIND FORMATS
refused() {
    result "$1" "$(
        run 1 "$3" "$4" "$5" -1 '' && echo 'no error'
        [ "$(tail -n 1 output)" = "$2" ] || cat output)"
}
refused "a vector cannot be a NIfTI file" \
    "sample 0 (/in/put/scans/a.nii.gz): output mask of 4 cannot be written as nifti: 1 to 3 spatial axes are needed; write csv, json or npy instead" \
    bad vectors nifti
refused "nor a picture" \
    "sample 0 (/in/put/scans/a.nii.gz): output mask of 4 cannot be written as png: 2 or 3 spatial axes are needed; write csv, json or npy instead" \
    bad vectors png
refused "a volume has no row" \
    "sample 0 (/in/put/scans/a.nii.gz): output mask of 9x6x5x3 cannot be written as json: outputs of a classifier, without spatial axes, are needed; write npy, nifti or png instead" \
    bad volumes json
refused "two channels are no picture" \
    "sample 0 (/in/put/scans/a.nii.gz): output mask of 6x5x2 cannot be written as png: values need 1 or 3 channels; write classes instead (--content classes)" \
    bad two png
touch file
refused "a directory that is a file" "file: cannot be created: exists and is not a directory" \
    file/x volumes npy
result "the same on every rank" "$(
    run 3 bad vectors nifti -1 '' && echo 'no error'
    [ "$(grep -c 'cannot be written as nifti' output)" = 1 ] || cat output)"
finish
