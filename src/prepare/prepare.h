/* prepare.h - makes a dataset from raw files or a generator; it is created atomically.
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

/* Local.  Reads a configuration file (keys: docs/prepare.md).  The caller owns *out. */
int dnn_prepare_read(const char *path, struct dnn_prepare **out, struct dnn_err *err);
/* The same from JSON text; messages use name as the file name. */
int dnn_prepare_text(const char *name, const char *text, struct dnn_prepare **out,
                     struct dnn_err *err);
void dnn_prepare_free(struct dnn_prepare *prepare); /* NULL is fine */
/* Sets the path of the dataset; to is copied. */
int dnn_prepare_to(struct dnn_prepare *prepare, const char *to, struct dnn_err *err);

struct dnn_prepare_opts {
    bool replace;        /* replace an existing dataset                              */
    bool restart;        /* do not continue an interrupted preparation               */
    const char *command; /* for the record                                           */
};

/* Collective.  Runs the preparation.  Continues an interrupted one with the same
 * configuration and unchanged input files. */
int dnn_prepare_run(struct dnn_prepare *prepare, struct dnn_comm *comm,
                    const struct dnn_prepare_opts *opts, struct dnn_err *err);

/* Local.  Prints the contents of a dataset as tables, with histograms. */
int dnn_prepare_describe(const char *path, FILE *where, struct dnn_err *err);
/* Collective.  Checks all checksums; rank 0 prints a line per split. */
int dnn_prepare_verify(const char *path, struct dnn_comm *comm, FILE *where,
                       struct dnn_err *err);
/* Local.  Draws n samples, with their masks over them, into a PNG file. */
int dnn_prepare_preview(const char *path, const char *split, int64_t n, const char *png,
                        struct dnn_err *err);
/* Local.  Writes each image and mask as a NIfTI-1 file: DIR/COLUMN/SAMPLE.nii. */
int dnn_prepare_export(const char *path, const char *dir, struct dnn_err *err);

/* Local.  Prints the keys of the configuration as Markdown. */
void dnn_prepare_docs(FILE *where);

#endif
