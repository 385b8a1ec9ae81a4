#!/bin/bash
# configure.t - configure with libraries that are missing, required or disabled: messages and
# exit status.
#
# SPDX-License-Identifier: Apache-2.0
. "${srcdir:-.}/tests/tap.sh"
top=$(cd "$srcdir" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

# The checks before the libraries are the same every time: their results are cached.
run() { guarded "$top/configure" --quiet --cache-file="$tmp/cache" "$@" > out 2>&1; }
# refuses NAME PATTERN OPTION...: configure must stop with one error that matches PATTERN
refuses() {
    local name=$1 pattern=$2 why=
    shift 2
    if run "$@"; then why="configure went on"; fi
    grep -qE "^configure: error: $pattern" out || why="$why; no error like: $pattern"
    [ "$(grep -c '^configure: error' out)" = 1 ] || why="$why; not one message"
    result "$name" "${why:+$why: $(tail -3 out)}"
}

refuses "a required library cannot be switched off" \
    'hwloc 2.7.1 or later is required: switched off \(--without-hwloc\)\. Install it \(Debian: libhwloc-dev\), or give its prefix: --with-hwloc=DIR' \
    --without-hwloc
refuses "no MPI" 'MPI is required: no mpicc in /nowhere/bin' --with-mpi=/nowhere
refuses "a prefix that is none" '--with-dnnl=/nowhere: there is no /nowhere/include/dnnl.h' --with-dnnl=/nowhere
mkdir -p empty/include empty/lib broken/include broken/lib
echo "int openblas_get_num_threads(void), openblas_no_such_function(void);
#define openblas_get_num_threads openblas_no_such_function" > broken/include/cblas.h
refuses "a prefix without the library" "--with-yyjson=.*/empty: there is no .*/empty/include/yyjson.h" \
    --with-yyjson="$tmp/empty"
refuses "a library that does not link" 'OpenBLAS is required: cblas.h was found, but linking with .* fails' \
    --with-openblas="$tmp/broken"
refuses "an explicit request for an optional part" \
    '--with-cuda=/nowhere was given, but CUDA with cuBLAS was not found: no nvcc in /nowhere/bin' --with-cuda=/nowhere
refuses "two sanitizers that exclude each other" '--enable-tsan and --enable-asan exclude each other' \
    --without-cuda --enable-asan --enable-tsan

why=
run --without-cuda --without-cudnn --without-nccl --without-hdf5 || why="configure stopped"
grep -qE '^  hdf5 +no +HDF5: switched off \(--without-hdf5\)' out || why="$why; no row for hdf5"
grep -qE '^  cuda +no +CUDA with cuBLAS: switched off' out || why="$why; no row for cuda"
grep -qE '^  adios2 +yes ' out || why="$why; no row for adios2"
result "an optional library may be missing, and the table has the reason" "${why:+$why: $(tail -3 out)}"
finish
