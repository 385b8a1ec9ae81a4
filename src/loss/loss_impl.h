/* loss_impl.h - a kind of loss, and functions shared by the kinds.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_LOSS_LOSS_IMPL_H
#define DNN_LOSS_LOSS_IMPL_H

#include "loss/loss.h"

/* The meaning of the network's output. */
enum loss_source {
    LOSS_AUTO, /* what the network ends in */
    LOSS_NONE,
    LOSS_SOFTMAX,
    LOSS_LOG_SOFTMAX,
    LOSS_SIGMOID
};

enum loss_per { LOSS_PER_SAMPLE, LOSS_PER_BATCH };

struct loss_kind;

/* One term as read, with the parameters of all kinds. */
struct loss_term {
    const struct loss_kind *kind;
    double factor;
    const char *function;   /* as written; kind is what it means */
    const char *output;     /* NULL: not given */
    int source;             /* enum loss_source */
    struct dnn_list weight; /* of classes; none: 1 each */
    bool ignores;
    int32_t ignore;
    double smoothing, eps, alpha, beta, gamma, power;
    double delta; /* also margin, and the eps of mape and poisson_nll */
    bool log_input, swap;
    int per; /* enum loss_per */
};

/* A term being appended. */
struct loss_ctx {
    const struct loss_term *term;
    struct dnn_prog *prog;
    const char *output;    /* its name                                    */
    int y;                 /* the output                                  */
    int x;                 /* input of the activation the network ends in */
    enum loss_source ends; /* that activation; LOSS_NONE: there is none   */
    int target;
    bool labels;           /* the target is class numbers               */
    int64_t batch, total;  /* samples here, and of the global batch     */
    int64_t rows, classes; /* of a sample: positions, and the last axis */
    int of;                /* result: value the term is computed from   */
};

enum { LOSS_ALIASES = 6 };

struct loss_kind {
    const char *name;
    const char *alias[LOSS_ALIASES]; /* other names, then NULL */
    const char *help;
    const struct dnn_field *fields; /* of struct loss_term, with the common ones */
    bool labels;                    /* prefers class numbers as targets          */
    const char *const *metrics;     /* the default ones, NULL-ended              */
    /* Append the ops; returns the scalar, or an error. */
    int (*append)(struct loss_ctx *ctx, struct dnn_err *err);
};

/* ---- rows of tables ---- */

extern const struct dnn_choice dnn_loss_sources[];

#define LOSS_AT(f) offsetof(struct loss_term, f)
#define LOSS_REAL(key, field, def, min, max, help)                                     \
    {key, DNN_F_REAL, LOSS_AT(field), def, min, max, NULL, help, NULL}
#define LOSS_BOOL(key, field, def, help)                                               \
    {key, DNN_F_BOOL, LOSS_AT(field), def, 0, 0, NULL, help, NULL}
#define LOSS_MARGIN(def) LOSS_REAL("margin", delta, def, 0, 0, "the margin")
#define LOSS_COMMON                                                                    \
    {"function", DNN_F_TEXT, LOSS_AT(function),  "null", 0,                            \
     0,          NULL,       "name of the loss", NULL},                                \
        LOSS_REAL("factor", factor, "1", 0, INFINITY,                                  \
                  "weight of this loss in the sum"),                                   \
    {                                                                                  \
        "output", DNN_F_TEXT, LOSS_AT(output), "null", 0, 0, NULL,                     \
            "name of the network's output it is for", NULL                             \
    }
#define LOSS_SOURCE                                                                    \
    {"source",                                                                         \
     DNN_F_ENUM,                                                                       \
     LOSS_AT(source),                                                                  \
     "auto",                                                                           \
     0,                                                                                \
     0,                                                                                \
     dnn_loss_sources,                                                                 \
     "activation of the output; applied if the network does not end in it; none: the " \
     "outputs are used as they are; auto: what the network ends in",                   \
     NULL}
#define LOSS_WEIGHT                                                                    \
    {"weight", DNN_F_REALS, LOSS_AT(weight),        "[]", 0,                           \
     INFINITY, NULL,        "weight of each class", NULL}
#define LOSS_IGNORE                                                                    \
    {"ignore_index",                                                                   \
     DNN_F_OTHER,                                                                      \
     0,                                                                                \
     "null",                                                                           \
     0,                                                                                \
     0,                                                                                \
     NULL,                                                                             \
     "class number to ignore in the targets",                                          \
     NULL}
#define LOSS_END {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL}

/* ---- for append() ---- */

/* The activation that gives probabilities; sets ctx->of to its input.  LOSS_AUTO: the
 * network does not end in one, and "source" is not set. */
int dnn_loss_find_source(struct loss_ctx *ctx, enum loss_source *out,
                         struct dnn_err *err);
/* The constant with a term's weights, DNN_NONE if it has none. */
int dnn_loss_weights(const struct loss_ctx *ctx, int *out, struct dnn_err *err);
/* Whether there is an ignore_index; an error if the targets are not class numbers. */
int dnn_loss_ignores(const struct loss_ctx *ctx, bool *out, struct dnn_err *err);
/* Sum of the labels' weights over the global batch; weights may be DNN_NONE. */
int dnn_loss_weigh(const struct loss_ctx *ctx, int weights);

/* point.c: the mean of an element-wise loss over all elements that are not ignored (KL:
 * over rows); sets scale and ignore_index.  Returns the term, or an error. */
int dnn_loss_mean(struct loss_ctx *ctx, struct dnn_op_loss what, struct dnn_err *err);
/* s summed over all micro-batches of the batch. */
int dnn_loss_exchange(const struct loss_ctx *ctx, int s);
/* "output 'x': loss dice: ..." */
int dnn_loss_fail(const struct loss_ctx *ctx, struct dnn_err *err, const char *fmt, ...)
    DNN_PRINTF(3, 4);

#endif
