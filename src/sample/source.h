/* source.h - sources of samples: raw files, generators, another dataset.
 *
 * A source has a fixed number of samples in a fixed order, which depends only on the
 * files (not on the number of ranks or the order of directory entries).  Samples can be
 * read in any order.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_SAMPLE_SOURCE_H
#define DNN_SAMPLE_SOURCE_H

#include "sample/sample.h"

enum { DNN_SAMPLE_NAME = 512 };

struct dnn_source;

/* The functions of a kind of source; all except read and close may be NULL. */
struct dnn_source_type {
    const char *name; /* "idx", "folder", "fractals3d"                               */
    /* Read sample i into out, whose memory is reused.  The type of every column is that
     * of the source's column; extents that are DNN_UNKNOWN there are set.  Thread-safe.
     * Error messages contain the file and sample. */
    int (*read)(const struct dnn_source *source, int64_t i, struct dnn_sample *out,
                struct dnn_err *err);
    /* A name for messages and for pairing: "cats/12.jpg", "batch1.npz[7]"; NULL: the
     * number. */
    void (*label)(const struct dnn_source *source, int64_t i,
                  char out[DNN_SAMPLE_NAME]);
    /* The group of a sample (such as a patient): all samples of a group are in the same
     * split; NULL: there are no groups. */
    void (*group)(const struct dnn_source *source, int64_t i,
                  char out[DNN_SAMPLE_NAME]);
    /* The class of sample i without reading the sample, for stratified splits; -1 if
     * that is not possible; NULL: never possible. */
    int64_t (*class_of)(const struct dnn_source *source, int64_t i);
    void (*close)(struct dnn_source *source);
};

/* The first member of the struct of each kind of source. */
struct dnn_source {
    const struct dnn_source_type *type;
    int64_t count;
    int ncols;
    struct dnn_column col[DNN_MAX_COLUMNS];
    int64_t nfiles;          /* number of input files; 0 for generators               */
    const char *const *file; /* owned by the source                                  */
    const char *split;       /* the split the files are for ("train", "test") or NULL */
};

int dnn_source_read(const struct dnn_source *source, int64_t i, struct dnn_sample *out,
                    struct dnn_err *err);
void dnn_source_label(const struct dnn_source *source, int64_t i,
                      char out[DNN_SAMPLE_NAME]);
void dnn_source_close(struct dnn_source *source); /* NULL is fine */

/* A source with the same samples, which are cached in memory after the first read, up
 * to limit bytes; others are read each time.  Takes ownership of from. */
struct dnn_source *dnn_source_cache(struct dnn_source *from, int64_t limit);

#endif
