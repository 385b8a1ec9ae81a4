# lib.sh - sourced by tests that need a private cluster, in bash.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
#
#     . "${srcdir:-.}/tests/cluster/lib.sh"
#     cluster_need                    # or skip the whole test
#     cluster_begin --nodes 2         # stopped when the test ends
#     check "two nodes work" cl srun -N2 -n2 hostname
#     finish
#
# $cluster is its name, $cluster_dir its directory, $tmp a directory of the test
# that the nodes can access.  Every wait has a time limit.
#
# shellcheck shell=bash
set -u

# shellcheck source=tests/tap.sh
. "${srcdir:-.}/tests/tap.sh"

cluster=
cluster_dir=
tmp=$(mktemp -d "${TMPDIR:-/tmp}/dnn-test.XXXXXX")

# check NAME CMD...: CMD must succeed; its output is printed if it does not
check() {
    local what=$1 out status=0
    shift
    out=$("$@" 2>&1) || status=$?
    [ "$status" -eq 0 ] || out="status $status: $out"
    [ "$status" -ne 0 ] || out=
    result "$what" "$out"
}

# check_text NAME GOT WANT: the texts must be the same
check_text() {
    local out=
    [ "$2" = "$3" ] || out=$(printf ' got: %s\nwant: %s' "$2" "$3")
    result "$1" "$out"
}

# skip_all REASON: skip the whole test
skip_all() {
    rm -rf "$tmp"
    trap - EXIT
    echo "1..0 # SKIP $1"
    exit 0
}

# cluster_need: skip the whole test where no private cluster can run
cluster_need() {
    local program users=()
    PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
    for program in slurmctld slurmd sinfo munged ip dnn-cluster; do
        command -v "$program" > /dev/null || skip_all "no $program here"
    done
    [ "$(id -u)" -eq 0 ] || users=(--user)
    unshare "${users[@]}" --mount --propagation unchanged --pid --fork true 2> /dev/null ||
        skip_all "no right to make namespaces here"
}

cluster_end() {
    if [ "$tap_failed" -ne 0 ] && [ -d "${cluster_dir:-/none}/log" ]; then
        tail -n 25 "$cluster_dir"/log/* | sed 's/^/# /'
    fi
    [ -z "$cluster" ] || dnn-cluster -q stop --dir "$cluster_dir"
    rm -rf "$tmp"
}
trap cluster_end EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# cluster_begin [OPTION...]: start a cluster, named after this process
cluster_begin() {
    cluster=t$$
    cluster_dir=$tmp/c
    guarded dnn-cluster -q start --name "$cluster" --dir "$cluster_dir" "$@" \
        > "$tmp/start.out" 2>&1 && return
    sed 's/^/# /' "$tmp/start.out"
    echo "Bail out! the private cluster does not start"
    exit 1
}

# cl CMD...: run it in the cluster
cl() {
    guarded dnn-cluster run --dir "$cluster_dir" -- "$@"
}

# job_is ID STATE: whether the job has this state
job_is() {
    cl scontrol show job "$1" | grep -q "JobState=$2"
}

# queued_again ID: whether the script printed it and Slurm has requeued the job (or started it since)
queued_again() {
    grep -q "job $1 is requeued to continue" "$tmp/$1.out" &&
        cl scontrol show job "$1" | grep -q 'Restarts=[1-9]'
}

# submit ARG...: sbatch; prints the job ID
submit() {
    cl sbatch --parsable --open-mode=append --output="$tmp/%j.out" "$@"
}

# left_of DIR: print remaining processes of a cluster in DIR
left_of() {
    {
        grep -lzsxF "SLURM_CONF=$1/slurm.conf" /proc/[0-9]*/environ
        grep -lzsxF -f <(echo "$1") /proc/[0-9]*/cmdline
    } | sed 's/[^0-9]//g' | sort -u
}

# clean DIR: whether no process of it is left
clean() {
    [ -z "$(left_of "$1")" ]
}
