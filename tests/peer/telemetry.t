#!/bin/bash
# telemetry.t - event files, tables and the report of a run, read with Python libraries.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
: "${srcdir:=.}" "${top_builddir:=.}"
export srcdir top_builddir
if ! python3 -c 'import google.protobuf, numpy, PIL' 2> /dev/null; then
    echo "1..0 # SKIP python3-protobuf, python3-numpy or python3-pil is not installed"
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 "$srcdir/tests/peer/telemetry.py" "$@"
