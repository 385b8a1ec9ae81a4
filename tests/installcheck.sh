#!/bin/bash
# installcheck.sh - the installed toolkit works with installed files only:
# installcheck.sh BINDIR MANDIR PKGDATADIR MODULESDIR COMPLETIONDIR VERSION
#
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
bin=$1 man=$2 data=$3 modules=$4 completion=$5 version=$6
cd /
note() { echo "installcheck: $*"; }
for tool in dnn-bench dnn-cluster dnn-infer dnn-prepare dnn-train; do
    "$bin/$tool" --version | grep -q " $version$" || { note "$tool is not version $version"; exit 1; }
    test -s "$man/man1/$tool.1" || { note "no manual page of $tool"; exit 1; }
    bash -n "$completion/$tool" || { note "no completion of $tool"; exit 1; }
done
for job in infer prepare topo train_unet3d; do
    test -x "$data/jobs/$job.sh" || { note "no job script $data/jobs/$job.sh"; exit 1; }
done
grep -q "$bin" "$modules/dnn/$version" "$modules/dnn/$version.lua" || { note "the modulefiles have another path"; exit 1; }
"$bin/dnn-bench" --quiet topo | grep -q '^ *0 ' || { note "dnn-bench topo shows no rank 0"; exit 1; }
test -s "$data/torch/torch_step.py" || { note "no PyTorch scripts in $data/torch"; exit 1; }
note "the installation in $bin works"
