#!/bin/bash
# infer_keras.t - dnn-infer with model files and raw files against Keras 3 with prepared values.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
python=${DNN_PEER_PYTHON:-/opt/dnn-peer/bin/python3}
if ! KERAS_BACKEND=torch "$python" -c 'import keras, nibabel, PIL' 2> /dev/null; then
    echo "1..0 # SKIP Keras 3, nibabel or PIL is not installed: $python"
    exit 0
fi
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive KERAS_BACKEND=torch TF_CPP_MIN_LOG_LEVEL=3
PYTHONDONTWRITEBYTECODE=1 exec timeout "${DNN_TEST_GUARD:-900}" "$python" "$srcdir/tests/peer/infer_keras.py"
