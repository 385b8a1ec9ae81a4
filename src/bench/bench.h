/* bench.h - what dnn-bench can tell about this machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BENCH_BENCH_H
#define DNN_BENCH_BENCH_H

#include "base/err.h"

#include <stdbool.h>
#include <stdio.h>

struct dnn_bench_topo {
    int bind;     /* enum dnn_topo_policy                    */
    long threads; /* per rank; 0: as the environment says    */
    bool json;    /* one object instead of the table         */
};

/* Collective: opens and closes the communicator itself.  Bind all ranks and
 * print on rank 0, to where, what each got. */
int dnn_bench_topo(const struct dnn_bench_topo *cfg, FILE *where, struct dnn_err *err);

#endif
