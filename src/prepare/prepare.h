/* prepare.h - raw files or a generator -> steps -> one dataset, whole or not at all.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PREPARE_PREPARE_H
#define DNN_PREPARE_PREPARE_H

#include "comm/comm.h"
#include "data/dataset.h"
#include "import/import.h"

#include <stdio.h>

struct dnn_prepare; /* a preparation as its configuration describes it */

/* Local.  From a configuration (docs/prepare.md has the keys).  The caller owns *out.
 */
int dnn_prepare_read(const char *path, struct dnn_prepare **out, struct dnn_err *err);
/* The same from a text; name stands in messages. */
int dnn_prepare_text(const char *name, const char *text, struct dnn_prepare **out,
                     struct dnn_err *err);
void dnn_prepare_free(struct dnn_prepare *prepare); /* NULL is fine */
/* Another name for the dataset; it is copied. */
int dnn_prepare_to(struct dnn_prepare *prepare, const char *to, struct dnn_err *err);

struct dnn_prepare_opts {
    bool replace;        /* a dataset of that name may be replaced                   */
    bool restart;        /* begin anew what was interrupted                          */
    const char *command; /* for the record                                           */
};

/* Collective.  Do it.  What is found of an interrupted preparation with the same
 * configuration and unchanged files is used. */
int dnn_prepare_run(struct dnn_prepare *prepare, struct dnn_comm *comm,
                    const struct dnn_prepare_opts *opts, struct dnn_err *err);

/* Local.  A table of what a dataset holds, with histograms. */
int dnn_prepare_describe(const char *path, FILE *where, struct dnn_err *err);
/* Collective.  Every checksum; a line per split. */
int dnn_prepare_verify(const char *path, struct dnn_comm *comm, FILE *where,
                       struct dnn_err *err);
/* Local.  A contact sheet of n samples with their masks over them. */
int dnn_prepare_preview(const char *path, const char *split, int64_t n, const char *png,
                        struct dnn_err *err);
/* Local.  Each image and mask as a NIfTI-1 file: DIR/COLUMN/SAMPLE.nii. */
int dnn_prepare_export(const char *path, const char *dir, struct dnn_err *err);

/* Local.  The manual of the configuration's keys, as Markdown. */
void dnn_prepare_docs(FILE *where);

#endif
