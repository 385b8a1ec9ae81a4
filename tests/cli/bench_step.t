#!/bin/bash
# bench_step.t - dnn-bench step and ops with tiny networks: what they print, for people
# and for programs.  No speed is asserted.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp/cache
DNN_PEER_DIR=$srcdir/tests/peer
export DNN_PEER_DIR OMP_NUM_THREADS=2
tiny=(--model unet3d --size 8 --base 2 --depth 1 --reps 5)

bench() { guarded dnn-bench --quiet "$@"; }
keys() { grep -oE '"[a-z_]+":' | tr -d '":' | tr '\n' ' '; }
# has FILE PATTERN...: complains with the file where a pattern is not in it
has() {
    local file=$1 pattern
    shift
    for pattern in "$@"; do
        grep -qE -- "$pattern" "$file" || { echo "no $pattern in:"; cat "$file" "$tmp/err"; }
    done
}
# status WANT CMD...: complains if CMD ends otherwise; stderr is in $tmp/err
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
    want="train_s infer_s train_gflops infer_gflops sgemm_gflops memory_predicted memory_measured "
    [ "$got" = "$want" ] || echo "$got"
)"
for key in train_s infer_s train_gflops sgemm_gflops memory_predicted; do
    result "$key is above 0" "$(
        x=$(number "$key" < "$tmp/json")
        awk -v x="$x" 'BEGIN { exit !(x > 0) }' || echo "$key: $x"
    )"
done
if command -v python3 > /dev/null; then
    result "any JSON parser takes it" "$(python3 -m json.tool < "$tmp/json" 2>&1 > /dev/null)"
else
    skip "any JSON parser takes it" "no python3"
fi

bench step "${tiny[@]}" --rows 3 > "$tmp/text" 2> "$tmp/err"
result "the tables name both sides" "$(has "$tmp/text" '^training step$' '^inference$')"
result "layers and kinds of ops" "$(has "$tmp/text" '^  layer .*GFLOP/s$' '^  conv  *backward weights')"
result "memory, predicted and measured" "$(has "$tmp/text" '^  memory .* predicted, .* measured')"

# A file instead of the zoo, another size, loss and optimizer, computing again.
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

# says STATUS MESSAGE ARGS...
says() {
    local want=$1 text=$2 status=0
    shift 2
    bench step "$@" > /dev/null 2> "$tmp/err" || status=$?
    result "$*" "$(
        [ "$status" = "$want" ] || echo "status $status, wanted $want"
        [ "$(sed "s|$tmp/||g" "$tmp/err")" = "dnn-bench: $text" ] || cat "$tmp/err"
    )"
}
says 2 'which network? give --model NAME or --layers FILE, one of them' --size 8
says 3 'there is no network "unet5d" in the zoo; did you mean "unet2d"?' --model unet5d
says 3 'the network simplecnn has no option "depth"' --model simplecnn --depth 2
says 2 "the size 8x8: the network's data has 3 axes of space; give as many extents, or one for all" \
    --model unet3d --size 8x8
says 3 'there is no backend "abacus" in this build; it has '"$(
    bench step --model simplecnn --backend abacus 2>&1 | sed 's/.*it has //')" --model simplecnn --backend abacus
says 2 '--memory-limit: must be a size such as 16GiB, not "much"' "${tiny[@]}" --memory-limit much
says 3 "net.json:2: layer 'c_input' (InputLayer): the data is ?x?x?x3: give the unknown extents" \
    --layers "$tmp/net.json"
result "a limit it does not fit into" "$(status 8 bench step "${tiny[@]}" --memory-limit 10KiB)"

# ---- against PyTorch ----

mkdir "$tmp/empty"
result "without the script it says where it looked" "$(
    export DNN_PEER_DIR=$tmp/empty
    status 5 bench step "${tiny[@]}" --against torch
    has "$tmp/err" 'empty/torch_step.py \(DNN_PEER_DIR\)'
)"
printf 'import sys\nsys.exit("No module named '"'torch'"'")\n' > "$tmp/empty/torch_step.py"
if command -v python3 > /dev/null; then
    DNN_PEER_DIR=$tmp/empty bench step "${tiny[@]}" --against torch > /dev/null 2> "$tmp/err"
    result "without PyTorch it says what to install" "$(grep -q 'python3-torch' "$tmp/err" || cat "$tmp/err")"
else
    skip "without PyTorch it says what to install" "no python3"
fi
if python3 -c 'import torch, numpy' 2> /dev/null; then
    bench step "${tiny[@]}" --against torch --json > "$tmp/json" 2> "$tmp/err"
    result "against PyTorch: keys" "$(
        got=$(keys < "$tmp/json")
        want="train_s infer_s train_gflops infer_gflops sgemm_gflops memory_predicted memory_measured "
        want+="torch_train_s torch_infer_s torch_memory torch_format ratio_train ratio_infer "
        [ "$got" = "$want" ] || { echo "$got"; cat "$tmp/err"; }
    )"
    result "the ratio is that of the times" "$(
        awk -v t="$(number torch_train_s < "$tmp/json")" -v o="$(number train_s < "$tmp/json")" \
            -v r="$(number ratio_train < "$tmp/json")" \
            'BEGIN { q = t / o / r; exit !(q > 0.99 && q < 1.01) }' || cat "$tmp/json"
    )"
else
    skip "against PyTorch: keys" "no PyTorch"
    skip "the ratio is that of the times" "no PyTorch"
fi

# ---- ops ----

result "ops: all poolings are as near to ref as they must be" "$(status 0 bench ops --op pool > "$tmp/text"; cat "$tmp/err")"
result "ops: forward and backward" "$(has "$tmp/text" '^pool  *forward' '^pool  *data')"
result "ops: one object per line" "$(
    bench ops --op matmul --json > "$tmp/json" 2> "$tmp/err"
    has "$tmp/json" '"op": "matmul"'
    grep -v '"op": "matmul".*}$' "$tmp/json"
)"
result "ops: a kind there is not" "$(status 2 bench ops --op convv; has "$tmp/err" 'did you mean "conv"')"
finish
