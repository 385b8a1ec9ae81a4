/* infer_impl.h - declarations shared by the files of dnn-bench infer.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BENCH_INFER_IMPL_H
#define DNN_BENCH_INFER_IMPL_H

#include "bench/bench_impl.h"

/* PyTorch in each memory format, and ONNX Runtime; each is a process. */
enum { DNN_INFER_ONNX = DNN_TORCH_FORMATS, DNN_INFER_PEERS };
/* In addition torch.compile in the faster format. */
enum { DNN_INFER_VARIANTS = DNN_INFER_PEERS + 1 };

struct dnn_infer_variant {
    int process;
    const char *format, *mode; /* of PyTorch; mode is that of the script */
    double error;              /* largest difference, relative to the largest output */
};

struct dnn_infer {
    const struct dnn_bench_infer *cfg;
    struct dnn_net net; /* owned, as all below */
    struct dnn_model *model;
    int threads;
    double flops;
    char *dir; /* of the files for the peers, temporary; NULL: none */
    struct dnn_proc *peer[DNN_INFER_PEERS]; /* NULL: not started */
    struct dnn_torch_info info;
    char onnx[32]; /* version of ONNX Runtime */
    int nvariants;
    struct dnn_infer_variant variant[DNN_INFER_VARIANTS];
    struct dnn_values ours, times[DNN_INFER_VARIANTS]; /* medians of turns */
};

/* ---- infer_peer.c ---- */

/* Start the peers with the same network, weights and inputs, compile, and compare their
 * outputs with ours; DNN_EDEVICE: they differ. */
int dnn_infer_start(struct dnn_infer *w, struct dnn_err *err);
int dnn_infer_ask(struct dnn_infer *w, const struct dnn_infer_variant *v,
                  double *seconds, struct dnn_err *err);
int dnn_infer_stop(struct dnn_infer *w, int rc, struct dnn_err *err);

/* ---- infer_print.c ---- */

void dnn_infer_print(const struct dnn_infer *w, FILE *where);
void dnn_infer_print_json(const struct dnn_infer *w, FILE *where);

#endif
