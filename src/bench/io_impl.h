/* io_impl.h - what the files of dnn-bench io share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BENCH_IO_IMPL_H
#define DNN_BENCH_IO_IMPL_H

#include "base/shape.h"
#include "bench/bench.h"

/* ---- io.c ---- */

enum { DNN_IO_VOLUMES, DNN_IO_IMAGES, DNN_IO_SETS };
enum { DNN_IO_NPY, DNN_IO_PNG, DNN_IO_RIVALS };

/* What was measured of one dataset. */
struct dnn_io_set {
    const char *name;
    char *path; /* owned */
    struct dnn_shape shape;
    int64_t count, batch;
    double sample, bytes; /* as stored: of one, of all                             */
    double made;          /* bytes of one in a batch                               */
    double memory;        /* the feed's                                            */
    double compute;       /* seconds of a batch                                    */
    const char *why;      /* they are so many                                      */
    double utilisation;
    double feed, plain;          /* bytes per second, as stored                    */
    double rate;                 /* samples per second, converted                  */
    double rival[DNN_IO_RIVALS]; /* samples per second; 0: not measured            */
};

/* ---- io_make.c: datasets to be read ---- */

/* Local.  Volumes with masks, or images with labels, under set->path; fill in shape
 * and sizes.  npy: the images once more, as NumPy's file; NULL: not wanted. */
int dnn_io_make_volumes(struct dnn_io_set *set, long extent, struct dnn_err *err);
int dnn_io_make_images(struct dnn_io_set *set, long pixels, const char *npy,
                       struct dnn_err *err);
/* Local.  Many small samples. */
int dnn_io_make_small(const char *path, int64_t count, struct dnn_err *err);

/* Local.  The head of NumPy's file of numbers ("|u1", "<f4") that come next. */
struct dnn_file;
int dnn_io_begin_npy(struct dnn_file *file, const char *type,
                     const struct dnn_shape *shape, struct dnn_err *err);

/* ---- io_plain.c: what the system can do at best ---- */

/* Local.  Read all files of a directory one after the other: bytes and seconds. */
int dnn_io_read_plain(const char *dir, double *bytes, double *seconds,
                      struct dnn_err *err);
/* Local.  Have the system forget what it keeps of them; the share it still has. */
int dnn_io_forget(const char *dir, double *left, struct dnn_err *err);

/* ---- io_print.c ---- */

struct dnn_io_all {
    struct dnn_io_set set[DNN_IO_SETS];
    double opened; /* seconds, a million samples; 0: not measured         */
    double left;   /* cold: the largest share that stayed in memory; -1: warm */
    int threads;
};
void dnn_io_print(const struct dnn_bench_io *cfg, const struct dnn_io_all *all,
                  FILE *where);

#endif
