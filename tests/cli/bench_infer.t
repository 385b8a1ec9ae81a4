#!/bin/bash
# bench_infer.t - dnn-bench infer with tiny networks: text, JSON, and that different outputs of a
# peer are found.  Speed is not tested.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp/cache TMPDIR=$tmp
DNN_TORCH_SCRIPTS=$(cd "$srcdir/src/bench/torch" && pwd)
export DNN_TORCH_SCRIPTS DNN_TORCH=python3 OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive
tiny=(--model unet3d --size 8 --base 2 --depth 1 --reps 3)

bench() { guarded dnn-bench --quiet infer "$@"; }
# has FILE PATTERN...: prints an error and the file if a pattern is not in it
has() {
    local file=$1 pattern
    shift
    for pattern in "$@"; do
        grep -qE -- "$pattern" "$file" || { echo "no $pattern in:"; cat "$file" "$tmp/err"; }
    done
}
# status WANT CMD...: prints an error if CMD ends with another status; stderr is in $tmp/err
status() {
    local want=$1 status=0
    shift
    "$@" 2> "$tmp/err" || status=$?
    [ "$status" = "$want" ] || { echo "status $status, wanted $want"; cat "$tmp/err"; }
}
keys() { grep -oE '"[a-z_]+":' | tr -d '":' | tr '\n' ' '; }

bench "${tiny[@]}" --json > "$tmp/json" 2> "$tmp/err"
result "without a peer: keys" "$(
    got=$(keys < "$tmp/json")
    [ "$got" = "seconds fastest slowest turns gflops threads peers " ] || cat "$tmp/json" "$tmp/err"
)"
bench "${tiny[@]}" > "$tmp/text" 2> "$tmp/err"
result "without a peer: text" "$(has "$tmp/text" '^inference: .* GFLOP/s, 3 turns$' '^dnn-toolkit .* ms$')"
result "no network" "$(status 2 bench; has "$tmp/err" '^dnn-bench: no network: give either')"

# ---- a peer that is a script ----

mkdir "$tmp/fake"
cat > "$tmp/fake/torch_infer.py" << 'END'
import json, os, sys
kind = sys.argv[sys.argv.index("--with") + 1]
files = sorted(os.listdir(sys.argv[sys.argv.index("--dir") + 1]))
def reply(**what):
    print(json.dumps(what), flush=True)
if files != ["input0.f32", "net.json", "net.weights.h5", "output0.f32"]:
    sys.exit(f"Error: {files}")
reply(python="/no/python", torch="9.1", mkl=True, onednn="4.5", threads=2, onnxruntime="7.7",
      seconds=1 if kind == "contiguous" else 2)
for line in sys.stdin:
    verb, word = line.split()
    if verb == "compile":
        reply(reason=None)
    elif verb == "compare":
        reply(error=2e-6 if kind == "onnxruntime" else 1e-6)
    else:
        reply(seconds={"eager": 4, "compile": 3, "session": 5}[word] + (kind == "channels_last"))
END
if command -v python3 > /dev/null; then
    export DNN_TORCH_SCRIPTS=$tmp/fake
    bench "${tiny[@]}" --against both > "$tmp/text" 2> "$tmp/err"
    result "all variants are listed, and the fastest of each peer is compared" "$(has "$tmp/text" \
        '^against PyTorch 9.1 with MKL, oneDNN 4.5, 2 threads \(/no/python\)$' \
        '^against ONNX Runtime 7.7$' '^PyTorch +contiguous, eager +4 s +4 s +4 s +1.0e-06' \
        '^PyTorch +channels_last, eager +5 s' '^PyTorch +contiguous, compile +3 s' \
        '^ONNX Runtime +5 s +5 s +5 s +2.0e-06' 'times as fast as PyTorch$' \
        'times as fast as ONNX Runtime$')"
    bench "${tiny[@]}" --against both --json > "$tmp/json" 2> "$tmp/err"
    result "ratios are quotients of medians" "$(python3 - "$tmp/json" 2>&1 << 'END'
import json, sys
got = json.load(open(sys.argv[1]))
want = {"torch": 3, "onnxruntime": 5}
for key, seconds in want.items():
    quotient = seconds / got["seconds"] / got[f"ratio_{key}"]
    if not 0.999 < quotient < 1.001:
        print(key, got)
if [p["error"] for p in got["peers"]] != [1e-6, 1e-6, 2e-6, 1e-6] or got["bound"] != 1e-5:
    print(got)
END
    )"
    result "an output that differs ends it with status 6, without a time" "$(
        status 6 bench "${tiny[@]}" --against both --bound 1.5e-6 > "$tmp/text"
        has "$tmp/err" '^dnn-bench: the outputs differ from those of ONNX Runtime \(onnxruntime, session\) by 2e-06 .* --bound 1.5e-06'
        cat "$tmp/text")"
    printf 'import sys\nsys.exit("No module named '"'onnxruntime'"'")\n' > "$tmp/fake/torch_infer.py"
    result "without ONNX Runtime, the message explains what to do" "$(
        status 5 bench "${tiny[@]}" --against onnxruntime
        has "$tmp/err" '^dnn-bench: python3 has no onnxruntime; install it with "dnn-bench torch --install"')"
    export DNN_TORCH_SCRIPTS="$srcdir/src/bench/torch"
else
    skip "a peer that is a script" "no python3"
fi
result "no temporary files are left" "$(find "$tmp" -maxdepth 1 -name 'dnn-bench-*')"

# ---- PyTorch, and ONNX Runtime of the virtual environment ----

cat > "$tmp/net.json" << 'END'
{"class_name": "Sequential", "config": {"layers": [
 {"class_name": "Conv2D", "config": {"name": "c", "batch_input_shape": [null, null, null, 3],
  "filters": 8, "kernel_size": 3, "use_bias": false}},
 {"class_name": "BatchNormalization", "config": {"name": "n"}},
 {"class_name": "Activation", "config": {"name": "a", "activation": "relu"}},
 {"class_name": "GlobalAveragePooling2D", "config": {"name": "g"}},
 {"class_name": "Dense", "config": {"name": "d", "units": 5}}]}}
END
# same PEER: prints an error unless the outputs of two networks equal those of the peer
same() {
    local net
    for net in "${tiny[*]}" "--layers $tmp/net.json --size 12x10 --batch 3 --reps 1"; do
        # shellcheck disable=SC2086  # words
        status 0 bench $net --against "$1" --compile 0 --json > "$tmp/json"
        has "$tmp/json" "\"ratio_$1\": [0-9]" '"error": [0-9.e-]+[1-9]'
    done
}
# peer PEER PYTHON MODULES: compare with it, if this Python has it
peer() {
    export DNN_TORCH=$2
    if "$2" -c "import $3" 2> /dev/null; then
        result "the outputs equal those of $1" "$(same "$1")"
        result "a bound smaller than rounding is exceeded by $1" \
            "$(status 6 bench "${tiny[@]}" --against "$1" --compile 0 --bound 1e-30)"
    else
        skip "the outputs equal those of $1" "$2: no $3"
        skip "a bound smaller than rounding is exceeded by $1" "$2: no $3"
    fi
}
peer torch python3 'torch, h5py'
peer onnxruntime "${DNN_PEER_PYTHON:-/opt/dnn-peer/bin/python3}" 'onnxruntime, onnx, torch, h5py'
finish
