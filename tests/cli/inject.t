#!/bin/bash
# inject.t - each system call of writing a file fails once, at every place where it is made.
# Afterwards the file has the old or the new content, never a part of it; there are no temporary
# files; and message and exit status are as listed here.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
set -u
# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"

build=${top_builddir:-.}
inject=$(realpath "${DNN_INJECT_SO:-$build/tests/inject.so}")
prog=$(realpath "${DNN_INJECT_PROG:-$build/tests/unit/base_file}")
for need in "$inject" "$prog"; do
    if [ ! -e "$need" ]; then
        echo "1..0 # SKIP $need is not built"
        exit 0
    fi
done
dir=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/dnn-inject.XXXXXX")")
trap 'rm -rf "$dir"' EXIT

# ok STATUS NAME: errors were printed before
ok() {
    if [ "$1" -eq 0 ]; then result "$2" ""; else result "$2" "status $1"; fi
}

head -c 100000 /dev/zero | tr '\0' n > "$dir/new"
echo "the old content" > "$dir/old"

# One run in which one call fails.  Prints a line: arguments, exit status, content of the
# file, number of other files, message.
attempt() { # attempt HOW BEFORE CALL:N:WHAT
    rm -rf "$dir/w" "$dir/log"
    mkdir "$dir/w"
    [ "$2" = old ] && install -m 640 "$dir/old" "$dir/w/f"
    ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS-} LD_PRELOAD=$inject \
        DNN_INJECT=$3 DNN_INJECT_UNDER=$dir/w DNN_INJECT_LOG=$dir/log \
        guarded "$prog" victim "$1" "$dir/w/f" > /dev/null 2> "$dir/err"
    local status=$? state=half others
    if [ ! -e "$dir/w/f" ]; then
        state=none
    elif cmp -s "$dir/w/f" "$dir/old"; then
        state=old
    elif cmp -s "$dir/w/f" "$dir/new"; then
        state=new
    fi
    if [ "$2" = old ] && [ "$(stat -c %a "$dir/w/f")" != 640 ]; then
        state="$state with a changed mode"
    fi
    others=$(find "$dir/w" -mindepth 1 ! -name f | wc -l)
    echo "$1 $2 $3: exit $status, $state, $others other files:" \
        "$(sed -e "s|$dir/w/||" -e 's|[0-9.]* [A-Z]i*B* free|N free|' "$dir/err")"
}

# One run for each place where the call is made.
attempts() { # attempts HOW BEFORE CALL WHAT
    local n line
    for ((n = 1; n < 50; n++)); do
        line=$(attempt "$1" "$2" "$3:$n:$4")
        [ -s "$dir/log" ] || break
        echo "$line"
    done
    [ "$n" -gt 1 ] || echo "$1 $2 $3: this call is never made"
    [ "$n" -lt 50 ] || echo "$1 $2 $3: this call is made without end"
}

compare() { # compare NAME: compare stdin with $dir/got
    diff - "$dir/got" > "$dir/diff"
    local status=$?
    sed 's/^/# /' "$dir/diff"
    ok "$status" "$1"
}

for call in open fchmod write fsync close rename; do
    attempts write old "$call" EIO
done > "$dir/got"
compare "a file that is replaced, at every call" << 'END'
write old open:1:EIO: exit 5, old, 0 other files: victim: f: cannot be written: its directory: Input/output error
write old open:2:EIO: exit 5, old, 0 other files: victim: f: cannot be written: Input/output error
write old fchmod:1:EIO: exit 5, old, 0 other files: victim: f: cannot be written: Input/output error
write old write:1:EIO: exit 5, old, 0 other files: victim: f: cannot be written: Input/output error
write old fsync:1:EIO: exit 5, old, 0 other files: victim: f: cannot be written: Input/output error
write old fsync:2:EIO: exit 5, new, 0 other files: victim: f: written, but the directory could not be flushed to disk, so a power failure may lose it: Input/output error
write old close:1:EIO: exit 5, old, 0 other files: victim: f: cannot be written: Input/output error
write old close:2:EIO: exit 0, new, 0 other files: 
write old rename:1:EIO: exit 5, old, 0 other files: victim: f: cannot be written: Input/output error
END

for call in open write fsync close rename; do
    attempts write none "$call" ENOSPC
done > "$dir/got"
compare "a new file on a full disk, at every call" << 'END'
write none open:1:ENOSPC: exit 5, none, 0 other files: victim: f: cannot be written: its directory: No space left on device
write none open:2:ENOSPC: exit 5, none, 0 other files: victim: f: the disk is full: 97.7 KiB needed, N free
write none write:1:ENOSPC: exit 5, none, 0 other files: victim: f: the disk is full: 97.7 KiB needed, N free
write none fsync:1:ENOSPC: exit 5, none, 0 other files: victim: f: the disk is full: 97.7 KiB needed, N free
write none fsync:2:ENOSPC: exit 5, new, 0 other files: victim: f: written, but the directory could not be flushed to disk, so a power failure may lose it: No space left on device
write none close:1:ENOSPC: exit 5, none, 0 other files: victim: f: the disk is full: 97.7 KiB needed, N free
write none close:2:ENOSPC: exit 0, new, 0 other files: 
write none rename:1:ENOSPC: exit 5, none, 0 other files: victim: f: the disk is full: 97.7 KiB needed, N free
END

for call in open write fsync; do
    attempts stream old "$call" EDQUOT
done > "$dir/got"
compare "a file written in parts, with its quota used up" << 'END'
stream old open:1:EDQUOT: exit 5, old, 0 other files: victim: f: cannot be written: its directory: Disk quota exceeded
stream old open:2:EDQUOT: exit 5, old, 0 other files: victim: f: the disk quota is exceeded: N free
stream old write:1:EDQUOT: exit 5, old, 0 other files: victim: f: the disk quota is exceeded: 24.4 KiB needed, N free
stream old write:2:EDQUOT: exit 5, old, 0 other files: victim: f: the disk quota is exceeded: 48.8 KiB needed, N free
stream old write:3:EDQUOT: exit 5, old, 0 other files: victim: f: the disk quota is exceeded: 73.2 KiB needed, N free
stream old write:4:EDQUOT: exit 5, old, 0 other files: victim: f: the disk quota is exceeded: 97.7 KiB needed, N free
stream old fsync:1:EDQUOT: exit 5, old, 0 other files: victim: f: the disk quota is exceeded: 97.7 KiB needed, N free
stream old fsync:2:EDQUOT: exit 5, new, 0 other files: victim: f: written, but the directory could not be flushed to disk, so a power failure may lose it: Disk quota exceeded
END

# No errors: an interrupted call, a short write, a directory that cannot be
# flushed.
{
    attempt write old open:2:EINTR
    attempt write old write:1:EINTR
    attempt write old write:1:SHORT
    attempt stream old write:3:SHORT
    attempt write old fsync:1:EINTR
    attempt write old fsync:2:EINVAL
    attempt write old close:1:EINTR
} > "$dir/got"
compare "interrupted and partial calls are made again" << 'END'
write old open:2:EINTR: exit 0, new, 0 other files: 
write old write:1:EINTR: exit 0, new, 0 other files: 
write old write:1:SHORT: exit 0, new, 0 other files: 
stream old write:3:SHORT: exit 0, new, 0 other files: 
write old fsync:1:EINTR: exit 0, new, 0 other files: 
write old fsync:2:EINVAL: exit 0, new, 0 other files: 
write old close:1:EINTR: exit 0, new, 0 other files: 
END

# Killed just before each call: a temporary file may be left, with the name that the
# header documents, but the file itself is complete.
for before in old none; do
    for call in open write fsync close rename; do
        attempts stream $before $call KILL
    done
done 2> /dev/null > "$dir/got"
{
    [ "$(wc -l < "$dir/got")" -eq 22 ] &&
        ! grep -v -e ' exit 137, \(old\|none\|new\), [01] other files: $' "$dir/got" &&
        [ "$(grep -c ' new,' "$dir/got")" -eq 4 ]
}
status=$?
[ $status -eq 0 ] || sed 's/^/# /' "$dir/got"
ok $status "killed before any call: the old or the new content"
attempt write none rename:1:KILL > /dev/null 2>&1
find "$dir/w" -mindepth 1 -printf '%f\n' | grep -q '^\.f\.[0-9]*-0\.part$'
ok $? "a killed process leaves a temporary file with the documented name"

# Other functions of base/file.h: reading, making and removing directories.
other() { # other HOW PATH CALL:N:WHAT
    rm -rf "$dir/w"
    mkdir -p "$dir/w/a/b"
    cp "$dir/new" "$dir/w/a/b/f"
    ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS-} LD_PRELOAD=$inject \
        DNN_INJECT=$3 DNN_INJECT_UNDER=$dir/w guarded \
        "$prog" victim "$1" "$dir/w/$2" > "$dir/out" 2> "$dir/err"
    echo "$1 $3: exit $?: $(sed "s|$dir/w/||" "$dir/err")"
    if [ "$1" = read ] && [ ! -s "$dir/err" ]; then cmp "$dir/out" "$dir/new"; fi
}
{
    other read a/b/f open:1:EACCES
    other read a/b/f open:1:EINTR
    other read a/b/f read:1:EIO
    other read a/b/f read:1:EINTR
    other read a/b/f read:1:SHORT
    other dirs x/y mkdir:2:EROFS
    other dirs x/y mkdir:3:ENOSPC
    other dirs x/y mkdir:3:NONE
    other tree a unlink:1:EACCES
    other tree a unlink:3:EACCES
    other tree a open:1:EMFILE
    other tree a unlink:5:EIO
} > "$dir/got"
compare "reading, making and removing directories" << 'END'
read open:1:EACCES: exit 5: victim: a/b/f: cannot be read: Permission denied
read open:1:EINTR: exit 0: 
read read:1:EIO: exit 5: victim: a/b/f: cannot be read: Input/output error
read read:1:EINTR: exit 0: 
read read:1:SHORT: exit 0: 
dirs mkdir:2:EROFS: exit 5: victim: x: cannot be created: Read-only file system
dirs mkdir:3:ENOSPC: exit 5: victim: x/y: cannot be created: No space left on device
dirs mkdir:3:NONE: exit 0: 
tree unlink:1:EACCES: exit 0: 
tree unlink:3:EACCES: exit 5: victim: a/b/f: cannot be removed: Permission denied
tree open:1:EMFILE: exit 5: victim: a: cannot be removed: Too many open files
tree unlink:5:EIO: exit 5: victim: a: cannot be removed: Input/output error
END

# A misspelt DNN_INJECT ends the program, instead of testing nothing.
DNN_INJECT=write:1:EBAD LD_PRELOAD=$inject DNN_INJECT_UNDER=$dir \
    ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS-} \
    "$prog" victim write "$dir/w/f" 2> "$dir/err"
[ $? -eq 99 ] && [ "$(cat "$dir/err")" = \
    "inject: DNN_INJECT=write:1:EBAD is not CALL:N:ERROR" ]
ok $? "a misspelt DNN_INJECT is refused"

finish
