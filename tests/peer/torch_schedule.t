#!/bin/bash
# torch_schedule.t - learning rate schedules against PyTorch.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
if ! python3 -c 'import numpy, torch' 2> /dev/null; then
    echo "1..0 # SKIP python3-torch is not installed"
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/peer/torch_schedule.py" "$@"
