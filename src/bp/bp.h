/* bp.h - the only user of ADIOS2: BP5 files with named arrays and attributes.
 *
 * A file here is written in one step and read at any place.  Messages begin with the
 * path and carry ADIOS2's words.  ADIOS2 has no deadlines of its own: collective calls
 * are under dnn_comm_watch().
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

/* Text of ADIOS2's version, and whether it was built with an operator ("bzip2",
 * "blosc"...). */
const char *dnn_bp_version(void);
bool dnn_bp_operator(const char *name);

/* ---- writing ---- */

struct dnn_bp_how {
    const char *compress; /* operator's name ("blosc", "bzip2"); NULL: none           */
    const char *params;   /* "compressor=zstd,clevel=5"; NULL: the operator's own     */
    int subfiles;         /* data files; 0: one per node                              */
    bool replace;         /* dnn_dataset_create(): what has the name may be replaced  */
};

/* Collective over comm (NULL: this process alone).  Makes the directory path, which
 * must not exist.  how may be NULL. */
int dnn_bp_create(struct dnn_comm *comm, const char *path, const struct dnn_bp_how *how,
                  struct dnn_bp **out, struct dnn_err *err);
/* Collective by contract (the same calls on all ranks).  An array of these global
 * extents; the number of it.  plain: not compressed even if the file is. */
int dnn_bp_define(struct dnn_bp *bp, const char *name, enum dnn_dtype type,
                  const struct dnn_shape *shape, bool plain, int *out,
                  struct dnn_err *err);
/* Local.  Rows [first, first + rows) of axis 0, contiguous at data, as one block; data
 * can be used again when it returns.  A rank may put any number of blocks, also none;
 * no row twice. */
int dnn_bp_put(struct dnn_bp *bp, int var, int64_t first, int64_t rows,
               const void *data, struct dnn_err *err);
/* Collective.  What was put so far goes to the disk and leaves memory. */
int dnn_bp_flush(struct dnn_bp *bp, struct dnn_err *err);
/* Attributes: the same calls on all ranks.  A text may have any length.  Texts are
 * stored as one text, a JSON list. */
int dnn_bp_attr_text(struct dnn_bp *bp, const char *name, const char *text,
                     struct dnn_err *err);
int dnn_bp_attr_texts(struct dnn_bp *bp, const char *name, const char *const *text,
                      int64_t n, struct dnn_err *err);
int dnn_bp_attr_reals(struct dnn_bp *bp, const char *name, const double *value,
                      int64_t n, struct dnn_err *err);
int dnn_bp_attr_ints(struct dnn_bp *bp, const char *name, const int64_t *value,
                     int64_t n, struct dnn_err *err);
/* Collective.  Finish the file and make it durable (every file in it, and the
 * directory); only when it returns 0 is it whole.  Ends bp, also on failure. */
int dnn_bp_finish(struct dnn_bp *bp, struct dnn_err *err);
/* Local.  Forget a file being written (what is on the disk stays there), or close one
 * being read.  NULL is fine. */
void dnn_bp_close(struct dnn_bp *bp);

/* ---- reading ---- */

struct dnn_bp_var {
    const char *name; /* lives as long as the file is open */
    enum dnn_dtype type;
    struct dnn_shape shape;
    int64_t steps; /* times it was written (files of others); the first is read */
    bool compressed;
};

/* Collective over comm (NULL: this process alone): one rank reads the metadata, all
 * have it then.  threads: how many read at once in dnn_bp_fetch(); 0: 1. */
int dnn_bp_open(struct dnn_comm *comm, const char *path, int threads,
                struct dnn_bp **out, struct dnn_err *err);
/* Local, all of these. */
int dnn_bp_count(const struct dnn_bp *bp);
const struct dnn_bp_var *dnn_bp_var(const struct dnn_bp *bp, int var);
int dnn_bp_find(const struct dnn_bp *bp, const char *name); /* -1: there is none */
/* Whether it was finished by dnn_bp_finish(); that it is still the same in size, and
 * its tables in every byte, was looked at by dnn_bp_open(). */
bool dnn_bp_whole(const struct dnn_bp *bp);
/* First rows of the blocks of a variable, sorted, and one past its last row:
 * (*out)[0..*n].  Owned by the caller: dnn_free(). */
int dnn_bp_blocks(struct dnn_bp *bp, int var, int64_t **out, int64_t *n,
                  struct dnn_err *err);
/* Ask for rows; they are at `to` after dnn_bp_fetch().  One thread at a time may use
 * a dnn_bp. */
int dnn_bp_ask(struct dnn_bp *bp, int var, int64_t first, int64_t rows, void *to,
               struct dnn_err *err);
int dnn_bp_fetch(struct dnn_bp *bp, struct dnn_err *err);
/* NULL or 0 if there is no such attribute; the caller owns them: dnn_free(). */
char *dnn_bp_text(struct dnn_bp *bp, const char *name);
char **dnn_bp_texts(struct dnn_bp *bp, const char *name, int64_t *n); /* one block */
double *dnn_bp_reals(struct dnn_bp *bp, const char *name, int64_t *n);
int64_t *dnn_bp_ints(struct dnn_bp *bp, const char *name, int64_t *n);

#endif
