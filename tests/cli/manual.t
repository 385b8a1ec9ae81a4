#!/bin/bash
# manual.t - --help, the manual page and the shell completion of each tool name the
# same options, and mandoc and bash accept them.
#
# SPDX-License-Identifier: Apache-2.0
. "${srcdir:-.}/tests/tap.sh"

# bash has compopt only during completion.
# shellcheck disable=SC2317
compopt() { :; }

# Print the long options of a text without values, one per line.
options() {
    sed -e 's/\\-/-/g' -e 's/--\[no-\]/--/g' | grep -oE '(^|[ ,|(])--[a-z][a-z-]*' | tr -d ' ,|(' |
        sed 's/^--no-/--/' | sort -u
}

for path in "$top_builddir"/dnn-*; do
    tool=$(basename "$path")
    [[ -x $path && $tool != *.* ]] || continue
    # Lines of the help begin with an option.
    help() { "$tool" "$@" --help | sed -nE 's/^  (-[a-zA-Z], |    )(--.*)/\2/p' | sed 's/ .*//' | options; }
    commands=$("$tool" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\).*/\1/p')
    all=$({ help; for c in $commands; do help "$c"; done; } | sort -u)
    man=$("$tool" --help=man | sed -n '/^\.TP/{n;p;}' | sed 's/^\.B //' | grep '^\\-' | options)
    bash=$("$tool" --help=bash | sed -n "s/.*words+\{0,1\}='\(.*\)'.*/ \1/p" | options)

    result "$tool: help has options" "$([ -n "$all" ] || echo none)"
    result "$tool: manual and help agree" "$(diff <(echo "$all") <(echo "$man"))"
    result "$tool: completion and help agree" "$(diff <(echo "$all") <(echo "$bash"))"
    result "$tool: the built manual page is up to date" \
        "$(diff <("$tool" --help=man) "$top_builddir/docs/man/$tool.1")"
    for c in $commands; do
        result "$tool: the manual describes $c" "$("$tool" --help=man | grep -q "^\.SS $c" || echo missing)"
    done
    if command -v mandoc > /dev/null; then
        result "$tool: mandoc has no warnings" \
            "$("$tool" --help=man | mandoc -T lint -W warning 2>&1 | grep -vE 'missing date|outdated')"
    else
        skip "$tool: mandoc has no warnings" "no mandoc"
    fi
    result "$tool: --version" "$("$tool" --version | grep -q "^$tool (dnn-toolkit) [0-9]" || echo odd)"
    result "$tool: help fits 80 columns" "$("$tool" --help | awk 'length($0) > 80')"

    # Call the completion as bash does.
    result "$tool: completion of an option" "$(
        eval "$("$tool" --help=bash)"
        COMP_WORDS=("$tool" --vers) COMP_CWORD=1
        "_${tool//-/_}"
        [ "${COMPREPLY[*]}" = --version ] || echo "got: ${COMPREPLY[*]}"
    )"
    result "$tool: completion of a value" "$(
        eval "$("$tool" --help=bash)"
        COMP_WORDS=("$tool" --help "=" m) COMP_CWORD=3
        "_${tool//-/_}"
        [ "${COMPREPLY[*]}" = man ] || echo "got: ${COMPREPLY[*]}"
    )"
done
finish
