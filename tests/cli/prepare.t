#!/bin/bash
# prepare.t - dnn-prepare from the command line: datasets from generators, arrays and options,
# by one process and several; stopped, killed, on a full disk; messages.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"
tmp=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/dnn-prepare.XXXXXX")") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

# gives STATUS MESSAGE COMMAND...: run it and compare exit status and message
gives() {
    local want=$1 text=$2 got status=0
    shift 2
    guarded "$@" > /dev/null 2> err || status=$?
    got=$(sed "s|$tmp/||g" err)
    if [ "$status" = "$want" ] && [ "$got" = "$text" ]; then
        result "$text" ""
    else
        result "$text" "$(printf 'status %s, wanted %s\n got: %s' "$status" "$want" "$got")"
    fi
}

# quiet COMMAND...: print its output, and its status if that is not 0
quiet() {
    guarded "$@" 2>&1 || echo "status $?"
}

# hash_of DATASET
hash_of() {
    dnn-prepare --quiet --describe "$1" | sed -nE 's/^ +hash +//p'
}

# ---- wrong command lines ----

gives 2 'dnn-prepare: give a configuration file, --from=PATH or --generate=NAME' dnn-prepare
gives 2 'dnn-prepare: --to=DATASET.bp is missing' dnn-prepare --from x
gives 2 'dnn-prepare: unknown option --resise; did you mean --resize?' dnn-prepare --resise=3
gives 2 'dnn-prepare: --preview takes two names: OUT.png DATASET' dnn-prepare --preview 3 a.bp
gives 2 'dnn-prepare: give one of --describe, --verify, --preview and --export' dnn-prepare --describe --verify a.bp
gives 2 'dnn-prepare: the name of one dataset is needed' dnn-prepare --verify
gives 2 'dnn-prepare: with a configuration file only --to, --replace and --restart are allowed; set everything else in c.json' \
    dnn-prepare --seed 3 c.json
gives 3 'dnn-prepare: command line:1: steps[0].normalise: must be one of channel, dataset, volume, minmax, percentiles, given, not "chanel"; did you mean "channel"?' \
    dnn-prepare --generate blobs3d --to a.bp --normalise chanel
gives 5 'dnn-prepare: nowhere: cannot be read: No such file or directory' dnn-prepare -q --from nowhere --to a.bp
touch file
gives 5 'dnn-prepare: file: cannot be created: exists and is not a directory' dnn-prepare -q --generate blobs3d --set samples=2 --to file/a.bp
result "formats are listed" "$(dnn-prepare --list-formats | grep -q '^  npy ' || echo "no npy")"

# ---- NIfTI files of a dataset ----

# round NAME OPTION...: a dataset that is exported, prepared and exported again is the same
round() {
    local name=$1
    shift
    result "$name: the same after export and preparation" "$(
        quiet dnn-prepare -q --generate "$@" --to one.bp
        quiet dnn-prepare -q --export one one.bp
        target=()
        [ ! -d one/target ] || target=(--target one/target --target-kind mask)
        quiet dnn-prepare -q --from one/input "${target[@]}" --to two.bp
        quiet dnn-prepare -q --export two two.bp
        [ "$(find one -name '*.nii' | wc -l)" -ge 3 ] || echo "too few files"
        diff -r one two)"
    rm -rf one two one.bp two.bp
}
if dnn-prepare --list-formats | grep '^  nifti ' | grep -q 'not in this build'; then
    skip "the same after export and preparation" "no NIfTI in this build"
else
    round volumes blobs3d --set samples=3 --set size=8,9,10 --set classes=2
    round images blobs3d --set samples=3 --set space=2 --set size=16
    round scaled blobs3d --set samples=3 --set size=8 --type i16
fi
printf 'a,b\n1,2\n3,4\n' > table.csv
dnn-prepare -q --from table.csv --to values.bp
gives 4 'dnn-prepare: values.bp: has no images or masks to export' dnn-prepare -q --export none values.bp

# ---- one process and several ----

cat > prepare.json << EOF
{"generate": {"type": "blobs3d", "samples": 20, "seed": 5}, "to": "out.bp", "seed": 7,
 "chunk": "64KiB", "piece": "256KiB",
 "steps": [{"split": {"train": 0.8, "test": 0.2, "folds": 2}}, {"normalise": "channel"},
           {"slice": {"sizes": [16, 16, 16]}}, {"type": "i16"}]}
EOF
result "generated samples become a dataset" "$(quiet dnn-prepare -q prepare.json)"
want=$(hash_of out.bp)
result "with a hash" "$([ "${#want}" = 32 ] || echo "\"$want\"")"
result "--verify succeeds" "$(guarded dnn-prepare -q --verify out.bp 2>&1 | grep -v 'all checksums match')"
result "no temporary files are left" "$(find . -maxdepth 1 -name '.?*')"
result "the same command again does nothing" "$(guarded dnn-prepare prepare.json 2>&1 |
    grep -vxF 'prepare: out.bp: up to date, made by this configuration from these files')"
sed 's/"seed": 7/"seed": 8/' prepare.json > other.json
gives 5 'dnn-prepare: out.bp: exists already and was made by another configuration or from other files; use --replace to replace it' \
    dnn-prepare -q other.json
: > .out.bp.second.bp.host-1.part
result "--replace replaces it" "$(quiet dnn-prepare -q --replace other.json)"
result "but not what belongs to another dataset" "$(rm .out.bp.second.bp.host-1.part 2>&1)"
result "and its hash is another" "$([ "$(hash_of out.bp)" != "$want" ] || echo same)"
for ranks in 2 3; do
    rm -rf out.bp
    # Open MPI may print warnings about networks.
    result "$ranks ranks make a dataset" "$(quiet "${MPIEXEC:-mpiexec}" -n $ranks dnn-prepare -q prepare.json | grep -E '^(status|dnn-prepare)')"
    result "$ranks ranks: the same hash" "$([ "$(hash_of out.bp)" = "$want" ] || hash_of out.bp)"
done
result "$ranks ranks print an error once" "$(
    guarded "${MPIEXEC:-mpiexec}" -n 3 dnn-prepare -q other.json 2>&1 | grep -c 'exists already' | grep -vx 1)"

# ---- stopped, changed, damaged ----

# stop_after N PID: send SIGTERM when there are N pieces
stop_after() {
    wait_for pieces "$1"
    kill -TERM "$2"
}
# shellcheck disable=SC2317  # called through wait_for
pieces() {
    [ "$(find .out.bp.work -name 'piece-*' | wc -l)" -ge "$1" ]
}
# Many small pieces, so that it can be stopped in the middle.
sed 's/"samples": 20/"samples": 100/; s/"256KiB"/"64KiB"/' prepare.json > long.json
quiet dnn-prepare -q --to whole.bp long.json
long=$(hash_of whole.bp)
rm -rf out.bp whole.bp
dnn-prepare -q long.json 2> err &
pid=$!
stop_after 3 $pid
status=0
wait $pid || status=$?
result "SIGTERM: status 75" "$([ "$status" = 75 ] || echo "status $status: $(cat err)")"
result "the message explains how to continue" "$(
    grep -qE '^dnn-prepare: stopped by SIGTERM while preparing, [0-9]+ of [0-9]+ done; run the same command again to continue$' err || cat err)"
result "no dataset yet" "$([ ! -e out.bp ] || echo "it is there")"
# One of its pieces is changed.
piece=$(find .out.bp.work -name 'piece-*' | sort | head -n 1)
printf X | dd of="$piece" bs=1 seek=5000 conv=notrunc 2> /dev/null
guarded dnn-prepare long.json 2> err
result "it continues" "$(grep -q 'continuing the interrupted preparation' err || cat err)"
result "a damaged piece is reported" "$(grep -q 'damaged and removed; run the same command again' err || cat err)"
# And another piece is removed.
rm -f "$(find .out.bp.work -name 'known-*' | sort | tail -n 1)"
guarded dnn-prepare -q long.json 2> err
result "a missing piece is reported" "$(grep -q 'cannot be read: No such file' err || cat err)"
result "both are made again" "$(quiet dnn-prepare -q long.json)"
result "the same hash as without interruption" "$([ "$(hash_of out.bp)" = "$long" ] || echo another)"

rm -rf out.bp
dnn-prepare -q long.json 2> err &
pid=$!
stop_after 2 $pid
wait $pid
guarded dnn-prepare prepare.json 2> err
result "another configuration starts from the beginning" \
    "$(grep -q 'another configuration, version or other files; starting over' err || cat err)"
result "and gives its own dataset" "$([ "$(hash_of out.bp)" = "$want" ] || echo another)"

# ---- two at once ----

rm -rf out.bp
dnn-prepare -q long.json 2> err &
pid=$!
wait_for test -e .out.bp.work/manifest
kill -STOP $pid
gives 5 "dnn-prepare: .out.bp.work: another dnn-prepare is working on this dataset: process $pid on $(hostname); wait for it, or stop it" \
    dnn-prepare -q long.json
kill -CONT $pid
wait $pid
result "the first one is not affected" "$([ "$(hash_of out.bp)" = "$long" ] || cat err)"

# ---- system calls that fail, and kills before a rename ----

inject=$(realpath "${DNN_INJECT_SO:-${top_builddir:-.}/tests/inject.so}" 2> /dev/null)
# with CALL:N:WHAT: a run in which that call fails; its status
with() {
    rm -f log
    ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS-} LD_PRELOAD=$inject DNN_INJECT=$1 DNN_INJECT_UNDER=$tmp \
        DNN_INJECT_LOG=$tmp/log guarded dnn-prepare -q prepare.json > /dev/null 2> err
}
if [ -e "$inject" ]; then
    bad='' n=1 kills=0
    rm -rf out.bp
    while [ "$n" -lt 300 ]; do
        with "rename:$n:KILL" 2> /dev/null
        [ -s log ] || break
        if [ -e out.bp ] && ! guarded dnn-prepare -q --verify out.bp > /dev/null 2>&1; then bad="$bad $n"; fi
        kills=$((kills + 1))
        [ ! -e out.bp ] || rm -rf out.bp .out.bp.work
        n=$((n + 1 + n / 4))
    done
    result "killed before a rename: the dataset is complete or absent" "$bad"
    result "there were several renames" "$([ "$kills" -gt 3 ] || echo "$kills")"
    result "the next run finishes it" "$([ "$(hash_of out.bp)" = "$want" ] || cat err)"
    rm -rf out.bp
    for what in write:1 write:4 write:12 fsync:2 fsync:9; do
        with "$what:ENOSPC"
        status=$?
        result "no space left ($what): status 5 and a message" "$(
            [ "$status" = 5 ] || echo "status $status"
            grep -qE 'the disk is full|No space left on device' err || cat err)"
    done
    result "with space again it continues" "$(quiet dnn-prepare -q prepare.json)"
    result "with the same hash" "$([ "$(hash_of out.bp)" = "$want" ] || echo another)"
else
    skip "system calls that fail" "tests/inject.so is not built"
fi

# ---- arrays of NumPy, compared by Python's ADIOS2 ----

if python3 -c 'import numpy; from adios2.bindings import adios2_bindings_mpi' 2> /dev/null; then
    cat > peer.py << 'EOF'
import subprocess
import sys
import numpy as np
from adios2.bindings import adios2_bindings_mpi as adios2

splits = ("train", "validation", "test")
x = np.random.default_rng(1).integers(0, 256, (30, 5, 7, 3), dtype=np.uint8)
y = np.arange(30) % 3
np.savez("a.npz", x=x, y=y)
run = subprocess.run(["dnn-prepare", "-q", "--from", "a.npz", "--to", "a.bp", "--target-kind", "label",
                      "--normalise", "channel", "--split", "0.8,0.1,0.1", "--stratify"],
                     capture_output=True, text=True)
if run.returncode:
    sys.exit(run.stderr)
words = subprocess.run(["xxhsum", "-H2", "a.npz"], capture_output=True, text=True).stdout.split()
adios = adios2.ADIOS()
io = adios.DeclareIO("dataset")
io.SetEngine("BP5")
engine = io.Open("a.bp", adios2.Mode.ReadRandomAccess)


def values(name, dtype):
    var = io.InquireVariable(name)
    out = np.empty(var.Shape(), dtype)
    engine.Get(var, out, adios2.Mode.Sync)
    return out


inputs = [values(s + "/input", np.uint8) for s in splits]
labels = [values(s + "/target", np.int64) for s in splits]
text = io.InquireAttribute("dataset/provenance").DataString()[0]
got = np.concatenate(inputs)
order = [int(np.where((x == g).all(axis=(1, 2, 3)))[0][0]) for g in got]
if sorted(order) != list(range(30)):
    print("samples are lost:", order)
if not (y[order] == np.concatenate(labels)).all():
    print("labels are mixed up")
if [len(i) for i in inputs] != [24, 3, 3]:
    print("shares", [len(i) for i in inputs])
if any((np.bincount(l) != len(l) // 3).any() for l in labels):
    print("classes", [np.bincount(l) for l in labels])
if words and words[0] not in str(text):
    print("the record lacks", words[0])
EOF
    result "Python's ADIOS2 reads the same arrays" "$(guarded python3 peer.py 2>&1)"
else
    skip "Python's ADIOS2 reads the same arrays" "no python3 with numpy and adios2"
fi
finish
