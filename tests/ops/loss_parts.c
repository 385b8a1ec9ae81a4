/* loss_parts.c - the losses of the parts of a batch add up to the loss of the whole
 * batch, and so do their gradients, for every divisor of a loss.
 *
 * A batch of six is computed at once and as parts of four and two, which run in step;
 * numbers that they exchange are added.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "ops/compare.h"
#include "tap.h"

#include "base/json.h"
#include "base/mem.h"
#include "loss/loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALL = 6, PLACES = 15, CLASSES = 4 };

static struct dnn_err err;

/* One part of the batch. */
struct part {
    struct dnn_prog *prog; /* owned */
    struct ops_run run;
    int x, target, nterms;
    const int *term;
};

static const double unit = 1;

static int append(struct part *p, const char *text, int64_t n, bool labels)
{
    const struct dnn_shape shape = {
        .ndim = 3, .dim = {n, PLACES, CLASSES}
    };
    const union dnn_attr softmax = {.softmax = {.axis = 2}};
    struct dnn_loss *loss = NULL;
    struct dnn_json *file;
    int of;

    p->prog = dnn_prog_make(DNN_F64, true);
    p->x = dnn_prog_input(p->prog, "x", DNN_F64, &shape);
    int y = dnn_prog_op1(p->prog, DNN_OP_SOFTMAX, &softmax, p->x);
    const struct dnn_loss_net net = {
        .noutputs = 1,
        .output = &y,
        .name = (const char *const[]){"y"},
        .target_is = (const int[]){labels ? DNN_TARGET_LABELS : DNN_TARGET_VALUES},
        .batch = n,
        .total = ALL};

    DNN_TRY(dnn_json_text("loss", text, strlen(text), &file, &err));
    struct dnn_jobj top = dnn_json_top(file);
    int rc = dnn_loss_read(&top, &loss, &err);
    dnn_json_free(file);
    if (rc == 0)
        rc = dnn_loss_append(loss, p->prog, &net, &p->target, &of, &p->term, &err);
    dnn_loss_free(loss);
    p->nterms = rc;
    return rc < 0 ? rc : 0;
}

static int start(struct part *p, const char *text, int64_t first, int64_t n,
                 bool labels)
{
    double x[ALL * PLACES * CLASSES], t[ALL * PLACES * CLASSES];
    int64_t each = labels ? PLACES : PLACES * CLASSES;
    struct dnn_grad_of of[4];

    DNN_TRY(append(p, text, n, labels));
    int seed = dnn_prog_constant(p->prog, "one", &(struct dnn_shape){.ndim = 0}, &unit);
    for (int i = 0; i < p->nterms; i++)
        of[i] = (struct dnn_grad_of){p->term[i], seed};
    dnn_grad(p->prog, p->nterms, of, true);
    DNN_TRY(ops_start(p->prog, dnn_backend_find("ref", NULL), NULL, &p->run, &err));
    ops_fill(x, ALL * PLACES * CLASSES, -2, 2, 5);
    ops_fill(t, ALL * each, labels ? -1 : 0, labels ? CLASSES : 1, 6);
    ops_put(&p->run, p->x, x + first * PLACES * CLASSES);
    ops_put(&p->run, p->target, t + first * each);
    return 0;
}

/* Replace the output of op o in both by their sum. */
static void exchange(struct part *a, struct part *b, int o)
{
    int out = a->prog->op[o].out[0];
    int64_t n = ops_count(a->prog, out);
    double *mine = dnn_alloc((size_t)n * sizeof *mine);
    double *other = dnn_alloc((size_t)n * sizeof *other);

    ops_get(&a->run, out, mine);
    ops_get(&b->run, out, other);
    for (int64_t i = 0; i < n; i++)
        mine[i] += other[i];
    ops_put(&a->run, out, mine);
    ops_put(&b->run, out, mine);
    dnn_free(mine);
    dnn_free(other);
}

static double loss(struct part *p)
{
    double sum = 0, one;

    for (int i = 0; i < p->nterms; i++) {
        ops_get(&p->run, p->term[i], &one);
        sum += one;
    }
    return sum;
}

static void gradient(struct part *p, double *to)
{
    ops_get(&p->run, p->prog->value[p->x].grad, to);
}

static void stop(struct part *p)
{
    if (p->run.prog != NULL) ops_stop(&p->run);
    dnn_prog_free(p->prog);
}

static void check(const char *text, bool labels, int exchanges)
{
    double want[ALL * PLACES * CLASSES], got[ALL * PLACES * CLASSES];
    struct part whole = {0}, a = {0}, b = {0};
    int met = 0;

    int rc = start(&whole, text, 0, ALL, labels);
    if (rc == 0) rc = start(&a, text, 0, 4, labels);
    if (rc == 0) rc = start(&b, text, 4, 2, labels);
    if (!ok(rc == 0, "%s: made", text)) {
        printf("# %s\n", err.text);
        return;
    }
    ops_go(&whole.run, 0, whole.prog->nops, NULL);
    for (int o = 0; o < a.prog->nops; o++) {
        ops_go(&a.run, o, o + 1, NULL);
        ops_go(&b.run, o, o + 1, NULL);
        if (a.prog->op[o].kind != DNN_OP_EXCHANGE) continue;
        exchange(&a, &b, o);
        met++;
    }
    double all = loss(&whole), sum = loss(&a) + loss(&b);
    if (!ok(fabs(all - sum) <= 1e-12 * fabs(all), "%s: losses add up", text))
        printf("# %.15g, want %.15g\n", sum, all);
    gradient(&whole, want);
    gradient(&a, got);
    gradient(&b, got + 4 * PLACES * CLASSES);
    struct ops_diff d = ops_compare(got, want, ALL * PLACES * CLASSES);
    ok(d.worst <= 1e-12, "%s: gradients are those of the whole batch: error %.2g", text,
       d.worst);
    is_int(met, exchanges, "number of exchanges");
    stop(&whole);
    stop(&a);
    stop(&b);
}

int main(void)
{
    static const struct {
        const char *loss;
        bool labels;
        int exchanges;
    } rows[] = {
        {"\"mse\"",                                                           false, 0},
        {"\"nll\"",                                                           true,  0},
        {"{\"function\": \"nll\", \"ignore_index\": 1}",                      true,  1},
        {"{\"function\": \"xent\", \"weight\": [1, 2, 0.5, 3]}",              true,  1},
        {"{\"function\": \"xent\", \"weight\": [1, 2, 0.5, 3], "
         "\"label_smoothing\": 0.1, \"ignore_index\": 0}",           true,  1},
        {"{\"function\": \"xent\", \"weight\": [1, 2, 0.5, 3]}",              false, 0},
        {"{\"function\": \"focal\", \"ignore_index\": 0}",                    true,  1},
        {"{\"function\": \"bce\", \"ignore_index\": 2}",                      true,  1},
        {"\"dice\"",                                                          true,  0},
        {"{\"function\": \"dice\", \"per\": \"batch\", \"ignore_index\": 3}", true,  1},
        {"{\"function\": \"tversky\", \"per\": \"batch\", \"alpha\": 0.3, "
         "\"weight\": [1, 0, 2, 3]}",                                true,  1},
        {"\"jaccard\"",                                                       false, 0},
        {"\"lovasz\"",                                                        true,  0},
        {"[{\"function\": \"xent\", \"ignore_index\": 1, \"factor\": 0.5}, "
         "{\"function\": \"dice\", \"per\": \"batch\"}]",            true,  2},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(rows[i].loss, rows[i].labels, rows[i].exchanges);
    return done();
}
