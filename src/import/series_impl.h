/* series_impl.h - shared by the files of series.
 *
 * series.c        the source: counts, reads and describes the samples;
 * series_parts.c  opens and closes its files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_SERIES_IMPL_H
#define DNN_IMPORT_SERIES_IMPL_H

#include "import/import_impl.h"

#include <pthread.h>

struct part {
    struct dnn_source *source; /* NULL: not open                                 */
    int64_t first;             /* index of its first sample                      */
    int users;                 /* number of threads reading it                   */
    uint64_t used;             /* clock of the last use                          */
};

struct series {
    struct dnn_source base;
    struct dnn_import how;
    bool target, one_each, given; /* given: the parts are open sources            */
    struct dnn_import_list list;
    struct part *part; /* nparts + 1 elements; NULL if one_each */
    struct part
        boxed; /* one_each: the file that boxes are read from; first: its number */
    int64_t nparts;
    int nfrom; /* columns of the files; a class may follow               */
    struct dnn_arena *arena;
    pthread_mutex_t lock; /* of source, users and used of parts */
    int nopen;
    uint64_t clock;
};

/* The path of part p, for messages. */
const char *dnn_series_path(const struct series *s, int64_t p);
int dnn_series_open_file(const struct series *s, int64_t p, struct dnn_source **out,
                         struct dnn_err *err);
/* The part that sample i is in. */
int64_t dnn_series_find(const struct series *s, int64_t i);
/* Acquire an open part, of several samples, until dnn_series_release(). */
int dnn_series_acquire(struct series *s, int64_t p, struct dnn_err *err);
void dnn_series_release(struct series *s, int64_t p);

/* Files of one sample, which were not inspected when the series was opened: open one,
 * and check a column of it. */
int dnn_series_open_one(const struct series *s, int64_t p, struct dnn_source **out,
                        struct dnn_err *err);
int dnn_series_check(const struct series *s, int64_t p, int k, enum dnn_dtype type,
                     const struct dnn_shape *shape, struct dnn_err *err);

/* Acquire the source of part p, which stays open, to read boxes of it; *number: of
 * sample i in it. */
int dnn_series_borrow(struct series *s, int64_t p, int64_t i,
                      struct dnn_source **source, int64_t *number, struct dnn_err *err);
void dnn_series_return(struct series *s, int64_t p, struct dnn_source *source);

#endif
