/* ckpt.h - checkpoints: named arrays and state of a run on disk.
 *
 * A checkpoint is one BP5 file, DIR/ckpt-000001234.bp (1234: the step), with all arrays
 * by name, their checksums, and further state as JSON.  It is written under a temporary
 * name, synced and renamed, so it is always complete.  At most one is written at a
 * time, in the background, from a copy of the arrays.  The last `keep` checkpoints and
 * the best one are kept.  A damaged checkpoint is renamed to ".damaged", and the
 * previous one is used.
 *
 * best.bp is a link to the best checkpoint.  `lock` prevents that two runs use the same
 * directory.  Names that begin with a dot are temporary.  If a run resumes from an
 * earlier step or starts from the beginning, its first save renames later checkpoints
 * to
 * ".superseded".  Renamed checkpoints are never removed.
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
    int keep;        /* number of last checkpoints to keep; at least 1              */
    bool background; /* write in a thread                                           */
};

/* The checkpoints of a run.  err must not be NULL in dnn_ckpt_load() and
 * dnn_ckpt_verify(). */
struct dnn_ckpts;

/* Collective (comm NULL: only this process).  Create dir and remove temporary files of
 * a killed run.  DNN_EIO if another run uses the directory.  The caller owns *out:
 * dnn_ckpt_close(). */
int dnn_ckpt_open(struct dnn_comm *comm, const struct dnn_ckpt_cfg *cfg,
                  struct dnn_ckpts **out, struct dnn_err *err);
/* Collective.  Wait for the checkpoint being written and return its error.  Frees
 * ckpts, also on failure; NULL is fine.  Call it before exit(), because of the writer
 * thread.
 */
int dnn_ckpt_close(struct dnn_ckpts *ckpts, struct dnn_err *err);

/* Collective.  Allocate the memory for copies of these arrays (on rank 0, if written in
 * the background), so that a save cannot fail for lack of memory; DNN_ENOMEM.  The data
 * are not read.  A save that needs more memory allocates it. */
int dnn_ckpt_reserve(struct dnn_ckpts *ckpts, int n, const struct dnn_ckpt_array *array,
                     struct dnn_err *err);

/* Collective (arrays are the same on all ranks, rank 0 writes).  Returns when the
 * arrays are copied.  It waits first for a checkpoint that is still being written; if
 * this failed, it returns this error and saves nothing.  state: JSON, or NULL.  best:
 * also mark it as the best.  A checkpoint of the same step is replaced. */
int dnn_ckpt_save(struct dnn_ckpts *ckpts, int64_t step, int n,
                  const struct dnn_ckpt_array *array, const char *state, bool best,
                  struct dnn_err *err);
/* Collective.  Wait until the last checkpoint is on disk.  The error of a background
 * write is returned here or by the next save.  After an error, earlier checkpoints are
 * unchanged, and the failed one does not exist, unless the error states that it is
 * written. */
int dnn_ckpt_wait(struct dnn_ckpts *ckpts, struct dnn_err *err);
/* Local.  *blocked: seconds for which the last save blocked the caller; *all: seconds
 * to write the last finished checkpoint (0 on other ranks than 0). */
void dnn_ckpt_times(const struct dnn_ckpts *ckpts, double *blocked, double *all);

/* Collective.  Load the newest valid checkpoint into the arrays (names, types and
 * shapes must agree), its state (*state: dnn_free()) and step.  If there is none, *step
 * is -1, *state is NULL and the arrays are unchanged.  Rank 0 reads and broadcasts.
 * Damaged checkpoints are renamed, with a warning.  wanted: NULL, or one checkpoint:
 * "best", a step ("1234") or a path (with a slash, if it has only digits); if this one
 * is damaged, it is an error, and it is not renamed. */
int dnn_ckpt_load(struct dnn_ckpts *ckpts, const char *wanted, int n,
                  const struct dnn_ckpt_array *array, int64_t *step, char **state,
                  struct dnn_err *err);

/* Local.  Find the path of a checkpoint (*out: dnn_free()): wanted as above, NULL: the
 * newest.  Its content is not checked. */
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
/* Description of array i, without data; valid while the file is open. */
const struct dnn_ckpt_array *dnn_ckpt_file_array(const struct dnn_ckpt_file *file,
                                                 int i);
/* Read an array and check its checksum. */
int dnn_ckpt_file_read(struct dnn_ckpt_file *file, int i, void *to,
                       struct dnn_err *err);
const char *dnn_ckpt_file_state(const struct dnn_ckpt_file *file); /* "": none */
void dnn_ckpt_file_close(struct dnn_ckpt_file *file);              /* NULL is fine */

#endif
