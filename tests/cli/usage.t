#!/bin/bash
# usage.t - what the tools say to wrong words, full disks and unreadable files: one
# line on stderr, the documented exit status.
#
# SPDX-License-Identifier: Apache-2.0
. "${srcdir:-.}/tests/tap.sh"
err=$(mktemp) || exit 1
trap 'rm -f "$err"' EXIT

# says STATUS MESSAGE COMMAND...: run it and compare both
says() {
    local want=$1 text=$2 got status=0
    shift 2
    "$@" > /dev/null 2> "$err" || status=$?
    got=$(cat "$err")
    if [ "$status" = "$want" ] && [ "$got" = "$text" ]; then
        result "$*" ""
    else
        result "$*" "$(printf 'status %s, wanted %s
 got: %s
want: %s' "$status" "$want" "$got" "$text")"
    fi
}

says 2 'dnn-bench: a command is missing; dnn-bench --help lists them' dnn-bench
says 2 'dnn-bench: unknown command "tpoo"; did you mean "topo"?' dnn-bench tpoo
says 2 'dnn-bench: unknown option --jsno; did you mean --json?' dnn-bench topo --jsno
says 2 'dnn-bench: --bind: must be one of auto, inherit, off, not "inherited"; did you mean "inherit"?' \
    dnn-bench topo --bind=inherited
says 2 'dnn-bench: --threads: must be a whole number, not "all"' dnn-bench topo --threads all
says 2 'dnn-bench: unexpected argument "x"; usage: dnn-bench topo' dnn-bench topo x
says 2 'dnn-bench: DNN_LOG: log level "lots": must be one of error, warn, info, debug, trace, not "lots"' \
    env DNN_LOG=lots dnn-bench topo
says 2 'dnn-cluster: unknown command "begin"; dnn-cluster --help lists them' dnn-cluster begin
says 2 'dnn-cluster: NODE is missing; usage: dnn-cluster fail NODE' dnn-cluster fail
says 0 '' dnn-bench --help
says 0 '' dnn-bench topo --help

# A full disk: results that do not arrive are an error.
says 5 'dnn-bench: standard output: the results could not be written; is the disk full?' \
    bash -c 'dnn-bench --help > /dev/full'
says 5 'dnn-bench: standard output: the results could not be written; is the disk full?' \
    bash -c 'dnn-bench --quiet topo > /dev/full'
finish
