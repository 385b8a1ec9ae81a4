#!/bin/bash
# train_kill.t - dnn-train is killed a few times; make stress does it 300 times.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
exec bash "${srcdir:-.}/tests/train_kill.sh" "${1:-6}" "${2:-25}"
