/* loss_impl.h - what a kind of loss must tell us, and what kinds share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_LOSS_LOSS_IMPL_H
#define DNN_LOSS_LOSS_IMPL_H

#include "loss/loss.h"

/* What the network's output is. */
enum loss_source {
    LOSS_AUTO, /* what the network ends in */
    LOSS_NONE,
    LOSS_SOFTMAX,
    LOSS_LOG_SOFTMAX,
    LOSS_SIGMOID
};

enum loss_per { LOSS_PER_SAMPLE, LOSS_PER_BATCH };

struct loss_kind;

/* One term as it was read: all kinds' numbers. */
struct loss_term {
    const struct loss_kind *kind;
    double factor;
    const char *output;     /* NULL: not said */
    int source;             /* enum loss_source */
    struct dnn_list weight; /* of classes; none: 1 each */
    bool ignores;
    int32_t ignore;
    double smoothing, eps, alpha, beta, gamma, delta;
    int per; /* enum loss_per */
};

/* A term about to be appended. */
struct loss_job {
    const struct loss_term *term;
    struct dnn_prog *prog;
    const char *output;    /* its name                                      */
    int y;                 /* the output                                    */
    int x;                 /* before the function the network ends in       */
    enum loss_source ends; /* that function; LOSS_NONE: there is none       */
    int target;
    bool labels;           /* the target is class numbers                   */
    int64_t batch, total;  /* samples here, and of the whole batch          */
    bool alone;            /* no other parts are asked                      */
    int64_t rows, classes; /* of a sample: places, and the last axis        */
    int of;                /* result: what the term is computed of          */
};

struct loss_kind {
    const char *name;
    const char *also[3]; /* other names */
    const char *help;
    const struct dnn_field *fields; /* of struct loss_term, with the common ones */
    bool labels;                    /* would like class numbers                  */
    const char *const *metrics;     /* NULL-ended                                */
    /* Append the ops; returns the scalar, or an error. */
    int (*append)(struct loss_job *job, struct dnn_err *err);
};

/* ---- rows of tables ---- */

extern const struct dnn_choice dnn_loss_sources[];

#define LOSS_AT(f) offsetof(struct loss_term, f)
#define LOSS_REAL(key, field, def, min, max, help)                                     \
    {key, DNN_F_REAL, LOSS_AT(field), def, min, max, NULL, help, NULL}
#define LOSS_COMMON                                                                    \
    {"function", DNN_F_IGNORED, 0, "null", 0, 0, NULL, "which loss", NULL},            \
        LOSS_REAL("factor", factor, "1", 0, INFINITY, "of this term in the sum"),      \
    {                                                                                  \
        "output", DNN_F_TEXT, LOSS_AT(output), "null", 0, 0, NULL,                     \
            "name of the network's output", NULL                                       \
    }
#define LOSS_SOURCE                                                                    \
    {"source",                                                                         \
     DNN_F_ENUM,                                                                       \
     LOSS_AT(source),                                                                  \
     "auto",                                                                           \
     0,                                                                                \
     0,                                                                                \
     dnn_loss_sources,                                                                 \
     "what the output is; if the network does not end in it, it is applied; none: "    \
     "nothing is; auto: what the network ends in",                                     \
     NULL}
#define LOSS_WEIGHT                                                                    \
    {"weight",                                                                         \
     DNN_F_REALS,                                                                      \
     LOSS_AT(weight),                                                                  \
     "[]",                                                                             \
     0,                                                                                \
     INFINITY,                                                                         \
     NULL,                                                                             \
     "one number for each class",                                                      \
     NULL}
#define LOSS_IGNORE                                                                    \
    {"ignore_index",                                                                   \
     DNN_F_OTHER,                                                                      \
     0,                                                                                \
     "null",                                                                           \
     0,                                                                                \
     0,                                                                                \
     NULL,                                                                             \
     "a class number whose places do not count",                                       \
     NULL}
#define LOSS_END {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL}

/* ---- for append() ---- */

/* The function that makes probabilities, and in job->of what goes into it.  LOSS_AUTO:
 * the network ends in none and nobody said. */
int dnn_loss_find_source(struct loss_job *job, enum loss_source *out,
                         struct dnn_err *err);
/* The constant with a term's weights, DNN_NONE if it has none. */
int dnn_loss_weights(const struct loss_job *job, int *out, struct dnn_err *err);
/* Whether there is something to ignore; an error if the target has no classes. */
int dnn_loss_ignores(const struct loss_job *job, bool *out, struct dnn_err *err);
/* What labels weigh, of all parts of the batch; weights may be DNN_NONE. */
int dnn_loss_weigh(const struct loss_job *job, int weights);

/* point.c: the mean of a pointwise loss over all elements that count; what says which,
 * its scale and what it ignores are set here.  Returns the term, or an error. */
int dnn_loss_mean(struct loss_job *job, struct dnn_op_loss what, struct dnn_err *err);
/* s added over all parts of the batch. */
int dnn_loss_exchange(const struct loss_job *job, int s);
/* "output 'x': the loss dice ..." */
int dnn_loss_fail(const struct loss_job *job, struct dnn_err *err, const char *fmt, ...)
    DNN_PRINTF(3, 4);

#endif
