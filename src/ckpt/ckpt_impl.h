/* ckpt_impl.h - what the files of this room share.
 *
 * open.c    a run's directory: made, locked, tidied up;
 * save.c    the copy, the thread, and waiting for it;
 * write.c   what the thread does: one file, whole or not at all;
 * keep.c    which ones there are, which stay, the best;
 * table.c   the text that says what arrays a checkpoint has;
 * file.c    a checkpoint being read; load.c the newest for all ranks; verify.c.
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

enum { DNN_CKPT_FORMAT = 1 };

/* Names in the directory. */
#define DNN_CKPT_BEST "best.bp"
#define DNN_CKPT_BEST_PART ".best.part"

/* What is to be written; all of it is ours but perhaps the data. */
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

    /* Rank 0, and only while nothing is in flight; the writer's while something is. */
    int64_t *step; /* owned: of those there are, sorted */
    size_t nsteps, cap;
    int64_t best; /* -1: none */
    struct ckpt_job job;
    int rc; /* of the writer */
    struct dnn_err err;

    char *copy; /* owned: where a save copies the arrays to */
    size_t copy_bytes;
    pthread_t thread;
    bool flying; /* there is a thread to be joined */
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool finished;        /* under the mutex: the writer is at its end        */
    _Atomic unsigned way; /* grows while the writer gets on                   */
    double began, took, held, all;
};

/* ---- keep.c; all Local, on rank 0 ---- */

/* "ckpt-000001234.bp" (dnn_free()), and the reverse: -1 if it is no such name. */
char *dnn_ckpt_name(int64_t step);
int64_t dnn_ckpt_name_step(const char *name);
/* DIR/name; dnn_free(). */
char *dnn_ckpt_path(const char *dir, const char *name);
/* The steps in a directory, sorted (dnn_free()), and the best of them or -1. */
int dnn_ckpt_list(const char *dir, int64_t **out, size_t *n, size_t *cap, int64_t *best,
                  struct dnn_err *err);
/* A checkpoint is under its name now: later ones are set aside, old ones removed. */
void dnn_ckpt_keep(struct dnn_ckpts *ckpts, int64_t step, bool best);
/* Rename it to NAME.why; the new path (dnn_free()), or NULL if that did not work, with
 * a message.  Either way it is no longer in the list. */
char *dnn_ckpt_set_aside(struct dnn_ckpts *ckpts, int64_t step, const char *why,
                         struct dnn_err *err);
/* Make the directory durable. */
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
/* *out is for dnn_ckpt_table_free(), also on failure. */
int dnn_ckpt_table_read(const char *path, const char *text, struct ckpt_table *out,
                        struct dnn_err *err);
void dnn_ckpt_table_free(struct ckpt_table *table);
/* Over table and state. */
uint64_t dnn_ckpt_table_sum(const char *table, const char *state);
/* Bytes of an array; DNN_EDATA if it is none that can be stored. */
int dnn_ckpt_bytes(const struct dnn_ckpt_array *array, size_t *out,
                   struct dnn_err *err);
/* That these can be saved: names once and readable, sizes that fit. */
int dnn_ckpt_check(const char *dir, int n, const struct dnn_ckpt_array *array,
                   struct dnn_err *err);
/* Sorted by name; dnn_free(). */
const struct dnn_ckpt_array **dnn_ckpt_sort(int n, const struct dnn_ckpt_array *array);
/* That the file's arrays are those wanted. */
int dnn_ckpt_compare(const char *path, int nhas, const struct dnn_ckpt_array *has,
                     int n, const struct dnn_ckpt_array *want, struct dnn_err *err);

/* ---- write.c ---- */

/* ckpts->job to the disk. */
int dnn_ckpt_write(struct dnn_ckpts *ckpts, struct dnn_err *err);
/* Remove one that is not finished.  Its files are emptied first: a writer that failed
 * may still hold them open, and they would go on taking room. */
int dnn_ckpt_discard(const char *path, struct dnn_err *err);

/* ---- save.c ---- */

/* Collective.  Wait until nothing is in flight; the writer's error, on all. */
int dnn_ckpt_join(struct dnn_ckpts *ckpts, struct dnn_err *err);
int dnn_ckpt_agree(struct dnn_ckpts *ckpts, int rc, struct dnn_err *err);

/* ---- file.c ---- */

/* How the array's bytes are: 0 as they were written, DNN_EDATA if not. */
int dnn_ckpt_file_check(struct dnn_ckpt_file *file, int i, struct dnn_err *err);
uint64_t dnn_ckpt_file_sum(const struct dnn_ckpt_file *file, int i);
const char *dnn_ckpt_file_path(const struct dnn_ckpt_file *file);

#endif
