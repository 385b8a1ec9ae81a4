/* source.h - where samples come from: raw files, generators, another dataset.
 *
 * A source has a fixed number of samples in a fixed order, which depends on nothing
 * but the files (never on the number of ranks or on the order a directory lists
 * itself in), and gives any of them at any time.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_SAMPLE_SOURCE_H
#define DNN_SAMPLE_SOURCE_H

#include "sample/sample.h"

enum { DNN_SAMPLE_NAME = 512 };

struct dnn_source;

/* What each kind of source provides; all but read and close may be NULL. */
struct dnn_source_type {
    const char *name; /* "idx", "folder", "fractals3d"                               */
    /* Sample i into out (whose memory is used again), every column with the type and
     * kind the source's columns say; extents that are DNN_UNKNOWN there are known here.
     * Safe from several threads at once.  Fails with the file and sample named. */
    int (*read)(const struct dnn_source *source, int64_t i, struct dnn_sample *out,
                struct dnn_err *err);
    /* A name for people and for pairing: "cats/12.jpg", "batch1.npz[7]"; NULL: the
     * number alone. */
    void (*label)(const struct dnn_source *source, int64_t i,
                  char out[DNN_SAMPLE_NAME]);
    /* What belongs together (a patient): samples of one group are never split; NULL:
     * no groups are known. */
    void (*group)(const struct dnn_source *source, int64_t i,
                  char out[DNN_SAMPLE_NAME]);
    /* The class of sample i without reading the sample, for stratified splits; -1 if
     * that is not possible; NULL: never possible. */
    int64_t (*class_of)(const struct dnn_source *source, int64_t i);
    void (*close)(struct dnn_source *source);
};

/* Embedded as the first member of each kind's own struct. */
struct dnn_source {
    const struct dnn_source_type *type;
    int64_t count;
    int ncols;
    struct dnn_column col[DNN_MAX_COLUMNS];
    int64_t nfiles; /* files that were read, for the record; 0 of a generator */
    const char *const *file; /* owned by the source                                  */
    const char *split;       /* what the files say they are ("train", "test") or NULL */
};

int dnn_source_read(const struct dnn_source *source, int64_t i, struct dnn_sample *out,
                    struct dnn_err *err);
void dnn_source_label(const struct dnn_source *source, int64_t i,
                      char out[DNN_SAMPLE_NAME]);
void dnn_source_close(struct dnn_source *source); /* NULL is fine */

/* The same samples, which stay in memory once they have been read, up to limit bytes of
 * them; what is more is read each time.  Takes over from. */
struct dnn_source *dnn_source_keep(struct dnn_source *from, int64_t limit);

#endif
