#!/bin/bash
# usage.t - wrong command lines and full disks: one line on stderr and the documented exit
# status.
#
# SPDX-License-Identifier: Apache-2.0
. "${srcdir:-.}/tests/tap.sh"
err=$(mktemp) || exit 1
trap 'rm -f "$err"' EXIT

# gives STATUS MESSAGE COMMAND...: run it and compare exit status and message
gives() {
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

gives 2 'dnn-bench: a command is missing; dnn-bench --help lists them' dnn-bench
gives 2 'dnn-bench: unknown command "tpoo"; did you mean "topo"?' dnn-bench tpoo
gives 2 'dnn-bench: unknown option --jsno; did you mean --json?' dnn-bench topo --jsno
gives 2 'dnn-bench: --bind: must be one of auto, inherit, off, not "inherited"; did you mean "inherit"?' \
    dnn-bench topo --bind=inherited
gives 2 'dnn-bench: --threads: must be a whole number, not "all"' dnn-bench topo --threads all
gives 2 'dnn-bench: unexpected argument "x"; usage: dnn-bench topo' dnn-bench topo x
gives 2 'dnn-bench: DNN_LOG: log level "lots": must be one of error, warn, info, debug, trace, not "lots"' \
    env DNN_LOG=lots dnn-bench topo
gives 2 'dnn-cluster: unknown command "begin"; dnn-cluster --help lists them' dnn-cluster begin
gives 2 'dnn-cluster: NODE is missing; usage: dnn-cluster fail NODE' dnn-cluster fail
gives 0 '' dnn-bench --help
gives 0 '' dnn-bench topo --help

# A full disk: results that cannot be written are an error.
gives 5 'dnn-bench: standard output: the results could not be written; is the disk full?' \
    bash -c 'dnn-bench --help > /dev/full'
gives 5 'dnn-bench: standard output: the results could not be written; is the disk full?' \
    bash -c 'dnn-bench --quiet topo > /dev/full'
finish
