/* loss_kinds.c - losses: reading, error messages, and the ops they append.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/json.h"
#include "base/mem.h"
#include "loss/loss.h"

#include <stdlib.h>
#include <string.h>

static struct dnn_err err;

/* A loss from a text; NULL and a message if there is none. */
static struct dnn_loss *read_loss(const char *text)
{
    struct dnn_loss *loss = NULL;
    struct dnn_json *file;
    char *job = dnn_format("{\"loss\": %s}", text);

    if (dnn_json_text("train.json", job, strlen(job), &file, &err) < 0) return NULL;
    struct dnn_jobj top = dnn_json_top(file), at = dnn_json_sub(&top, "loss");
    if (dnn_loss_read(&at, &loss, &err) < 0) loss = NULL;
    dnn_json_free(file); /* nothing of it is kept */
    dnn_free(job);
    return loss;
}

static char *printed(const struct dnn_loss *loss)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    dnn_loss_print(loss, to);
    fclose(to);
    return text;
}

/* ---- reading ---- */

static void reads(const char *text, const char *want)
{
    struct dnn_loss *loss = read_loss(text);

    if (!ok(loss != NULL, "%s is a loss", text)) {
        printf("# %s\n", err.text);
        return;
    }
    char *once = printed(loss);
    is_text(once, want, text);
    struct dnn_loss *again = read_loss(once);
    if (ok(again != NULL, "the printed loss is read")) {
        char *twice = printed(again);
        is_text(twice, once, "the same");
        free(twice);
    }
    dnn_loss_free(again);
    dnn_loss_free(loss);
    free(once);
}

static void refuses(const char *text, const char *message)
{
    struct dnn_loss *loss = read_loss(text);

    ok(loss == NULL, "%s is not a loss", text);
    is_text(err.text, message, text);
    dnn_loss_free(loss);
}

static void reading(void)
{
    reads("\"MSE\"", "\"mse\"");
    reads("\"L1\"", "\"mae\"");
    reads("\"mean_absolute_percentage_error\"",
          "{\"function\": \"mape\", \"eps\": 1e-07}");
    reads("\"categorical_crossentropy\"",
          "{\"function\": \"cross_entropy\", \"source\": \"auto\", "
          "\"label_smoothing\": 0}");
    reads("{\"function\": \"triplet\", \"margin\": 0.5, \"swap\": true}",
          "{\"function\": \"triplet_margin\", \"margin\": 0.5, \"p\": 2, \"swap\": "
          "true}");
    reads("{\"function\": \"NLL\"}",
          "{\"function\": \"nll\", \"source\": \"auto\", \"label_smoothing\": 0}");
    reads("\"XENT\"", "{\"function\": \"cross_entropy\", \"source\": \"auto\", "
                      "\"label_smoothing\": 0}");
    reads("{\"function\": \"Dice\", \"source\": \"Softmax\", \"weight\": [1, 0.5], "
          "\"ignore_index\": 3}",
          "{\"function\": \"dice\", \"source\": \"softmax\", \"weight\": [1, 0.5], "
          "\"ignore_index\": 3, \"eps\": 1e-07, \"per\": \"sample\"}");
    reads("{\"function\": \"dice\", \"ignore_index\": null}",
          "{\"function\": \"dice\", \"source\": \"auto\", \"eps\": "
          "1e-07, \"per\": \"sample\"}");
    reads(
        "[\"mse\", {\"function\": \"huber\", \"factor\": 0.5, \"output\": \"a\\\"b\"}]",
        "[\"mse\", {\"function\": \"huber\", \"factor\": 0.5, \"delta\": 1, "
        "\"output\": \"a\\\"b\"}]");
    reads(
        "{\"function\": \"focal\"}",
        "{\"function\": \"focal\", \"source\": \"auto\", \"gamma\": 2, \"alpha\": -1}");
}

static void refusing(void)
{
    refuses(
        "\"mze\"",
        "train.json:1: loss: must be one of mse, mae, mape, huber, poisson_nll, hinge, "
        "hinge_embedding, soft_margin, bce, bce_logits, nll, cross_entropy, "
        "kl_divergence, focal, dice, jaccard, tversky, lovasz, categorical_hinge, "
        "multi_margin, multilabel_margin, margin_ranking, cosine_embedding, "
        "triplet_margin, xent, not "
        "\"mze\"; did you mean \"mse\"?");
    refuses("3", "train.json:1: loss: must be the name of a loss such as \"NLL\", an "
                 "object with \"function\", or a list of these, not 3");
    refuses("[]", "train.json:1: loss: must not be empty");
    refuses("{\"source\": \"softmax\"}",
            "train.json:1: loss: \"function\" is missing: give the name of a loss");
    refuses("{\"function\": \"mse\", \"eps\": 1}",
            "train.json:1: loss.eps: unknown key");
    refuses("{\"function\": \"dice\", \"eps\": 0}",
            "train.json:1: loss.eps: must be at least 1e-300, not 0");
    refuses(
        "{\"function\": \"dice\", \"source\": \"relu\"}",
        "train.json:1: loss.source: must be one of auto, none, softmax, log_softmax, "
        "sigmoid, not \"relu\"");
    refuses("[\"mse\", {\"function\": \"nll\", \"ignore_index\": 3000000000}]",
            "train.json:1: loss[1].ignore_index: must be a class number between "
            "-2147483648 and 2147483647, not 3000000000");
    refuses("{\"function\": \"nll\", \"label_smoothing\": 1.5}",
            "train.json:1: loss.label_smoothing: must be between 0 and 1, not 1.5");
    refuses("{\"function\": \"nll\", \"weight\": [1, -1]}",
            "train.json:1: loss.weight[1]: must be at least 0, not -1");
}

/* ---- tables ---- */

static void tables(void)
{
    const struct dnn_field *fields;
    const char *help, *name;
    int i;

    for (i = 0; (name = dnn_loss_info(i, &help, &fields)) != NULL; i++) {
        ok(dnn_field_check(fields, &err) == 0, "the keys of %s are valid", name);
        is_text(dnn_loss_names[i].name, name, "its name in the list");
        is_int(dnn_loss_names[i].value, i, "and its value");
        struct dnn_loss *loss = NULL;
        if (ok(dnn_loss_make(name, &loss, &err) == 0, "it can be made"))
            ok(dnn_loss_metrics(loss) != NULL, "and has default metrics");
        dnn_loss_free(loss);
    }
    is_int(i, 24, "losses");
}

/* ---- programs ---- */

/* Outputs "a" and "b", each with its own shape and last activation. */
struct outputs {
    struct dnn_prog *prog; /* owned */
    int x[2], y[2];
};

static int end(struct dnn_prog *prog, const char *name, int x)
{
    const union dnn_attr soft = {
        .softmax = {.axis = dnn_prog_shape(prog, x)->ndim - 1,
                    .log = strcmp(name, "log_softmax") == 0}
    };
    const union dnn_attr sigmoid = {.unary = {.fn = DNN_SIGMOID}};

    if (strcmp(name, "none") == 0) return x;
    if (strcmp(name, "sigmoid") == 0)
        return dnn_prog_op1(prog, DNN_OP_UNARY, &sigmoid, x);
    return dnn_prog_op1(prog, DNN_OP_SOFTMAX, &soft, x);
}

static struct outputs outputs(int n, const char *const *ends, const char *const *shapes)
{
    struct outputs o = {.prog = dnn_prog_make(DNN_F32, true)};
    struct dnn_shape shape;

    for (int i = 0; i < n; i++) {
        if (dnn_shape_parse(shapes[i], &shape, NULL) < 0) abort();
        o.x[i] = dnn_prog_input(o.prog, "x", DNN_F32, &shape);
        o.y[i] = end(o.prog, ends[i], o.x[i]);
    }
    return o;
}

static int append(const char *text, const struct outputs *o, int n, const int *is,
                  int *target, int *of, const int **term)
{
    struct dnn_loss *loss = read_loss(text);
    const struct dnn_loss_net net = {
        .noutputs = n,
        .output = o->y,
        .name = (const char *const[]){"a", "b"},
        .target_is = is,
        .batch = 2,
        .total = 6
    };

    if (loss == NULL) return DNN_ECONFIG;
    int rc = dnn_loss_append(loss, o->prog, &net, target, of, term, &err);
    dnn_loss_free(loss);
    return rc;
}

/* One output: the loss is refused with this message. */
static void cannot(const char *text, const char *ends, const char *shape, int is,
                   const char *message)
{
    struct outputs o = outputs(1, &ends, &shape);
    int target, of;
    const int *term;

    ok(append(text, &o, 1, &is, &target, &of, &term) < 0, "%s is refused", text);
    is_text(err.text, message, text);
    dnn_prog_free(o.prog);
}

/* One output: the op, its target, and whether it uses the input of the last activation.
 */
static void can(const char *text, const char *ends, const char *shape, int is,
                const char *op, const char *target_shape, bool behind)
{
    struct outputs o = outputs(1, &ends, &shape);
    char have[DNN_SHAPE_TEXT];
    int target, of;
    const int *term;

    int n = append(text, &o, 1, &is, &target, &of, &term);
    if (ok(n == 1, "%s of %s %s", text, ends, shape)) {
        const struct dnn_value *t = &o.prog->value[target],
                               *l = &o.prog->value[term[0]];

        is_text(dnn_op_info(o.prog->op[l->op].kind)->name, op, "its op");
        is_text(dnn_shape_text(have, sizeof have, &t->is.shape), target_shape,
                "its target");
        is_int(t->role, DNN_TARGET, "has the role of a target");
        is_int(of, behind ? o.x[0] : o.y[0], "its input");
        ok(l->is.dtype == DNN_F64 && l->is.shape.ndim == 0, "it is one number");
    } else
        printf("# %s\n", err.text);
    dnn_prog_free(o.prog);
}

static void one_output(void)
{
    enum { ANY = DNN_TARGET_ANY, LABELS = DNN_TARGET_LABELS };

    can("\"mse\"", "softmax", "2x3x4", ANY, "mse", "2x3x4", false);
    can("\"mse\"", "none", "2x3x4", LABELS, "point", "2x3", false);
    can("\"nll\"", "log_softmax", "2x3x4", ANY, "xent", "2x3", true);
    can("\"nll\"", "softmax", "2x4", DNN_TARGET_VALUES, "xent", "2x4", true);
    can("{\"function\": \"nll\", \"source\": \"none\"}", "log_softmax", "2x3x4", ANY,
        "xent", "2x3", false);
    can("\"bce\"", "sigmoid", "2x3x1", ANY, "point", "2x3x1", true);
    can("\"bce\"", "sigmoid", "2x3x1", LABELS, "point", "2x3", true);
    can("\"bce\"", "softmax", "2x3x4", ANY, "point", "2x3x4", false);
    can("\"dice\"", "softmax", "2x3x3x4", ANY, "ratio", "2x3x3", true);
    can("\"lovasz\"", "sigmoid", "2x9x1", ANY, "lovasz", "2x9", true);
    can("\"focal\"", "none", "2x9x1", ANY, "point", "2x9", true);
    can("\"focal\"", "none", "2x9x3", ANY, "xent", "2x9", true);
    can("\"mape\"", "none", "2x3x4", ANY, "point", "2x3x4", false);
    can("\"kl_div\"", "none", "2x3x4", ANY, "point", "2x3x4", false);
    can("\"multilabel_soft_margin\"", "sigmoid", "2x4", ANY, "point", "2x4", true);
    can("\"categorical_hinge\"", "softmax", "2x3x4", ANY, "margin", "2x3", false);
    can("\"multilabel_margin\"", "none", "2x4", ANY, "margin", "2x4", false);
    can("\"cosine_embedding\"", "none", "2x8", ANY, "margin", "2", false);
    can("\"triplet_margin\"", "none", "2x9", DNN_TARGET_VALUES, "margin", "2x9", false);

    cannot(
        "\"multi_margin\"", "none", "2x3x1", ANY,
        "output 'a': loss multi_margin: needs two or more channels in the last axis");
    cannot("\"triplet_margin\"", "none", "2x8", ANY,
           "output 'a': loss triplet_margin: needs 3 vectors of the same length one "
           "behind the other in the channels, but the output has 8 channels");
    cannot(
        "\"margin_ranking\"", "none", "2x2", DNN_TARGET_VALUES,
        "output 'a': loss margin_ranking: needs class numbers 1 and 0 as targets, but "
        "they are values");
    cannot("\"kl_divergence\"", "sigmoid", "2x3x4", ANY,
           "output 'a': loss kl_divergence: needs a softmax over the classes, but the "
           "network ends in sigmoid; use bce");

    cannot("\"xent\"", "none", "2x3x1", ANY,
           "output 'a': loss cross_entropy: needs two or more classes in the last "
           "axis; use bce or focal for one channel, mse for values");
    cannot("\"nll\"", "sigmoid", "2x3x4", ANY,
           "output 'a': loss nll: needs a softmax over the classes, but the network "
           "ends in sigmoid; use bce");
    cannot(
        "\"dice\"", "none", "2x3x4", ANY,
        "output 'a': loss dice: needs probabilities, but the network does not end in "
        "softmax, log_softmax or sigmoid; set source to the one to apply, or to none "
        "if the outputs are probabilities");
    cannot("{\"function\": \"dice\", \"source\": \"softmax\"}", "none", "2x3x1", ANY,
           "output 'a': loss dice: a softmax over one channel is always 1; end the "
           "network "
           "in sigmoid or in two channels");
    cannot("{\"function\": \"dice\", \"source\": \"softmax\"}", "sigmoid", "2x3x4", ANY,
           "output 'a': loss dice: source is softmax, but the network ends in "
           "sigmoid");
    cannot(
        "{\"function\": \"dice\", \"weight\": [1, 2]}", "softmax", "2x3x4", ANY,
        "output 'a': loss dice: 2 class weights given, but the output has 4 classes");
    cannot("{\"function\": \"dice\", \"weight\": [0, 0]}", "softmax", "2x3x2", ANY,
           "output 'a': loss dice: at least one class weight must be above 0");
    cannot("{\"function\": \"xent\", \"ignore_index\": 0}", "softmax", "2x3x4",
           DNN_TARGET_VALUES,
           "output 'a': loss cross_entropy: ignore_index needs class numbers as "
           "targets, but they are values");
    cannot("{\"function\": \"focal\", \"source\": \"none\"}", "none", "2x3x4", ANY,
           "output 'a': loss focal: needs logits: source "
           "must be softmax, log_softmax or sigmoid, not none");
    cannot("\"bce\"", "log_softmax", "2x3x4", ANY,
           "output 'a': loss bce: needs probabilities: end the network in "
           "sigmoid or softmax, or set source to sigmoid");
    cannot("\"bce_logits\"", "softmax", "2x3x4", ANY,
           "output 'a': loss bce_logits: needs the logits of a sigmoid, but the "
           "network ends in softmax; use bce");
    cannot("{\"function\": \"mse\", \"output\": \"c\"}", "none", "2x3", ANY,
           "loss mse: the network has no output 'c'; it has 'a'");
}

static void two_outputs(void)
{
    static const char *const ends[] = {"softmax", "none"};
    static const char *const shapes[] = {"2x3x4", "2x5"};
    int target[2], of[2];
    const int *term;

    struct outputs o = outputs(2, ends, shapes);
    is_int(append("\"mse\"", &o, 2, NULL, target, of, &term), 2, "one for each output");
    ok(target[0] != DNN_NONE && target[1] != DNN_NONE, "each has a target");
    dnn_prog_free(o.prog);

    o = outputs(2, ends, shapes);
    is_int(append("[\"nll\", {\"function\": \"mae\", \"factor\": 0.25}, "
                  "{\"function\": \"dice\", \"output\": \"a\"}]",
                  &o, 2, NULL, target, of, &term),
           3, "in order, and one more");
    ok(o.prog->value[target[0]].is.dtype == DNN_I32 && of[0] == o.x[0] &&
           of[1] == o.y[1],
       "labels for a, values for b");
    const struct dnn_op *mae = &o.prog->op[o.prog->value[term[1]].op];
    ok(mae->attr.loss.scale == 0.25 / 30, "a mean of the whole batch, and its factor");
    dnn_prog_free(o.prog);

    o = outputs(2, ends, shapes);
    is_int(append("{\"function\": \"mse\", \"output\": \"b\"}", &o, 2, NULL, target, of,
                  &term),
           1, "for one output only");
    ok(target[0] == DNN_NONE && of[0] == o.y[0] && target[1] != DNN_NONE,
       "the other has no target");
    dnn_prog_free(o.prog);

    o = outputs(2, ends, shapes);
    ok(append("[\"mse\", \"mse\", \"mae\"]", &o, 2, NULL, target, of, &term) < 0,
       "a term too many");
    is_text(err.text,
            "loss mae: every output already has a loss; set \"output\" to one of 'a', "
            "'b'",
            "needs the key output");
    dnn_prog_free(o.prog);
}

/* A softmax followed only by a reshape is still the last activation. */
static void reshaped(void)
{
    static const char *const ends = "softmax", *const shape = "2x3x4";
    struct outputs o = outputs(1, &ends, &shape);
    const union dnn_attr flat = {.reshape = {{.ndim = 4, .dim = {2, 1, 3, 4}}}};
    int target[1], of[1];
    const int *term;

    o.y[0] = dnn_prog_op1(o.prog, DNN_OP_RESHAPE, &flat, o.y[0]);
    is_int(append("\"nll\"", &o, 1, NULL, target, of, &term), 1, "before a reshape");
    const struct dnn_op *op = &o.prog->op[o.prog->value[of[0]].op];
    ok(op->kind == DNN_OP_RESHAPE && op->in[0] == o.x[0],
       "the input of the softmax is used");
    dnn_prog_free(o.prog);
}

/* ---- probabilities ---- */

static void becomes(const char *text, const char *ends, const char *shape,
                    enum dnn_probability want)
{
    struct outputs o = outputs(1, &ends, &shape);
    struct dnn_loss *loss = read_loss(text);
    const struct dnn_loss_net net = {
        .noutputs = 1, .output = o.y, .name = (const char *const[]){"a"}};

    is_int(dnn_loss_probability(loss, o.prog, &net, 0), want, text);
    dnn_loss_free(loss);
    dnn_prog_free(o.prog);
}

static void probabilities(void)
{
    becomes("\"mse\"", "none", "2x3", DNN_PROBABILITY_NONE);
    becomes("\"xent\"", "softmax", "2x3", DNN_PROBABILITY_GIVEN);
    becomes("\"xent\"", "none", "2x3", DNN_PROBABILITY_SOFTMAX);
    becomes("{\"function\": \"xent\", \"source\": \"none\"}", "none", "2x3",
            DNN_PROBABILITY_SOFTMAX);
    becomes("\"nll\"", "log_softmax", "2x3", DNN_PROBABILITY_EXP);
    becomes("\"nll\"", "none", "2x3", DNN_PROBABILITY_SOFTMAX);
    becomes("{\"function\": \"nll\", \"source\": \"none\"}", "none", "2x3",
            DNN_PROBABILITY_EXP);
    becomes("\"kl_div\"", "none", "2x3", DNN_PROBABILITY_SOFTMAX);
    becomes("\"bce\"", "none", "2x1", DNN_PROBABILITY_GIVEN);
    becomes("\"bce\"", "sigmoid", "2x1", DNN_PROBABILITY_GIVEN);
    becomes("{\"function\": \"bce\", \"source\": \"sigmoid\"}", "none", "2x3",
            DNN_PROBABILITY_SIGMOID);
    becomes("\"bce_logits\"", "none", "2x3", DNN_PROBABILITY_SIGMOID);
    becomes("\"focal\"", "none", "2x1", DNN_PROBABILITY_SIGMOID);
    becomes("\"focal\"", "none", "2x3", DNN_PROBABILITY_SOFTMAX);
    becomes("\"hinge\"", "none", "2x1", DNN_PROBABILITY_SIGMOID);
    becomes("\"multi_margin\"", "none", "2x3", DNN_PROBABILITY_NONE);
    becomes("{\"function\": \"dice\", \"source\": \"none\"}", "none", "2x3x2",
            DNN_PROBABILITY_GIVEN);
    becomes("{\"function\": \"dice\", \"source\": \"sigmoid\"}", "none", "2x3x2",
            DNN_PROBABILITY_SIGMOID);
    becomes("[\"mae\", {\"function\": \"dice\", \"source\": \"softmax\", "
            "\"output\": \"a\"}]",
            "none", "2x3x2", DNN_PROBABILITY_SOFTMAX);
}

/* Each output has what its own terms apply, in any order. */
static void probabilities_of_two(const char *text)
{
    static const char *const ends[] = {"none", "none"};
    static const char *const shapes[] = {"2x3", "2x4"};
    struct outputs o = outputs(2, ends, shapes);
    struct dnn_loss *loss = read_loss(text);
    const struct dnn_loss_net net = {
        .noutputs = 2, .output = o.y, .name = (const char *const[]){"a", "b"}
    };

    is_int(dnn_loss_probability(loss, o.prog, &net, 0), DNN_PROBABILITY_SOFTMAX, text);
    is_int(dnn_loss_probability(loss, o.prog, &net, 1), DNN_PROBABILITY_NONE,
           "the other is values");
    dnn_loss_free(loss);
    dnn_prog_free(o.prog);
}

int main(void)
{
    tables();
    reading();
    refusing();
    one_output();
    two_outputs();
    reshaped();
    probabilities();
    probabilities_of_two("[\"xent\", \"mse\"]");
    probabilities_of_two("[{\"function\": \"mse\", \"output\": \"b\"}, \"xent\"]");
    probabilities_of_two("{\"function\": \"xent\", \"output\": \"a\"}");
    return done();
}
