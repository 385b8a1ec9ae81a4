#!/bin/bash
# train_files.t - log and files of a run: header, run.json, tables, pictures, report; with two
# ranks, resumed, stopped, and with --quiet.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-train-files.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache

cat > prepare.json << END
{"generate": {"type": "blobs3d", "samples": 16, "size": 12, "classes": 2, "noise": 0.05},
 "to": "blobs.bp", "seed": 3, "steps": [{"split": {"train": 0.75, "validation": 0.25}}]}
END
cat > train.json << END
{"layers": {"zoo": "unet3d", "base": 2, "depth": 1, "classes": 3, "input": [12, 12, 12, 1]},
 "data": {"dataset": "blobs.bp", "validation": "validation", "batch_size": 4, "test_batch_size": 4},
 "num_epochs": 4, "seed": 5, "loss": "cross_entropy",
 "optimizer": {"type": "Adam", "learning_rate": 0.01},
 "telemetry": {"steps": 2, "pictures": 2, "jsonl": true, "interval": 0.001}}
END
guarded dnn-prepare -q prepare.json || exit 1

# train STATUS ARGS...: prints errors; stdout and stderr are in out and err
train() {
    local want=$1 status=0
    shift
    guarded dnn-train --kernels=heuristic "$@" train.json > out 2> err || status=$?
    [ "$status" = "$want" ] || { echo "status $status, not $want"; cat err; }
}
# has FILE PATTERN...: prints the patterns that are not in it
has() {
    local file=$1 p
    shift
    for p in "$@"; do
        grep -q -- "$p" "$file" || echo "$file has no '$p'"
    done
}

result "two epochs of four" "$(train 0 --set dir=run --set num_epochs=2)"
result "the header" "$(has err '^train: dnn-toolkit [0-9.]*, train.json$' \
    '^train: 1 rank with 1 thread each on 1 node: .* (1 rank); backend: cpu$' '^train: binding: ' \
    '^train: data: blobs.bp (train 12, validation 4 samples); input 12x12x12x1, target 12x12x12x1 of 3 classes$' \
    '^train: network: unet3d$' '^train: layer (type)  *output shape' \
    '^train: predictions (Conv3D)  *?x12x12x12x3  *9  up1_2_relu$' \
    '^train: parameters: [0-9,]* ([0-9,]* trainable)$' '^train: memory per rank: [0-9.]* [KM]iB$' \
    '^train: training: 12 samples, batch size 4, 3 steps per epoch, 2 epochs$' \
    '^train: validation: 4 samples$' '^train: run directory: run$')"
result "the estimated time is logged once" "$(
    n=$(grep -c '^train: estimated time: [0-9.]* m*s per epoch, .* in total$' err)
    [ "$n" = 1 ] || cat err)"
result "progress lines" "$(has err '^epoch 1/2, batch [123]/3: loss [0-9.]*, |g| [0-9.]*, [0-9.]* samples/s, data [0-9]* %, compute [0-9]* %, comm 0 %' \
    '^evaluating epoch 1/2, batch 1/1' '^epoch 2/2: loss [0-9.]*, val_loss [0-9.]*, val_accuracy [0-9.]*, [0-9.]* samples/s, data')"
result "the last lines name the files" "$(sed -n '/^trained: 2 epochs, 6 steps/,$p' err | sed 1d | diff - <(
    cat << END
train: checkpoint: run/checkpoints/ckpt-000000006.bp (best: run/checkpoints/best.bp)
train: metrics: run/metrics.csv
train: run record: run/run.json
train: report: run/report.html
train: pictures: run/pictures
END
))"
result "and the trained network" "$(has err 'saved the network: run/model.json, run/model.weights.h5, run/model.keras, run/model.dnn$')"
result "the other two epochs" "$(train 0 --set dir=run; has err 'resuming from the checkpoint of step 6')"

# columns FILE: a row per line, of the named columns
columns() {
    awk -F , -v want="$2" 'NR == 1 { n = split(want, w, " ")
        for (i = 1; i <= NF; i++) at[$i] = i
        for (i = 1; i <= n; i++) if (!(w[i] in at)) print "no column " w[i]; next }
        { for (i = 1; i <= n; i++) printf "%s%s", (i == 1 ? "" : " "), $at[w[i]]; print "" }' "$1"
}
result "metrics.csv: a row per epoch, with numbers" "$(
    columns run/metrics.csv "epoch samples_per_second data compute comm grad_norm" |
        awk '$1 != NR || !($2 > 0) || !($6 > 0) || $3 < 0 || $4 <= 0 { print }
            { s = $3 + $4 + $5; if (s < 0.999 || s > 1.001) print "shares: " s }
            END { if (NR != 4) print NR " rows" }')"
result "steps.csv: a row every other step" "$(
    [ "$(columns run/steps.csv step | tr '\n' ' ')" = "2 4 6 8 10 12 " ] || cat run/steps.csv)"
result "the report has curves, a confusion matrix and pictures, and no links to other files" "$(
    has run/report.html '<svg' 'aria-label="loss"' 'aria-label="share of time, %"' 'loss by step' \
        'src="data:image/png;base64,' 'sample 0: [0-9.]* % correct' '<table class="matrix">' '<td>finished</td>'
    [ "$(grep -o 'src="data:image/png' run/report.html | wc -l)" = 2 ] || echo "not two pictures"
    grep -o 'http[^ ]*' run/report.html)"

cat > check.py << 'END'
import json, sys
def no_twice(pairs):
    keys = [k for k, _ in pairs]
    if len(set(keys)) != len(keys): print("a key twice in", keys)
    return dict(pairs)
r = json.load(open("run/run.json"), object_pairs_hook=no_twice)
want = {"status": "finished", "seed": 5, "ranks": 1, "threads": 1, "nodes": 1, "epochs": 4,
        "steps": 12, "batch_size": 4, "micro_batches": 1, "backend": "cpu", "config_file": "train.json"}
for k, v in want.items():
    if r.get(k) != v: print(k, "is", r.get(k), "not", v)
for k in "version build command directory hosts binding bucket_size memory_per_rank started ended libraries adios2".split():
    if not r.get(k): print("nothing under", k)
if not r["command"].endswith("dnn-train --kernels=heuristic --set dir=run train.json"): print(r["command"])
if r["config"]["optimizer"]["beta2"] != 0.999 or r["config"]["num_epochs"] != 4: print("another configuration")
d, n = r["data"], r["network"]
if (d["path"], d["split"], d["training_samples"], d["evaluation_samples"], len(d["hash"])) != (
        "blobs.bp", "train", 12, 4, 32): print(d)
if n["name"] != "unet3d" or n["parameters"] <= n["trainable"] or n["layers"]["base"] != 2: print(n)
if [(e["step"], e["epoch"], e["ranks"]) for e in r["resumed"]] != [(6, 2, 1)]: print(r["resumed"])
if not 0 < r["metrics"]["val_accuracy"] <= 1 or not r["seconds"] > 0: print(r["metrics"])
if r["started"] > r["ended"]: print(r["started"], r["ended"])
last = [json.loads(l) for l in open("run/metrics.jsonl")][-1]
if last["epoch"] != 4 or abs(last["val_accuracy"] - r["metrics"]["val_accuracy"]) > 1e-8: print(last)
END
if command -v python3 > /dev/null; then
    result "run.json is JSON with all its keys" "$(python3 check.py 2>&1)"
else
    skip "run.json is JSON with all its keys" "no python3"
fi

cat > pictures.py << 'END'
import PIL.Image
SIDE, GAP = 192, 10                      # 12 pixels, enlarged 16 times
colours = {(0, 0, 0), (0xE6, 0x32, 0x3C), (0x3C, 0xB4, 0x4B)}
for i in (1, 2):
    im = PIL.Image.open("run/pictures/prediction-%02d.png" % i)
    if im.size != (3 * SIDE + 4 * GAP, GAP + 20 + SIDE + GAP + 2 * 20) or im.mode != "RGB":
        print(i, im.size, im.mode)
        continue
    for panel in range(3):
        x = GAP + panel * (SIDE + GAP)
        got = {c for _, c in im.crop((x, 30, x + SIDE, 30 + SIDE)).getcolors(100000)}
        if panel == 0 and (len(got) < 10 or any(len(set(c)) > 1 for c in got)):
            print("input", i, "is not grey:", len(got), "colours")
        if panel > 0 and not got <= colours:
            print("classes in other colours", got)
END
if python3 -c 'import PIL.Image' 2> /dev/null; then
    result "pictures: the middle plane of the volume, and classes in their colours" "$(python3 pictures.py 2>&1)"
else
    skip "pictures: the middle plane of the volume, and classes in their colours" "no python3-pil"
fi

# ---- run again, quiet, as JSON, on two ranks, stopped ----

result "the same command again does not train and does not change the report" "$(
    cp run/report.html before
    train 0 --set dir=run
    cmp before run/report.html
    has run/run.json '"status": "finished"' '"metrics": {"loss"')"
result "a new run in the same directory: the report has nothing of the old run" "$(
    cp -r run anew
    train 0 --set dir=anew --set checkpoints.resume=false --set telemetry.pictures=1 --set num_epochs=1
    [ "$(ls anew/pictures)" = prediction-01.png ] || ls anew/pictures
    [ "$(grep -o 'src="data:image/png' anew/report.html | wc -l)" = 1 ] || echo "other pictures"
    has anew/run.json '"resumed": \[\]')"
result "--quiet prints nothing" "$(train 0 -q --set dir=quiet --set num_epochs=1; cat out err; has quiet/run.json finished)"
result "--json: one object per line, on stdout only" "$(
    train 0 -q --json --set dir=json --set num_epochs=2
    cat err
    sed 's/"time": "[^"]*"//' out | diff - <(sed 's/"time": "[^"]*"//' json/metrics.jsonl)
    [ "$(grep -c '^{.*}$' out)" = 5 ] || cat out)"
result "two ranks" "$(
    status=0
    guarded "$MPIEXEC" -n 2 dnn-train --kernels=heuristic --set dir=two train.json > out 2> err || status=$?
    [ $status = 0 ] || { echo "status $status"; cat err; }
    has err '^train: 2 ranks with 1 thread each on 1 node: .* (2 ranks); backend: cpu$'
    has two/run.json '"ranks": 2' '"status": "finished"' '"mpi": "Open MPI'
    has two/report.html '<table class="matrix">' 'src="data:image/png'
    columns two/metrics.csv "data compute comm" |
        awk '{ s = $1 + $2 + $3; if (s < 0.999 || s > 1.001 || !($3 > 0)) print }')"
result "no pictures and no report, if disabled" "$(
    train 0 --set dir=less --set telemetry.pictures=0 --set telemetry.report=false --set num_epochs=1
    find less -name "pictures*" -o -name "report*"
    grep '^train: report\|^train: pictures' err)"
result "stopped: run.json has the status, and there is a report" "$(
    mkfifo pipe
    dnn-train --kernels=heuristic --set dir=stop --set num_epochs=300 train.json > out 2> pipe &
    pid=$!
    while read -r line; do
        echo "$line"
        [[ $line != "epoch 2/"*": loss"*val_loss* ]] || kill -USR1 $pid
    done < pipe > err
    status=0
    wait $pid || status=$?
    [ $status = 75 ] || echo "status $status"
    has stop/run.json '"status": "stopped"' '"error": "stopped by SIGUSR1 after '
    has stop/report.html '<td>stopped</td>' 'src="data:image/png'
    has err '^train: checkpoint: stop/checkpoints/ckpt-' '^train: report: stop/report.html')"
result "NaN: run.json has status and error" "$(
    train 4 --set dir=nan --set optimizer.type=SGD --set optimizer.learning_rate=1000000 \
        --set optimizer.weight_decay=100000
    has nan/run.json '"status": "failed"' 'NaN or infinity, first in'
    has nan/report.html '<td>failed</td>'
    grep 'warn' err)"
finish
