#!/bin/bash
# bench_step.t - dnn-bench step and ops with tiny networks: their text and JSON output.  Speed
# is not tested.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp/cache
DNN_TORCH_SCRIPTS=$srcdir/src/bench/torch
export DNN_TORCH_SCRIPTS DNN_TORCH=python3 OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive
tiny=(--model unet3d --size 8 --base 2 --depth 1 --reps 5)

bench() { guarded dnn-bench --quiet "$@"; }
keys() { grep -oE '"[a-z_]+":' | tr -d '":' | tr '\n' ' '; }
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
number() { sed -nE "s/.*\"$1\": ([0-9.e+-]+).*/\1/p"; }

# ---- step ----

bench step "${tiny[@]}" --json > "$tmp/json" 2> "$tmp/err"
result "one line of JSON" "$([ "$(wc -l < "$tmp/json")" = 1 ] || cat "$tmp/json" "$tmp/err")"
result "with its keys in order" "$(
    got=$(keys < "$tmp/json")
    want="train_s train_gflops infer_s infer_gflops sgemm_gflops memory_predicted memory_measured "
    [ "$got" = "$want" ] || echo "$got"
)"
for key in train_s infer_s train_gflops sgemm_gflops memory_predicted; do
    result "$key is above 0" "$(
        x=$(number "$key" < "$tmp/json")
        awk -v x="$x" 'BEGIN { exit !(x > 0) }' || echo "$key: $x"
    )"
done
if command -v python3 > /dev/null; then
    result "it is valid JSON" "$(python3 -m json.tool < "$tmp/json" 2>&1 > /dev/null)"
else
    skip "it is valid JSON" "no python3"
fi

bench step "${tiny[@]}" --rows 3 > "$tmp/text" 2> "$tmp/err"
result "there are tables for training and inference" "$(has "$tmp/text" '^training step$' '^inference$')"
result "layers and kinds of ops" "$(has "$tmp/text" '^  layer .*GFLOP/s$' '^  conv  *backward weights')"
result "memory, predicted and measured" "$(has "$tmp/text" '^  memory .* predicted, .* measured')"

# A Keras file instead of the zoo, another size, loss and optimizer, with recomputation.
cat > "$tmp/net.json" << 'END'
{"class_name": "Sequential", "config": {"layers": [
 {"class_name": "Conv2D", "config": {"name": "c", "batch_input_shape": [null, null, null, 3],
  "filters": 4, "kernel_size": 3, "activation": "relu"}},
 {"class_name": "GlobalAveragePooling2D", "config": {"name": "g"}},
 {"class_name": "Dense", "config": {"name": "d", "units": 5, "activation": "softmax"}}]}}
END
bench step --layers "$tmp/net.json" --size 12x10 --batch 3 --loss xent --optimizer sgd \
    --recompute true --no-fuse --json > "$tmp/json" 2> "$tmp/err"
result "any Keras file, with a size" "$([ "$(number train_s < "$tmp/json")" ] || cat "$tmp/err")"

# fails STATUS MESSAGE ARGS...: it ends with this status and message
fails() {
    local want=$1 text=$2 status=0
    shift 2
    bench step "$@" > /dev/null 2> "$tmp/err" || status=$?
    result "$*" "$(
        [ "$status" = "$want" ] || echo "status $status, wanted $want"
        [ "$(sed "s|$tmp/||g" "$tmp/err")" = "dnn-bench: $text" ] || cat "$tmp/err"
    )"
}
fails 2 'no network: give either --model NAME or --layers FILE' --size 8
fails 3 'the zoo has no network "unet5d"; did you mean "unet2d"?' --model unet5d
fails 3 'the network simplecnn has no option "depth"' --model simplecnn --depth 2
fails 2 "the size 8x8: the network's input has 3 spatial axes; give as many sizes, or one for all" \
    --model unet3d --size 8x8
fails 3 'unknown backend "abacus"; this build has '"$(
    bench step --model simplecnn --backend abacus 2>&1 | sed 's/.*this build has //')" --model simplecnn --backend abacus
fails 2 '--memory-limit: must be a size such as 16GiB, not "much"' "${tiny[@]}" --memory-limit much
fails 3 "net.json:2: layer 'c_input' (InputLayer): the shape of the input is ?x?x?x3; give the unknown dimensions" \
    --layers "$tmp/net.json"
result "a memory limit that is too small" "$(status 8 bench step "${tiny[@]}" --memory-limit 10KiB)"

# ---- against PyTorch ----

mkdir "$tmp/empty"
result "without the script, the message has the directories searched" "$(
    export DNN_TORCH_SCRIPTS=$tmp/empty
    status 5 bench step "${tiny[@]}" --against torch
    has "$tmp/err" 'empty/torch_step.py \(DNN_TORCH_SCRIPTS\)'
)"
printf 'import sys\nsys.exit("No module named '"'torch'"'")\n' > "$tmp/empty/torch_step.py"
if command -v python3 > /dev/null; then
    DNN_TORCH_SCRIPTS=$tmp/empty bench step "${tiny[@]}" --against torch > /dev/null 2> "$tmp/err"
    result "without PyTorch, the message explains what to do" "$(has "$tmp/err" \
        '^dnn-bench: python3 has no PyTorch; install it with "dnn-bench torch --install", or name another Python in DNN_TORCH$')"
else
    skip "without PyTorch, the message explains what to do" "no python3"
fi
if python3 -c 'import torch, numpy' 2> /dev/null; then
    bench step "${tiny[@]}" --against torch --compile 0 --json > "$tmp/json" 2> "$tmp/err"
    result "against PyTorch: keys" "$(
        got=$(keys < "$tmp/json")
        want="train_s train_gflops infer_s infer_gflops sgemm_gflops memory_predicted memory_measured "
        want+="torch torch_mkl torch_onednn torch_memory torch_train_s torch_train_mode ratio_train torch_infer_s torch_infer_mode ratio_infer "
        [ "$got" = "$want" ] || { echo "$got"; cat "$tmp/err"; }
    )"
    result "the ratio is the quotient of the times" "$(
        awk -v t="$(number torch_train_s < "$tmp/json")" -v o="$(number train_s < "$tmp/json")" \
            -v r="$(number ratio_train < "$tmp/json")" \
            'BEGIN { q = t / o / r; exit !(q > 0.99 && q < 1.01) }' || cat "$tmp/json"
    )"
else
    skip "against PyTorch: keys" "no PyTorch"
    skip "the ratio is the quotient of the times" "no PyTorch"
fi

# A fake PyTorch script: variants, warnings, and torch.compile.
cat > "$tmp/empty/torch_step.py" << 'END'
import json, sys
form = sys.argv[sys.argv.index("--format") + 1]
def reply(**what):
    print(json.dumps(what), flush=True)
reply(python="/no/python", torch="9.1", mkl="fast" in __file__, onednn="4.5", threads=2,
      seconds=1 if form == "contiguous" else 2, memory=1 << 20)
for line in sys.stdin:
    verb, what, how = line.split()
    if verb == "compile":
        reply(reason="no compiler" if what == "infer" else None)
    else:
        reply(seconds={"eager": 4, "compile": 3}[how] + (form != "contiguous"))
END
mkdir "$tmp/fast"
cp "$tmp/empty/torch_step.py" "$tmp/fast"
if command -v python3 > /dev/null; then
    DNN_TORCH_SCRIPTS=$tmp/empty bench step "${tiny[@]}" --reps 1 --against torch > "$tmp/text" 2> "$tmp/err"
    result "all variants of PyTorch are listed, and the fastest is compared" "$(has "$tmp/text" \
        '^  against   PyTorch 9.1 without MKL, oneDNN 4.5, 2 threads \(/no/python\)$' \
        '^  PyTorch   4 s, contiguous, eager$' '^  PyTorch   5 s, channels_last, eager$' \
        '^  PyTorch   3 s, contiguous, torch.compile$' '^            1.0 MiB of memory, eager$' \
        "times as fast as PyTorch's best \(contiguous, torch.compile\)$" \
        "times as fast as PyTorch's best \(contiguous, eager\)$")"
    result "warnings: no MKL, no torch.compile" "$(
        [ "$(grep -c 'without MKL.* ratios flatter dnn-toolkit' "$tmp/err")" = 1 ] || cat "$tmp/err"
        has "$tmp/err" 'torch.compile is not measured: no compiler$')"
    DNN_TORCH_SCRIPTS=$tmp/fast bench step "${tiny[@]}" --reps 1 --against torch --compile 0 --json \
        > "$tmp/json" 2> "$tmp/err"
    result "with MKL there is no warning" "$(cat "$tmp/err"
        has "$tmp/json" '"torch": "9.1", "torch_mkl": true, "torch_onednn": "4.5"' \
            '"torch_train_s": 4, "torch_train_mode": "contiguous eager"')"
else
    for what in "all variants of PyTorch are listed, and the fastest is compared" "warnings: no MKL, no torch.compile" \
        "with MKL there is no warning"; do
        skip "$what" "no python3"
    done
fi

# ---- torch: which one is found ----

finds() { DNN_TORCH=$1 XDG_DATA_HOME=$tmp/share HOME=$tmp DNN_TORCH_SCRIPTS=$tmp/fast bench torch --json; }
mkdir -p "$tmp/share/dnn-toolkit/torch/bin"
for name in "$tmp/share/dnn-toolkit/torch/bin/python" "$tmp/mine"; do
    cat > "$name" << 'END'
#!/bin/sh
echo "{\"python\": \"$0\", \"torch\": \"1\", \"mkl\": true, \"threads\": 1}"
cat > /dev/null
END
    chmod +x "$name"
done
: > "$tmp/fast/torch_common.py"
result "torch: the Python in DNN_TORCH is used" "$(finds "$tmp/mine" > "$tmp/json" 2> "$tmp/err"; has "$tmp/json" '"python": "[^"]*/mine"')"
result "torch: an incomplete installation is not used" "$(
    printf 'import sys\nsys.exit("No module named '"'torch'"'")\n' > "$tmp/fast/torch_common.py"
    status 5 finds ""
    has "$tmp/err" '^dnn-bench: python3 has no PyTorch')"
: > "$tmp/share/dnn-toolkit/torch/ready"
result "torch: the installed one is used" "$(finds "" > "$tmp/json" 2> "$tmp/err"; has "$tmp/json" '/share/dnn-toolkit/torch/bin/python"')"
result "torch: --remove" "$(
    XDG_DATA_HOME=$tmp/share status 0 bench torch --remove
    [ ! -e "$tmp/share/dnn-toolkit/torch" ] || echo "it is still there")"
result "torch: --install and --remove" "$(status 2 bench torch --install --remove
    has "$tmp/err" '^dnn-bench: give either --install or --remove$')"

# ---- ops ----

result "ops: all poolings agree with ref" "$(status 0 bench ops --op pool > "$tmp/text"; cat "$tmp/err")"
result "ops: forward and backward" "$(has "$tmp/text" '^pool  *forward' '^pool  *data')"
result "ops: one object per line" "$(
    bench ops --op matmul --json > "$tmp/json" 2> "$tmp/err"
    has "$tmp/json" '"op": "matmul"'
    grep -v '"op": "matmul".*}$' "$tmp/json"
)"
result "ops: an unknown kind of op" "$(status 2 bench ops --op convv; has "$tmp/err" 'did you mean "conv"')"
finish
