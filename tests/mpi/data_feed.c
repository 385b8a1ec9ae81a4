/* data_feed.c - several ranks read one source or dataset: together they read every
 * sample once, with batch sizes that are divisible by the ranks or not.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"
#include "data/dataset.h"
#include "data/feed.h"
#include "ranks.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 53, CHUNK = 4, NUMBERS = 6 };
static struct dnn_err err;

static int16_t number(int64_t i, int k)
{
    return (int16_t)(i * 10 - k);
}

static int write_set(struct dnn_comm *comm, const char *path)
{
    int rank = dnn_comm_rank(comm), size = dnn_comm_size(comm);
    struct dnn_dataset_info *info = dnn_alloc(sizeof *info);
    struct dnn_split *split = &info->split[0];
    struct dnn_dataset_writer *w = NULL;
    char hash[33];

    info->nsplits = 1;
    info->provenance = dnn_strdup("{}");
    strcpy(split->name, "train");
    split->count = COUNT;
    split->chunk = CHUNK;
    split->ncols = 1;
    split->col[0].column = (struct dnn_column){
        .name = "input",
        .kind = DNN_KIND_VALUES,
        .type = DNN_I16,
        .shape = {1, {NUMBERS}}
    };
    int rc = dnn_dataset_create(comm, path, info, NULL, &w, &err);
    for (int64_t first = (int64_t)rank * CHUNK; first < COUNT && rc == 0;
         first += (int64_t)size * CHUNK) {
        int64_t n = COUNT - first < CHUNK ? COUNT - first : CHUNK;
        int16_t data[CHUNK][NUMBERS];
        const char *name[CHUNK] = {"a", "b", "c", "d"};

        for (int64_t i = 0; i < n; i++)
            for (int k = 0; k < NUMBERS; k++)
                data[i][k] = number(first + i, k);
        rc = dnn_dataset_put(w, 0, first, n, (const void *const[]){data}, name, NULL,
                             NULL, &err);
    }
    rc = dnn_comm_agree(comm, rc, &err);
    if (rc == 0)
        rc = dnn_dataset_finish(w, hash, &err);
    else
        dnn_dataset_abandon(w);
    dnn_free(info->provenance);
    dnn_free(info);
    return rc;
}

/* Two epochs: rows are correct, and all ranks together read each sample once. */
static bool go_through(struct dnn_comm *comm, const struct dnn_feed_cfg *cfg)
{
    struct dnn_feed *feed = NULL;
    int64_t seen[COUNT] = {0};
    bool good = dnn_feed_open(comm, cfg, &feed, &err) == 0 &&
                dnn_feed_start(feed, 0, 0, &err) == 0;
    int64_t batches = good ? dnn_feed_batches(feed) : 0;

    for (int64_t s = 0; s < 2 * batches && good; s++) {
        const struct dnn_batch *b;
        int64_t total = 0;

        good = dnn_feed_next(feed, &b, NULL, &err) == 0;
        for (int64_t i = 0; good && i < b->n; i++) {
            const float *x = (const float *)b->data[0] + i * NUMBERS;

            seen[b->sample[i]]++;
            for (int k = 0; k < NUMBERS; k++)
                good &= x[k] == (float)number(b->sample[i], k);
        }
        total = good ? b->n : 0;
        good &= dnn_comm_allreduce(comm, "parts", &total, 1, DNN_COMM_I64, DNN_COMM_SUM,
                                   &err) == 0 &&
                total == b->total;
    }
    dnn_feed_close(feed);
    if (!good) fprintf(stderr, "# %s\n", err.text);
    good &= dnn_comm_allreduce(comm, "samples", seen, COUNT, DNN_COMM_I64, DNN_COMM_SUM,
                               &err) == 0;
    for (int64_t i = 0; i < COUNT; i++)
        good &= seen[i] == 2;
    return good;
}

/* Shared memory segments of this process. */
static int segments(void)
{
    DIR *d = opendir("/dev/shm");
    char *ours = dnn_format("dnn-feed-%ld-", (long)getpid());
    int n = 0;

    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        n += strncmp(e->d_name, ours, strlen(ours)) == 0;
    if (d != NULL) closedir(d);
    dnn_free(ours);
    return n;
}

int main(void)
{
    struct dnn_comm_cfg cfg = {.deadline = 60};
    struct dnn_comm *comm;
    char dir[64] = "/tmp/dnn-feed-mpi-XXXXXX";

    if (dnn_comm_open(&cfg, &comm, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int rank = dnn_comm_rank(comm), size = dnn_comm_size(comm);
    bool made = rank != 0 || mkdtemp(dir) != NULL;
    dnn_comm_bcast(comm, "directory", dir, sizeof dir, 0, &err);
    char *path = dnn_format("%s/set.bp", dir);
    all_ok(comm, made && write_set(comm, path) == 0, "a dataset, written by all");

    static const int64_t sizes[] = {1, 3, 4, 7, 16, 53, 80};
    for (int k = 0; k < 7; k++) {
        struct dnn_feed_cfg f = {.path = path,
                                 .batch_size = sizes[k],
                                 .shuffle = true,
                                 .threads = 1 + k % 2};

        all_ok(comm, go_through(comm, &f), "batches of %" PRId64 ", shuffled",
               sizes[k]);
        f.window = 3 * CHUNK * NUMBERS * 2;
        all_ok(comm, go_through(comm, &f), "in windows");
        f.preload = true;
        all_ok(comm, go_through(comm, &f), "preloaded");
        all_ok(comm, segments() == 0, "no shared memory is left");
        f.shuffle = false;
        f.preload = false;
        all_ok(comm, go_through(comm, &f), "in order");
    }
    /* An error of one rank is returned on all ranks. */
    struct dnn_feed_cfg f = {
        .path = path, .batch_size = 4, .preload = true, .memory = 1};
    struct dnn_feed *feed = NULL;
    f.memory = rank == size - 1 ? 1 : 0;
    int rc = dnn_feed_open(comm, &f, &feed, &err);
    char *start = dnn_format("rank %d: ", size - 1);
    all_ok(comm, rc == DNN_ENOMEM && strncmp(err.text, start, strlen(start)) == 0,
           "an error of one rank is returned on all");
    dnn_free(start);
    if (rank == 0) dnn_file_remove_tree(dir, NULL);
    dnn_free(path);
    return all_done(comm);
}
