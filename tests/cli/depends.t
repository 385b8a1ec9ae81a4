#!/bin/bash
# depends.t - every #include in src/ must be allowed by src/DEPENDS, and a line of src/DEPENDS may
# only name components of earlier lines.
#
# SPDX-License-Identifier: Apache-2.0
. "${srcdir:-.}/tests/tap.sh"
src=${srcdir:-.}/src

# allows NAME OTHER: status 0 if the line of NAME has OTHER, 1 if not, 2 if there is no such line
allows() {
    awk -v who="$1" -v what="$2" '
        $1 == who { line = 1; for (i = 2; i <= NF; i++) if ($i == what) named = 1 }
        END { exit named ? 0 : line ? 1 : 2 }' "$src/DEPENDS"
}

check() {
    find "$src" \( -name '*.[ch]' -o -name '*.cu' \) | sort | while read -r f; do
        component=${f#"$src"/}; component=${component%%/*}
        sed -n 's/^#include "\([a-z]*\/.*\)".*/\1/p' "$f" | while read -r inc; do
            to=${inc%%/*}
            [ "$to" = "$component" ] && continue
            allows "$component" "$to" || echo "$f: $component may not include $to"
            case ${inc#*/} in
                */* | *_impl.h) echo "$f: $inc is private to $to" ;;
            esac
        done
        sed -n 's/^#include \(<.*>\).*/\1/p' "$f" | while read -r lib; do
            allows "$lib" "$component"
            [ $? -ne 1 ] || echo "$f: $lib does not belong in $component"
        done
    done
}

order() {
    awk '/^#/ || NF == 0 { next }
        /^</ { for (i = 2; i <= NF; i++) if (!($i in seen)) print $1 ": there is no component " $i; next }
        { for (i = 2; i <= NF; i++) if (!($i in seen)) print $1 " names " $i ", which is not above it"
          seen[$1] = 1 }' "$src/DEPENDS"
}

empty() {
    awk '/^[a-z]/ { print $1 }' "$src/DEPENDS" | while read -r component; do
        [ -d "$src/$component" ] || echo "src/DEPENDS names $component, which does not exist"
    done
}

result "includes follow src/DEPENDS" "$(check)"
result "src/DEPENDS names only components of earlier lines" "$(order)"
result "every component of src/DEPENDS exists" "$(empty)"

# The test must find a forbidden include: try it on a copy that has one.
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/src"
cp -r "$src"/* "$tmp/src/" && chmod -R u+w "$tmp/src"
printf '#include "comm/comm.h"\n#include <mpi.h>\n#include "slurm/x_impl.h"\n' > "$tmp/src/base/wrong.c"
src=$tmp/src
seen=$(check | grep -c wrong.c)
result "a forbidden include is found" "$([ "$seen" -ge 4 ] || echo "only $seen complaints about base/wrong.c")"
finish
