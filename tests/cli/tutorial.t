#!/bin/bash
# tutorial.t - follows docs/tutorial.md: saves the configuration files and runs the commands, in
# the order of the page.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
. "${srcdir:-.}/tests/tap.sh"
page=$(cd "$srcdir" && pwd)/docs/tutorial.md
dnn-prepare --list-formats | grep '^  nifti ' | grep -q 'not in this build' &&
    { echo "1..0 # SKIP no NIfTI in this build"; exit 0; }
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-tutorial.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export XDG_CACHE_HOME=$tmp/cache

# One line per command ("run") and per configuration file ("file"); blocks "sh sbatch" need a
# Slurm and are not run (see tests/cluster/train.t).
commands=0
while read -r kind what; do
    case $kind in
    file)
        awk -v fence="\`\`\`json $what" '$0 == fence { on = 1; next } /^```/ { on = 0 } on' "$page" > "$what"
        result "$what is on the page" "$([ -s "$what" ] || echo "it is empty")"
        ;;
    run)
        commands=$((commands + 1))
        result "$what" "$(guarded bash -c "$what" > log 2>&1 || { echo "status $?"; tail -n 5 log; })"
        ;;
    esac
done < <(awk '/^```json / { print "file", $2 } /^```/ { on = $0 == "```sh"; next } on { print "run", $0 }' "$page")
result "the page has commands" "$([ "$commands" -ge 8 ] || echo "only $commands")"

for file in scans/input/79.nii scans/target/79.nii preview.png run-train/report.html run-train/model.json \
    run-train/metrics.csv run-test/test.json masks/3_classes.nii masks/3_overlay.png evaluated/samples.csv; do
    result "$file exists" "$([ -s "$file" ] || echo "it does not exist")"
done
result "the Dice score of the test split is about that of the page" \
    "$(grep -o '"dice": [0-9.]*' run-test/test.json | head -1 | awk '$2 < 0.9 { print }
        END { if (NR != 1) print "no score" }')"
result "the masks of larger scans are about as good" \
    "$(grep -o '"dice": [0-9.]*' evaluated/test.json | head -1 | awk '$2 < 0.85 { print }
        END { if (NR != 1) print "no score" }')"
finish
