#!/bin/bash
# kernels.sh - count how often autotuning selects each kernel in the networks of the zoo.
#
#   kernels.sh [--isa "avx2 avx512"] [--batch N] [--limit SECONDS] [NETWORK...]
#
# Each network is planned by `dnn-train --explain` for training, for deterministic
# training and for inference.  A line per instruction set, pass and kernel is printed:
# the number of ops that use it and the networks with these ops.  Only ops with several
# kernels to choose from count: conv, deconv, matmul.  DNN_ISA and ONEDNN_MAX_CPU_ISA are
# both set.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
set -u
isas="avx2 avx512" batch=2 limit=600 nets=()
while [ $# -gt 0 ]; do
    case $1 in
    --isa) isas=$2; shift ;;
    --batch) batch=$2; shift ;;
    --limit) limit=$2; shift ;;
    -*) echo "usage: kernels.sh [--isa LIST] [--batch N] [--limit SECONDS] [NETWORK...]" >&2; exit 2 ;;
    *) nets+=("$1") ;;
    esac
    shift
done
[ ${#nets[@]} -gt 0 ] || nets=(simplemlp simplecnn resnet20 unet2d unet3d alexnet mobilenet
    mobilenetv2 googlenet resnet18 resnet50 resnet50v2 densenet121 inceptionv3 vgg11 vgg16
    wideresnet28_10)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# explain ISA NETWORK MODE [OPTION...]: add its ops to $tmp/picked
explain() {
    local isa=$1 net=$2 mode=$3
    shift 3
    printf '{"layers": {"zoo": "%s"}, "batch_size": %s}\n' "$net" "$batch" > "$tmp/net.json"
    if ! DNN_ISA=$isa ONEDNN_MAX_CPU_ISA=$([ "$isa" = avx512 ] && echo DEFAULT || echo "${isa^^}") \
        XDG_CACHE_HOME=$tmp/$isa timeout "$limit" \
        dnn-train --quiet --explain "$@" "$tmp/net.json" > "$tmp/text" 2> "$tmp/err"; then
        echo "$isa $net $mode: not counted: $(tail -n 1 "$tmp/err")" >&2
        return
    fi
    # Columns start as in the heading; the instruction set is removed from the kernel's name.
    awk -v isa="$isa" -v net="$net" '
        /^  layer +op / { op = index($0, "op "); pass = index($0, "pass "); result = index($0, "result ")
                          kernel = index($0, "kernel "); end = index($0, "MFLOP"); next }
        kernel == 0 || length($0) < kernel { next }
        { o = substr($0, op, pass - op); sub(/ .*/, "", o)
          if (o !~ /^(conv|deconv|matmul)/) next
          p = substr($0, pass, result - pass); sub(/ +$/, "", p)
          k = substr($0, kernel, end - kernel); sub(/  .*/, "", k); sub(/ (plain|avx2|avx512)$/, "", k)
          sub(/^oneDNN .*/, "oneDNN", k)
          print isa "\t" o "\t" p "\t" k "\t" net }' "$tmp/text" >> "$tmp/picked"
}

: > "$tmp/picked"
for net in "${nets[@]}"; do
    for isa in $isas; do
        explain "$isa" "$net" training
        explain "$isa" "$net" deterministic --set deterministic=true
        explain "$isa" "$net" inference --inference
    done
done
sort "$tmp/picked" | awk -F '\t' '
    function flush() { if (n) printf "%-7s %-10s %-19s %-34s %5d  %s\n", isa, op, pass, kernel, n, nets }
    { key = $1 FS $2 FS $3 FS $4
      if (key != last) { flush(); n = 0; nets = ""; net = ""; last = key; isa = $1; op = $2; pass = $3; kernel = $4 }
      n++
      if ($5 != net) { nets = nets (nets == "" ? "" : " ") $5; net = $5 } }
    END { flush() }'
