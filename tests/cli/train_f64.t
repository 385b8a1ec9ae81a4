#!/bin/bash
# train_f64.t - dnn-train in double precision: training and evaluation give the results of f32 up
# to rounding; options that need f32 are refused.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-train.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache

# Regression targets: the product and the sum of two numbers.
awk 'BEGIN { srand(7); print "a,b,product,sum"
    for (i = 0; i < 40; i++) { a = rand(); b = rand(); print a "," b "," a * b "," a + b } }' > table.csv
cat > prepare.json << EOF2
{"from": {"input_path": "table.csv", "targets": ["product", "sum"]}, "to": "table.bp", "seed": 1,
 "steps": [{"split": {"train": 0.5, "validation": 0.5}}]}
EOF2
cat > train.json << EOF2
{"layers": [{"class_name": "InputLayer", "config": {"name": "in", "batch_input_shape": [null, 2]}},
            {"class_name": "Dense", "config": {"name": "hidden", "units": 8, "activation": "tanh"}},
            {"class_name": "Dense", "config": {"name": "out", "units": 2}}],
 "data": {"dataset": "table.bp", "batch_size": 6, "test_batch_size": 7},
 "num_epochs": 3, "seed": 5, "loss": "mse", "metrics": ["mse", "mae"], "clip_norm": 0.5,
 "optimizer": {"type": "SGD", "learning_rate": 0.05, "momentum": 0.9}, "precision": "f64"}
EOF2
guarded dnn-prepare -q prepare.json || exit 1

# train DIR ARG...: prints errors
train() {
    local dir=$1
    shift
    guarded "$@" dnn-train -q --set dir="$dir" train.json > output 2>&1 || cat output
}
# near A B LIMIT: prints values that differ by more, relative to B
near() {
    paste -d , "$1/metrics.csv" "$2/metrics.csv" | awk -F , -v most="$3" '
        NR == 1 { n = NF / 2; for (i = 1; i <= n; i++) name[i] = $i; next }
        { for (i = 1; i <= n; i++) if (name[i] ~ /loss|mse|mae|grad_norm/) {
            seen++
            far = ($i - $(i + n)) / $(i + n)
            if (far > most || far < -most) print name[i] ": " $i ", not " $(i + n) } }
        END { if (seen < 15) print "only " seen + 0 " numbers were compared" }'
}

result "it trains" "$(train wide)"
sed -i 's/"f64"/"f32"/' train.json
result "losses, metrics and gradients are those of f32 up to rounding" "$(
    train narrow
    near wide narrow 2e-5)"
sed -i 's/"f32"/"f64"/' train.json
result "2 ranks: the same up to rounding" "$(
    train two "$MPIEXEC" -n 2
    near two wide 1e-12)"
sed -i 's/"clip_norm"/"accumulate": 2, &/' train.json
result "gradient accumulation: the same up to rounding" "$(
    train parts
    near parts wide 1e-12)"

result "an infinite weight is not saved" "$(
    guarded dnn-train -q --set dir=big --set optimizer.learning_rate=1000000 --set optimizer.weight_decay=1e305 \
        --set checkpoints.steps=1 train.json > output 2>&1
    grep -q "step 1: element 0 of 'hidden/kernel' became NaN or infinite in the update; no checkpoint is saved" output ||
        cat output
    find big/checkpoints -name '*.bp*')"

# refused MESSAGE ARG...: it ends with status 3 and this message
refused() {
    local want=$1 status=0
    shift
    guarded dnn-train -q --set dir=bad "$@" train.json > output 2>&1 || status=$?
    [ "$status" = 3 ] || echo "status $status, not 3"
    [ "$(cat output)" = "dnn-train: $want" ] || cat output
}
result "refused: deterministic" "$(
    refused '"deterministic" requires f32 gradients; remove it or "precision"' --set deterministic=true)"
result "refused: parallel.compress" "$(
    refused '"compress" requires f32 gradients; remove it or "precision"' --set parallel.compress=bf16)"
result "refused: ema" "$(
    refused '"ema" requires f32 weights; remove it or "precision"' --set ema=0.9)"
result "refused: the optimizer Hessian" "$(
    refused 'optimizer "hessian" requires f32 weights; remove it or "precision"' --set 'optimizer={"type": "Hessian"}')"
finish
