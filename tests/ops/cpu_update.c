/* cpu_update.c - every optimizer of the cpu backend against ref: odd numbers of
 * weights, regularizers, NonNeg, the first and a later update; the same bits with any
 * number of threads, on every instruction set.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "ops/cpu_rows.h"

enum { OPERANDS = 5 };

static void ref_now(struct rows_case *k, const struct dnn_now *now)
{
    const struct dnn_backend *ref = &dnn_backend_ref;
    const struct dnn_tensor *in[MAX_IN];
    struct dnn_step step = {.op = &k->op, .in = in, .in_mem = k->in_mem};
    struct dnn_err err = {0};
    struct dnn_dev *dev;
    struct dnn_need need;
    struct dnn_kernel *kernel;

    for (int i = 0; i < k->op.nin; i++)
        in[i] = k->in_mem[i] == NULL ? NULL : &k->in[i];
    if (ref->open(&(struct dnn_device){0}, &dev, &err) < 0 ||
        ref->need(dev, &step, &need, &err) < 0)
        abort();
    step.work = dnn_alloc(need.work + 64);
    if (ref->prepare(dev, &step, &kernel, &err) < 0 ||
        ref->run(dev, kernel, now, &err) < 0)
        abort();
    ref->discard(dev, kernel);
    dnn_free(step.work);
    ref->close(dev);
}

/* Initial values of a case: weights, gradients, slots.  Mean squares are not negative
 * and larger than the square of a mean. */
static void begin(struct rows_case *k, const struct dnn_op_update *u, unsigned slots,
                  int64_t n)
{
    bool root = u->rule == DNN_UPDATE_ADAGRAD || u->rule == DNN_UPDATE_ADADELTA ||
                u->rule == DNN_UPDATE_RMSPROP;

    *k = (struct rows_case){
        .op = {.kind = DNN_OP_UPDATE, .attr.update = *u, .nin = OPERANDS}
    };
    for (int i = 0; i < OPERANDS; i++) {
        bool square = root ? i == 2 || u->rule == DNN_UPDATE_ADADELTA : i >= 3;

        k->in[i] = TENSOR(DNN_F32, n);
        if (i >= 2 && (slots >> (i - 2) & 1) == 0) continue;
        k->in_mem[i] = filled(&k->in[i],
                              i < 2    ? -1
                              : square ? 0.3
                                       : -0.5,
                              i < 2 || square ? 1 : 0.5, 20 + (uint64_t)i);
    }
}

/* All operands concatenated, after the kernel has run on copies. */
static float *way_now(const struct rows_case *k, const struct dnn_now *now, int threads,
                      bool *whole)
{
    struct cpu_array a[MAX_IN] = {0};
    const struct dnn_tensor *in[MAX_IN];
    struct cpu_call call = {.op = &k->op, .in = a, .threads = threads, .now = *now};
    const struct dnn_step step = {.op = &k->op, .in = in};
    int64_t n = count_of(&k->in[0]);
    float *out = dnn_alloc(OPERANDS * (size_t)n * sizeof *out);

    for (int i = 0; i < k->op.nin; i++) {
        in[i] = k->in_mem[i] == NULL ? NULL : &k->in[i];
        if (in[i] == NULL) continue;
        a[i] = array_of(in[i], 0);
        copy_rows(&a[i], k->in_mem[i], true);
    }
    size_t work = dnn_cpu_update.work(&step, threads);
    call.work = aligned_alloc(64, (work + 127) & ~(size_t)63);
    memset(call.work, 0xff, (work + 127) & ~(size_t)63);
    *whole = dnn_cpu_update.can(&step);
    if (*whole) dnn_cpu_update.fn(&call);
    for (int i = 0; i < k->op.nin; i++) {
        if (in[i] == NULL) continue;
        memcpy(out + i * n, a[i].mem, (size_t)n * sizeof *out);
        *whole = *whole && gaps_whole(&a[i]);
        free(a[i].mem);
    }
    free(call.work);
    return out;
}

static void compare(const char *what, const struct dnn_op_update *u, unsigned slots,
                    int64_t n, uint64_t updates)
{
    const struct dnn_now now = {.rate = 0.01, .updates = updates};
    struct rows_case before, after;
    bool whole, whole2;
    double far = 0;

    begin(&before, u, slots, n);
    begin(&after, u, slots, n);
    ref_now(&after, &now);
    float *one = way_now(&before, &now, 1, &whole);
    float *three = way_now(&before, &now, 3, &whole2);
    for (int i = 0; i < OPERANDS; i++)
        if (after.in_mem[i] != NULL)
            far = fmax(far, apart(&after.in[i], one + i * n, after.in_mem[i], 0));
    bool same = memcmp(one, three, OPERANDS * (size_t)n * sizeof *one) == 0;
    if (!ok(whole && whole2 && same && far <= 1e-6, "%s, %lld weights, update %llu: %s",
            what, (long long)n, (unsigned long long)updates, getenv("DNN_ISA")))
        printf("# %g off, same %d, whole %d %d\n", far, same, whole, whole2);
    dnn_free(one);
    dnn_free(three);
    rows_free(&before);
    rows_free(&after);
}

/* clang-format off */
static const struct rule {
    const char *name;
    struct dnn_op_update u;
    unsigned slots; /* bit i: slot i is used */
} rules[] = {
#define ADAM .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-4
    {"sgd", {.rule = DNN_UPDATE_SGD, .torch = true, .weight_decay = 0.1}, 0},
    {"sgd, momentum", {.rule = DNN_UPDATE_SGD, .torch = true, .momentum = 0.9,
     .dampening = 0.25}, 1},
    {"sgd, nesterov", {.rule = DNN_UPDATE_SGD, .torch = true, .momentum = 0.9,
     .nesterov = true, .weight_decay = 0.1}, 1},
    {"Keras's sgd", {.rule = DNN_UPDATE_SGD}, 0},
    {"Keras's sgd, momentum", {.rule = DNN_UPDATE_SGD, .momentum = 0.9}, 1},
    {"Keras's sgd, nesterov", {.rule = DNN_UPDATE_SGD, .momentum = 0.9,
     .nesterov = true}, 1},
    {"adam", {.rule = DNN_UPDATE_ADAM, .torch = true, ADAM, .weight_decay = 0.1}, 3},
    {"Keras's adam", {.rule = DNN_UPDATE_ADAM, ADAM}, 3},
    {"amsgrad", {.rule = DNN_UPDATE_ADAM, .torch = true, ADAM, .amsgrad = true}, 7},
    {"adamw", {.rule = DNN_UPDATE_ADAMW, .torch = true, ADAM, .weight_decay = 0.1}, 3},
    {"nadam", {.rule = DNN_UPDATE_NADAM, .torch = true, ADAM, .weight_decay = 0.1,
     .momentum_decay = 0.1}, 3},
    {"adagrad", {.rule = DNN_UPDATE_ADAGRAD, .torch = true, .epsilon = 1e-6,
     .lr_decay = 0.5}, 1},
    {"adadelta", {.rule = DNN_UPDATE_ADADELTA, .torch = true, .beta2 = 0.9,
     .epsilon = 1e-6}, 3},
    {"rmsprop", {.rule = DNN_UPDATE_RMSPROP, .torch = true, .beta2 = 0.9,
     .epsilon = 1e-6}, 1},
    {"rmsprop, centered", {.rule = DNN_UPDATE_RMSPROP, .torch = true, .beta2 = 0.9,
     .epsilon = 1e-6, .centered = true}, 3},
    {"rmsprop, momentum", {.rule = DNN_UPDATE_RMSPROP, .torch = true, .beta2 = 0.9,
     .epsilon = 1e-6, .momentum = 0.9}, 5},
    {"rmsprop, both", {.rule = DNN_UPDATE_RMSPROP, .torch = true, .beta2 = 0.9,
     .epsilon = 1e-6, .momentum = 0.9, .centered = true}, 7},
    {"lars", {.rule = DNN_UPDATE_LARS, .torch = true, .eta = 0.5, .momentum = 0.9,
     .weight_decay = 0.1}, 1},
    {"lars, plain", {.rule = DNN_UPDATE_LARS, .torch = true, .eta = 0.5}, 0},
    {"lamb", {.rule = DNN_UPDATE_LAMB, .torch = true, ADAM, .weight_decay = 0.1}, 3},
    {"lamb, amsgrad", {.rule = DNN_UPDATE_LAMB, .torch = true, ADAM, .amsgrad = true},
     7},
};
/* clang-format on */

int main(void)
{
    static const char *const isas[] = {"plain", "avx2", "avx512"};
    static const int64_t counts[] = {1, 7, 1003, 50021};

    for (int s = 0; s < 3; s++) {
        setenv("DNN_ISA", isas[s], 1);
        for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++)
            for (int i = 0; i < 4; i++) {
                struct dnn_op_update u = rules[r].u;

                compare(rules[r].name, &u, rules[r].slots, counts[i], 1);
                u.l1 = 0.25;
                u.l2 = 0.125;
                u.constraint.kind = DNN_NON_NEG;
                compare(rules[r].name, &u, rules[r].slots, counts[i], 3);
            }
    }
    return done();
}
