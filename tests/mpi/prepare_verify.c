/* prepare_verify.c - ranks share the verification of a dataset, and all get its error.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "ranks.h"

#include "prepare/prepare.h"
#include "unit/prepare_made.h"

static char dir[] = "/tmp/dnn-verify-XXXXXX";

/* Output of rank 0, and the rank of the error. */
static int verified(struct dnn_comm *comm, const char *path, char out[512],
                    struct dnn_err *err)
{
    FILE *f = fmemopen(out, 512, "w");

    out[0] = '\0';
    int rc = dnn_prepare_verify(path, comm, f, err);
    fclose(f);
    return rc;
}

int main(void)
{
    struct dnn_comm_cfg cfg = {.kind = DNN_COMM_MPI, .deadline = 60};
    struct dnn_comm *comm;
    struct dnn_err err = {0};
    char out[512], *path;

    if (dnn_comm_open(&cfg, &comm, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int rank = dnn_comm_rank(comm), rc = 0;
    if (rank == 0 && mkdtemp(dir) == NULL) dir[0] = '\0';
    dnn_comm_bcast(comm, "dir", dir, sizeof(dir), 0, &err);
    path = dnn_format("%s/a.bp", dir);
    if (rank == 0) rc = made_dataset(path, &err);
    rc = dnn_comm_agree(comm, rc, &err);
    all_ok(comm, rc == 0, "a dataset");
    rc = verified(comm, path, out, &err);
    all_ok(comm,
           rc == 0 &&
               strcmp(out, rank == 0 ? "train: 10 samples, all checksums "
                                       "match\ntest: 3 samples, all checksums match\n"
                                     : "") == 0,
           "all checksums match, printed by rank 0");
    bool changed = rank != 0 || made_change(path);
    all_ok(comm, changed, "a byte is changed");
    dnn_comm_barrier(comm, "changed", &err);
    rc = verified(comm, path, out, &err);
    all_ok(comm,
           rc == DNN_EDATA && err.everywhere && strncmp(err.text, "rank ", 5) == 0 &&
               strstr(err.text,
                      "a.bp: train: sample 5 (a/5.png): checksum mismatch in input") !=
                   NULL &&
               out[0] == '\0',
           "all ranks have the error of the one that found it");
    dnn_comm_barrier(comm, "end", &err);
    if (rank == 0) dnn_file_remove_tree(dir, NULL);
    dnn_free(path);
    return all_done(comm);
}
