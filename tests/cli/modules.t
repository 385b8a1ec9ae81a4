#!/bin/bash
# modules.t - the module can be loaded and unloaded in Environment Modules and in Lmod, and
# unloading restores the environment.
#
# SPDX-License-Identifier: Apache-2.0
. "${srcdir:-.}/tests/tap.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
modules=$(cd "$top_builddir/modulefiles" && pwd)
tools=$(sed -n 's/^bin_PROGRAMS += //p' "$srcdir/tools/Makefile.am")
bindir=$(sed -n 's/^prepend-path PATH {\(.*\)}/\1/p' "$modules"/dnn/[0-9]*[0-9])

# Load and unload in one of the two; the environment before, loaded and after is written to files.
cat > "$tmp/session" <<'S'
# print the environment without the variables of the module system
clean() { env | grep -vE '^(_|SHLVL|LOADEDMODULES|_LMFILES_|MODULEPATH|__MODULES|__LMOD|_ModuleTable|LMOD|BASH_FUNC|MODULES_|MANPATH=:?$)' | grep -vE '^(\}| )' | sort; }
. "$1" || exit 9
module use "$2" || exit 8
clean > "$3/before"
module load dnn || exit 7
clean > "$3/loaded"
module help dnn > "$3/help" 2>&1
module whatis dnn > "$3/whatis" 2>&1
module unload dnn || exit 6
clean > "$3/after"
S

try() { # name, init file
    local name=$1 init=$2 out=$tmp/$1 status=0
    mkdir -p "$out"
    guarded env -i HOME="$tmp" PATH=/usr/local/bin:/usr/bin:/bin DNN_KEEP=1 \
        bash --norc --noprofile "$tmp/session" "$init" "$modules" "$out" > "$out/log" 2>&1 || status=$?
    result "$name: load and unload" "$([ $status = 0 ] || { echo "status $status"; tail -5 "$out/log"; })"
    result "$name: PATH begins with the tools" "$(grep -q "^PATH=$bindir:" "$out/loaded" || grep ^PATH= "$out/loaded")"
    for v in DNN_HOME DNN_JOBS DNN_VERSION; do
        result "$name: $v is set" "$(grep -q "^$v=." "$out/loaded" || echo missing)"
    done
    result "$name: the environment is as before" "$(diff "$out/before" "$out/after")"
    result "$name: loading changed it" "$(cmp -s "$out/before" "$out/loaded" && echo "no difference")"
    result "$name: help names the manual of every tool" "$(
        for tool in $tools; do grep -q "man $tool" "$out/help" || { echo "not $tool"; cat "$out/help"; }; done)"
    result "$name: whatis" "$(grep -q 'deep-learning batch toolkit' "$out/whatis" || cat "$out/whatis")"
}

if [ -f /usr/share/modules/init/bash ]; then
    try environment-modules /usr/share/modules/init/bash
else
    skip environment-modules "not installed"
fi

# The two cannot be installed together, so Lmod may be unpacked in another directory, which must
# be set in a copy of its init file.
aside=/opt/dnn-aside/lmod/usr/share/lmod
if [ -f /usr/share/lmod/lmod/init/bash ]; then
    try lmod /usr/share/lmod/lmod/init/bash
elif [ -f $aside/lmod/init/bash ]; then
    cp -r $aside "$tmp/lmod-copy"
    grep -rlI /usr/share/lmod "$tmp/lmod-copy" | xargs sed -i "s|/usr/share/lmod|$tmp/lmod-copy|g"
    try lmod "$tmp/lmod-copy/lmod/init/bash"
else
    skip lmod "not installed"
fi
finish
