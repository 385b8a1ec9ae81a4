/* data_dataset.c - several ranks write the same dataset as one rank.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "ranks.h"

#include "base/file.h"
#include "dataset_made.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64] = "/tmp/dnn-dataset-XXXXXX";

static char *in_dir(const char *name)
{
    return dnn_format("%s/%s", dir, name);
}

/* Every rank compares all samples of a split's column with what they should be. */
static bool same_samples(struct dnn_dataset *d, int split, int k)
{
    const struct dnn_split *s = &dnn_dataset_info(d)->split[split];
    size_t bytes = made_bytes(&s->col[k]);
    unsigned char *want = dnn_alloc(bytes), *got = dnn_alloc((size_t)s->count * bytes);
    struct dnn_err err = {0};
    bool same = dnn_dataset_request(d, split, k, 0, s->count, got, &err) == 0 &&
                dnn_dataset_fetch(d, &err) == 0;

    for (int64_t i = 0; same && i < s->count; i++) {
        made_sample(s, split, k, i, want);
        same = memcmp(want, got + (size_t)i * bytes, bytes) == 0;
    }
    dnn_free(want);
    dnn_free(got);
    return same;
}

static void read_back(struct dnn_comm *comm, const char *path, const char *hash,
                      const char *what)
{
    struct dnn_dataset *d = NULL;
    struct dnn_dataset_info want;
    struct dnn_err err = {0};
    int rc = dnn_dataset_open(comm, path, 1, &d, &err);

    if (rc < 0) fprintf(stderr, "# %s\n", err.text);
    all_ok(comm, rc == 0, "%s: opens", what);
    if (rc < 0) return;
    made_info(&want);
    const struct dnn_dataset_info *info = dnn_dataset_info(d);
    all_ok(comm, strcmp(info->hash, hash) == 0, "%s: has the same hash", what);
    all_ok(comm,
           memcmp(info->split[0].col[0].stats, want.split[0].col[0].stats,
                  sizeof(struct dnn_stats)) == 0,
           "%s: statistics are known to all", what);
    for (int i = 0; i < info->nsplits; i++) {
        bool same = true;

        for (int k = 0; k < info->split[i].ncols; k++)
            same &= same_samples(d, i, k);
        all_ok(comm, same, "%s: %s: samples", what, info->split[i].name);
        all_ok(comm, dnn_dataset_verify(d, i, 0, info->split[i].count, &err) == 0,
               "%s: %s: checksums", what, info->split[i].name);
    }
    dnn_dataset_close(d);
    made_free(&want);
}

static void write_and_read(struct dnn_comm *comm, const struct dnn_bp_how *how,
                           const char *hash, const char *what)
{
    char *path = in_dir("many.bp"), got[33] = "";
    struct dnn_err err = {0};
    int rc = made_write(comm, path, how, got, &err);

    if (rc < 0) fprintf(stderr, "# %s\n", err.text);
    all_ok(comm, rc == 0, "%s: written", what);
    all_ok(comm, strcmp(got, hash) == 0, "%s: all ranks have the same hash", what);
    read_back(comm, path, hash, what);
    dnn_comm_barrier(comm, "removing", &err);
    if (dnn_comm_rank(comm) == 0) dnn_file_remove_tree(path, NULL);
    dnn_comm_barrier(comm, "removed", &err);
    dnn_free(path);
}

/* A missing chunk is an error, and no files are left. */
static void with_a_hole(struct dnn_comm *comm)
{
    char *path = in_dir("hole.bp");
    struct dnn_dataset_info info;
    struct dnn_dataset_writer *w = NULL;
    struct dnn_err err = {0};
    struct stat st;
    int rank = dnn_comm_rank(comm), size = dnn_comm_size(comm);

    made_info(&info);
    int rc = dnn_dataset_create(comm, path, &info, NULL, &w, &err);
    for (int i = 0; rc == 0 && i < MADE_SPLITS; i++) {
        const struct dnn_split *s = &info.split[i];

        for (int64_t c = 0; rc == 0 && c * s->chunk < s->count; c++)
            if (c % size == rank && !(i == 0 && c == 3))
                rc = made_put(w, &info, i, c * s->chunk, &err);
    }
    all_ok(comm, rc == 0, "all but one chunk are put");
    rc = dnn_dataset_finish(w, NULL, &err);
    char *want =
        dnn_format("rank 0: %s: train: sample 12 (perhaps more) was not written", path);
    all_ok(comm, rc == DNN_EDATA && strcmp(err.text, want) == 0,
           "the missing one is named on every rank");
    if (strcmp(err.text, want) != 0) fprintf(stderr, "# %s\n", err.text);
    dnn_comm_barrier(comm, "looking", &err);
    all_ok(comm, stat(path, &st) < 0, "and there is no dataset");
    dnn_free(want);
    dnn_free(path);
    made_free(&info);
}

static void errors(struct dnn_comm *comm)
{
    char *path = in_dir("none.bp");
    struct dnn_dataset *d = NULL;
    struct dnn_err err = {0};
    int rc = dnn_dataset_open(comm, path, 1, &d, &err);
    char *want = dnn_format("rank 0: %s: No such file or directory", path);

    all_ok(comm, rc == DNN_EIO && strcmp(err.text, want) == 0,
           "a missing dataset is the same error on all ranks");
    dnn_free(want);
    dnn_free(path);
}

int main(void)
{
    struct dnn_comm_cfg cfg = {.kind = DNN_COMM_MPI, .deadline = 60};
    struct dnn_comm *comm;
    struct dnn_err err = {0};
    char hash[33] = "";

    if (dnn_comm_open(&cfg, &comm, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (dnn_comm_rank(comm) == 0) {
        if (mkdtemp(dir) == NULL) return 1;
        char *path = in_dir("one.bp");
        if (made_write(NULL, path, NULL, hash, &err) < 0)
            fprintf(stderr, "# %s\n", err.text);
        dnn_free(path);
    }
    dnn_comm_bcast(comm, "directory", dir, sizeof dir, 0, &err);
    dnn_comm_bcast(comm, "hash", hash, sizeof hash, 0, &err);
    all_ok(comm, strlen(hash) == 32, "written by one rank");
    char *one = in_dir("one.bp");
    read_back(comm, one, hash, "of one rank");
    dnn_free(one);
    write_and_read(comm, NULL, hash, "of all ranks");
    write_and_read(comm, &(struct dnn_bp_how){.subfiles = 2}, hash, "in two files");
    write_and_read(comm, &(struct dnn_bp_how){.subfiles = 9}, hash,
                   "in as many files as ranks");
    if (dnn_bp_operator("bzip2"))
        write_and_read(comm, &(struct dnn_bp_how){.compress = "bzip2"}, hash,
                       "compressed");
    with_a_hole(comm);
    errors(comm);
    dnn_comm_barrier(comm, "the end", &err);
    if (dnn_comm_rank(comm) == 0) dnn_file_remove_tree(dir, NULL);
    return all_done(comm);
}
