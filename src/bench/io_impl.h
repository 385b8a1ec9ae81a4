/* io_impl.h - datasets for benchmarks, and the results of dnn-bench io.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BENCH_IO_IMPL_H
#define DNN_BENCH_IO_IMPL_H

#include "base/shape.h"
#include "bench/bench.h"
#include "bench/proc_impl.h"

/* ---- io.c ---- */

enum { DNN_IO_VOLUMES, DNN_IO_IMAGES, DNN_IO_SETS };
enum { DNN_IO_NPY, DNN_IO_PNG, DNN_IO_PEERS };

/* Results for one dataset. */
struct dnn_io_set {
    const char *name;
    char *path; /* owned */
    struct dnn_shape shape;
    int64_t count, batch;
    double sample, bytes; /* stored bytes: of a sample, of all */
    double made;          /* bytes of a sample in a batch      */
    double memory;        /* bytes of the feed                 */
    double compute;       /* seconds per batch                 */
    const char *why;      /* the source of this value          */
    struct dnn_values utilisation;
    struct dnn_values feed, plain;         /* stored bytes per second       */
    struct dnn_values rate;                /* samples per second, converted */
    struct dnn_values torch[DNN_IO_PEERS]; /* samples per second            */
};

/* ---- io_make.c: datasets to read and to train with ---- */

/* Local.  Make a dataset at path with splits train and, if tests > 0, test: volumes of
 * f32 with masks, or images of u8 with labels.  Replaces an existing dataset.  *bytes:
 * bytes of a sample.  npy: NULL, or a directory to which the same samples are written
 * as train_x.npy, train_y.npy... */
struct dnn_io_data {
    const char *path, *npy;
    bool volumes;
    int64_t extent, channels, classes, count, tests;
};
int dnn_io_make(const struct dnn_io_data *data, double *bytes, struct dnn_err *err);

/* ---- io_plain.c: plain read() ---- */

/* Local.  Read all files of a directory one after the other; returns their bytes and
 * the seconds. */
int dnn_io_read_plain(const char *dir, double *bytes, double *seconds,
                      struct dnn_err *err);
/* Local.  Drop the files from the page cache; *cached: the fraction that is still in
 * it. */
int dnn_io_drop_cache(const char *dir, double *cached, struct dnn_err *err);

/* ---- io_print.c ---- */

struct dnn_io_all {
    struct dnn_io_set set[DNN_IO_SETS];
    struct dnn_values opened; /* seconds to open a million samples             */
    double cached; /* cold: largest share left in the page cache; -1: warm     */
    int threads;
    struct dnn_torch_info info;
};
void dnn_io_print(const struct dnn_bench_io *cfg, const struct dnn_io_all *all,
                  FILE *where);

#endif
