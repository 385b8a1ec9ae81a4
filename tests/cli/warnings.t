#!/bin/bash
# warnings.t - every C file compiles without a warning, with gcc and with clang.
#
# SPDX-License-Identifier: Apache-2.0
. "${srcdir:-.}/tests/tap.sh"
read -ra cppflags <<< "$DNN_CPPFLAGS"
flags=(-std=gnu11 -O2 -Wall -Wextra -Wundef -Wmissing-prototypes -Wstrict-prototypes -Werror -fopenmp)
mapfile -t sources < <(find "$srcdir/src" "$srcdir/tools" "$srcdir/tests" -name '*.c' | sort)

# Relative include paths in the flags start at the build directory.
cd "$top_builddir" || exit 1
for cc in gcc clang; do
    if command -v "$cc" > /dev/null; then
        result "$cc: ${#sources[@]} files" \
            "$(printf '%s\n' "${sources[@]}" |
                xargs -P "$(nproc)" -I{} "$cc" "${flags[@]}" "${cppflags[@]}" -S -o /dev/null {} 2>&1 | head -40)"
    else
        skip "$cc" "not installed"
    fi
done
finish
