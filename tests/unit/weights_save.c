/* weights_save.c - weight files in both layouts are read again, and are bitwise the
 * same each time; after an error no file is left.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "tap.h"

#if DNN_HAVE_HDF5
#include "base/file.h"
#include "base/mem.h"
#include "weights/weights.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static char dir[] = "/tmp/weights_save.XXXXXX";

static void add(struct dnn_prog *prog, const char *layer, const char *name,
                const char *shape, bool frozen)
{
    struct dnn_init init = {.kind = DNN_INIT_ZEROS};
    struct dnn_shape s;

    dnn_shape_parse(shape, &s, NULL);
    dnn_prog_set_layer(prog, layer, 0, frozen);
    if (strncmp(name, "moving", 6) == 0)
        dnn_prog_state(prog, name, &s, &init);
    else
        dnn_prog_weight(prog, name, &s, &init);
}

/* Element i of value v, exact in every type. */
static double number(int v, int64_t i)
{
    return (v + 1) * 0.125 + (double)(i % 64) * 0.25;
}

static int give(void *arg, int v, void *to, struct dnn_err *err)
{
    const struct dnn_prog *prog = arg;
    const struct dnn_tensor *is = &prog->value[v].is;
    int64_t n = 0;

    DNN_TRY(dnn_shape_count(&is->shape, &n, err));
    for (int64_t i = 0; i < n; i++)
        if (is->dtype == DNN_F64)
            ((double *)to)[i] = number(v, i);
        else if (is->dtype == DNN_F32)
            ((float *)to)[i] = (float)number(v, i);
        else
            ((uint16_t *)to)[i] = is->dtype == DNN_F16
                                      ? dnn_f16_from_f32((float)number(v, i))
                                      : dnn_bf16_from_f32((float)number(v, i));
    return 0;
}

static int give_some(void *arg, int v, void *to, struct dnn_err *err)
{
    if (v == 3) return dnn_fail(err, DNN_EDEVICE, "the device is gone");
    return give(arg, v, to, err);
}

/* Whether every weight of prog is in the file, with its numbers. */
static bool comes_back(const char *path, const struct dnn_prog *prog,
                       const struct dnn_weights_order *order)
{
    struct dnn_err err = {0};
    struct dnn_weights *w = NULL;
    struct dnn_weights_match *match = NULL;
    bool same = dnn_weights_open(path, &w, &err) == 0 &&
                dnn_weights_match(w, prog, order, &match, &err) == 0;

    same = same && match->filled == match->wanted && match->nskipped == 0 &&
           match->nrefused == 0 && !match->by_class;
    for (int v = 0; same && v < prog->nvalues; v++) {
        int64_t n = 0;

        if (match->array[v] == DNN_NONE) continue;
        dnn_shape_count(&prog->value[v].is.shape, &n, NULL);
        double *data = dnn_alloc((size_t)n * sizeof *data + 1);
        same = dnn_weights_get(w, match->array[v], DNN_F64, data, &err) == 0;
        for (int64_t i = 0; same && i < n; i++)
            same = data[i] == number(v, i);
        dnn_free(data);
    }
    if (!same && match != NULL) dnn_weights_print(match, stdout);
    if (err.text[0] != '\0') printf("# %s\n", err.text);
    dnn_weights_match_free(match);
    dnn_weights_close(w);
    return same;
}

static bool same_bytes(const char *a, const char *b)
{
    char *x = NULL, *y = NULL;
    size_t n = 0, k = 0;
    bool same = dnn_file_read(a, 1 << 26, &x, &n, NULL) == 0 &&
                dnn_file_read(b, 1 << 26, &y, &k, NULL) == 0 && n == k &&
                memcmp(x, y, n) == 0;

    dnn_free(x);
    dnn_free(y);
    return same;
}

static int count_files(void)
{
    DIR *d = opendir(dir);
    int n = -2; /* . and .. */

    while (d != NULL && readdir(d) != NULL)
        n++;
    if (d != NULL) closedir(d);
    return n;
}

static const char *const name[] = {"image",         "in/conv",  "mid",
                                   "mid/in",        "mid/conv", "mid/deep",
                                   "mid/deep/conv", "bn",       "end"},
                         *const class_name[] = {"InputLayer", "Conv2D",
                                                "Functional", "InputLayer",
                                                "Conv2D",     "Sequential",
                                                "Conv2D",     "BatchNormalization",
                                                "Dense"};
static const int model[] = {-1, -1, -1, 2, 2, 2, 5, -1, -1};
static const struct dnn_weights_order order = {9, name, class_name, model};

static struct dnn_prog *network(enum dnn_dtype dtype)
{
    struct dnn_prog *prog = dnn_prog_make(dtype, false);

    add(prog, "bn", "gamma", "4", false);
    add(prog, "bn", "beta", "4", false);
    add(prog, "bn", "moving_mean", "4", false);
    add(prog, "bn", "moving_variance", "4", false);
    add(prog, "mid/deep/conv", "kernel", "2x2x3x4", true);
    add(prog, "mid/conv", "kernel", "1x1x4x4", false);
    add(prog, "mid/conv", "bias", "4", false);
    add(prog, "in/conv", "kernel", "3x1x4", false);
    add(prog, "end", "kernel", "7x3", false);
    add(prog, "end", "bias", "3", false);
    return prog;
}

static void round_trips(void)
{
    static const enum dnn_dtype types[] = {DNN_F32, DNN_F64, DNN_F16, DNN_BF16};
    char *path[3] = {dnn_format("%s/a.weights.h5", dir), dnn_format("%s/a.h5", dir),
                     dnn_format("%s/b.h5", dir)};
    struct dnn_err err = {0};

    for (int t = 0; t < 4; t++) {
        struct dnn_prog *prog = network(types[t]);

        for (int i = 0; i < 2; i++)
            ok(dnn_weights_save(path[i], prog, &order, NULL, give, prog, &err) == 0 &&
                   comes_back(path[i], prog, &order),
               "%s of %s is read again", path[i] + sizeof dir,
               dnn_dtype_name(types[t]));
        if (t == 0) {
            sleep(1); /* time stamps have a resolution of 1 s */
            dnn_weights_save(path[2], prog, &order, NULL, give, prog, &err);
            ok(same_bytes(path[1], path[2]), "the same numbers give the same bytes");
        }
        dnn_prog_free(prog);
    }
    for (int i = 0; i < 3; i++) {
        unlink(path[i]);
        dnn_free(path[i]);
    }
}

/* More names than fit into an attribute. */
static void long_lists(void)
{
    enum { LAYERS = 600 };
    char **names = dnn_alloc(LAYERS * sizeof *names);
    const char **classes = dnn_alloc(LAYERS * sizeof *classes);
    int *models = dnn_alloc(LAYERS * sizeof *models);
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, false);
    struct dnn_weights_order all = {LAYERS, (const char *const *)names, classes,
                                    models};
    struct dnn_err err = {0};

    for (int i = 0; i < LAYERS; i++) {
        names[i] = i < 300 ? dnn_format("layer_%0200d", i)
                           : dnn_format("%s/l_%0150d", names[299], i);
        classes[i] = i == 299 ? "Functional" : "Dense";
        models[i] = i < 300 ? DNN_NONE : 299;
        if (i != 299) add(prog, names[i], "kernel", "2x2", false);
    }
    for (int i = 0; i < 2; i++) {
        char *path = dnn_format("%s/%s", dir, i == 0 ? "long.h5" : "long.weights.h5");

        ok(dnn_weights_save(path, prog, &all, NULL, give, prog, &err) == 0 &&
               comes_back(path, prog, &all),
           "%d long names are read from %s", LAYERS, path + sizeof dir);
        unlink(path);
        dnn_free(path);
    }
    for (int i = 0; i < LAYERS; i++)
        dnn_free(names[i]);
    dnn_free(names);
    dnn_free(classes);
    dnn_free(models);
    dnn_prog_free(prog);
}

static void refusals(void)
{
    struct dnn_prog *prog = network(DNN_F32);
    char *path = dnn_format("%s/a.h5", dir), *none = dnn_format("%s/no/a.h5", dir);
    struct dnn_err err = {0};

    dnn_file_write(path, "old", 3, NULL);
    ok(dnn_weights_save(path, prog, &order, NULL, give_some, prog, &err) == DNN_EDEVICE,
       "an error of the source is returned");
    is_text(err.text, "the device is gone", "with its message");
    char *text = NULL;
    dnn_file_read_text(path, 100, &text, &err);
    is_text(text, "old", "and the old file is there");
    dnn_free(text);
    is_int(count_files(), 1, "alone");
    ok(dnn_weights_save(none, prog, &order, NULL, give, prog, &err) == DNN_EIO,
       "no directory, no file");
    ok(strncmp(err.text, none, strlen(none)) == 0, "the message names it: %s",
       err.text);
    add(prog, "stranger", "kernel", "1", false);
    ok(dnn_weights_save(path, prog, &order, NULL, give, prog, &err) == DNN_ECONFIG,
       "a layer that is not in the list is refused");
    char *want =
        dnn_format("%s: the layer 'stranger' is not in the network's list", path);
    is_text(err.text, want, "with its name");
    is_int(count_files(), 1, "and no file is left");
    dnn_free(want);
    unlink(path);
    dnn_free(path);
    dnn_free(none);
    dnn_prog_free(prog);
}

int main(void)
{
    if (!ok(mkdtemp(dir) != NULL, "a directory to write to")) return done();
    round_trips();
    long_lists();
    refusals();
    rmdir(dir);
    return done();
}
#else
int main(void)
{
    skip("files of weights", "built without HDF5");
    return done();
}
#endif
