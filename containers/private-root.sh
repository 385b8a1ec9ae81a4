# private-root.sh - make, enter and remove a private Debian root below the cache directory.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
#
# Sourced by quickstart, which has the settings (cache, src, suite, list) and the functions
# that print messages and run steps.  Sets root (the directory) and ns (the command that starts
# a process in a new mount namespace).
#
# shellcheck shell=bash
# shellcheck disable=SC2154  # set by quickstart

# What identifies a root: the release, the machine and the list without its comments.
root_key() {
    { echo "$suite $(uname -m)"; sed 's/#.*//; s/[ \t]*$//; /^$/d' "$list"; } |
        sha256sum | cut -c1-12
}

# Sets ns to the command that makes a mount namespace: as root, or as a user who is root in a
# user namespace.  If the system allows neither, an error explains why.
choose_namespace() {
    local why
    ns=(unshare --mount)
    am_root || ns=(unshare --user --map-root-user --map-auto --mount)
    why=$("${ns[@]}" true 2>&1) && return
    if am_root; then
        # In a chroot, / may not be a mount point, and unshare cannot make it private; a
        # child that joins the new namespace sees the real root and can.
        ns=(unshare --mount --propagation unchanged sh -c
            'nsenter --mount=/proc/self/ns/mnt mount --make-rprivate / && exec "$@"' sh)
        "${ns[@]}" true 2>/dev/null && return
        why="this container may not make mount namespaces ($why)"
    elif ! command -v newuidmap >/dev/null; then
        why="newuidmap is missing; the administrator can install the package uidmap"
    elif ! grep -qs -e "^$(id -un):" -e "^$(id -u):" /etc/subuid; then
        why="/etc/subuid has no line for $(id -un); the administrator can add one with
            usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $(id -un)"
    else
        why="this system does not allow user namespaces ($why)"
    fi
    die "the packages are not installed here, and a private Debian root is not possible:" \
        "$why" \
        "alternatives, all in docs/install.md: a module your site provides, the Apptainer" \
        "definition containers/dnn-toolkit.def, or the spack recipe in containers/spack"
}

# Finds mmdebstrap or debootstrap; on a Debian-like host mmdebstrap is installed if needed.
find_bootstrap() {
    local tools=$cache/tools
    PATH=$PATH:/usr/sbin:/sbin:$tools/usr/bin
    if command -v mmdebstrap >/dev/null; then return; fi
    if command -v apt-get >/dev/null && am_root; then
        step "reading the package lists" apt_get update
        step "installing mmdebstrap" apt_get install --no-install-recommends \
            mmdebstrap debian-archive-keyring
        echo mmdebstrap >>"$cache/installed"
    elif command -v apt-get >/dev/null && command -v perl >/dev/null; then
        mkdir -p "$tools"
        run "fetching mmdebstrap" unpack_tool mmdebstrap "$tools"
    fi
    command -v mmdebstrap >/dev/null && return
    am_root && command -v debootstrap >/dev/null && return
    die "a private Debian root is needed, and there is no tool to make one" \
        "install mmdebstrap (most distributions have it), then run this again" \
        "alternatives: docs/install.md"
}

unpack_tool() {
    cd "$2" && apt-get -q download "$1" && dpkg -x "$1"_*.deb .
}

bootstrap() {
    local target=$1
    if command -v mmdebstrap >/dev/null; then
        "${ns[@]}" mmdebstrap --mode=root --variant=minbase "$suite" "$target" \
            ${DNN_MIRROR:+"$DNN_MIRROR"}
    else
        "${ns[@]}" debootstrap --variant=minbase "$suite" "$target" \
            ${DNN_MIRROR:+"$DNN_MIRROR"}
    fi
}

# Settings of the new root: packages start no services, dpkg does not fsync each file (after
# a power failure the root is made again), and the prompt shows a name.
adopt_root() {
    # shellcheck disable=SC2016  # the inner shell expands these
    "${ns[@]}" sh -eu -c 'cd "$1"
        printf "#!/bin/sh\nexit 101\n" >usr/sbin/policy-rc.d
        chmod 755 usr/sbin/policy-rc.d
        echo force-unsafe-io >etc/dpkg/dpkg.cfg.d/dnn-toolkit
        echo dnn >etc/debian_chroot
        echo "$2" >etc/dnn-toolkit-root' sh "$1" "$2"
}

# Prints mount points at or below $1; the kernel writes a space as \040.
mounted_in() {
    awk -v dir="${1// /\\\\040}" '$2 == dir || index($2, dir "/") == 1 { print $2 }' \
        /proc/self/mounts
}

# Removes a root; an error if something is mounted in it.
remove_root() {
    local found
    found=$(mounted_in "$1")
    [ -z "$found" ] ||
        die "something is mounted below $1:" "$found" "unmount it, then run this again"
    "${ns[@]}" rm -rf --one-file-system -- "$1"
}

make_root() {
    local free
    root=$cache/root-$(root_key)
    [ ! -d "$root" ] || return 0
    one_at_a_time "$cache/lock"
    if [ ! -d "$root" ]; then
        free=$(df -Pk "$cache" | awk 'NR == 2 { print int($4 / 1024) }')
        [ "$free" -ge 4096 ] ||
            die "$cache has $free MB free, the private root takes up to 4096 MB" \
                "set DNN_CACHE to a directory with more space"
        find_bootstrap
        remove_root "$root.part"
        step "making a private Debian root ($suite) in $root" bootstrap "$root.part"
        { adopt_root "$root.part" "$(root_key)" && mv "$root.part" "$root"; } ||
            die "cannot finish $root"
    fi
    exec 9>&-
}

# Prints the directory of the host's CUDA, if it has one.
cuda_home() {
    local nvcc
    if nvcc=$(command -v nvcc); then
        dirname "$(dirname "$(readlink -f "$nvcc")")"
    elif [ -x "${CUDA_HOME:-/none}/bin/nvcc" ]; then
        readlink -f "$CUDA_HOME"
    fi
}

# copy_in FILE TO: overwrites TO in place.  Replacing the file would remove the one that a
# private Slurm in the same root has mounted over it.
copy_in() {
    cmp -s "$1" "$2" || cat "$1" >"$2" || die "cannot copy $1 to $2"
}

# copy_certificates ROOT: copy the host's CA certificates into ROOT.
copy_certificates() {
    local file to=/etc/dnn-toolkit-ca.crt
    for file in "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt \
        /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do
        [ -r "$file" ] || continue
        copy_in "$file" "$1$to"
        export SSL_CERT_FILE=$to PIP_CERT=$to
        return
    done
}

# mounts ROOT CMD...: called in a new mount namespace, which ends with its last process;
# mounts what is needed, then runs CMD in ROOT with a clean environment.
mounts() {
    local root=$1 dir file cuda tmp="" vars=() net=()
    shift
    # Root uses the host's /tmp.  In a user namespace every user is root, and file names
    # with user numbers could clash: there /tmp is that of the private root.
    grep -q '^ *0  *0 ' /proc/self/uid_map && tmp=/tmp
    # Only a mount point can be the root of further namespaces.
    mount --bind "$root" "$root" || die "cannot bind $root to itself"
    for dir in /proc /sys /dev $tmp "$src"; do
        { mkdir -p "$root$dir" && mount --rbind "$dir" "$root$dir"; } ||
            die "cannot bind $dir into $root"
    done
    { mkdir -p "$root/dev/shm" && mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"; } ||
        die "cannot mount a tmpfs on $root/dev/shm"
    cuda=$(cuda_home)
    if [ -n "$cuda" ]; then
        { mkdir -p "$root$cuda" && mount --bind "$cuda" "$root$cuda"; } ||
            die "cannot bind $cuda into $root"
        # A user namespace may not change inherited flags; CUDA then stays writable.
        mount -o remount,bind,ro "$root$cuda" 2>/dev/null
        vars=(CUDA_HOME="$cuda")
    fi
    for file in /etc/hosts /etc/resolv.conf; do
        [ ! -r "$file" ] || copy_in "$file" "$root$file"
    done
    copy_certificates "$root"
    net_settings
    unset DNN_CACHE DNN_PLACE DNN_PEER # settings of the host
    for file in TERM CI "${!DNN_@}"; do
        [ -z "${!file:-}" ] || vars+=("$file=${!file}")
    done
    dir=$PWD
    [[ $dir/ == "$src"/* ]] || dir=$src
    # shellcheck disable=SC2016  # the inner shell expands these
    exec env -i HOME=/root USER=root LOGNAME=root SHELL=/bin/bash LANG=C.UTF-8 \
        QUICKSTART_BEGAN="$began" "${vars[@]}" "${net[@]}" \
        PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin${cuda:+:$cuda/bin}" \
        chroot "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$dir" "$@"
}

# in_root CMD...: run CMD in the private root; does not return.  A private Slurm running there
# belongs to a user namespace and can only be used from inside it.
in_root() {
    local pid
    if ! am_root && read -r pid < <(living_in "$root"); then
        ns=(nsenter --user --preserve-credentials --target "$pid" unshare --mount)
    fi
    QUICKSTART_BEGAN=$began exec "${ns[@]}" bash "$self" mounts "$root" "$@"
}

# Prints the processes whose root directory is $1.
living_in() {
    local proc
    for proc in /proc/[0-9]*; do
        [ "$(readlink "$proc/root" 2>/dev/null)" != "$1" ] || echo "${proc#/proc/}"
    done
}
remove_roots() {
    local dir pids
    for dir in "$cache"/root-*; do
        [ -d "$dir" ] || continue
        if [ -n "$(living_in "$dir")" ]; then
            root=$dir
            run "stopping the private Slurm" bash "$self" enter "$dir" \
                timeout 60 "$build/dnn-cluster" stop
        fi
        pids=$(living_in "$dir")
        [ -z "$pids" ] || die "these processes still run in $dir:" \
            "$(ps -o pid,args -p "${pids//$'\n'/,}" 2>/dev/null || echo "$pids")" \
            "stop them, then run this again"
        step "removing $dir" remove_root "$dir"
    done
}
