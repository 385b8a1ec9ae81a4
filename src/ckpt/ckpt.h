/* ckpt.h - checkpoints: named arrays and state of a run on disk, complete or not at
 * all.
 *
 * A checkpoint is one BP5 file, DIR/ckpt-000001234.bp (1234: the step), with all arrays
 * by name, their checksums, and further state as JSON; it is written under a temporary
 * name, synced and renamed.  At most one is written at a time, in the background, from
 * a copy. The last `keep` and the best are kept.  A damaged one is renamed to
 * ".damaged" and the one before it is used.
 *
 * best.bp is a link to the best one; `lock` shows a second run that the directory is in
 * use.  Names that begin with a dot are temporary.  A run that resumes from an earlier
 * step, or starts anew, renames later checkpoints to ".superseded" with its first save.
 * Renamed ones are never removed.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_CKPT_CKPT_H
#define DNN_CKPT_CKPT_H

#include "base/tensor.h"
#include "comm/comm.h"

struct dnn_ckpt_array {
    const char *name; /* "dense_1/kernel", "dense_1/kernel:m" */
    enum dnn_dtype type;
    struct dnn_shape shape;
    void *data; /* read when saving, written when loading */
};

struct dnn_ckpt_cfg {
    const char *dir;
    int keep;        /* number of last ones kept; at least 1                        */
    bool background; /* write in a thread                                           */
};

struct dnn_ckpts; /* the checkpoints of a run */

/* Collective (comm NULL: only this process).  Creates dir, removes temporary files of a
 * killed run.  DNN_EIO if another run uses the directory. */
int dnn_ckpt_open(struct dnn_comm *comm, const struct dnn_ckpt_cfg *cfg,
                  struct dnn_ckpts **out, struct dnn_err *err);
/* Collective.  Waits for the one being written and returns its error.  Frees ckpts,
 * also on failure; NULL is fine.  Call it before exit(), because of the writer thread.
 */
int dnn_ckpt_close(struct dnn_ckpts *ckpts, struct dnn_err *err);

/* Collective.  Allocate the memory for copies of such arrays (rank 0, if written in the
 * background), so that a save cannot fail for lack of it: DNN_ENOMEM with numbers. Data
 * are not read.  A save that needs more allocates it itself. */
int dnn_ckpt_reserve(struct dnn_ckpts *ckpts, int n, const struct dnn_ckpt_array *array,
                     struct dnn_err *err);

/* Collective (arrays are the same on all ranks, rank 0 writes).  Returns when the
 * arrays are copied; waits first for one still being written, and returns its error if
 * that failed, without saving.  state: JSON, or NULL.  best: also mark it as the best.
 * One of the same step is replaced. */
int dnn_ckpt_save(struct dnn_ckpts *ckpts, int64_t step, int n,
                  const struct dnn_ckpt_array *array, const char *state, bool best,
                  struct dnn_err *err);
/* Collective.  Wait until the last one is on disk; the error of a background write is
 * returned here or by the next save.  Earlier ones are unchanged then, and the failed
 * one does not exist, unless the message says that it is written. */
int dnn_ckpt_wait(struct dnn_ckpts *ckpts, struct dnn_err *err);
/* Local.  Seconds for which the last save blocked the caller, and for which the last
 * one waited for was written (rank 0; elsewhere 0). */
void dnn_ckpt_times(const struct dnn_ckpts *ckpts, double *blocked, double *all);

/* Collective.  Load the newest valid one into the arrays (names, types and shapes must
 * agree), its state (dnn_free()) and step; *step is -1 if there is none, and then the
 * arrays are unchanged and *state is NULL.  Rank 0 reads and broadcasts.  Damaged ones
 * are renamed with a warning.  wanted: "best", a step ("1234") or a path (with a slash
 * if only digits), or NULL.  If that one is damaged it is an error, and it is not
 * renamed. */
int dnn_ckpt_load(struct dnn_ckpts *ckpts, const char *wanted, int n,
                  const struct dnn_ckpt_array *array, int64_t *step, char **state,
                  struct dnn_err *err);

/* Local.  The path (dnn_free()) of a checkpoint: wanted as above, NULL: the newest. Its
 * content is not checked. */
int dnn_ckpt_find(const char *dir, const char *wanted, char **out, struct dnn_err *err);

/* Local.  Print the arrays of a checkpoint and check all checksums.  DNN_EDATA if it is
 * damaged. */
int dnn_ckpt_verify(const char *path, FILE *where, struct dnn_err *err);

/* Local.  Read state and arrays of a checkpoint.  DNN_EDATA: damaged, DNN_ECONFIG:
 * unknown format. */
struct dnn_ckpt_file;
int dnn_ckpt_file_open(const char *path, struct dnn_ckpt_file **out,
                       struct dnn_err *err);
int64_t dnn_ckpt_file_step(const struct dnn_ckpt_file *file);
int dnn_ckpt_file_count(const struct dnn_ckpt_file *file);
/* Without data; valid while the file is open. */
const struct dnn_ckpt_array *dnn_ckpt_file_array(const struct dnn_ckpt_file *file,
                                                 int i);
/* Read an array and check its checksum. */
int dnn_ckpt_file_read(struct dnn_ckpt_file *file, int i, void *to,
                       struct dnn_err *err);
const char *dnn_ckpt_file_state(const struct dnn_ckpt_file *file); /* "": none */
void dnn_ckpt_file_close(struct dnn_ckpt_file *file);              /* NULL is fine */

#endif
