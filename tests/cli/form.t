#!/bin/bash
# form.t - the form of the sources: clang-format, shellcheck, licence lines, words
# that do not belong here.
#
# SPDX-License-Identifier: Apache-2.0
. "${srcdir:-.}/tests/tap.sh"
cd "${srcdir:-.}" || exit 1

mapfile -t csources < <(find src tools tests -name '*.[ch]' | sort)
mapfile -t scripts < <({
    find jobs src tests .ci -name '*.sh' -o -name '*.t' -o -path '.ci/run'
    ls quickstart autogen.sh
} | sort)

if command -v clang-format > /dev/null; then
    result "C files are formatted" "$(clang-format --dry-run "${csources[@]}" 2>&1 | grep warning)"
else
    skip "C files are formatted" "no clang-format"
fi
if command -v shellcheck > /dev/null; then
    result "scripts pass shellcheck" "$(shellcheck -x -P tests/cluster "${scripts[@]}" 2>&1)"
else
    skip "scripts pass shellcheck" "no shellcheck"
fi
result "every source names its licence" \
    "$(grep -L 'SPDX-License-Identifier: Apache-2.0' "${csources[@]}" "${scripts[@]}")"
result "no file of src or tools is longer than 600 lines" \
    "$(find src tools -name '*.[ch]' -exec wc -l {} + | awk '$2 != "total" && $1 > 600')"
finish
