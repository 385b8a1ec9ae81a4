#!/bin/bash
# torch_zoo.t - every network of the zoo, with fewer filters, against PyTorch.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
if ! python3 -c 'import numpy, torch' 2> /dev/null; then
    echo "1..0 # SKIP python3-torch is not installed"
    exit 0
fi
# Small networks: threads mostly wait for each other, and should not spin.
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/peer/torch_zoo.py" "$@"
