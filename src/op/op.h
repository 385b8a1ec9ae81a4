/* op.h - kinds of ops, their passes and attributes.
 *
 * Activations are (batch, space..., channels); weights have the layout of Keras. "x
 * -> y" below names the forward operands in order; an operand in brackets may be
 * absent (DNN_NONE). The operands of the backward passes are in the table in ops.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OP_OP_H
#define DNN_OP_OP_H

#include "base/shape.h"
#include "base/tensor.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    DNN_NONE = -1,       /* no value: an optional operand that is absent */
    DNN_MAX_SPATIAL = 3, /* depth, height, width                         */
    DNN_MAX_OUT = 3,     /* outputs of one op                            */
    DNN_TYPED_IN = 6     /* inputs whose type is in the table of ops     */
};

enum dnn_op_kind {
    DNN_OP_MATMUL,    /* x(..., k) w(k, n) [b(n)] -> y(..., n)                   */
    DNN_OP_BIAS,      /* x(..., c) b(c) -> y                                     */
    DNN_OP_CONV,      /* x w(k..., c / groups, m) [b(m)] -> y; or w(k..., c, m / c)
                         if groups == c, which is Keras's depthwise kernel       */
    DNN_OP_DECONV,    /* transposed: x(..., c) w(k..., m, c) [b(m)] -> y         */
    DNN_OP_POOL,      /* x -> y [index], the index for max in training only      */
    DNN_OP_UPSAMPLE,  /* x -> y, integer factors                                 */
    DNN_OP_PAD,       /* x -> y; zeros around, negative amounts crop             */
    DNN_OP_UNARY,     /* x -> y [mask], element by element                       */
    DNN_OP_PRELU,     /* x a -> y; a broadcasts, e.g. (1, 1, c) for shared axes  */
    DNN_OP_SOFTMAX,   /* x -> y along one axis, or its logarithm                 */
    DNN_OP_COMBINE,   /* a b ... -> y; shapes broadcast, aligned at the last axis */
    DNN_OP_CONCAT,    /* a b ... -> y along one axis                             */
    DNN_OP_RESHAPE,   /* x -> y, the same bytes (a view)                         */
    DNN_OP_TRANSPOSE, /* x -> y; axis i of y is axis perm[i] of x                */
    DNN_OP_REDUCE,    /* x -> y over a set of axes                               */
    DNN_OP_BN_STATS,  /* x -> sums, f64: c sums, c sums of squares, 1 count      */
    DNN_OP_EXCHANGE,  /* s -> t: s added over all ranks                          */
    DNN_OP_BN_UPDATE, /* sums mean var -> : updates the two states, in place     */
    DNN_OP_BN_APPLY,  /* x sums [gamma] [beta] -> y, with the batch's statistics */
    DNN_OP_BN_INFER,  /* x mean var [gamma] [beta] -> y, with the moving ones    */
    DNN_OP_GROUPNORM, /* x [gamma] [beta] -> y [stats]: layer, group, instance   */
    DNN_OP_NOISE,     /* x -> y, dropout and noise; for training only            */
    DNN_OP_SCALE,     /* x a [b] -> y = x a + b; constants that broadcast        */
    DNN_OP_ACTIVITY,  /* x -> y loss: y is x, loss its penalty (a scalar)        */
    DNN_OP_MSE,       /* x t -> loss: the sum of (x - t)^2, scaled; f64 scalar   */
    DNN_OP_XENT,      /* x(..., c) t [w(c)] [sums] -> loss: the sum of -w t log p, p =
                         softmax(x), scaled                                       */
    DNN_OP_POINT,  /* x(..., c) t [w(c)] [sums] -> loss: the sum of w f(x, t), scaled */
    DNN_OP_MARGIN, /* x(..., c) t [w(c)] [sums] -> loss: the sum of f(row of x, its
                      target), scaled                                                 */
    DNN_OP_WEIGH,  /* t [w(c)] -> sums, f64: the sum of the weights of all labels
                      that are not ignored, and the number of samples                 */
    DNN_OP_OVERLAP, /* x(n, ..., c) t -> sums(n, c, 3), f64: of p t, p and t, p = p(x);
                       or (1, c + 1, 3), the last row the number of samples     */
    DNN_OP_RATIO,   /* s sums [w(c)] -> loss: 1 - overlap of p and t; s: sums of this
                       micro-batch, sums: those of the global batch             */
    DNN_OP_LOVASZ,  /* x(n, ..., c) t -> loss slope: Lovasz's extension of 1 - IoU of
                       each sample, and its slope in p, which has x's shape     */
    DNN_OP_FOLD,    /* w [b] mean var [gamma] [beta] -> v c: weights and bias of a
                       convolution that includes the batch norm after it        */
    DNN_OP_PENALTY, /* w -> loss: a weight's regularizer; f64 scalar            */
    DNN_OP_UPDATE,  /* w g [m] [v] [s] -> : one step of an optimizer, in place  */
    DNN_OP_KINDS
};

enum dnn_pass {
    DNN_FWD,
    DNN_BWD_DATA,    /* the gradient of an activation    */
    DNN_BWD_WEIGHTS, /* that of the weights              */
    DNN_BWD_STATS,   /* sums that both need (batch norm) */
    DNN_PASSES
};

/* The constraint of a weight, applied after each update. */
enum dnn_constraint_kind {
    DNN_CONSTRAIN_NONE,
    DNN_MAX_NORM, /* norms over axes at most max      */
    DNN_NON_NEG,
    DNN_UNIT_NORM,   /* norms over axes are 1            */
    DNN_MIN_MAX_NORM /* between min and max, with a rate */
};

struct dnn_constraint {
    enum dnn_constraint_kind kind;
    double min, max, rate;
    unsigned axes; /* bit i: axis i of the weight */
};

/* ---- attributes, one struct per family ---- */

/* CONV, DECONV, POOL: arrays have nspatial elements, first axis first.  before
 * and after are the padding.  For DECONV they are those of the convolution it
 * transposes: y = (x - 1) stride + dilation (kernel - 1) + 1 - before - after;
 * there after may be negative (the output is larger than what the inputs cover). */
struct dnn_op_window {
    int nspatial; /* 1, 2, 3 */
    int64_t kernel[DNN_MAX_SPATIAL];
    int64_t stride[DNN_MAX_SPATIAL];
    int64_t dilation[DNN_MAX_SPATIAL]; /* POOL: 1 */
    int64_t before[DNN_MAX_SPATIAL], after[DNN_MAX_SPATIAL];
    int64_t groups; /* CONV; else 1 */
};

enum dnn_pool { DNN_POOL_MAX, DNN_POOL_AVERAGE }; /* padding is not averaged */

struct dnn_op_pool {
    struct dnn_op_window win; /* first: shared with CONV */
    enum dnn_pool fn;
    bool index; /* also output the position of the maximum in its window: u8, u16 or
                   i32 by the window's size; set by dnn_prog_op() in training */
};

enum dnn_upsample { DNN_UP_NEAREST, DNN_UP_LINEAR }; /* half-pixel centres */

struct dnn_op_upsample {
    int nspatial;
    int64_t factor[DNN_MAX_SPATIAL];
    enum dnn_upsample fn;
};

struct dnn_op_pad {
    int64_t before[DNN_MAX_DIMS], after[DNN_MAX_DIMS]; /* every axis of x */
};

enum dnn_unary {
    DNN_RELU, /* x < threshold: alpha (x - threshold); at most max_value */
    DNN_ELU,  /* x < 0: alpha (exp(x) - 1)                               */
    DNN_SELU,
    DNN_GELU,      /* x Phi(x)                                                */
    DNN_GELU_TANH, /* the approximation with tanh                             */
    DNN_SIGMOID,
    DNN_TANH,
    DNN_SOFTPLUS,
    DNN_SOFTSIGN,
    DNN_HARD_SIGMOID, /* min(1, max(0, alpha x + 1/2)): 0.2 Keras 2, 1/6 Keras 3 */
    DNN_HARD_SWISH,   /* x min(1, max(0, x / 6 + 1/2))                           */
    DNN_SWISH,        /* x sigmoid(x), also called silu                          */
    DNN_MISH,         /* x tanh(softplus(x))                                     */
    DNN_LOG_SIGMOID,
    DNN_EXP,
    DNN_LOG,
    DNN_SQUARE,
    DNN_SQRT,
    DNN_ABS,
    DNN_NEGATE,
    DNN_RECIPROCAL, /* 1 / x */
    DNN_UNARIES
};

struct dnn_op_unary {
    enum dnn_unary fn;
    double alpha;     /* RELU: negative slope; ELU; HARD_SIGMOID             */
    double max_value; /* RELU only, INFINITY if there is none                */
    double threshold; /* RELU only                                           */
    /* Also output a mask: one bit per element, 8 per byte, lowest first: whether x is
     * above 0.  The backward pass then takes the mask instead of x or y.  Only for RELU
     * with threshold 0 and without max_value. */
    bool mask;
};

struct dnn_op_softmax {
    int axis; /* 0 ... ndim - 1 */
    bool log;
};

enum dnn_combine {
    DNN_ADD,
    DNN_SUBTRACT, /* of two */
    DNN_MULTIPLY,
    DNN_MAXIMUM, /* of equal operands the first gets the gradient */
    DNN_MINIMUM,
    DNN_AVERAGE
};

struct dnn_op_combine {
    enum dnn_combine fn;
    int part;  /* backward: the operand whose gradient it is */
    int parts; /* number of operands; set by dnn_prog_op()   */
};

struct dnn_op_concat {
    int axis;
    int64_t start; /* backward: where this operand begins */
};

struct dnn_op_reshape {
    struct dnn_shape shape; /* of y, batch included */
};

struct dnn_op_transpose {
    int perm[DNN_MAX_DIMS];
};

enum dnn_reduce { DNN_REDUCE_SUM, DNN_REDUCE_MEAN, DNN_REDUCE_MAX };

struct dnn_op_reduce {
    enum dnn_reduce fn;
    unsigned axes; /* bit i: over axis i                                      */
    bool keepdims; /* reduced axes stay, with extent 1; else they are removed */
};

/* BN_STATS, BN_UPDATE, BN_APPLY, BN_INFER */
struct dnn_op_batchnorm {
    int axis; /* of the channels, 0 ... ndim - 1                    */
    double epsilon;
    double momentum; /* BN_UPDATE: new = momentum old + (1 - momentum) batch's */
    bool unbiased;   /* BN_UPDATE: count / (count - 1) times the variance      */
};

/* Statistics over the axes with a bit in axes, separately for each of groups equal
 * parts of the last one.  gamma and beta have the extents of the axes in params, in
 * order.  Layer norm over the last axis: axes = params = its bit, groups 1.  Group
 * norm: all axes but the batch, params the last; instance norm: groups = channels. */
struct dnn_op_groupnorm {
    unsigned axes, params;
    int64_t groups;
    double epsilon;
    bool save; /* also output stats(2, n): means and 1 / deviations, for the
                  backward passes; set by dnn_prog_op() in training */
};

#define DNN_STREAM_NOISE (UINT64_C(1) << 62)

enum dnn_noise {
    DNN_DROPOUT,          /* zero with probability rate, else x / (1 - rate) */
    DNN_GAUSSIAN_NOISE,   /* x + stddev n                                    */
    DNN_GAUSSIAN_DROPOUT, /* x (1 + sqrt(rate / (1 - rate)) n)               */
    DNN_ALPHA_DROPOUT     /* dropout that keeps mean and variance of SELU    */
};

struct dnn_op_noise {
    enum dnn_noise fn;
    double rate; /* or stddev; below 1 unless it is stddev */
    /* The random numbers are stream DNN_STREAM_NOISE + stream of the generator with the
     * run's seed xor this seed.  dnn_prog_op() replaces stream 0 by the next number,
     * from 1 in the order of the program. */
    uint64_t seed, stream;
    unsigned shared; /* bit i: the same random number along axis i (spatial dropout:
                        the spatial axes); bit 0: for all samples */
};

struct dnn_op_activity {
    double l1, l2; /* l1 sum |x| + l2 sum x^2 */
};

/* FOLD.  epsilon: that of the norm.  axis: the axis of w with the channels that the
 * norm scales: the last, or for a transposed convolution the last but one.  depthwise:
 * the last two together. */
struct dnn_op_fold {
    double epsilon;
    int axis;
    bool depthwise;
};

/* PENALTY: l1 sum |w| + l2 sum w^2. */
struct dnn_op_penalty {
    double l1, l2;
};

enum dnn_update {
    DNN_UPDATE_SGD,      /* m: velocity, if momentum is not 0                       */
    DNN_UPDATE_ADAM,     /* m, v: moving means of g and g^2, with bias correction;
                            s, if amsgrad: the maximum of v so far                  */
    DNN_UPDATE_ADAMW,    /* the same, with decoupled weight decay                   */
    DNN_UPDATE_NADAM,    /* m, v: Adam with Nesterov momentum                       */
    DNN_UPDATE_LAMB,     /* as Adam; the step is scaled to the norm of the weight   */
    DNN_UPDATE_LARS,     /* as SGD; the gradient is scaled to eta times that norm   */
    DNN_UPDATE_ADAGRAD,  /* m: the sum of g^2                                       */
    DNN_UPDATE_ADADELTA, /* m, v: moving means of g^2 and of squared steps          */
    DNN_UPDATE_RMSPROP,  /* m: moving mean of g^2; v, if centered: that of g; s, if
                            momentum is not 0: velocity                             */
    DNN_UPDATES
};

/* UPDATE.  The learning rate and the number of the update are arguments of the run
 * (struct dnn_now).  Before the rule, the regularizer's gradient, l1 sign(w) + 2 l2 w,
 * is added to g; after it, the constraint is applied to w. */
struct dnn_op_update {
    enum dnn_update rule;
    /* SGD, ADAM: PyTorch's form of the rule, else Keras's, in which the velocity
     * includes the learning rate, and Adam's epsilon is added before the bias
     * correction of v. */
    bool torch;
    bool nesterov, amsgrad, centered;
    double momentum, dampening;   /* SGD, LARS; momentum: RMSPROP, too               */
    double beta1, beta2, epsilon; /* beta2: also alpha of RMSPROP, rho of ADADELTA   */
    double weight_decay; /* times w is added to g; ADAMW, LAMB: to the step, instead */
    double eta;          /* LARS                                                     */
    double lr_decay, momentum_decay; /* ADAGRAD; NADAM                               */
    double l1, l2;
    struct dnn_constraint constraint;
};

/* Element-wise losses of an output x and its target t.  HINGE: t is +1 if above
 * 0, else -1. */
enum dnn_point {
    DNN_POINT_SQUARED,
    DNN_POINT_ABSOLUTE,
    DNN_POINT_HUBER, /* squared / 2 up to delta, then linear */
    DNN_POINT_HINGE,
    DNN_POINT_BCE,             /* of probabilities; logarithms are at least -100     */
    DNN_POINT_BCE_LOGITS,      /* of logits                                          */
    DNN_POINT_FOCAL,           /* the same, times (1 - p of the correct class)^gamma */
    DNN_POINT_KL,              /* t (log t - x), x = log p; 0 where t is not above 0 */
    DNN_POINT_MAPE,            /* 100 |x - t| / max(|t|, delta)                      */
    DNN_POINT_POISSON,         /* raw: exp(x) - t x; else x - t log(x + delta)       */
    DNN_POINT_HINGE_EMBEDDING, /* x if t is above 0, else max(0, delta - x)       */
    DNN_POINT_SOFT_MARGIN,     /* log(1 + exp(-x)) if t is above 0, else of x     */
    DNN_POINTS
};

/* Functions of a row of channels and its target, all with a margin of delta.  The last
 * three take two or three vectors, concatenated in the row; the target of a pair is a
 * label: above 0 it is +1, else -1.  TRIPLET ignores its target. */
enum dnn_margin {
    DNN_MARGIN_CATEGORICAL, /* max(0, max((1 - t) x) - sum(t x) + delta) */
    DNN_MARGIN_MULTI,       /* w of the class y, sum over i != y of
                               max(0, delta - x[y] + x[i])^power / c                   */
    DNN_MARGIN_MULTILABEL,  /* sum over t[j] > 0 and t[i] <= 0 of
                               max(0, delta - x[j] + x[i]) / c                         */
    DNN_MARGIN_RANKING, /* (a, b): mean of max(0, delta - t (a - b))               */
    DNN_MARGIN_COSINE,  /* (a, b): 1 - cos(a, b), or max(0, cos(a, b) - delta)     */
    DNN_MARGIN_TRIPLET, /* (a, p, n): max(0, d(a, p) - d(a, n) + delta), d the norm
                           of this power of the difference; swap: d(p, n) instead
                           of d(a, n) where it is less                             */
    DNN_MARGINS
};

/* MSE, XENT, POINT, MARGIN, WEIGH.  For a mean over the global batch, scale is 1 / its
 * number of elements, so that the results of all micro-batches add up to the mean.
 * With the operand sums (of WEIGH, exchanged) the mean is weighted: the result is
 * multiplied by sums[1] / sums[0] (0 / 0 is 0), and scale is 1 / the samples of the
 * global batch.
 *
 * Targets are t(..., c), or labels t(...) of i32.  Labels outside 0 ... c - 1 (with one
 * channel: other than 0 and 1) and the label ignore are not counted. */
struct dnn_op_loss {
    double scale;
    bool ignores;
    int32_t ignore;
    double smoothing; /* XENT: t is (1 - smoothing) t + smoothing / c        */
    double gamma;     /* XENT, FOCAL: the term of p is times (1 - p)^gamma   */
    bool raw;         /* XENT: x is log p; POISSON: x is the log of the rate */
    enum dnn_point fn;
    enum dnn_margin margin;
    double delta; /* see the two enums                                              */
    double power; /* MARGIN: MULTI, TRIPLET                                         */
    bool swap;    /* MARGIN: TRIPLET                                                */
    double alpha; /* FOCAL: weight of positives, 1 - alpha of negatives; below 0: 1 */
    int64_t classes; /* WEIGH: c                                                   */
};

/* OVERLAP, LOVASZ: the function p(x).  HINGE: Lovasz hinge of x, one channel. */
enum dnn_head { DNN_HEAD_NONE, DNN_HEAD_SOFTMAX, DNN_HEAD_SIGMOID, DNN_HEAD_HINGE };

struct dnn_op_overlap {
    enum dnn_head source;
    bool ignores;
    int32_t ignore;
    bool whole;   /* OVERLAP: one sum over all samples */
    double scale; /* LOVASZ                            */
};

/* RATIO.  For each row of sums (i, p, t) r = (a i + eps) / (b i + u p + v t + eps), and
 * the loss is scale times the sum over samples of 1 - the mean of r, weighted by w.
 * The backward pass has the factor slope instead, because a change in one micro-batch
 * changes the loss of all.  whole: sums are over the global batch, and the backward
 * pass multiplies slope by its number of samples. */
struct dnn_op_ratio {
    double a, b, u, v, eps;
    double scale, slope;
    bool whole;
};

union dnn_attr {
    struct dnn_op_window window; /* CONV, DECONV */
    struct dnn_op_pool pool;
    struct dnn_op_upsample upsample;
    struct dnn_op_pad pad;
    struct dnn_op_unary unary;
    struct dnn_op_softmax softmax;
    struct dnn_op_combine combine;
    struct dnn_op_concat concat;
    struct dnn_op_reshape reshape;
    struct dnn_op_transpose transpose;
    struct dnn_op_reduce reduce;
    struct dnn_op_batchnorm batchnorm;
    struct dnn_op_groupnorm groupnorm;
    struct dnn_op_noise noise;
    struct dnn_op_activity activity;
    struct dnn_op_loss loss;
    struct dnn_op_overlap overlap;
    struct dnn_op_ratio ratio;
    struct dnn_op_fold fold;
    struct dnn_op_penalty penalty;
    struct dnn_op_update update;
};

/* One op of a program. */
struct dnn_op {
    enum dnn_op_kind kind;
    enum dnn_pass pass;
    union dnn_attr attr;
    /* A fused activation of the first output; NULL: none. Forward: CONV, DECONV,
     * MATMUL, COMBINE, BN_APPLY, BN_INFER, GROUPNORM. A backward pass of BN_APPLY or
     * GROUPNORM with it takes the dy of the activation's result. */
    const struct dnn_op_unary *post;
    int nin, nout;
    const int *in;        /* value numbers, DNN_NONE where absent */
    int out[DNN_MAX_OUT]; /* value numbers                        */
    const char *layer;    /* that appended it; may be NULL        */
    int line;             /* of the network's JSON; 0: not known  */
};

/* The element type of an operand. */
enum dnn_operand {
    DNN_OPERAND_VALUE, /* the program's type                                  */
    DNN_OPERAND_SUM,   /* f64 in every program: statistics and losses         */
    DNN_OPERAND_LABEL, /* a target: the program's type, or class labels (i32) */
    DNN_OPERAND_BITS   /* the index of a maximum or a mask: integers          */
};

/* The operands of one pass. */
struct dnn_op_pass {
    /* Their names, inputs "->" outputs, for documentation; NULL: there is no such
     * pass.  "..." is any number, brackets an operand that may be absent. */
    const char *operands;
    enum dnn_operand in[DNN_TYPED_IN], out[DNN_MAX_OUT]; /* later inputs are VALUEs */
};

/* Whether the plan may run a forward op a second time to save memory. */
enum dnn_op_recompute {
    DNN_OP_CHEAP, /* costs one pass over memory                                      */
    DNN_OP_HEAVY, /* a matrix product, or (CONCAT) a copy that the plan avoids       */
    DNN_OP_ONCE   /* no: it changes states, exchanges data or its result is reported */
};

/* The facts about a kind of op. */
struct dnn_op_info {
    const char *name;
    struct dnn_op_pass pass[DNN_PASSES];
    /* Bit p: in pass p the first output may overwrite the first input, if both have
     * the same shape and no op reads that input later. */
    unsigned inplace;
    bool view; /* the output is the first input's bytes */
    enum dnn_op_recompute recompute;
    /* Shape inference, forward. in[i] is NULL where an operand is absent; fills
     * out[0 ... nout - 1] (dtype and shape, names NULL) and returns nout. Cannot
     * fail, because layers check shapes; asserts on bugs. */
    int (*shape)(const union dnn_attr *attr, int nin,
                 const struct dnn_tensor *const *in, struct dnn_tensor *out);
};

const struct dnn_op_info *dnn_op_info(enum dnn_op_kind kind);
/* The type of an op's operand i. */
enum dnn_operand dnn_op_operand_in(const struct dnn_op *op, int i);
enum dnn_operand dnn_op_operand_out(const struct dnn_op *op, int i);
const char *dnn_op_pass_name(enum dnn_pass pass); /* "forward", "backward data"... */
const char *dnn_op_unary_name(enum dnn_unary fn); /* "relu"... */

/* Whether the backward pass of an activation takes its result y, not its argument x:
 * then x need not be kept. */
bool dnn_op_unary_by_result(const struct dnn_op_unary *unary);

/* ---- shape arithmetic shared with layers ---- */

/* Padding "same" as Keras: ceil(in / stride) outputs; an odd element is added after. */
void dnn_op_same(int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                 int64_t *before, int64_t *after);
/* The same for a transposed convolution whose output extent is out (in * stride,
 * unless there is an output padding). */
void dnn_op_same_transposed(int64_t in, int64_t out, int64_t kernel, int64_t stride,
                            int64_t dilation, int64_t *before, int64_t *after);
/* Output extents; 0 or less: the window does not fit. */
int64_t dnn_op_window_out(int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                          int64_t before, int64_t after);
int64_t dnn_op_transposed_out(int64_t in, int64_t kernel, int64_t stride,
                              int64_t dilation, int64_t before, int64_t after);

/* The shape a and b broadcast to: aligned at the last axis, extents equal or 1.
 * false if they do not fit. */
bool dnn_op_broadcast(const struct dnn_shape *a, const struct dnn_shape *b,
                      struct dnn_shape *out);

#endif
