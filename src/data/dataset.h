/* dataset.h - a prepared dataset on disk: what is in it, how it is written and read.
 *
 * A dataset is one BP5 file.  Each split (train, validation, test, or all) has its
 * samples in arrays "SPLIT/COLUMN" with the sample as axis 0, beside them
 * "SPLIT/COLUMN.sum" (a checksum of each sample's stored bytes: XXH3, 64 bits),
 * "SPLIT/name" and, if asked for, "SPLIT/fold" and "SPLIT/group".  Attributes hold the
 * rest.  docs/dataset.md is the full description.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_DATA_DATASET_H
#define DNN_DATA_DATASET_H

#include "bp/bp.h"
#include "sample/sample.h"
#include "transform/stats.h"

enum { DNN_MAX_SPLITS = 8 };

/* A column as it is stored.  value = stored * scale[c] + offset[c] per channel, so that
 * u8 and i16 can stand for real numbers; labels and masks have scale 1, offset 0. */
struct dnn_stored {
    struct dnn_column column; /* type: as stored                                     */
    int nscale;               /* 0: values are as stored; 1 or as many as channels   */
    double scale[DNN_STATS_CHANNELS], offset[DNN_STATS_CHANNELS];
    double spacing[DNN_MAX_SPACE]; /* if it is the same in all samples; else 0       */
    struct dnn_stats *stats; /* owned: of the values, over the split; NULL: none    */
};

struct dnn_split {
    char name[32];
    int64_t count;
    int ncols;
    struct dnn_stored col[DNN_MAX_COLUMNS];
    int64_t chunk; /* samples per block of the arrays                            */
    int64_t folds; /* 0: not cut into folds                                      */
};

struct dnn_dataset_info {
    int nsplits;
    struct dnn_split split[DNN_MAX_SPLITS];
    char *provenance; /* owned: JSON: command, version, seed, steps, source files with
                       * sizes and checksums                                         */
    char hash[33];    /* of all samples' sums, names, shapes and classes in order:
                       * equal hashes, equal datasets                                */
};

/* ---- writing: used by the preparation, and by tests ---- */

struct dnn_dataset_writer;

/* Collective.  Begin under a hidden name beside path; what a killed writer of the same
 * path left there is removed.  info is kept (must outlive the writer) except hash,
 * which the writer computes.  how->replace: a dataset of that name may be replaced;
 * else it is an error before anything is written. */
int dnn_dataset_create(struct dnn_comm *comm, const char *path,
                       const struct dnn_dataset_info *info,
                       const struct dnn_bp_how *how, struct dnn_dataset_writer **out,
                       struct dnn_err *err);
/* Local.  Samples [first, first + n) of a split, column by column: data[k] holds n
 * samples of column k as stored; name, fold and group (may be NULL) have n entries.
 * first must be a multiple of the split's chunk, n the chunk or what is left of it. */
int dnn_dataset_put(struct dnn_dataset_writer *writer, int split, int64_t first,
                    int64_t n, const void *const *data, const char *const *name,
                    const int32_t *fold, const char *const *group, struct dnn_err *err);
/* Collective.  What was put so far goes to the disk and leaves memory; call it whenever
 * a rank may hold as much as it should. */
int dnn_dataset_flush(struct dnn_dataset_writer *writer, struct dnn_err *err);
/* Collective.  Put what was written into place under its name: from then on, and not
 * before, it exists.  Samples that nobody put are an error.  Ends writer, also on
 * failure: then nothing is left. */
int dnn_dataset_finish(struct dnn_dataset_writer *writer, char hash[33],
                       struct dnn_err *err);
/* Local.  Forget it; what is on the disk of it is removed.  NULL is fine. */
void dnn_dataset_abandon(struct dnn_dataset_writer *writer);

/* ---- reading ---- */

struct dnn_dataset;

/* Collective.  One rank reads the description, all have it. */
int dnn_dataset_open(struct dnn_comm *comm, const char *path, int threads,
                     struct dnn_dataset **out, struct dnn_err *err);
void dnn_dataset_close(struct dnn_dataset *dataset); /* NULL is fine */
const struct dnn_dataset_info *dnn_dataset_info(const struct dnn_dataset *dataset);
int dnn_dataset_find(const struct dnn_dataset *dataset, const char *split); /* or -1 */

/* Local.  Ask for samples as stored, all to be there after dnn_dataset_fetch().  One
 * thread at a time. */
int dnn_dataset_ask(struct dnn_dataset *dataset, int split, int column, int64_t first,
                    int64_t n, void *to, struct dnn_err *err);
int dnn_dataset_fetch(struct dnn_dataset *dataset, struct dnn_err *err);
/* Names, folds, groups and sums of a range; whatever of the four is not NULL.  Names
 * and groups are one block owned by the caller: dnn_free(). */
int dnn_dataset_about(struct dnn_dataset *dataset, int split, int64_t first, int64_t n,
                      char ***name, int32_t *fold, char ***group, struct dnn_err *err);
/* Compare checksums of samples [first, first + n); the first bad one is named. */
int dnn_dataset_verify(struct dnn_dataset *dataset, int split, int64_t first, int64_t n,
                       struct dnn_err *err);

#endif
