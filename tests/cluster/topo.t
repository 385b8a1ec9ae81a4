#!/bin/bash
# topo.t - placement and binding under srun on one and on two nodes, compared with the
# kernel's data of each task.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors
#
# shellcheck disable=SC2317 # check calls our functions
# shellcheck source=tests/cluster/lib.sh
. "${srcdir:-.}/tests/cluster/lib.sh"

cluster_need
command -v dnn-bench > /dev/null || skip_all "no dnn-bench here"
cluster_begin --nodes 2

# The program under test.  The CPU mask of the task is recorded before it starts, and the CPU of
# its main thread when it ends: both independent of the program's output.
cat > "$tmp/at_end.c" << 'END'
#include <stdio.h>
#include <stdlib.h>

__attribute__((destructor)) static void at_end(void)
{
    FILE *from = fopen("/proc/thread-self/status", "r"), *to = fopen(getenv("AT_END"), "w");
    char line[4096], list[4096];

    while (from != NULL && to != NULL && fgets(line, sizeof line, from) != NULL)
        if (sscanf(line, "Cpus_allowed_list: %s", list) == 1) fprintf(to, "%s\n", list);
    if (to != NULL) fclose(to);
}
END
# shellcheck disable=SC2086 # it may be several words
check "the library that records it is compiled" ${CC:-cc} -shared -fPIC -o "$tmp/at_end.so" "$tmp/at_end.c"
cat > "$tmp/task" << 'END'
#!/bin/bash
note=${0%/*}/note.$SLURM_PROCID
sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status > "$note.granted"
hostname > "$note.host"
exec env AT_END="$note.seen" LD_PRELOAD="${0%/*}/at_end.so" dnn-bench topo "$@"
END
chmod +x "$tmp/task"

# rows FILE: print the rows of the table, one space between columns
rows() {
    sed -n 's/^ *\([0-9][0-9]*  .*\)/\1/p' "$1" | tr -s ' '
}

# column N FILE: print one column of all rows.  The memory column is five words.
column() {
    rows "$2" | cut -d' ' -f"$1" | paste -sd' ' -
}
HOST=2 THREADS=12 BOUND=13 PINNED=14

# noted WHAT N: print what was recorded for tasks 0 .. N-1
noted() {
    local i
    for ((i = 0; i < $2; i++)); do cat "$tmp/note.$i.$1"; done | paste -sd' ' -
}

# numbers LIST: print 0-2,5 as 0 1 2 5, one per line
numbers() {
    local range
    for range in ${1//,/ }; do seq "${range%-*}" "${range#*-}"; done
}

# within LIST LIST: whether the first list is not empty and part of the second
within() {
    [ -n "$1" ] && ! numbers "$1" | grep -vqxFf <(numbers "$2")
}

# inside TABLE N: whether tasks 0 .. N-1 were bound inside the granted CPUs
inside() {
    local i
    for ((i = 0; i < $2; i++)); do
        within "$(column "$BOUND" "$1" | cut -d' ' -f$((i + 1)))" "$(cat "$tmp/note.$i.granted")" || return
    done
}

# seen TABLE N: whether tasks 0 .. N-1 ran on the CPUs of the table
seen() {
    local i
    for ((i = 0; i < $2; i++)); do
        within "$(cat "$tmp/note.$i.seen")" "$(column "$BOUND" "$1" | cut -d' ' -f$((i + 1)))" || return
    done
}

# run NAME ARG...: srun into $tmp/NAME.out and NAME.err; status in $status
run() {
    local name=$1
    shift
    rm -f "$tmp"/note.*
    status=0
    cl srun "$@" > "$tmp/$name.out" 2> "$tmp/$name.err" || status=$?
}

cpus=$(cl sinfo -h -N -n n1 -p batch -o %c | head -n 1)

# One node, two tasks, Slurm binds.
if [ "$cpus" -ge 2 ]; then
    run one --mpi=pmix -N1 -n2 --cpu-bind=cores "$tmp/task"
    check_text "two tasks on one node succeed" "$status" 0
    check_text "each is bound to its granted CPUs" "$(column $BOUND "$tmp/one.out")" \
        "$(noted granted 2)"
    check_text "both on the same host" "$(column $HOST "$tmp/one.out")" "$(noted host 2)"
    check_text "all threads are pinned" "$(column $PINNED "$tmp/one.out")" "1/1 1/1"
    check "no overlap" grep -q '^2 ranks on 1 node, 2 of .* overlaps: none$' "$tmp/one.out"
    check "the header names job and launcher" \
        grep -q '^started by srun --mpi=pmix; Open MPI' "$tmp/one.out"
    check_text "nothing to warn about" "$(grep -c warn "$tmp/one.err")" 0

    # The same without Slurm's binding: both have the same mask, which dnn-bench divides.
    run split --mpi=pmix -N1 -n2 --cpu-bind=none "$tmp/task"
    check_text "both tasks have the same mask" "$(cat "$tmp/note.0.granted")" \
        "$(cat "$tmp/note.1.granted")"
    check "and the mask is divided" grep -q ' overlaps: none$' "$tmp/split.out"
    # shellcheck disable=SC2046 # two words are wanted
    set -- $(column $BOUND "$tmp/split.out")
    check "into different CPUs" [ "${1:-}" != "${2:-}" ]
    check "inside the granted CPUs" inside "$tmp/split.out" 2
    check "the tasks ran there" seen "$tmp/split.out" 2
    check_text "all threads are pinned" \
        "$(column $PINNED "$tmp/split.out" | tr ' ' '\n' | awk -F/ '$1 != $2')" ""

    run inherit --mpi=pmix -N1 -n2 --cpu-bind=none "$tmp/task" --bind inherit
    check_text "inherit keeps the mask" "$(column $BOUND "$tmp/inherit.out")" \
        "$(noted granted 2)"
    check "and reports that ranks overlap" \
        grep -q 'warn: .*: ranks 0 and 1 share cores .*--bind auto divides it' \
        "$tmp/inherit.err"
    check_text "off binds nothing" \
        "$(run off --mpi=pmix -N1 -n2 "$tmp/task" --bind off; column $BOUND "$tmp/off.out")" \
        "- -"

    run threads --mpi=pmix -N1 -n2 --cpu-bind=cores "$tmp/task" --threads 9
    check_text "more threads than cores are allowed" "$status" 0
    check_text "with the requested threads" "$(column $THREADS "$tmp/threads.out")" "9 9"
    check "and are reported" grep -q \
        'warn: ranks 0 and 1: 9 threads share 1 core; request more cores' \
        "$tmp/threads.err"
else
    skip "two tasks on one node" "nodes have one CPU"
fi

# Two nodes.
run two --mpi=pmix -N2 -n2 --cpu-bind=cores "$tmp/task"
check_text "one task on each of two nodes" "$(column $HOST "$tmp/two.out")" "n1 n2"
check_text "each is bound to its granted CPUs" "$(column $BOUND "$tmp/two.out")" "$(noted granted 2)"
check "without overlap" grep -q '^2 ranks on 2 nodes, .* overlaps: none$' "$tmp/two.out"
check "hosts in the header" grep -qx 'hosts   n1, n2' "$tmp/two.out"

run four --mpi=pmix -N2 -n4 --overcommit "$tmp/task"
check_text "four tasks on two nodes" "$(column $HOST "$tmp/four.out")" "$(noted host 4)"
check "inside the granted CPUs" inside "$tmp/four.out" 4
check "both hosts are in the sum" grep -q '^4 ranks on 2 nodes, ' "$tmp/four.out"

run json --mpi=pmix -N2 -n2 "$tmp/task" --json
if command -v python3 > /dev/null; then
    check "one JSON object" python3 -c '
import json, sys
top = json.load(open(sys.argv[1]))
assert top["size"] == 2 and top["nodes"] == 2, top
assert [r["host"] for r in top["ranks"]] == ["n1", "n2"], top
assert all(r["bound_cpus"] == r["cpus"] for r in top["ranks"]), top
assert all(set(r["cpus"]) <= set(r["granted_cpus"]) for r in top["ranks"]), top
' "$tmp/json.out"
else
    skip "one JSON object" "no python3"
fi

# Started incorrectly.
run none --mpi=none -N2 -n2 dnn-bench topo
check_text "the wrong launcher is status 7" "$status" 7
check_text "and the message explains what to do" "$(grep '^dnn-bench:' "$tmp/none.err" | sort -u)" \
    "dnn-bench: MPI sees 1 rank but Slurm started 2 tasks: this srun used --mpi=none,\
 MPI needs --mpi=pmix (srun --mpi=list shows what this site has)"

printf '#!/bin/sh\ndnn-bench topo\necho "status $?"\nsrun --mpi=pmix dnn-bench topo\n' \
    > "$tmp/batch"
id=$(submit -N2 -n2 "$tmp/batch")
check "a batch job runs" wait_for job_is "$id" COMPLETED
check_text "started without srun, the message names srun" \
    "$(grep -e '^dnn-bench:' -e '^status' "$tmp/$id.out")" \
    "dnn-bench: job $id has 2 tasks, but this program was started directly in the batch\
 script, as one process; start it with srun (srun -n1 for one process)
status 7"
check "under srun it works" grep -q '^2 ranks on 2 nodes, ' "$tmp/$id.out"
check "alone it works" cl dnn-bench topo
[ "$tap_failed" -eq 0 ] || tail -n 40 "$tmp"/*.out "$tmp"/*.err | sed 's/^/# /'
finish
