#!/bin/sh
# autogen.sh - make ./configure from configure.ac; needed once after a clone.
#
# SPDX-License-Identifier: Apache-2.0
set -e
cd "$(dirname "$0")"
exec autoreconf --install --warnings=all,no-portability "$@"
