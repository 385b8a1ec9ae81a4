/* ckpt_ranks.c - checkpoints with several ranks: rank 0 writes and reads, all ranks
 * have the same arrays and errors, also while they use other collectives.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "ranks.h"

#include "base/log.h"
#include "unit/ckpt_made.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { N = MADE + 20 };

static char dir[] = "/tmp/dnn-ckpt-XXXXXX";
static struct dnn_ckpt_array *array;
static struct dnn_err err;

static struct dnn_ckpts *opened(struct dnn_comm *comm, bool background)
{
    struct dnn_ckpt_cfg cfg = {.dir = dir, .keep = 2, .background = background};
    struct dnn_ckpts *c = NULL;

    all_ok(comm, dnn_ckpt_open(comm, &cfg, &c, &err) == 0, "open");
    return c;
}

/* Collectives of a run during a save. */
static bool talk(struct dnn_comm *comm)
{
    double sum[500];
    bool good = true;

    for (int i = 0; good && i < 200; i++) {
        for (int k = 0; k < 500; k++)
            sum[k] = k;
        good = dnn_comm_allreduce(comm, "gradients", sum, 500, DNN_COMM_F64,
                                  DNN_COMM_SUM, &err) == 0 &&
               sum[499] == 499.0 * dnn_comm_size(comm);
    }
    return good;
}

static void saves(struct dnn_comm *comm, bool background)
{
    struct dnn_ckpts *c = opened(comm, background);
    int rank = dnn_comm_rank(comm);
    bool good = true;
    double held = -1, all = -1;

    for (int step = 1; step <= 5; step++) {
        made_fill(N, array, rank == 0 ? step : 1000 + rank); /* only rank 0's count */
        good = good && dnn_ckpt_save(c, step, N, array, rank == 0 ? "{\"a\": 1}" : NULL,
                                     step == 2, &err) == 0;
        if (background) made_fill(N, array, 77);
        good = good && talk(comm);
    }
    all_ok(comm, good, "five saves, %s", background ? "in the background" : "at once");
    all_ok(comm, dnn_ckpt_wait(c, &err) == 0, "wait");
    dnn_ckpt_times(c, &held, &all);
    all_ok(comm, held >= 0 && (rank == 0 ? all > 0 : all == 0), "times");
    all_ok(comm, dnn_ckpt_close(c, &err) == 0, "close");
}

static void loads(struct dnn_comm *comm, const char *wanted, int64_t want)
{
    struct dnn_ckpts *c = opened(comm, true);
    int64_t step = -7;
    char *state = NULL;

    made_fill(N, array, 1000 + dnn_comm_rank(comm));
    int rc = dnn_ckpt_load(c, wanted, N, array, &step, &state, &err);
    all_ok(comm, rc == 0 && step == want, "load: %s",
           wanted == NULL ? "the newest" : wanted);
    if (want >= 0)
        all_ok(comm, made_is(N, array, want) && strcmp(state, "{\"a\": 1}") == 0,
               "every rank has what was saved");
    dnn_free(state);
    dnn_ckpt_close(c, NULL);
}

static void message_is(struct dnn_comm *comm, const char *want, const char *what)
{
    bool same = strcmp(err.text, want) == 0;

    if (!same) fprintf(stderr, "#   got: %s\n#  want: %s\n", err.text, want);
    all_ok(comm, same, "%s", what);
}

static void failures(struct dnn_comm *comm)
{
    struct dnn_ckpts *c = opened(comm, true), *other = NULL;
    struct dnn_ckpt_cfg cfg = {.dir = dir, .keep = 2};
    int rank = dnn_comm_rank(comm), last = dnn_comm_size(comm) - 1;
    char *link = dnn_format("%s/.best.part", dir), *state, *want;
    int64_t step;

    all_ok(comm, dnn_ckpt_open(comm, &cfg, &other, &err) == DNN_EIO, "a second run");
    all_ok(comm,
           strstr(err.text, " is using it; every run needs its own directory") != NULL,
           "all ranks have the message");
    if (rank == 0) mkdir(link, 0777);
    all_ok(comm, dnn_ckpt_save(c, 6, N, array, NULL, true, &err) == 0, "a save");
    all_ok(comm, talk(comm), "other collectives work");
    all_ok(comm, dnn_ckpt_wait(c, &err) == DNN_EIO, "it failed on every rank");
    want = dnn_format(
        "rank 0: %s/ckpt-000000006.bp: %s/.best.part: cannot be created: Is a "
        "directory",
        dir, dir);
    message_is(comm, want, "with the message of rank 0");
    dnn_free(want);
    if (rank == 0) rmdir(link);
    array[0].shape.dim[0] -= rank == last;
    all_ok(comm, dnn_ckpt_load(c, NULL, N, array, &step, &state, &err) == DNN_EDATA,
           "ranks that want different arrays");
    want = dnn_format("%s: ranks want to load different arrays", dir);
    message_is(comm, want, "its message");
    dnn_free(want);
    array[0].shape.dim[0] += rank == last;
    array[3].shape.dim[0]++;
    all_ok(comm, dnn_ckpt_load(c, NULL, N, array, &step, &state, &err) == DNN_EDATA,
           "arrays of another shape");
    want = dnn_format("rank 0: %s/ckpt-000000005.bp: does not match this run: "
                      "half is f16 5x3, expected f16 6x3",
                      dir);
    message_is(comm, want, "are named on every rank");
    dnn_free(want);
    array[3].shape.dim[0]--;
    all_ok(comm, dnn_ckpt_close(c, &err) == 0, "close");
    dnn_free(link);
}

static void damage(struct dnn_comm *comm)
{
    char *path = dnn_format("%s/ckpt-000000005.bp/data.0", dir);

    if (dnn_comm_rank(comm) == 0 && truncate(path, 100) < 0) printf("# not cut\n");
    dnn_free(path);
    loads(comm, NULL, 4);
}

int main(void)
{
    struct dnn_comm_cfg cfg = {.kind = DNN_COMM_MPI, .deadline = 60};
    struct dnn_comm *comm;

    if (dnn_comm_open(&cfg, &comm, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    dnn_log_levels("error", &err);
    if (dnn_comm_rank(comm) == 0 && mkdtemp(dir) == NULL) return 1;
    if (dnn_comm_bcast(comm, "a name", dir, sizeof dir, 0, &err) < 0) return 1;
    array = made_arrays(N);
    loads(comm, NULL, -1);
    saves(comm, true);
    loads(comm, NULL, 5);
    loads(comm, "best", 2);
    loads(comm, "4", 4);
    saves(comm, false);
    loads(comm, NULL, 5);
    failures(comm);
    damage(comm);
    made_free(N, array);
    if (dnn_comm_rank(comm) == 0) dnn_file_remove_tree(dir, NULL);
    return all_done(comm);
}
