/* bp.h - BP5 files with named arrays and attributes.  ADIOS2 is used only here.
 *
 * A file is written in one step; any rows, and any parts of them, can be read. Messages
 * begin with the path and contain ADIOS2's message.  ADIOS2 has no deadlines, so
 * collective calls are protected by dnn_comm_watch().
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BP_BP_H
#define DNN_BP_BP_H

#include "base/err.h"
#include "base/shape.h"
#include "base/tensor.h"
#include "comm/comm.h"

struct dnn_bp;

/* ADIOS2's version, and whether it was built with an operator ("bzip2", "blosc"). */
const char *dnn_bp_version(void);
bool dnn_bp_operator(const char *name);

/* ---- writing ---- */

struct dnn_bp_how {
    const char *compress; /* operator ("blosc", "bzip2"); NULL: none                  */
    const char *params;   /* "compressor=zstd,clevel=5"; NULL: operator's defaults    */
    int subfiles;         /* number of data files; 0: one per node                    */
    bool replace;         /* only dnn_dataset_create(): replace an existing dataset   */
};

/* Collective over comm (NULL: only this process).  Makes the directory path, which must
 * not exist.  how may be NULL.  The caller owns *out: dnn_bp_finish() or
 * dnn_bp_close(). */
int dnn_bp_create(struct dnn_comm *comm, const char *path, const struct dnn_bp_how *how,
                  struct dnn_bp **out, struct dnn_err *err);
/* Local, but all ranks must make the same calls.  Define an array with this global
 * shape; *out is its number.  plain: not compressed even if the file is. */
int dnn_bp_define(struct dnn_bp *bp, const char *name, enum dnn_dtype type,
                  const struct dnn_shape *shape, bool plain, int *out,
                  struct dnn_err *err);
/* Local.  Write rows [first, first + rows) of axis 0, contiguous at data, as one block;
 * data is not used after it returns.  A rank may put any number of blocks, also none;
 * each row must be put only once. */
int dnn_bp_put(struct dnn_bp *bp, int var, int64_t first, int64_t rows,
               const void *data, struct dnn_err *err);
/* Collective.  Write the rows put so far to the disk and free their buffers. */
int dnn_bp_flush(struct dnn_bp *bp, struct dnn_err *err);
/* Attributes: all ranks must make the same calls.  A string may have any length.  A
 * list of strings is stored as one string, a JSON list. */
int dnn_bp_attr_text(struct dnn_bp *bp, const char *name, const char *text,
                     struct dnn_err *err);
int dnn_bp_attr_texts(struct dnn_bp *bp, const char *name, const char *const *text,
                      int64_t n, struct dnn_err *err);
int dnn_bp_attr_reals(struct dnn_bp *bp, const char *name, const double *value,
                      int64_t n, struct dnn_err *err);
int dnn_bp_attr_ints(struct dnn_bp *bp, const char *name, const int64_t *value,
                     int64_t n, struct dnn_err *err);
/* Collective.  Finish the file and flush it to disk (all its files, and the directory);
 * only if it returns 0 the file is complete.  Frees bp, also on failure. */
int dnn_bp_finish(struct dnn_bp *bp, struct dnn_err *err);
/* Local.  Abandon a file being written (its files remain on the disk), or close one
 * being read.  NULL is fine. */
void dnn_bp_close(struct dnn_bp *bp);

/* ---- reading ---- */

struct dnn_bp_var {
    const char *name; /* lives as long as the file is open */
    enum dnn_dtype type;
    struct dnn_shape shape;
    int64_t steps; /* number of steps, in files of other programs; only the first is
                    * read */
    bool compressed;
};

/* Collective over comm (NULL: only this process): one rank reads the metadata and
 * broadcasts it.  threads: number of threads in dnn_bp_fetch(); 0: 1.  The caller owns
 * *out: dnn_bp_close(). */
int dnn_bp_open(struct dnn_comm *comm, const char *path, int threads,
                struct dnn_bp **out, struct dnn_err *err);
/* Local, all of these. */
int dnn_bp_count(const struct dnn_bp *bp);
const struct dnn_bp_var *dnn_bp_var(const struct dnn_bp *bp, int var);
int dnn_bp_find(const struct dnn_bp *bp, const char *name); /* -1: there is none */
/* Whether it was finished by dnn_bp_finish().  Then dnn_bp_open() has compared the
 * sizes of all files, and the checksums of the metadata. */
bool dnn_bp_complete(const struct dnn_bp *bp);
/* First rows of the blocks of a variable, sorted, and one past its last row:
 * (*out)[0..*n].  Owned by the caller: dnn_free(). */
int dnn_bp_blocks(struct dnn_bp *bp, int var, int64_t **out, int64_t *n,
                  struct dnn_err *err);
/* Request rows; they are at `to` after dnn_bp_fetch().  One thread at a time may use
 * a dnn_bp. */
int dnn_bp_request(struct dnn_bp *bp, int var, int64_t first, int64_t rows, void *to,
                   struct dnn_err *err);
/* Request a box: extent[d] elements from start[d] along each axis. */
int dnn_bp_request_box(struct dnn_bp *bp, int var, const int64_t *start,
                       const int64_t *extent, void *to, struct dnn_err *err);
int dnn_bp_fetch(struct dnn_bp *bp, struct dnn_err *err);
/* NULL or 0 if there is no such attribute; the caller owns them: dnn_free(). */
char *dnn_bp_text(struct dnn_bp *bp, const char *name);
/* One allocation: free only the list. */
char **dnn_bp_texts(struct dnn_bp *bp, const char *name, int64_t *n);
double *dnn_bp_reals(struct dnn_bp *bp, const char *name, int64_t *n);
int64_t *dnn_bp_ints(struct dnn_bp *bp, const char *name, int64_t *n);

#endif
