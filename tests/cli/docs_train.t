#!/bin/bash
# docs_train.t - the examples of docs/train.md train and its commands are valid; so are the
# examples for dnn-prepare (explain.t tests the others).
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

# block N LANGUAGE: print the Nth block of code of the page; nothing if there are fewer
block() {
    awk -v want="$1" -v fence="\`\`\`$2" '
        /^```/ && on { on = 0; next }
        $0 == fence { on = ++n == want; next }
        on' "$doc"
}
# quick ARG...: train with a smaller network and smaller samples
quick() {
    guarded dnn-train --set layers.input='[8,8,8,1]' --set layers.base=2 --set layers.depth=1 "$@" > output 2>&1
}
explain() { quick --explain --backend ref "$@"; }

guarded dnn-prepare -q --generate fractals3d --set samples=16 --set size=3 --set classes=3 \
    --split 0.8,0.2 --to fractals.bp || exit 1
block 1 json > config.json
result "the configuration of the page trains" "$(quick --set num_epochs=2 config.json || cat output)"
explain config.json
result "and --explain works" "$(grep -q '^predicted in all: ' output || tail -n 5 output)"

for n in {2..99}; do
    block "$n" json > part.json
    [ -s part.json ] || break
    # The configuration with the keys of the example added or replaced.
    result "example $n trains: $(tr -s '\n ' ' ' < part.json | cut -c 1-60)" "$(
        python3 -c 'import json; print(json.dumps(json.load(open("config.json")) | json.load(open("part.json"))))' \
            > both.json || exit
        set=(--set num_epochs=2 --set dir="run-$n")
        if grep -q '"zoo"' both.json; then
            quick "${set[@]}" both.json || cat output
        else
            guarded dnn-train "${set[@]}" --set input='[8,8,8,1]' both.json > output 2>&1 || cat output
        fi)"
done
result "there are examples" "$([ "$n" -gt 12 ] || echo "only $n")"

# The words before dnn-train start ranks; # starts a comment.
while read -r line; do
    words=${line#*dnn-train }
    case $words in --verify* | *--weights*) continue ;; esac
    eval "set -- ${words%%#*}"
    result "valid: dnn-train $*" "$(explain "$@" || tail -n 3 output)"
done < <(for n in {1..9}; do block "$n" sh; done | grep 'dnn-train ')

examples=$(dirname "$doc")/examples
sed 's/"samples": 64/"samples": 8/; s/"size": 6/"size": 3/' "$examples/prepare-fractals.json" > few.json
result "prepare-fractals.json, with fewer and smaller samples" "$(guarded dnn-prepare --to few.bp few.json > output 2>&1 || cat output)"
# The only error is that the files do not exist.
for name in photos volumes; do
    status=0
    guarded dnn-prepare --to "$name.bp" "$examples/prepare-$name.json" > output 2>&1 || status=$?
    result "prepare-$name.json is valid" "$([ $status = 5 ] || echo "status $status"
        grep -qE '(photos/train|scans).*No such file' output || cat output)"
done
finish
