# follow.sh - find or start a Slurm, submit a batch script, print its output while it runs.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
#
# Sourced by quickstart, which has the settings (build, log) and the functions for messages.
# Sets slurm (prefix of Slurm's commands), job (ID of the running job) and out (its log).
#
# shellcheck shell=bash
# shellcheck disable=SC2154  # set by quickstart

slurm_answers() {
    [ "${DNN_SLURM:-}" != own ] && [ ! -e /etc/dnn-toolkit-root ] && command -v sinfo >/dev/null &&
        timeout 5 sinfo --noheader >/dev/null 2>&1
}

# Makes Slurm's commands work directly, or sets slurm to the prefix that they need.
find_slurm() {
    slurm=()
    if slurm_answers; then
        say "using the Slurm of this machine"
        return
    fi
    if timeout 10 "$build/dnn-cluster" status >>"$log" 2>&1; then
        say "the private Slurm is running"
    else
        step "starting a private Slurm" timeout 120 "$build/dnn-cluster" start
    fi
    use_cluster
}

# With one node, variables are enough; several nodes have their own network namespace.
use_cluster() {
    local lines
    if lines=$(timeout 10 "$build/dnn-cluster" env 2>>"$log"); then
        eval "$lines"
    else
        slurm=("$build/dnn-cluster" run --)
    fi
}

# job_field ID NAME: one field of Slurm's job record.
job_field() {
    timeout 10 "${slurm[@]}" scontrol -o show job "$1" 2>>"$log" |
        tr ' ' '\n' | sed -n "s/^$2=//p"
}

# cancel ID: cancel the job.  dnn-train gets SIGTERM and writes a checkpoint.
cancel() {
    timeout 10 "${slurm[@]}" scancel "$1" 2>>"$log"
    for _ in {1..50}; do
        [[ $(job_field "$1" JobState) =~ ^(RUNNING|COMPLETING|PENDING)$ ]] || break
        sleep 0.2
    done
    [ -z "${out:-}" ] || show_new "$out"
    printf '\nquickstart: job %s is cancelled; the private Slurm, if there is one, keeps running' "$1" >&2
}

# Prints what was appended to a file since the last call; shown is the number of bytes so far.
show_new() {
    local size
    size=$(stat -c %s -- "$1" 2>/dev/null) || return 1
    [ "$size" -gt "$shown" ] || return 1
    tail -c "+$((shown + 1))" -- "$1" | head -c $((size - shown))
    shown=$size
}

# submit SCRIPT OPTION...: run a job to its end and print its output while it runs; out is
# then its log.
submit() {
    local script=$1 state was='' limit shown=0
    shift
    job=$(cd "$build" && timeout 30 "${slurm[@]}" sbatch --parsable "$@" "$script" 2>>"$log") ||
        { job=''; tail -n 5 "$log" >&2; die "sbatch refused $script; its message is above"; }
    job=${job%%;*}
    limit=$((SECONDS + ${DNN_WAIT:-600}))
    out=$(job_field "$job" StdOut)
    while :; do
        state=$(job_field "$job" JobState)
        ! show_new "$out" || limit=$((SECONDS + ${DNN_WAIT:-600}))
        if [ "$state" != "$was" ]; then
            say "job $job ($(basename "$script")): ${state:-no answer from Slurm}"
            was=$state
        fi
        case $state in
        PENDING | CONFIGURING | RUNNING | COMPLETING | SUSPENDED | '') ;;
        *) break ;;
        esac
        [ $SECONDS -lt $limit ] ||
            die "job $job is still ${state:-unknown} ($(job_field "$job" Reason)) and prints nothing" \
                "it stays in the queue; \"scancel $job\" cancels it; set DNN_WAIT=SECONDS to wait longer"
        sleep 0.3
    done
    show_new "$out"
    [ -e "$out" ] || die "job $job ended as $state; its output file $out does not exist"
    [ "$state" = COMPLETED ] ||
        die "job $job ended as $state, exit code $(job_field "$job" ExitCode)" \
            "the end of its log is above, the whole log is $out"
    job=''
}
