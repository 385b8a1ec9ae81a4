#!/bin/bash
# packages.t - quickstart, the recipes and docs/install.md agree with containers/packages.list.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors

. "${srcdir:-.}/tests/tap.sh"
top=$(cd "$srcdir" && pwd)
list=$top/containers/packages.list
def=$top/containers/dnn-toolkit.def
docker=$top/containers/Dockerfile
spack=$top/containers/spack/packages/dnn-toolkit/package.py
eb=$top/containers/easybuild/dnn-toolkit-0.1.0-foss-2024a.eb
manual=$top/docs/install.md
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

result "each line of the list is: group package [>=version] # why" "$(
    grep -vE '^(#|$)' "$list" |
        grep -vE '^(build|slurm|test|aside|pip|nodeps) +[a-z0-9.+-]+( +>=[0-9.]+)? +# [^ ].*$')"

result "no package is listed twice" "$(
    awk '!/^#/ && NF { print $2 }' "$list" | sort | uniq -d)"

for group in build slurm test aside pip nodeps; do
    "$top/quickstart" packages $group
done >"$tmp/quickstart" 2>&1
result "quickstart knows every package of the list" "$(
    diff <(awk '!/^#/ && NF { print $2 ($1 ~ /^(pip|nodeps)$/ && $3 != "#" ? $3 : "") }' "$list" | sort) \
        <(sort "$tmp/quickstart"))"

# The section %post as Apptainer runs it: sh -e.
{ echo '#!/bin/sh -e'; awk '/^%/ { on = $1 == "%post"; next } on' "$def"; } >"$tmp/post"
if command -v shellcheck >/dev/null; then
    result "the Apptainer definition's shell part has no errors" \
        "$(shellcheck "$tmp/post" 2>&1)"
else
    skip "the Apptainer definition's shell part has no errors" "no shellcheck"
fi

# The RUN command, up to the first line without a backslash at its end.
{ echo '#!/bin/sh -e'; awk 'sub(/^RUN /, "") { on = 1 } on; !/\\$/ { on = 0 }' "$docker"; } >"$tmp/run"
if command -v shellcheck >/dev/null; then
    result "the Dockerfile's shell part has no errors" "$(shellcheck "$tmp/run" 2>&1)"
else
    skip "the Dockerfile's shell part has no errors" "no shellcheck"
fi

# selects FILE: print the packages that the line packages=... selects
selects() {
    # shellcheck disable=SC2016  # for the shell that runs it
    { grep -o 'packages=\$(.*)' "$1"; echo 'for p in $packages; do echo "$p"; done'; } >"$tmp/select"
    (cd "$top" && sh "$tmp/select")
}
for recipe in post run; do
    result "the $([ $recipe = post ] && echo "Apptainer definition" || echo Dockerfile) installs the group build" \
        "$(selects "$tmp/$recipe" | diff <("$top/quickstart" packages build) - 2>&1)"
done

awk '!/^#/ && NF { why = $0; sub(/^[^#]*# */, "", why)
    printf "%s|%s|%s|%s\n", $2, $1, $3 ~ /^>=/ ? substr($3, 3) : "", why }' "$list" >"$tmp/list"
awk -F ' *\\| *' '/^\| `[^`-][^`]*` \| (build|slurm|test|aside|pip|nodeps) \|/ {
    gsub(/`/, ""); printf "%s|%s|%s|%s\n", $2, $3, $4, $5 }' "$manual" >"$tmp/manual"
result "the table in docs/install.md equals the list" "$(diff "$tmp/list" "$tmp/manual")"

if command -v python3 >/dev/null; then
    result "the spack and EasyBuild recipes are valid Python" "$(
        for file in "$spack" "$eb"; do
            python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' \
                "$file" 2>&1
        done)"
else
    skip "the spack and EasyBuild recipes are valid Python" "no python3"
fi

# Debian packages that the messages of configure name.
result "every package that configure's messages name is in the list" "$(
    grep -oh 'Debian: [a-z0-9-]*' "$top/configure.ac" "$top"/config/dnn_*.m4 | sort -u |
        while read -r _ name; do
            grep -qE "^[a-z]+ +$name( |\$)" "$list" || echo "$name is not in the list"
        done)"

options=$({ sed -n 's/^DNN_LIB(\[\([a-z0-9]*\)\].*/\1/p' "$top/configure.ac"
    sed -n 's/^AC_ARG_WITH(\[\([a-z0-9]*\)\].*/\1/p' "$top"/config/dnn_*.m4; } | sort -u)
# names COLUMN OPTION: print the names of the dependency in that column of docs/install.md.
names() {
    # shellcheck disable=SC2016  # these are Markdown's
    awk -F '|' -v row="\`--with-$2\`" -v column="$1" 'index($2, row) { print $column }' \
        "$manual" | grep -o '`[^`]*`' | tr -d '`'
}
result "every dependency of configure is in docs/install.md and in both recipes" "$(
    [ "$(wc -w <<<"$options")" -ge 10 ] || echo "found only these options: $options"
    for option in $options; do
        grep -q "^| \`--with-$option\`" "$manual" ||
            echo "docs/install.md has no row for --with-$option"
        for name in $(names 4 "$option"); do
            grep -q "depends_on(\"${name}[\"@ ]" "$spack" || echo "spack: no $name"
        done
        for name in $(names 5 "$option"); do
            case $name in
            OpenMPI) name=foss ;; # part of the toolchain
            foss) continue ;;
            esac
            grep -q "'$name'" "$eb" || echo "EasyBuild: no $name"
        done
        grep -qE "\"$option\"|--without-$option\"" "$spack" ||
            echo "spack: no option --with-$option or --without-$option"
        grep -qE "'--with(out)?-${option}['=]" "$eb" ||
            echo "EasyBuild: no option --with-$option or --without-$option"
    done)"

finish
