#!/bin/bash
# cluster_two.t - two nodes: names and addresses, MPI between nodes, failure of a node.
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors

# shellcheck source=tests/cluster/lib.sh
. "${srcdir:-.}/tests/cluster/lib.sh"
cluster_need
links=$(ip -o link | wc -l)
cluster_begin --nodes 2

# shellcheck disable=SC2317
node_is() {
    dnn-cluster status --dir "$cluster_dir" | grep -q "^$1 .* $2 "
}

check_text "each node has its name" "$(cl srun -N2 -n2 hostname | sort | tr '\n' ' ')" "n1 n2 "
check_text "and its address" \
    "$(cl srun -N2 -n2 hostname -I | sort | tr -d '\n')" "10.77.0.2 10.77.0.3 "
check_text "names resolve" "$(cl srun -w n1 -n1 getent hosts n2 | tr -s ' ')" "10.77.0.3 n2"
check_text "each node has its own shared memory" \
    "$(cl srun -N2 -n2 stat -c %d /dev/shm | sort -u | wc -l)" 2
check_text "env is refused" "$(dnn-cluster env --dir "$cluster_dir" 2>&1 | grep -c 'own network')" 1

if command -v mpicc > /dev/null; then
    cat > "$tmp/sum.c" <<'END'
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, mine, sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mine = rank + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%d\n", sum);
    return MPI_Finalize();
}
END
    check "mpicc" mpicc -o "$tmp/sum" "$tmp/sum.c"
    check_text "an all-reduce across both nodes" \
        "$(cl srun -N2 -n4 --ntasks-per-node=2 --overcommit "$tmp/sum" | tr '\n' ' ')" \
        "10 10 10 10 "
else
    skip "an all-reduce across both nodes" "no mpicc"
fi

cat > "$tmp/long.sh" <<'END'
#!/bin/bash
[ "${SLURM_RESTART_COUNT-0}" -gt 0 ] || last='; sleep 300'
srun bash -c "echo start ${SLURM_RESTART_COUNT-0} on \$(hostname)${last-}"
END
job=$(submit -n1 -w n2 "$tmp/long.sh")
wait_for grep -q '^start 0' "$tmp/$job.out"
before=$(dnn-cluster status --dir "$cluster_dir" | sed -n 's/^n2 .* //p')
check "fail n2" dnn-cluster -q fail n2 --dir "$cluster_dir"
check_text "its processes are gone at once" \
    "$(grep -h '^State' "/proc/$before/status" 2> /dev/null)" ""
check "n1 still works" cl srun -w n1 -n1 true
check "Slurm notices" wait_for node_is n2 'down\*'
check "the job is requeued" wait_for job_is "$job" PENDING
check "failing it again is no error" dnn-cluster -q fail n2 --dir "$cluster_dir"
check "restore n2" dnn-cluster -q restore n2 --dir "$cluster_dir"
check "n2 is used again" wait_for node_is n2 '[a-z]*'
check "the job runs again there" wait_for grep -q '^start 1 on n2' "$tmp/$job.out"
check_text "both nodes work" "$(cl srun -N2 -n2 hostname | sort | tr '\n' ' ')" "n1 n2 "

check "stop" dnn-cluster -q stop --dir "$cluster_dir"
check "no process is left" clean "$cluster_dir"
check_text "no interface is left" "$(ip -o link | wc -l)" "$links"
finish
