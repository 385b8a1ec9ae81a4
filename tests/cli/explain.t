#!/bin/bash
# explain.t - the output of dnn-train --explain for the examples, compared with tests/golden on
# the ref backend; error messages for wrong configurations; networks exported and read again.
#
# GOLDEN=write writes the files of tests/golden again: look at the difference before you
# commit it.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp/cache
job=$tmp/train.json

# explain ARGS...: run it with a time limit; stderr is appended to the output
explain() {
    guarded dnn-train --explain "$@" 2>&1
}

# ---- the examples ----

for example in "$srcdir"/docs/examples/*.json; do
    name=$(basename "$example" .json)
    case $name in prepare-*) continue ;; esac # not for dnn-train
    golden=$srcdir/tests/golden/explain-$name.txt
    explain --backend ref --set threads=1 "$example" > "$tmp/output"
    if [ "${GOLDEN:-}" = write ] && [ -e "$golden" ]; then
        cp "$tmp/output" "$golden"
    fi
    if [ -e "$golden" ]; then
        result "$name is explained as in $(basename "$golden")" "$(diff "$golden" "$tmp/output")"
    fi
    # On the default backend, ops have kernels with other names.
    explain --kernels heuristic "$example" > "$tmp/output"
    result "$name is explained on the fastest backend" \
        "$(grep -q '^predicted in all: ' "$tmp/output" || tail -n 3 "$tmp/output")"
    explain --inference --backend ref "$example" > "$tmp/output"
    result "$name: inference has no backward pass" "$(grep -F 'backward' "$tmp/output")"
done

explain --backend ref "$srcdir/docs/examples/unet3d-small-memory.json" > "$tmp/output"
result "recomputing some ops keeps the memory limit" "$(
    bytes=$(sed -nE 's/^predicted in all: .*\(([0-9]+) bytes\)/\1/p' "$tmp/output")
    [ "${bytes:-9999999999}" -le $((1 << 30)) ] || echo "takes $bytes bytes"
    grep -qE '^recompute +[0-9]+ ops:' "$tmp/output" || echo "nothing is recomputed"
)"

result "in f64 it takes more memory" "$(
    for p in f32 f64; do
        explain --backend ref --set precision=$p "$srcdir/docs/examples/simplecnn.json" |
            sed -nE 's/^predicted in all: .*\(([0-9]+) bytes\)/\1/p'
    done | { read -r a; read -r b; [ "${b:-0}" -gt "$((a * 3 / 2))" ] || echo "$a, $b bytes"; }
)"

# In the 3D U-Net no op may use plain loops, and no convolution im2col.
explain --kernels heuristic "$srcdir/docs/examples/unet3d.json" > "$tmp/output"
result "every op of the 3D U-Net has a fast kernel" \
    "$(grep -E 'plain loops|gemm|ref:any' "$tmp/output")"
explain --kernels heuristic --inference "$srcdir/docs/examples/unet3d.json" > "$tmp/output"
result "and in inference" "$(grep -E 'plain loops|gemm|ref:any' "$tmp/output")"

# ---- weights ----

if dnn-train --version | grep -q hdf5; then
    data=$srcdir/tests/data/keras
    printf '{"layers": "%s", "input": [16, 16, 1]}\n' "$data/k2_unet.json" > "$job"
    explain --backend ref --weights "$data/k2_unet.h5" "$job" > "$tmp/output"
    result "--weights lists the weights that match" \
        "$(grep -qE 'k2_unet.h5: ([0-9]+) of \1 weights' "$tmp/output" || tail -n 5 "$tmp/output")"
    explain --backend ref --weights "$data/k2_merges.h5" "$job" > "$tmp/output"
    result "and a file without matching weights" "$(grep -q 'k2_merges.h5: 0 of' "$tmp/output" || tail -n 5 "$tmp/output")"
else
    skip "--weights lists the weights that match" "built without HDF5"
fi

# ---- wrong configurations ----

# refuses STATUS MESSAGE JSON [OPTION...]: the last line of stderr, without paths
refuses() {
    local want=$1 text=$2 status=0 got
    printf '%s\n' "$3" > "$job"
    shift 3
    guarded dnn-train --explain --backend ref "$@" "$job" > "$tmp/out" 2> "$tmp/err" || status=$?
    got=$(sed "s|$tmp/||g" "$tmp/err")
    if [ "$status" = "$want" ] && [ "$got" = "dnn-train: $text" ]; then
        result "refused: $text" ""
    else
        result "refused: $text" "status $status, wanted $want; got: $got"
    fi
}
unet='{"zoo": "unet3d", "base": 2, "depth": 1, "input": [8, 8, 8, 1]}'

refuses 3 'train.json:1: the key "layers" is missing' '{"batch_size": 2}'
refuses 3 'train.json:1: batchsize: unknown key; did you mean "batch_size"?' \
    "{\"layers\": $unet, \"batchsize\": 2}"
refuses 3 'train.json:1: batch_size: must be between 1 and 1048576, not 0' \
    "{\"layers\": $unet, \"batch_size\": 0}"
refuses 3 'train.json:1: the zoo has no network "unet4d"; did you mean "unet2d"?' \
    '{"layers": {"zoo": "unet4d"}}'
refuses 3 'train.json:1: layers.dept: unknown key; did you mean "depth"?' \
    '{"layers": {"zoo": "unet3d", "dept": 3}}'
refuses 3 "train.json:1: unet3d:45: layer 'down2_pool' (MaxPooling3D): its window of 2 does not fit into axis 1 of its input ?x1x1x1x32" \
    '{"layers": {"zoo": "unet3d", "input": [2, 2, 2, 1]}}'
refuses 3 'train.json:1: memory_limit: must be a size such as "16GiB", not "lots"' \
    "{\"layers\": $unet, \"memory_limit\": \"lots\"}"
refuses 3 'train.json:1: recompute: must be one of false, cheap, auto, true, not "alot"' \
    "{\"layers\": $unet, \"recompute\": \"alot\"}"
refuses 3 'train.json:1: optimizer: must be one of sgd, adam, adamw, nadam, lamb, lars, adagrad, adadelta, rmsprop, hessian, not "adma"; did you mean "adam"?' \
    "{\"layers\": $unet, \"optimizer\": \"adma\"}"
refuses 3 'train.json:1: optimizer.beta1: unknown key; did you mean "beta_1"?' \
    "{\"layers\": $unet, \"optimizer\": {\"name\": \"adam\", \"beta1\": 1}}"
refuses 3 'train.json:1: loss.function: must be one of mse, mae, mape, huber, poisson_nll, hinge, hinge_embedding, soft_margin, bce, bce_logits, nll, cross_entropy, kl_divergence, focal, dice, jaccard, tversky, lovasz, categorical_hinge, multi_margin, multilabel_margin, margin_ranking, cosine_embedding, triplet_margin, xent, not "Dyce"; did you mean "dice"?' \
    "{\"layers\": $unet, \"loss\": {\"function\": \"Dyce\"}}"
refuses 3 "output 'predictions': loss cross_entropy: needs two or more classes in the last axis; use bce or focal for one channel, mse for values" \
    "{\"layers\": $unet, \"loss\": \"xent\"}"
refuses 5 'nowhere.json: cannot be read: No such file or directory' '{"layers": "nowhere.json"}'
refuses 3 'train.json:1: layers: must be a model or a list of layers, not 5' '{"layers": 5}'
conv='[{"class_name": "Conv2D", "config": {"name": "c", "batch_input_shape": [null, null, null, 3], "filters": 4, "kernel_size": 3}}]'
refuses 3 "train.json:1: the input 'c_input' is ?x?x?x3; give its shape without the batch in the configuration, such as \"input\": [64, 64, 3]" \
    "{\"layers\": $conv}"

refuses 3 '--set batch_size=x: must be a whole number, not "x"' "{\"layers\": $unet}" --set batch_size=x
refuses 3 '--set data.btch_size=2: unknown key; did you mean "batch_size"?' \
    "{\"neural_network\": {\"layers\": $unet, \"data\": {}}}" --set data.btch_size=2
refuses 2 '--set batch_size: must be KEY=VALUE' "{\"layers\": $unet}" --set batch_size

printf '{"layers": %s, "memory_limit": "10KiB"}\n' "$unet" > "$job"
# got STATUS CMD...: print its stderr, and an error if it ends with another status
got() {
    local want=$1 status=0
    shift
    { guarded "$@" > /dev/null; } 2>&1 || status=$?
    [ "$status" = "$want" ] || echo "status $status, wanted $want"
}
output=$(got 8 dnn-train --explain --backend ref "$job")
result "a network larger than memory_limit ends with status 8" "$(echo "$output" | grep '^status')"
result "and the message has the memory it needs and the limit" \
    "$(echo "$output" | grep -q 'needs .* KiB.* 10.0 KiB is allowed' || echo "$output")"
printf '{"layers": %s, "input": [32, 30, 3]}\n' "$conv" > "$job"
result "the key input sets unknown dimensions" "$(explain --backend ref "$job" | grep -q '1x30x28x4' || echo missing)"
result "rmldnn's form is read" "$(
    printf '{"neural_network": {"layers": %s, "data": {"batch_size": 3}, "loss": {"function": "MSE"}, "num_epochs": 2}}\n' \
        "$unet" > "$job"
    explain --backend ref "$job" | grep -q '3x8x8x8x2' || echo "no batch of 3"
)"

result "--set changes keys" "$(
    explain --backend ref --set data.batch_size=5 -s layers.base=3 "$job" | grep -q '5x8x8x8x3' || echo "no batch of 5"
)"
result "--keys prints the configuration keys" \
    "$(dnn-train --keys | cmp - "$srcdir/docs/config.md" 2>&1)"

# ---- training ----

result "a configuration without data cannot be trained" "$(
    got 3 dnn-train "$job" | grep -vxF \
        "dnn-train: no data; set data.dataset, data.input_path or data.generate for training, or the same keys with the prefix test_ for testing"
)"

# ---- exported and read again ----

printf '{"layers": %s}\n' "$unet" > "$job"
mkdir "$tmp/there"
guarded dnn-train --export "$tmp/there/net.json" "$job" > "$tmp/out" 2>&1
result "a network of the zoo is exported" "$([ -s "$tmp/there/net.json" ] || cat "$tmp/out")"
explain --backend ref "$job" | sed -n '/^network/,$p' > "$tmp/a"
printf '{"layers": "net.json"}\n' > "$tmp/there/train.json"
explain --backend ref "$tmp/there/train.json" | sed -n '/^network/,$p' > "$tmp/b"
result "and is the same when read again, relative to the configuration file" "$(diff "$tmp/a" "$tmp/b")"
result "a network from a file is exported as Keras 3 JSON, twice the same" "$(
    got 0 dnn-train --export "$tmp/x" "$tmp/there/train.json" | grep '^status'
    cmp "$tmp/x" "$tmp/there/net.json" 2>&1
    grep -c 'keras.src.models.functional' "$tmp/x" | grep -vx 1
)"
result "an output directory that does not exist" "$(got 5 dnn-train --export "$tmp/no/such/net.json" "$job" | grep '^status')"
finish
