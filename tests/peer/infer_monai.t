#!/bin/bash
# infer_monai.t - dnn-infer in tiles against MONAI's sliding window inference in PyTorch.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
python=${DNN_PEER_PYTHON:-/opt/dnn-peer/bin/python3}
if ! "$python" -c 'import h5py, monai, torch' 2> /dev/null; then
    echo "1..0 # SKIP MONAI, PyTorch or h5py is not installed: $python"
    exit 0
fi
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
PYTHONDONTWRITEBYTECODE=1 exec timeout "${DNN_TEST_GUARD:-900}" "$python" "$srcdir/tests/peer/infer_monai.py"
