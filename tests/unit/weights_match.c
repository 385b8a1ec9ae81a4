/* weights_match.c - matching of arrays in Keras files, and messages about arrays that
 * do not match.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "tap.h"

#include "base/mem.h"
#include "weights/weights.h"

#include <math.h>
#include <stdlib.h>

#if DNN_HAVE_HDF5
static char *path_of(const char *name)
{
    const char *srcdir = getenv("srcdir");

    return dnn_format("%s/tests/data/keras/%s", srcdir == NULL ? "." : srcdir, name);
}

/* "kernel 3x3x1x3": a weight of the layer; moving ones are states. */
static void add(struct dnn_prog *prog, const char *layer, const char *name,
                const char *shape)
{
    struct dnn_init init = {.kind = DNN_INIT_ZEROS};
    struct dnn_shape s;

    dnn_shape_parse(shape, &s, NULL);
    dnn_prog_set_layer(prog, layer, 0, false);
    if (strncmp(name, "moving", 6) == 0)
        dnn_prog_state(prog, name, &s, &init);
    else
        dnn_prog_weight(prog, name, &s, &init);
}

/* The report of a match, without the directory. */
static char *report_of(const struct dnn_weights_match *match)
{
    char *text = NULL, *dir = path_of("");
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    dnn_weights_print(match, f);
    fclose(f);
    for (char *at; (at = strstr(text, dir)) != NULL;)
        memmove(at, at + strlen(dir), strlen(at + strlen(dir)) + 1);
    dnn_free(dir);
    return text;
}

static void is_report(const char *file, const struct dnn_prog *prog,
                      const struct dnn_weights_order *order, const char *want,
                      const char *what)
{
    struct dnn_err err = {0};
    struct dnn_weights *w = NULL;
    struct dnn_weights_match *match = NULL;
    char *path = path_of(file), *text = NULL;

    if (dnn_weights_open(path, &w, &err) == 0 &&
        dnn_weights_match(w, prog, order, &match, &err) == 0)
        text = report_of(match);
    is_text(text == NULL ? err.text : text, want, what);
    free(text);
    dnn_weights_match_free(match);
    dnn_weights_close(w);
    dnn_free(path);
}

/* ---- by name ---- */

static void partly(void)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, false);

    add(prog, "inner/bn", "gamma", "3");
    add(prog, "inner/bn", "beta", "3");
    add(prog, "inner/bn", "moving_mean", "3");
    add(prog, "inner/bn", "moving_variance", "3");
    add(prog, "tail/conv", "kernel", "2x2x3x4");
    add(prog, "dense", "kernel", "100x5");
    add(prog, "dense", "bias", "5");
    add(prog, "head", "kernel", "5x2");
    static const char *const want =
        "%s: 5 of 8 weights, by name\n"
        "not in the file, left as they are:\n"
        "  layer 'head': kernel 5x2\n"
        "in the file, skipped:\n"
        "  layer 'inner/conv': kernel 3x3x3x3, bias 3\n"
        "  layer 'tail/conv': bias 4\n"
        "refused:\n"
        "  %s: layer 'dense': kernel is 100x3 in the file, 100x5 here\n"
        "  %s: layer 'dense': bias is 3 in the file, 5 here\n";
    static const char *const files[] = {"k2_nested.h5", "k3_nested.h5"};
    for (int i = 0; i < 2; i++) {
        char *text = dnn_format(want, files[i], files[i], files[i]);
        char *what = dnn_format("%s: by names of layers and arrays", files[i]);

        is_report(files[i], prog, NULL, text, what);
        dnn_free(text);
        dnn_free(what);
    }
    dnn_prog_free(prog);
}

/* Keras 3 numbers arrays: a layer with another number of arrays is refused. */
static void numbered(void)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, false);

    add(prog, "inner/bn", "beta", "3");
    add(prog, "inner/bn", "moving_mean", "3");
    add(prog, "inner/bn", "moving_variance", "3");
    add(prog, "tail/conv", "kernel", "2x2x3x4");
    add(prog, "tail/conv", "bias", "4");
    static const char *const files[] = {"k3_nested.weights.h5", "k3_nested.keras"};
    static const char *const want =
        "%s: 2 of 5 weights, by name\n"
        "in the file, skipped:\n"
        "  layer 'dense': 0 100x3, 1 3\n"
        "  layer 'inner/conv': 0 3x3x3x3, 1 3\n"
        "refused:\n"
        "  %s: layer 'inner/bn': has 4 arrays in the file, 3 here, and their names do "
        "not match\n";
    for (int i = 0; i < 1 + DNN_HAVE_ZIP; i++) {
        char *text = dnn_format(want, files[i], files[i]);
        char *what = dnn_format("%s: by names of layers", files[i]);

        is_report(files[i], prog, NULL, text, what);
        dnn_free(text);
        dnn_free(what);
    }
    dnn_prog_free(prog);
}

/* ---- by class and order ---- */

static void placed(void)
{
    static const char *const name[] = {"image", "a",      "a/conv", "a/bn",
                                       "b",     "b/conv", "end"},
                             *const class_name[] = {"InputLayer", "Functional",
                                                    "Conv2D",     "BatchNormalization",
                                                    "Sequential", "Conv2D",
                                                    "Dense"};
    static const int model[] = {DNN_NONE, DNN_NONE, 1, 1, DNN_NONE, 4, DNN_NONE};
    struct dnn_weights_order order = {7, name, class_name, model};
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, false);

    add(prog, "b/conv", "kernel", "2x2x3x4");
    add(prog, "b/conv", "bias", "4");
    add(prog, "a/conv", "kernel", "3x3x3x3");
    add(prog, "a/conv", "bias", "3");
    is_report("k2_nested.weights.h5", prog, &order,
              "k2_nested.weights.h5: 4 of 4 weights, by class and order\n"
              "in the file, skipped:\n"
              "  layer 'dense': 0 100x3, 1 3\n"
              "  layer 'functional/batch_normalization': 0 3, 1 3, 2 3, 3 3\n",
              "a file without names: by class and order");
    is_report("k2_nested.weights.h5", prog, NULL,
              "k2_nested.weights.h5: 0 of 4 weights, by name\n"
              "not in the file, left as they are:\n"
              "  layer 'a/conv': kernel 3x3x3x3\n"
              "  layer 'a/conv': bias 3\n"
              "  layer 'b/conv': kernel 2x2x3x4\n"
              "  layer 'b/conv': bias 4\n"
              "in the file, skipped:\n"
              "  layer 'dense': 0 100x3, 1 3\n"
              "  layer 'functional/batch_normalization': 0 3, 1 3, 2 3, 3 3\n"
              "  layer 'functional/conv2d': 0 3x3x3x3, 1 3\n"
              "  layer 'sequential/conv2d': 0 2x2x3x4, 1 4\n",
              "without the list of layers nothing matches");
    is_report("k3_nested.weights.h5", prog, &order,
              "k3_nested.weights.h5: 4 of 4 weights, by class and order\n"
              "in the file, skipped:\n"
              "  layer 'dense': 0 100x3, 1 3\n"
              "  layer 'inner/bn': 0 3, 1 3, 2 3, 3 3\n",
              "a file with other names: by class and order");
    add(prog, "dense", "kernel", "100x3");
    add(prog, "dense", "bias", "3");
    is_report("k3_nested.weights.h5", prog, &order,
              "k3_nested.weights.h5: 2 of 6 weights, by name\n"
              "not in the file, left as they are:\n"
              "  layer 'a/conv': kernel 3x3x3x3\n"
              "  layer 'a/conv': bias 3\n"
              "  layer 'b/conv': kernel 2x2x3x4\n"
              "  layer 'b/conv': bias 4\n"
              "in the file, skipped:\n"
              "  layer 'inner/bn': 0 3, 1 3, 2 3, 3 3\n"
              "  layer 'inner/conv': 0 3x3x3x3, 1 3\n"
              "  layer 'tail/conv': 0 2x2x3x4, 1 4\n",
              "one matching name: then only names are used");
    dnn_prog_free(prog);
}

/* ---- nested layers of Keras 2 ---- */

static void inner(void)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, false);

    /* The file has stage/down and stage/block_one_conv_a alone. */
    add(prog, "stage/one/block_one_conv_a", "kernel", "3x3x3x3");
    add(prog, "stage/x/down", "bias", "4");
    add(prog, "stage/y/down", "bias", "4");
    is_report("k2_deep_nested.h5", prog, NULL,
              "k2_deep_nested.h5: 1 of 3 weights, by name\n"
              "not in the file, left as they are:\n"
              "  layer 'stage/x/down': bias 4\n"
              "  layer 'stage/y/down': bias 4\n"
              "in the file, skipped:\n"
              "  layer 'stage/block_one_conv_a': bias 3\n"
              "  layer 'stage/block_one_conv_b': depthwise_kernel 3x3x3x1, "
              "pointwise_kernel 1x1x3x3, bias 3\n"
              "  layer 'stage/block_one_prelu': alpha 1x1x3\n"
              "  layer 'stage/block_two_conv_a': kernel 3x3x4x4, bias 4\n"
              "  layer 'stage/block_two_conv_b': depthwise_kernel 3x3x4x1, "
              "pointwise_kernel 1x1x4x4, bias 4\n"
              "  layer 'stage/block_two_prelu': alpha 1x1x4\n"
              "  layer 'dense': kernel 4x2, bias 2\n"
              "refused:\n"
              "  k2_deep_nested.h5: layer 'stage/down': matches several layers of the "
              "network, such as 'stage/y/down'\n",
              "a nested name that matches two layers is refused");
    dnn_prog_free(prog);
}

static void extents(void)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, false);

    add(prog, "stage/block_one_prelu", "alpha", "3");
    add(prog, "stage/block_one_conv_b", "pointwise_kernel", "1x3x1x3");
    is_report(
        "k2_deep_nested.h5", prog, NULL,
        "k2_deep_nested.h5: 1 of 2 weights, by name\n"
        "in the file, skipped:\n"
        "  layer 'stage/block_one_conv_a': kernel 3x3x3x3, bias 3\n"
        "  layer 'stage/block_one_conv_b': depthwise_kernel 3x3x3x1\n"
        "  layer 'stage/block_one_conv_b': bias 3\n"
        "  layer 'stage/block_two_conv_a': kernel 3x3x4x4, bias 4\n"
        "  layer 'stage/block_two_conv_b': depthwise_kernel 3x3x4x1, "
        "pointwise_kernel 1x1x4x4, bias 4\n"
        "  layer 'stage/block_two_prelu': alpha 1x1x4\n"
        "  layer 'stage/down': kernel 2x2x3x4, bias 4\n"
        "  layer 'dense': kernel 4x2, bias 2\n"
        "refused:\n"
        "  k2_deep_nested.h5: layer 'stage/block_one_conv_b': pointwise_kernel is "
        "1x1x3x3 in the file, 1x3x1x3 here\n",
        "an axis of extent 1 may be missing, but not at another place");
    dnn_prog_free(prog);
}

/* ---- numbers ---- */

static void numbers(void)
{
    char *path = path_of("k2_nested.h5");
    struct dnn_weights *w = NULL;
    struct dnn_err err = {0};
    int found = -1;

    ok(dnn_weights_open(path, &w, &err) == 0, "it opens: %s", err.text);
    for (int i = 0; w != NULL && dnn_weights_at(w, i) != NULL; i++) {
        const struct dnn_weights_array *a = dnn_weights_at(w, i);

        if (strcmp(a->layer, "dense") == 0 && strcmp(a->is.name, "bias") == 0)
            found = i;
    }
    if (ok(found >= 0, "there is the bias of dense")) {
        const struct dnn_weights_array *a = dnn_weights_at(w, found);
        float f32[3];
        double f64[3];
        uint16_t f16[3], bf16[3];
        int32_t i32[3];

        is_text(a->path, "model_weights/dense/dense/bias:0", "and its path");
        ok(a->is.dtype == DNN_F32 && a->is.shape.ndim == 1 && a->is.shape.dim[0] == 3,
           "it is f32 3");
        ok(dnn_weights_get(w, found, DNN_F32, f32, &err) == 0 &&
               dnn_weights_get(w, found, DNN_F64, f64, &err) == 0 &&
               dnn_weights_get(w, found, DNN_F16, f16, &err) == 0 &&
               dnn_weights_get(w, found, DNN_BF16, bf16, &err) == 0,
           "it is read in four types");
        bool same = true;
        for (int k = 0; k < 3; k++)
            same = same && f32[k] != 0 && fabsf(f32[k]) < 2 && f64[k] == f32[k] &&
                   f16[k] == dnn_f16_from_f32(f32[k]) &&
                   bf16[k] == dnn_bf16_from_f32(f32[k]);
        ok(same, "and is the same in all");
        char *want = dnn_format("%s: weights are not read as i32", path);
        dnn_weights_get(w, found, DNN_I32, i32, &err);
        is_text(err.text, want, "whole numbers are refused");
        dnn_free(want);
    }
    dnn_weights_close(w);
    dnn_free(path);
}

int main(void)
{
    partly();
    numbered();
    placed();
    inner();
    extents();
    numbers();
    return done();
}
#else
int main(void)
{
    struct dnn_weights *w;
    struct dnn_err err;

    ok(dnn_weights_open("x.h5", &w, &err) == DNN_ECONFIG, "no HDF5, no weights");
    is_text(err.text, "x.h5: files of weights need HDF5, which this was built without",
            "and its message");
    return done();
}
#endif
