/* model.h - a network made ready to run: from its graph to steps on a device.
 *
 * lower, fuse, loss, gradients, updates, plan, kernels: each is somebody else's
 * work; here is the order in which it is done, and the values that matter after.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_RUN_MODEL_H
#define DNN_RUN_MODEL_H

#include "base/choice.h"
#include "graph/graph.h"
#include "loss/loss.h"
#include "optim/optim.h"
#include "run/exec.h"

/* The backend of a name; NULL: the fastest that is built. */
int dnn_model_backend(const char *name, const struct dnn_backend **out,
                      struct dnn_err *err);

/* The file in which measured choices of kernels are kept unless somebody says where:
 * in XDG_CACHE_HOME or ~/.cache, one for each kind of CPU and number of threads.  Its
 * directory is made.  The caller's, dnn_free(); NULL if there is no such place. */
char *dnn_model_cache(int threads);

/* What to make of a network.  All zero but batch and backend is a good start:
 * inference in f32.  Training needs loss and optim, too. */
struct dnn_model_opts {
    int64_t batch;
    int64_t total; /* samples of the whole batch, of which these are a part; 0: batch.
                      The loss is a part of the whole batch's then                  */
    bool training;
    bool with_loss; /* inference: compute the loss, too                              */
    bool whole_batch; /* judge: with what other parts of the batch have to say */
    enum dnn_dtype dtype;
    const struct dnn_loss *loss; /* NULL: mean squared error; must outlive it        */
    const int *target_is; /* enum dnn_loss_target of each output; NULL: as the loss
                             likes it; needed while the model is made                */
    struct dnn_optim optim;
    bool no_fusion; /* do not fuse                                                  */
    bool dry_run;   /* only look: nothing is allocated, nothing can be run          */
    size_t limit;   /* bytes it may take; 0: what the system has                    */
    enum dnn_recompute recompute; /* training: compute again instead of keeping; AUTO
                                     only if it would not fit otherwise           */
    const struct dnn_backend *backend;
    struct dnn_device device;
    /* Another model of the same network, started: use its weights, slots and states,
     * its device, and unless apart its gradients and temps (see dnn_exec_share()).  For
     * other batch sizes, for inference between training steps.  Must outlive the new
     * one. */
    struct dnn_model *owner;
    bool separate;
    bool concurrent; /* apart: it may run at the same time, on a device of its own */
    /* apart: one with the same owner that never runs at the same time: use its device
     * and temps.  NULL: none. */
    struct dnn_model *partner;
};

/* Fields are for reading; values are numbers in prog. */
struct dnn_model {
    struct dnn_model_opts opts;
    const struct dnn_graph *graph;
    struct dnn_prog *prog;     /* owned, as all below                                */
    struct dnn_prog *original; /* it before anything was to be recomputed, or NULL   */
    struct dnn_recomputed recompute;
    struct dnn_plan *plan;
    struct dnn_backend backend; /* as asked for, or one that only pretends       */
    struct dnn_dev *dev;
    struct dnn_exec *exec;
    int ninputs, noutputs, nlosses;
    int *input;  /* one per input of the network                          */
    int *output; /* one per output; training: what its loss is computed of */
    int *target; /* with a loss: what each output should be, DNN_NONE: any  */
    int *loss;   /* with a loss: scalars whose sum is made small, the network's
                    own first, then penalties                             */
    int nterms;  /* of these the first so many are the loss itself        */
    int nshares; /* of these the first so many are of our samples only: what other
                    parts of the batch have is added; the rest is of weights */
    int update;  /* training: the first op of the optimizer; before it all gradients
                    are computed                                          */
    struct dnn_now now;
};

/* Local.  Make the program, plan it and ask the device about every step.  Refused
 * with numbers, DNN_ENOMEM, if it would take more than the limit.  graph and backend
 * must outlive it.  The caller owns *out: dnn_model_free(). */
int dnn_model_make(const struct dnn_graph *graph, const struct dnn_model_opts *opts,
                   struct dnn_model **out, struct dnn_err *err);
/* Local.  Take the memory and prepare every step; a dry model only prepares. */
int dnn_model_start(struct dnn_model *model, struct dnn_err *err);
void dnn_model_free(struct dnn_model *model); /* NULL is fine */

/* Bytes it takes when started: a promise made before. */
struct dnn_exec_bytes dnn_model_bytes(const struct dnn_model *model);

/* Every step with the kernel that does it, then the memory, block by block, and the
 * amount of work.  Once started, dry or not. */
void dnn_model_print(const struct dnn_model *model, FILE *where);

/* Local.  Weights by their initializers, inputs normal, targets normal or labels at
 * random: all a function of the seed. */
int dnn_model_fill(struct dnn_model *model, uint64_t seed, struct dnn_err *err);

/* Collective if there are several ranks.  The whole program once: a training step
 * with this learning rate, or inference, which ignores it.  seconds, unless NULL,
 * gets the time of each op added to it. */
int dnn_model_run(struct dnn_model *model, double rate, double *seconds,
                  struct dnn_err *err);

/* Local.  What was made small in the last step: the loss and its penalties. */
int dnn_model_loss(struct dnn_model *model, double *out, struct dnn_err *err);

#endif
