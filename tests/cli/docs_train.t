#!/bin/bash
# docs_train.t - the examples of docs/train.md train, its commands are understood; so are the
# examples of dnn-prepare (explain.t looks at the others).
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
command -v python3 > /dev/null || { echo "1..0 # SKIP no python3"; exit 0; }
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-docs.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
doc=$(cd "$srcdir" && pwd)/docs/train.md
cd "$tmp" || exit 1
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$tmp/cache

# block N LANGUAGE: the Nth block of code in it, empty if there are not as many
block() {
    awk -v want="$1" -v fence="\`\`\`$2" '
        /^```/ && on { on = 0; next }
        $0 == fence { on = ++n == want; next }
        on' "$doc"
}
# quick WORD...: the configuration of the page, but a network and data of a few numbers
quick() {
    guarded dnn-train --set layers.input='[8,8,8,1]' --set layers.base=2 --set layers.depth=1 "$@" > said 2>&1
}

guarded dnn-prepare -q --generate fractals3d --set samples=16 --set size=3 --set classes=3 \
    --split 0.8,0.2 --to fractals.bp || exit 1
block 1 json > config.json
result "the configuration of the page trains" "$(quick --set num_epochs=2 config.json || cat said)"
guarded dnn-train --explain --backend ref config.json > said 2>&1
result "and is explained" "$(grep -q '^predicted in all: ' said || tail -n 5 said)"

for n in {2..99}; do
    block "$n" json > part.json
    [ -s part.json ] || break
    # The job with the example's keys instead of its own.
    result "example $n trains: $(tr -s '\n ' ' ' < part.json | cut -c 1-60)" "$(
        python3 -c 'import json; print(json.dumps(json.load(open("config.json")) | json.load(open("part.json"))))' \
            > both.json || exit
        set=(--set num_epochs=2 --set dir="run-$n")
        if grep -q '"zoo"' both.json; then
            quick "${set[@]}" both.json || cat said
        else
            guarded dnn-train "${set[@]}" --set input='[8,8,8,1]' both.json > said 2>&1 || cat said
        fi)"
done
result "there are examples" "$([ "$n" -gt 12 ] || echo "only $n")"

# What comes before dnn-train starts ranks, what comes behind # is a remark.
while read -r line; do
    words=${line#*dnn-train }
    case $words in --verify* | *--weights*) continue ;; esac
    eval "set -- ${words%%#*}"
    result "understood: dnn-train $*" "$(guarded dnn-train --explain --backend ref "$@" > said 2>&1 || tail -n 3 said)"
done < <(for n in {1..9}; do block "$n" sh; done | grep 'dnn-train ')

examples=$(dirname "$doc")/examples
sed 's/"samples": 64/"samples": 8/; s/"size": 6/"size": 3/' "$examples/prepare-fractals.json" > few.json
result "prepare-fractals.json, with less of it" "$(guarded dnn-prepare --to few.bp few.json > said 2>&1 || cat said)"
# Nothing but the files is missing.
for name in photos volumes; do
    status=0
    guarded dnn-prepare --to "$name.bp" "$examples/prepare-$name.json" > said 2>&1 || status=$?
    result "prepare-$name.json is understood" "$([ $status = 5 ] || echo "status $status"
        grep -qE '(photos/train|scans).*No such file' said || cat said)"
done
finish
