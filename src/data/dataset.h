/* dataset.h - a prepared dataset on disk: its contents, writing and reading.
 *
 * A dataset is one BP5 file.  Each split (train, validation, test, or all) has arrays
 * "SPLIT/COLUMN" with the sample as axis 0, "SPLIT/COLUMN.sum" (a checksum of each
 * sample's stored bytes: XXH3, 64 bits), "SPLIT/name" and optionally "SPLIT/fold" and
 * "SPLIT/group".  All the rest is in attributes.  docs/dataset.md describes the format.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_DATA_DATASET_H
#define DNN_DATA_DATASET_H

#include "bp/bp.h"
#include "sample/source.h"
#include "transform/stats.h"

enum { DNN_MAX_SPLITS = 8 };

/* A column as it is stored.  value = stored * scale[c] + offset[c] per channel, so u8
 * and i16 can represent real values; labels and masks have scale 1, offset 0. */
struct dnn_stored {
    struct dnn_column column; /* type: as stored                                     */
    int nscale;               /* 0: values are as stored; 1 or as many as channels   */
    double scale[DNN_STATS_CHANNELS], offset[DNN_STATS_CHANNELS];
    double spacing[DNN_MAX_SPACE]; /* if equal in all samples; else 0                */
    struct dnn_stats *stats; /* owned: of the values, over the split; NULL: none    */
};

struct dnn_split {
    char name[32];
    int64_t count;
    int ncols;
    struct dnn_stored col[DNN_MAX_COLUMNS];
    int64_t chunk; /* samples per block of the arrays                            */
    int64_t folds; /* 0: no folds                                                */
};

struct dnn_dataset_info {
    int nsplits;
    struct dnn_split split[DNN_MAX_SPLITS];
    char *provenance; /* owned: JSON: command, version, seed, steps and what they took
                       * from statistics, source files with sizes and checksums;
                       * dnn_prepare_apply() applies it to other samples             */
    char hash[33];    /* of all samples' sums, names, shapes and classes in order:
                       * equal hashes, equal datasets                                */
};

/* ---- writing: used by the preparation, and by tests ---- */

struct dnn_dataset_writer;

/* Collective.  Starts writing under a hidden temporary name next to path; what a killed
 * writer of the same path left is removed.  info is not copied and must outlive the
 * writer, which ignores info->hash.  how->replace: an existing dataset may be replaced;
 * else it is an error, before anything is written. */
int dnn_dataset_create(struct dnn_comm *comm, const char *path,
                       const struct dnn_dataset_info *info,
                       const struct dnn_bp_how *how, struct dnn_dataset_writer **out,
                       struct dnn_err *err);
/* Local.  Samples [first, first + n) of a split, column by column: data[k] is n samples
 * of column k as stored; name, fold and group (may be NULL) have n entries.  first must
 * be a multiple of the split's chunk, n the chunk or, at the end, the rest. */
int dnn_dataset_put(struct dnn_dataset_writer *writer, int split, int64_t first,
                    int64_t n, const void *const *data, const char *const *name,
                    const int32_t *fold, const char *const *group, struct dnn_err *err);
/* Collective.  Writes to disk what was put so far and frees its memory.  Call it before
 * a rank buffers too much. */
int dnn_dataset_flush(struct dnn_dataset_writer *writer, struct dnn_err *err);
/* Collective.  Completes the dataset and renames it to its path, atomically.  Samples
 * that were not put are an error.  Frees the writer, also on failure; no files remain
 * then. */
int dnn_dataset_finish(struct dnn_dataset_writer *writer, char hash[33],
                       struct dnn_err *err);
/* Local.  Frees the writer and removes its files.  NULL is fine. */
void dnn_dataset_abandon(struct dnn_dataset_writer *writer);

/* ---- reading ---- */

struct dnn_dataset;

/* Collective.  One rank reads the description for all. */
int dnn_dataset_open(struct dnn_comm *comm, const char *path, int threads,
                     struct dnn_dataset **out, struct dnn_err *err);
/* The same for an open file, of which it takes ownership, also on failure. */
int dnn_dataset_from(struct dnn_comm *comm, struct dnn_bp *bp, const char *path,
                     struct dnn_dataset **out, struct dnn_err *err);
/* Local.  Whether a BP file is a prepared dataset. */
bool dnn_dataset_is(struct dnn_bp *bp);
void dnn_dataset_close(struct dnn_dataset *dataset); /* NULL is fine */
const struct dnn_dataset_info *dnn_dataset_info(const struct dnn_dataset *dataset);
int dnn_dataset_find(const struct dnn_dataset *dataset, const char *split); /* or -1 */

/* Local.  Requests samples as stored; dnn_dataset_fetch() reads all that were
 * requested.  One thread at a time. */
int dnn_dataset_request(struct dnn_dataset *dataset, int split, int column,
                        int64_t first, int64_t n, void *to, struct dnn_err *err);
/* The same for a box of one sample: extent[d] elements from start[d] along each axis.
 */
int dnn_dataset_request_box(struct dnn_dataset *dataset, int split, int column,
                            int64_t sample, const int64_t *start, const int64_t *extent,
                            void *to, struct dnn_err *err);
int dnn_dataset_fetch(struct dnn_dataset *dataset, struct dnn_err *err);
/* Names, folds and groups of a range; each may be NULL.  Names are one block owned by
 * the caller, as are groups: dnn_free(). */
int dnn_dataset_metadata(struct dnn_dataset *dataset, int split, int64_t first,
                         int64_t n, char ***name, int32_t *fold, char ***group,
                         struct dnn_err *err);
/* Checks the checksums of samples [first, first + n); the error names the first bad
 * one. */
int dnn_dataset_verify(struct dnn_dataset *dataset, int split, int64_t first, int64_t n,
                       struct dnn_err *err);

/* ---- as a source of samples ---- */

/* Local.  The samples of a split, or of all splits (NULL), which must then have the
 * same columns.  Scaled values are restored, as f32.  targets: only columns that are
 * targets. Checksums are compared when a complete sample is read.  Takes ownership of
 * the dataset, also on failure; the caller owns *out: dnn_source_close(). */
int dnn_dataset_source(struct dnn_dataset *dataset, const char *split, bool targets,
                       struct dnn_source **out, struct dnn_err *err);
/* Local.  Open a dataset, all columns of a split of it, as a source. */
int dnn_dataset_source_open(const char *path, const char *split,
                            struct dnn_source **out, struct dnn_err *err);

#endif
