/* ckpt_impl.h - internals of checkpoints.
 *
 * open.c    the directory: create, lock, clean up;
 * save.c    copy of the arrays, writer thread, waiting for it;
 * write.c   the writer: one file, complete or not at all;
 * list.c    existing checkpoints, which to keep, the best;
 * table.c   the list of arrays in a checkpoint, as text;
 * file.c    reading a checkpoint; load.c: the newest for all ranks; verify.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_CKPT_CKPT_IMPL_H
#define DNN_CKPT_CKPT_IMPL_H

#include "base/text.h"
#include "ckpt/ckpt.h"

#include <pthread.h>
#include <stdatomic.h>

/* Increased when the file changes, or the fields that a run stores.  Others are
 * refused; in format 1 the fields of a run were structs. */
enum { DNN_CKPT_FORMAT = 2 };

/* Names in the directory. */
#define DNN_CKPT_BEST "best.bp"
#define DNN_CKPT_BEST_PART ".best.part"

/* What to write.  All pointers are owned, except the data if it is not copied. */
struct ckpt_job {
    int64_t step;
    bool best;
    int n;
    struct dnn_ckpt_array *array;
    char *state;
};

struct dnn_ckpts {
    struct dnn_comm *comm; /* or NULL */
    int rank, size;
    char *dir;
    int keep;
    bool background;
    int lock; /* file descriptor; rank 0 */

    /* Rank 0; used by the writer thread while it runs. */
    int64_t *step; /* owned: of existing checkpoints, sorted */
    size_t nsteps, cap;
    int64_t best; /* -1: none */
    struct ckpt_job job;
    int rc; /* result of the writer */
    struct dnn_err err;

    char *copy; /* owned: copies of the arrays */
    size_t copy_bytes;
    pthread_t thread;
    bool running; /* the thread must be joined */
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool finished;             /* protected by mutex: the writer has finished      */
    _Atomic unsigned progress; /* incremented by the writer                   */
    double began, took, blocked, all;
};

/* ---- list.c; all Local, on rank 0 ---- */

/* The name "ckpt-000001234.bp" of a step; dnn_free(). */
char *dnn_ckpt_name(int64_t step);
/* DIR/name; dnn_free(). */
char *dnn_ckpt_path(const char *dir, const char *name);
/* The steps of the checkpoints in a directory, sorted (dnn_free()), and the best one or
 * -1. */
int dnn_ckpt_list(const char *dir, int64_t **out, size_t *n, size_t *cap, int64_t *best,
                  struct dnn_err *err);
/* To be called after a checkpoint was written: rename later ones, remove old ones. */
void dnn_ckpt_keep(struct dnn_ckpts *ckpts, int64_t step, bool best);
/* Rename a checkpoint to NAME.suffix; returns the new path (dnn_free()), or NULL on
 * failure.  In both cases it is removed from the list. */
char *dnn_ckpt_rename(struct dnn_ckpts *ckpts, int64_t step, const char *suffix,
                      struct dnn_err *err);
/* fsync() the directory. */
int dnn_ckpt_sync(const char *dir, struct dnn_err *err);

/* ---- table.c ---- */

struct ckpt_table {
    int64_t step;
    int n;
    struct dnn_ckpt_array *array; /* owned, with the names */
    uint64_t *sum;                /* owned */
    size_t state_bytes;
};
void dnn_ckpt_table_print(const struct ckpt_table *table, struct dnn_buf *out);
/* Parse a table.  *out must be freed with dnn_ckpt_table_free(), also on failure. */
int dnn_ckpt_table_read(const char *path, const char *text, struct ckpt_table *out,
                        struct dnn_err *err);
void dnn_ckpt_table_free(struct ckpt_table *table);
/* Checksum of table and state. */
uint64_t dnn_ckpt_table_sum(const char *table, const char *state);
/* Bytes of an array; DNN_EDATA if it cannot be stored. */
int dnn_ckpt_bytes(const struct dnn_ckpt_array *array, size_t *out,
                   struct dnn_err *err);
/* Check that these arrays can be saved: unique printable names, valid sizes. */
int dnn_ckpt_check(const char *dir, int n, const struct dnn_ckpt_array *array,
                   struct dnn_err *err);
/* Check that the arrays of a file (has) are the expected ones (want). */
int dnn_ckpt_compare(const char *path, int nhas, const struct dnn_ckpt_array *has,
                     int n, const struct dnn_ckpt_array *want, struct dnn_err *err);

/* ---- write.c ---- */

/* Write ckpts->job. */
int dnn_ckpt_write(struct dnn_ckpts *ckpts, struct dnn_err *err);

/* ---- save.c ---- */

/* Collective, unless there is one rank only: dnn_comm_agree(). */
int dnn_ckpt_agree(struct dnn_ckpts *ckpts, int rc, struct dnn_err *err);

/* ---- file.c ---- */

/* Check the checksum of an array; DNN_EDATA: it differs. */
int dnn_ckpt_file_check(struct dnn_ckpt_file *file, int i, struct dnn_err *err);
uint64_t dnn_ckpt_file_sum(const struct dnn_ckpt_file *file, int i);
const char *dnn_ckpt_file_path(const struct dnn_ckpt_file *file);

#endif
