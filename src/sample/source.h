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
struct dnn_source_last; /* box.c */

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
    /* The shape of column c of sample i without reading the sample; it is called only
     * if extents of the column are unknown.  DNN_SOURCE_WHOLE: only reading it tells.
     */
    int (*shape)(const struct dnn_source *source, int64_t i, int c,
                 struct dnn_shape *out, struct dnn_err *err);
    /* Read a box, which lies within the array, of column c of sample i, and not the
     * rest.  DNN_SOURCE_WHOLE: this sample can only be read as a whole. */
    int (*read_box)(const struct dnn_source *source, int64_t i, int c,
                    const int64_t *start, const int64_t *extent, struct dnn_array *out,
                    struct dnn_err *err);
    /* As dnn_source_position(); NULL: the points are those of the file. */
    int (*position)(const struct dnn_source *source, int64_t i, int c,
                    struct dnn_position *out, struct dnn_err *err);
};
enum { DNN_SOURCE_WHOLE = 1 };

/* The first member of the struct of each kind of source. */
struct dnn_source {
    const struct dnn_source_type *type;
    int64_t count;
    int ncols;
    struct dnn_column col[DNN_MAX_COLUMNS];
    int64_t nfiles;          /* number of files; 0 for generators                     */
    int64_t ninputs;         /* of them, the first ones, if files of targets follow; 0:
                              * all                                                   */
    const char *const *file; /* owned by the source                                  */
    const char *split;       /* the split the files are for ("train", "test") or NULL */
    struct dnn_source_last *_Atomic last; /* owned, of box.c; NULL: none             */
};

int dnn_source_read(const struct dnn_source *source, int64_t i, struct dnn_sample *out,
                    struct dnn_err *err);
void dnn_source_label(const struct dnn_source *source, int64_t i,
                      char out[DNN_SAMPLE_NAME]);
void dnn_source_close(struct dnn_source *source); /* NULL is fine */
/* Local.  The file of the input of sample i; NULL: each sample has no file of its own.
 */
const char *dnn_source_file(const struct dnn_source *source, int64_t i);

/* Count, columns and files of another source, for a source made of it. */
struct dnn_source dnn_source_like(const struct dnn_source *from,
                                  const struct dnn_source_type *type);

/* ---- boxes: parts of samples.  Local, thread-safe. ---- */

/* The shape of column c of sample i; the sample is read only if its format has no other
 * way. */
int dnn_source_shape(const struct dnn_source *source, int64_t i, int c,
                     struct dnn_shape *out, struct dnn_err *err);
/* Read a box of column c of sample i: extent[d] points from start[d] along each axis,
 * including the channels.  The result is that of cutting it from a complete read, but
 * checksums of the complete array are not checked.  If the format cannot read parts,
 * the sample is read as a whole; the last such sample is kept in memory. */
int dnn_source_read_box(const struct dnn_source *source, int64_t i, int c,
                        const int64_t *start, const int64_t *extent,
                        struct dnn_array *out, struct dnn_err *err);

/* The position of column c of sample i, as far as it is known without reading the
 * sample. */
int dnn_source_position(const struct dnn_source *source, int64_t i, int c,
                        struct dnn_position *out, struct dnn_err *err);

/* For sources made of other sources: shape and box, but DNN_SOURCE_WHOLE instead of
 * reading a complete sample.  The box is not checked. */
int dnn_source_try_shape(const struct dnn_source *source, int64_t i, int c,
                         struct dnn_shape *out, struct dnn_err *err);
int dnn_source_try_box(const struct dnn_source *source, int64_t i, int c,
                       const int64_t *start, const int64_t *extent,
                       struct dnn_array *out, struct dnn_err *err);

/* A source with the same samples, which are cached in memory after the first read, up
 * to limit bytes; others are read each time.  Takes ownership of from. */
struct dnn_source *dnn_source_cache(struct dnn_source *from, int64_t limit);

#endif
