#!/bin/bash
# form.t - clang-format, shellcheck, licence lines, lengths of files and lines, and files and
# links that the documentation names.
#
# SPDX-License-Identifier: Apache-2.0
. "${srcdir:-.}/tests/tap.sh"
cd "${srcdir:-.}" || exit 1

mapfile -t csources < <(find src tools tests -name '*.[ch]' | sort)
mapfile -t scripts < <({
    find containers jobs src tests .ci -name '*.sh' -o -name '*.t' -o -path '.ci/run'
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
result "tests use no timeout of their own" \
    "$(grep -nE '(^|[^-[:alnum:]])timeout [0-9]' tests/*/*.t tests/*.sh tests/cluster/*.sh)"
result "every source file has a licence line" \
    "$(grep -L 'SPDX-License-Identifier: Apache-2.0' "${csources[@]}" "${scripts[@]}")"
result "no file of src or tools is longer than 600 lines" \
    "$(find src tools -name '*.[ch]' -exec wc -l {} + | awk '$2 != "total" && $1 > 600')"

mapfile -t texts < <(find . -maxdepth 1 -name '*.md'; find docs jobs -name '*.md' | sort)
# Not checked: rows of tables, and what a tool prints with --keys.
result "lines of the documentation have at most 100 characters" "$(
    awk 'FNR == 1 { printed = FILENAME == "docs/config.md" }
        / printed by `dnn-[a-z]+ --keys`/ { printed = 1 }
        !/^\|/ && !printed && length > 100 { print FILENAME ":" FNR ": " length }' "${texts[@]}")"
# Names with capital letters, such as NAME, are placeholders.
# shellcheck disable=SC2016  # these are Markdown's
result "files that the documentation names exist" "$(
    grep -oE '`(src|tests|tools|docs|jobs|containers|config)/[a-z0-9_./-]+`' "${texts[@]}" | tr -d '`' |
        while IFS=: read -r text file; do [ -e "$file" ] || echo "$text: $file"; done)"
result "links in the documentation work" "$(
    grep -oE '\]\([^)#: ]+[)#]' "${texts[@]}" | tr -d '()#]' | while IFS=: read -r text link; do
        [ -e "$(dirname "$text")/$link" ] || echo "$text: $link"
    done)"
result "architecture.svg is up to date with architecture.txt and src/DEPENDS" "$(
    "${AWK:-awk}" -f docs/images/architecture.awk src/DEPENDS docs/images/architecture.txt 2>&1 |
        diff docs/images/architecture.svg - | head)"
finish
