/* model.h - a network ready to run: from its graph to kernels on a device.
 *
 * Runs all passes in order: lower the graph to ops, add losses, fuse, add gradients and
 * updates, plan memory, select kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_ENGINE_MODEL_H
#define DNN_ENGINE_MODEL_H

#include "base/choice.h"
#include "graph/graph.h"
#include "loss/loss.h"
#include "optim/optim.h"
#include "engine/exec.h"

/* Find a backend by name; NULL: the fastest available. */
int dnn_model_backend(const char *name, const struct dnn_backend **out,
                      struct dnn_err *err);

/* Default path of the autotuning cache: in XDG_CACHE_HOME or ~/.cache, one file per CPU
 * model and number of threads.  Its directory is created.  The caller owns the result:
 * dnn_free(); NULL: neither exists. */
char *dnn_model_cache(int threads);

/* What a model is for. */
enum dnn_model_role {
    DNN_MODEL_INFER,    /* the outputs                                                */
    DNN_MODEL_EVALUATE, /* the outputs and the loss, with batch statistics of the loss
                         * over the whole batch                                       */
    DNN_MODEL_TRAIN     /* loss, gradients and updates                                */
};

/* "training", "evaluation", "inference". */
const char *dnn_model_role_name(enum dnn_model_role role);

/* What a model has of its own, beside the weights, slots and states of its owner. */
enum dnn_model_memory {
    DNN_MODEL_SHARED,   /* only what does not fit into the owner's memory: the two never
                         * run at the same time                                       */
    DNN_MODEL_SEPARATE, /* gradients and temporaries: they run in turns, op by op     */
    DNN_MODEL_CONCURRENT /* also a device: they run at the same time */
};

/* Options.  batch and backend are required; with all others zero: inference in f32.
 * Training requires loss and optim, too. */
struct dnn_model_opts {
    int64_t batch;
    int64_t total; /* samples of the whole batch, of which this is a micro-batch; 0:
                      batch.  The loss is normalized by total */
    enum dnn_model_role role;
    enum dnn_dtype dtype;
    const struct dnn_loss *loss; /* NULL: mean squared error; must outlive the model */
    const int *target_is; /* enum dnn_loss_target of each output; NULL: the default of
                             the loss; only read by dnn_model_make()                 */
    struct dnn_optim optim;
    bool no_fusion;   /* do not fuse ops                                              */
    bool dry_run;     /* plan only: nothing is allocated, and it cannot be run        */
    size_t limit;     /* memory limit in bytes; 0: available memory                   */
    size_t allocated; /* of the limit: bytes of other models, which may be shared   */
    enum dnn_recompute recompute; /* training: recompute activations instead of storing
                                     them; AUTO: only if they would not fit       */
    const struct dnn_backend *backend;
    struct dnn_device device;
    /* A started model of the same network that owns the weights, or NULL.  Its weights,
     * slots and states are shared, and more (see dnn_exec_share()).  Used for other
     * batch sizes and for inference between training steps.  Must outlive the new
     * one. */
    struct dnn_model *owner;
    enum dnn_model_memory memory;
    /* Not DNN_MODEL_SHARED: a model with the same owner that never runs at the same
     * time, whose device and temporaries are shared; NULL: none. */
    struct dnn_model *partner;
};

/* Fields are read-only; values are given by their index in prog. */
struct dnn_model {
    struct dnn_model_opts opts;
    const struct dnn_graph *graph;
    struct dnn_prog *prog;     /* owned, as all below                       */
    struct dnn_prog *original; /* before recomputation was added, or NULL            */
    struct dnn_recomputed recompute;
    struct dnn_plan *plan;
    struct dnn_backend backend; /* opts.backend, or its dry run variant       */
    struct dnn_dev *dev;
    struct dnn_exec *exec;
    int ninputs, noutputs, nlosses;
    int *input;         /* one per input of the network           */
    int *output;        /* one per output; training: the input of its loss */
    int *target;        /* unless INFER: target of each output, DNN_NONE: none */
    int *loss;          /* unless INFER: scalars whose sum is minimised: the loss terms,
                           then activity penalties, then weight penalties */
    int nterms;         /* number of loss terms, the first in loss[] */
    int nsample_losses; /* number of loss terms and activity penalties, which are
                            of this micro-batch and summed over the batch */
    int update; /* training: the first op of the optimizer, after all gradients */
    struct dnn_now now;
};

/* Local.  Make the program, plan its memory and select kernels.  DNN_ENOMEM if
 * it needs more than the limit.  graph and backend must outlive it.  The caller owns
 * *out: dnn_model_free(). */
int dnn_model_make(const struct dnn_graph *graph, const struct dnn_model_opts *opts,
                   struct dnn_model **out, struct dnn_err *err);
/* Local.  Allocate memory and prepare all kernels; a dry run only prepares. */
int dnn_model_start(struct dnn_model *model, struct dnn_err *err);
void dnn_model_free(struct dnn_model *model); /* NULL is fine */

/* Local.  Write the network with its weights to dir: model.dnn, the model file, with
 * info; and for Keras 3 model.json, model.weights.h5 and model.keras, which contains
 * both.  network: JSON of the network, written if Keras has no equivalent.  scaling: of
 * the inputs, JSON, or NULL.  A file that cannot be written because Keras has no such
 * layer, or because a library is missing, is logged as a warning. */
struct dnn_package_info;
int dnn_model_save(struct dnn_model *model, const char *dir, const char *network,
                   const char *scaling, const struct dnn_package_info *info,
                   struct dnn_err *err);

/* Bytes allocated by dnn_model_start(); may be called before it. */
struct dnn_exec_bytes dnn_model_bytes(const struct dnn_model *model);

/* Print every op with its kernel; memory by block and FLOP.  Only after
 * dnn_model_start(); a dry run is allowed. */
void dnn_model_print_steps(const struct dnn_model *model, FILE *where);
void dnn_model_print_memory(const struct dnn_model *model, FILE *where);

/* Local.  Initialize the weights; fill inputs with normal random numbers, targets with
 * normal random numbers or random labels.  All depend only on the seed. */
int dnn_model_fill(struct dnn_model *model, uint64_t seed, struct dnn_err *err);

/* Collective if there are several ranks.  Run the program once: a training step with
 * this learning rate, or inference, which ignores it.  The time of each op in seconds
 * is added to seconds[], unless NULL. */
int dnn_model_run(struct dnn_model *model, double rate, double *seconds,
                  struct dnn_err *err);

#endif
