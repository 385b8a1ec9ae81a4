#!/bin/bash
# tables.sh - repeat the measurements of docs/performance.md, and print its tables as
# Markdown.
#
#   tables.sh [--threads N] [--reps N] [--compile SECONDS] [steps] [inference] [runs] [reading]
#
# steps: dnn-bench step, a row per network; inference: dnn-bench infer, and tiles.sh; runs:
# dnn-bench train; reading: dnn-bench io.  Default: all.  Takes an hour or more; nothing else
# should run at the same time.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
set -u
threads=$(nproc) reps=5 compile=600 parts=()
usage() { echo "usage: tables.sh [--threads N] [--reps N] [--compile SECONDS] [steps] [inference] [runs] [reading]" >&2; exit 2; }
while [ $# -gt 0 ]; do
    case $1 in
    --threads | --reps | --compile)
        [ $# -gt 1 ] || usage
        declare "${1#--}=$2"
        shift
        ;;
    steps | inference | runs | reading) parts+=("$1") ;;
    *) usage ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || parts=(steps inference runs reading)
json=$(mktemp) || exit 1
trap 'rm -f "$json"' EXIT

# value KEY: the first value with this key in $json
value() { grep -oE "\"$1\": (\"[^\"]*\"|[-0-9.e+]+|true|false)" "$json" | head -n 1 | sed 's/^[^:]*: //; s/"//g'; }
# calc FORMAT EXPRESSION: print its value, computed with awk
calc() { awk "BEGIN { printf \"$1\", $2 }"; }
# percent KEY, ratio KEY: print the value, or a dash if there is none
percent() { [ -n "$(value "$1")" ] && calc '%.2f %%' "100 * $(value "$1")" || echo -; }
ratio() { [ -n "$(value "$1")" ] && calc '%.2f x' "$(value "$1")" || echo -; }
# mode KEY: "channels_last compile" as "NHWC, compile"
mode() { value "$1" | sed 's/ /, /; s/channels_last/NHWC/; s/contiguous/NCHW/'; }
commands=()

# step NAME OPTION...: print one row
step() {
    local name=$1
    shift
    commands+=("$(printf '%-21s %s' "$name" "$*$([ "$compile" != 0 ] || echo " --compile 0")")")
    if ! dnn-bench --quiet step --threads "$threads" --reps "$reps" --against torch \
        --compile "$compile" --json "$@" > "$json"; then
        echo "| $name | failed | | | |"
        return
    fi
    echo "| $name | $(ratio ratio_train) ($(mode torch_train_mode))" \
        "| $(ratio ratio_infer) ($(mode torch_infer_mode))" \
        "| $(calc '%.0f %%' "100 * $(value train_gflops) / $(value sgemm_gflops)")" \
        "| $(calc '%.0f, %.0f MiB' "$(value memory_measured) / 2 ^ 20, $(value torch_memory) / 2 ^ 20") |"
}

steps() {
    local unet=(--model unet3d --base 16 --depth 3) compile=$compile
    echo "| network | training | inference | peak | memory: ours, PyTorch |"
    echo "|---|---|---|---|---|"
    step "U-Net 64³" "${unet[@]}" --size 64
    step "ResNet50" --model resnet50 --size 224 --batch 8
    step "MobileNetV2" --model mobilenetv2 --size 224 --batch 8
    step "simplecnn" --model simplecnn --batch 128 --threads 1
    # Variants: PyTorch in eager mode only, because torch.compile takes minutes for each.
    compile=0
    step "U-Net 128³" "${unet[@]}" --size 128
    step "U-Net 48x80x64" --model unet3d --base 24 --depth 2 --size 48x80x64 --batch 2
    step "instance norm" "${unet[@]}" --size 64 --norm instance
    step "strided convolutions" "${unet[@]}" --size 64 --down stride
    step "nearest upsampling" "${unet[@]}" --size 64 --up upsample
    step "VGG16" --model vgg16 --size 224 --batch 4
    printf '\n```\n'
    printf '%s\n' "${commands[@]}"
    echo '```'
}

# infer NAME OPTION...: print one row
infer() {
    local name=$1
    shift
    if ! dnn-bench --quiet infer --threads "$threads" --against both --compile "$compile" --json "$@" > "$json"; then
        echo "| $name | failed | |"
        return
    fi
    echo "| $name | $(ratio ratio_torch) | $(ratio ratio_onnxruntime) |"
}

inference() {
    local unet=(--model unet3d --base 16 --depth 3)
    echo "| network | over PyTorch | over ONNX Runtime |"
    echo "|---|---|---|"
    infer "U-Net 64³" "${unet[@]}" --size 64
    infer "ResNet50" --model resnet50 --size 224 --batch 8
    infer "MobileNetV2" --model mobilenetv2 --size 224 --batch 8
    infer "U-Net 128³" "${unet[@]}" --size 128
    echo
    "$(dirname "$0")/tiles.sh" --threads "$threads"
}

runs() {
    dnn-bench --quiet train --ranks "$threads" --reps "$reps" --against torch --compile "$compile" --json > "$json" || return
    echo "| whole runs | by the fastest epochs | by medians |"
    echo "|---|---|---|"
    echo "| 3D U-Net 32³, batch 4: $threads ranks x 1 thread over 1 rank x $threads threads | $(ratio ratio_ranks) | $(ratio ratio_ranks_median) |"
    echo "| the same, over PyTorch's DDP (gloo) | $(ratio ratio_ddp) | $(ratio ratio_ddp_median) |"
    echo "| exposed communication, share of a step | | $(percent comm_share) |"
    echo "| deterministic over default, 1 rank x $threads threads | $(ratio ratio_deterministic_one) | $(ratio ratio_deterministic_one_median) |"
    echo "| deterministic over default, $threads ranks x 1 thread | $(ratio ratio_deterministic_ranks) | $(ratio ratio_deterministic_ranks_median) |"
    echo "| one checkpoint per minute, share of the time | | $(percent checkpoint_share) |"
    echo "| simplecnn, 1 rank x $threads threads, over PyTorch | $(ratio ratio_cnn) | $(ratio ratio_cnn_median) |"
    echo "| simplecnn, deterministic over default | $(ratio ratio_deterministic_cnn) | $(ratio ratio_deterministic_cnn_median) |"
    echo "| simplecnn, seconds from start to first step, with autotuning | | $(calc '%.1f' "$(grep -oE '"start_s": [0-9.e+-]+' "$json" | tail -n 1 | sed 's/.*: //')") |"
}

reading() {
    dnn-bench --quiet io --against torch --million --json > "$json" || return
    local volumes images
    volumes=$(grep -oE '"volumes": \{[^}]*\}' "$json") images=$(grep -oE '"images": \{[^}]*\}' "$json")
    echo "| reading | 128³ volumes with masks | 224² images |"
    echo "|---|---|---|"
    # row TITLE FORMAT KEY FACTOR: print the values of both datasets
    row() {
        local line="| $1 |" set
        for set in "$volumes" "$images"; do
            echo "$set" > "$json"
            [ -n "$(value "$3")" ] && line+=" $(calc "$2" "$4 * $(value "$3")") |" || line+=" - |"
        done
        echo "$line"
    }
    row "time a network waits for data (MLPerf Storage, H100)" '%.1f %%' utilisation '100 - 100'
    row "as stored, over plain sequential read()" '%.1f x' ratio_plain 1
    row "as f32, over PyTorch's DataLoader, 2 workers, mapped array" '%.1f x' ratio_npy 1
    row "as f32, over PyTorch's DataLoader, 2 workers, PNG files" '%.1f x' ratio_png 1
}

echo "$(date -u +%F), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $threads threads, $(dnn-bench --quiet torch 2> /dev/null)"
for part in "${parts[@]}"; do
    echo
    "$part"
done
