/* dataset_impl.h - what the files of datasets share.
 *
 * dataset_write.c   samples on their way into a file;
 * dataset_finish.c  what is known only at the end: names, sums, the hash;
 * dataset_place.c   under which name it is written, and how it gets its own;
 * dataset_attr.c    the description as attributes, there and back;
 * dataset_read.c    reading;
 * dataset_verify.c  checksums compared.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_DATA_DATASET_IMPL_H
#define DNN_DATA_DATASET_IMPL_H

#include "data/dataset.h"

#include "base/text.h"

#define DNN_DATASET_FORMAT "dnn-toolkit dataset"
enum { DNN_DATASET_VERSION = 1 };

struct dnn_dataset_writer {
    struct dnn_comm *comm; /* or NULL */
    int rank, size;
    const struct dnn_dataset_info *info;
    bool replace;
    char *path; /* owned: as it shall be called */
    char *part; /* owned: as it is called until then */
    struct dnn_bp *bp;
    int var[DNN_MAX_SPLITS][DNN_MAX_COLUMNS];
    struct dnn_buf notes; /* of each portion put here: sums, names, folds, groups */
};

struct dnn_dataset {
    struct dnn_dataset_info info;
    char *path; /* owned */
    struct dnn_bp *bp;
    struct dnn_arena *arena; /* class names */
    int var[DNN_MAX_SPLITS][DNN_MAX_COLUMNS];
    int sum[DNN_MAX_SPLITS][DNN_MAX_COLUMNS];
    struct {
        int name, name_end, about, fold, group, group_end; /* -1: there is none */
    } of[DNN_MAX_SPLITS];
    bool asked;
};

/* ---- dataset_place.c ---- */

/* Local, on rank 0.  Where to write; what killed writers left there is removed.
 * Refuses a name that is taken. */
int dnn_dataset_place(const char *path, bool replace, char **part, struct dnn_err *err);
/* Local, on rank 0.  part becomes path. */
int dnn_dataset_settle(const char *part, const char *path, bool replace,
                       struct dnn_err *err);

/* ---- dataset_attr.c ---- */

/* "train/input.sum"; dnn_free() */
char *dnn_dataset_name(const struct dnn_split *split, const char *column,
                       const char *what);
/* Attributes of all that info holds but the hash.  Statistics' arrays are put by
 * rank 0. */
int dnn_dataset_describe(struct dnn_bp *bp, const struct dnn_dataset_info *info,
                         int rank, struct dnn_err *err);
/* The reverse; read: this rank reads what is in arrays. */
int dnn_dataset_attributes(struct dnn_dataset *dataset, struct dnn_err *err);
/* Histograms and counts of classes. */
int dnn_dataset_stats(struct dnn_dataset *dataset, struct dnn_comm *comm,
                      struct dnn_err *err);

/* ---- dataset_finish.c ---- */

int dnn_dataset_complete(struct dnn_dataset_writer *w, char hash[33],
                         struct dnn_err *err);
/* The checksum of what belongs to a sample beside its columns; group NULL: none. */
uint64_t dnn_dataset_about_sum(const char *name, int32_t fold, const char *group);

#endif
