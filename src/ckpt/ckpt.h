/* ckpt.h - the state of a run on disk: named arrays and a few numbers, whole or not at
 * all.
 *
 * A checkpoint is one BP5 file, DIR/ckpt-000001234.bp (1234: the step), with every
 * array under its name, a checksum of each, and the rest of the state as a JSON text;
 * it is written beside its place, made durable, and renamed.  At most one is being
 * written at a time, in the background, from a copy.  Of those there are, the last
 * `keep` and the best stay.  One that does not hold what it should is set aside
 * (".damaged") and the one before it is taken.
 *
 * Beside them lie best.bp, a link to the best one, and `lock`, by which a second run
 * sees that the directory is taken.  Names that begin with a dot are on their way in or
 * out.  A run that goes back to an earlier step, or begins anew, sets those of later
 * steps aside (".superseded") with its first save.  What was set aside is never
 * removed.
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
    void *data; /* saving: read from; loading: written to */
};

struct dnn_ckpt_cfg {
    const char *dir;
    int keep;        /* last ones that stay; at least 1                             */
    bool background; /* write while the run goes on                                 */
};

struct dnn_ckpts; /* the checkpoints of a run */

/* Collective (comm NULL: this process alone).  dir is made.  Leftovers of a killed
 * writer are removed.  DNN_EIO if another run has the directory. */
int dnn_ckpt_open(struct dnn_comm *comm, const struct dnn_ckpt_cfg *cfg,
                  struct dnn_ckpts **out, struct dnn_err *err);
/* Collective.  Waits for the one in flight, whose error it returns.  Ends ckpts, also
 * on failure; NULL is fine.  A process must not exit() without it: the writer would
 * find the libraries gone. */
int dnn_ckpt_close(struct dnn_ckpts *ckpts, struct dnn_err *err);

/* Collective.  Get the memory that a save copies such arrays to (on rank 0, if they are
 * written in the background), so that there is none to be had later: DNN_ENOMEM with
 * numbers.  The data are not looked at.  A save that was not preceded by it, or has
 * more to copy, does it itself. */
int dnn_ckpt_reserve(struct dnn_ckpts *ckpts, int n, const struct dnn_ckpt_array *array,
                     struct dnn_err *err);

/* Collective by contract (the same on all ranks; the arrays are replicas, rank 0
 * writes). Returns when the arrays were copied; waits first if one is still in flight,
 * and if that one failed returns its error and saves nothing.  state: JSON, or NULL.
 * best: also remember it as the best.  One of the same step is replaced. */
int dnn_ckpt_save(struct dnn_ckpts *ckpts, int64_t step, int n,
                  const struct dnn_ckpt_array *array, const char *state, bool best,
                  struct dnn_err *err);
/* Collective.  Wait until what was saved is on the disk; the error of a background
 * write comes here or at the next save, once.  Then the earlier ones are as they were,
 * and nothing has the name of the one that failed, except where the message says that
 * it is written. */
int dnn_ckpt_wait(struct dnn_ckpts *ckpts, struct dnn_err *err);
/* Local.  Seconds the last save held up the caller, and the last one waited for took in
 * all (known on rank 0; elsewhere 0). */
void dnn_ckpt_times(const struct dnn_ckpts *ckpts, double *held, double *all);

/* Collective.  The newest valid one into the arrays (names, types and shapes must
 * agree; the message says which do not), its state (caller's, dnn_free()) and step;
 * *step is -1 if there is none, and then the arrays are as they were and *state is
 * NULL.  Rank 0 reads, all get it.  Damaged ones are set aside with a warning.  wanted:
 * a given path or step ("best", "1234", a path, which has a slash if it is only digits)
 * or NULL.  If that is damaged it is an error; what was asked for by name is neither
 * set aside nor replaced by another. */
int dnn_ckpt_load(struct dnn_ckpts *ckpts, const char *wanted, int n,
                  const struct dnn_ckpt_array *array, int64_t *step, char **state,
                  struct dnn_err *err);

/* Local.  The path (dnn_free()) of a checkpoint: wanted as above, NULL the newest by
 * name.  Whether it is whole is not looked at. */
int dnn_ckpt_find(const char *dir, const char *wanted, char **out, struct dnn_err *err);

/* Local.  What a checkpoint file holds and whether every sum is right, to where: a
 * table, and a verdict in its last line.  DNN_EDATA if it is damaged. */
int dnn_ckpt_verify(const char *path, FILE *where, struct dnn_err *err);

/* Local.  Its state and arrays, to read by name: for inference and transfer.  What is
 * damaged is DNN_EDATA, of a format we do not know DNN_ECONFIG. */
struct dnn_ckpt_file;
int dnn_ckpt_file_open(const char *path, struct dnn_ckpt_file **out,
                       struct dnn_err *err);
int64_t dnn_ckpt_file_step(const struct dnn_ckpt_file *file);
int dnn_ckpt_file_count(const struct dnn_ckpt_file *file);
/* Its data are NULL; all lives as long as the file is open. */
const struct dnn_ckpt_array *dnn_ckpt_file_array(const struct dnn_ckpt_file *file,
                                                 int i);
/* The whole array, whose checksum is compared. */
int dnn_ckpt_file_read(struct dnn_ckpt_file *file, int i, void *to,
                       struct dnn_err *err);
const char *dnn_ckpt_file_state(const struct dnn_ckpt_file *file); /* "": none */
void dnn_ckpt_file_close(struct dnn_ckpt_file *file);              /* NULL is fine */

#endif
