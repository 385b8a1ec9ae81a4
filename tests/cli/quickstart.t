#!/bin/bash
# quickstart.t - output and actions of quickstart, on a small project of a few files.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
#
# Making a Debian root takes minutes and needs the network; continuous integration tests it by
# running quickstart itself.
# shellcheck disable=SC2317  # functions are called through ok

. "${srcdir:-.}/tests/tap.sh"
top=$(cd "$srcdir" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset CI QUICKSTART_BEGAN "${!DNN_@}" "${!PIP_@}"
export DNN_CACHE=$tmp/cache DNN_PLACE=host DNN_PEER=$tmp/peer
export MAKEFLAGS='' MFLAGS=''
out=$tmp/out

# ok NAME CMD...: passes if CMD succeeds; else the output of quickstart is shown.
ok() {
    local name=$1
    shift
    result "$name" "$("$@" || { echo "$*"; cat "$out"; })"
}
# gives STATUS TEXT CMD...: CMD ends with STATUS and prints TEXT.
gives() {
    local want=$1 text=$2 status=0
    shift 2
    guarded "$@" >"$out" 2>&1 </dev/null || status=$?
    [ "$status" -eq "$want" ] && grep -qF -- "$text" "$out"
}
last_line() {
    [ "$(tail -n 1 "$out")" = "$1" ]
}

# ---- the command line ----

quickstart=$top/quickstart
ok "help" gives 0 "usage: ./quickstart" "$quickstart" help
ok "an unknown command is a usage error" \
    gives 2 'quickstart: there is no command "chek"' "$quickstart" chek
ok "an unknown option of check is a usage error" \
    gives 2 'check takes --sanitize or --all, not "--fast"' "$quickstart" check --fast
ok "clean takes no argument" \
    gives 2 '"clean" takes no argument, not "all"' "$quickstart" clean all
ok "an unknown group of packages is a usage error" \
    gives 2 'no group "tests"' "$quickstart" packages tests
ok "DNN_PLACE is checked" \
    gives 1 'DNN_PLACE must be host or root, not "cloud"' \
    env DNN_PLACE=cloud "$quickstart" shell true
ok "the error names a cache directory that cannot be made" \
    gives 1 'cannot make /dev/null/cache' \
    env DNN_CACHE=/dev/null/cache "$quickstart" shell true
ok "continuous integration runs check --all" \
    grep -q '^cd .* && exec ./quickstart check --all$' "$top/.ci/run"

# ---- a project whose configure, make and make check are a few lines each ----

src=$tmp/src build=$tmp/src/build
mkdir -p "$src/containers" "$src/config" "$src/jobs"
cp "$quickstart" "$src/quickstart"
cp "$top/containers/private-root.sh" "$src/containers"
cp "$top/jobs/follow.sh" "$src/jobs"
quickstart=$src/quickstart
printf 'build  make  # why\nslurm  bash  # why\ntest  sed  # why\n' \
    >"$src/containers/packages.list"
touch "$src/configure.ac" "$src/Makefile.am"
cat >"$src/autogen.sh" <<'EOF'
#!/bin/sh
cd "$(dirname "$0")" && cp configure.in configure && touch Makefile.in
EOF
cat >"$src/configure.in" <<'EOF'
#!/bin/sh
echo "configured with: $*"
echo x >>configured
cp "$(dirname "$0")/Makefile" . && touch config.status
EOF
cat >"$src/Makefile" <<'EOF'
all build-tests:
	@test ! -e ../broken || { echo "cc: no such thing"; false; }
	@test ! -e ../slow || { echo $$$$ >../slow.pid; exec sleep 300; }
check check-unit:
	@mkdir -p tests && seq -f '%g tests/t' 12 >tests/seconds
	@printf '# TOTAL: 7\n# PASS:  3\n# SKIP:  1\n# XFAIL: 1\n'
	@printf '# FAIL:  %d\n# XPASS: 0\n# ERROR: 0\n' `cat ../failures`
	@test `cat ../failures` -eq 0 || { echo "the failing part" >tests/bad.log; \
	    echo "FAIL: tests/bad.t 3 - it works"; echo "ERROR: tests/bad.t - missing test plan"; false; }
EOF
chmod +x "$src/autogen.sh" "$src/configure.in"
echo 0 >"$src/failures"

if command -v dpkg-query >/dev/null; then
    ok "check passes when all tests pass" \
        gives 0 "running all tests" "$quickstart" check
    ok "its last line has the sums of automake's counts" last_line "4 passed, 0 failed, 1 skipped"
    slowest() {
        grep -A 11 "the slowest tests" "$out" | sed 1d |
            diff - <(seq -f '    %g tests/t' 12 -1 3; echo "4 passed, 0 failed, 1 skipped")
    }
    ok "the ten slowest tests are printed before it" slowest
    ok "check --all also tests the build with sanitizers" gives 0 "ASan" "$quickstart" check --all
    ok "its last line is the sum" last_line "8 passed, 0 failed, 2 skipped"
    ok "the second build is configured with sanitizers" \
        grep -rq -e "configured with: .*--enable-asan --enable-ubsan" "$build-asan/quickstart.log"
    ok "nothing is configured twice" [ "$(wc -l <"$build/configured")" -eq 1 ]

    echo 2 >"$src/failures"
    ok "check fails when tests fail, and shows their logs" \
        gives 1 "the failing part" "$quickstart" check
    ok "its last line has the number of failures" last_line "4 passed, 2 failed, 1 skipped"
    echo 0 >"$src/failures"

    touch "$src/broken"
    ok "if a build fails, the end of its log is printed" \
        gives 1 "cc: no such thing" "$quickstart" check
    ok "and the path of the whole log" grep -qF "the whole log: $build/quickstart.log" "$out"
    ok "and counts as a failure" last_line "0 passed, 1 failed, 0 skipped"
    rm "$src/broken"

    # packages from PyPI: replaced by a wheel of one line
    make_wheel() {
        python3 - "$tmp/wheels" <<'EOF2'
import sys, zipfile
info = "dnn_peer_try-1.5.dist-info/"
with zipfile.ZipFile(sys.argv[1] + "/dnn_peer_try-1.5-py3-none-any.whl", "w") as z:
    z.writestr("dnn_peer_try.py", "print('imported')\n")
    z.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: dnn-peer-try\nVersion: 1.5\n")
    z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr(info + "RECORD", "")
EOF2
    }
    imported() {
        [ "$("$DNN_PEER/bin/python3" -c 'import dnn_peer_try')" = imported ]
    }
    echo 'pip  dnn-peer-try  >=1.2  # why' >>"$src/containers/packages.list"
    export PIP_NO_INDEX=1
    ok "if packages from PyPI cannot be installed, tests are skipped" \
        gives 0 "the tests that need these packages are skipped" "$quickstart" check
    mkdir "$tmp/wheels"
    if python3 -c 'import venv, ensurepip' 2>/dev/null && make_wheel; then
        export PIP_FIND_LINKS=$tmp/wheels
        ok "packages from PyPI are installed in a virtual environment" \
            gives 0 "installing dnn-peer-try>=1.2 from PyPI in $DNN_PEER" "$quickstart" check
        ok "whose Python finds them" imported
        "$quickstart" check >"$out" 2>&1
        result "and only once" "$(grep "from PyPI" "$out")"
        printf '' >"$DNN_PEER/.packages"
        ok "a changed list is installed again" gives 0 "from PyPI in" "$quickstart" check
    else
        skip "packages from PyPI are installed in a virtual environment" "no python3-venv"
    fi

    # interrupted: it ends its processes, prints a message, and can be run again
    interrupt() {
        "$quickstart" check >"$out" 2>&1 </dev/null &
        local pid=$! sleeper status=0
        wait_for test -s "$src/slow.pid"
        sleeper=$(cat "$src/slow.pid") || return
        kill -TERM "$pid"
        wait "$pid" || status=$?
        [ "$status" -eq 130 ] && ! kill -0 "$sleeper" 2>/dev/null &&
            grep -q "stopped; the same command continues" "$out"
    }
    touch "$src/slow"
    ok "an interrupted run ends its processes" interrupt
    rm "$src/slow"
    ok "and can be run again" gives 0 "4 passed" "$quickstart" check

    # another process locks the build directory until quickstart prints that it waits
    (exec 9>"$build/.lock" && flock 9 && touch "$tmp/held" && wait_for grep -q "is running here" "$out") &
    wait_for test -e "$tmp/held"
    ok "a second quickstart in the same tree waits" \
        gives 0 "another quickstart is running here" "$quickstart" check
    wait

    rm "$build/.quickstart"
    ok "a build directory that quickstart did not make is not changed" \
        gives 1 "was not made by quickstart" "$quickstart" check
else
    skip "quickstart check" "no dpkg here"
fi

# ---- a private root with two programs and their libraries ----

if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
    root=$tmp/entered
    mkdir -p "$root/etc"
    ldd /bin/sh /usr/bin/env | grep -oE '/[^ ]+\.so[^ ]*' |
        xargs cp -L --parents -t "$root" /bin/sh /usr/bin/env
    echo "our CA" >"$tmp/ca.crt"
    echo old >"$root/etc/hosts"
    node=$(stat -c %i "$root/etc/hosts")
    entered() {
        gives 0 "SSL_CERT_FILE=/etc/dnn-toolkit-ca.crt" env SSL_CERT_FILE="$tmp/ca.crt" PIP_CERT=/x PIP_NO_INDEX=1 \
            https_proxy=proxy:1 UNRELATED=1 unshare --mount "$quickstart" mounts "$root" env &&
            grep -qx "PIP_CERT=/etc/dnn-toolkit-ca.crt" "$out" && grep -qx "PIP_NO_INDEX=1" "$out" &&
            grep -qx "https_proxy=proxy:1" "$out" && ! grep -q UNRELATED "$out" &&
            cmp "$tmp/ca.crt" "$root/etc/dnn-toolkit-ca.crt"
    }
    # A private Slurm has mounted its /etc/hosts over that of the root; the mount would be lost if
    # the file were replaced.
    same_file() {
        cmp /etc/hosts "$root/etc/hosts" && [ "$(stat -c %i "$root/etc/hosts")" = "$node" ]
    }
    ok "a private root gets the host's CA certificates and the settings of pip and proxies" entered
    ok "files of a root are overwritten in place, not replaced" same_file
else
    skip "a private root gets the host's CA certificates and the settings of pip and proxies" "mount namespaces are not allowed"
    skip "files of a root are overwritten in place, not replaced" "mount namespaces are not allowed"
fi

# ---- clean ----

mkdir -p "$DNN_CACHE/root-0123/etc" "$src/build-asan"
touch "$src/build-asan/.quickstart"
if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
    mounted() {
        # shellcheck disable=SC2016  # the inner shell expands these
        gives 1 "something is mounted below $DNN_CACHE/root-0123" unshare --mount sh -c '
            mount -t tmpfs tmpfs "$1/etc" && touch "$1/etc/precious" && "$2" clean
            status=$?; test -e "$1/etc/precious" && exit $status' \
            sh "$DNN_CACHE/root-0123" "$quickstart" && [ -d "$DNN_CACHE/root-0123" ]
    }
    ok "clean refuses a root in which something is mounted" mounted
else
    skip "clean refuses a root in which something is mounted" "mount namespaces are not allowed"
fi
aside() {
    ls -d /opt/dnn-aside/* 2>/dev/null
}
before=$(aside)
removed() {
    gives 0 "removing $DNN_CACHE/root-0123" "$quickstart" clean &&
        [ ! -e "$DNN_CACHE" ] && [ ! -e "$src/build-asan" ] && [ ! -e "$DNN_PEER" ]
}
if unshare --mount true 2>/dev/null; then
    ok "clean lists and removes what quickstart made" removed
else
    skip "clean lists and removes what quickstart made" "mount namespaces are not allowed"
fi
ok "clean keeps other files in /opt/dnn-aside" [ "$(aside)" = "$before" ]

finish
