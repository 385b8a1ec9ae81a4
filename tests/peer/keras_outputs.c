/* keras_outputs.c - Keras networks give the same outputs as in Keras and, for a
 * training step, the same gradients and moving averages, on every backend.
 *
 * The files and the scripts that made them are in tests/data/keras.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "tap.h"

#if DNN_HAVE_HDF5
#include "base/mem.h"
#include "base/text.h"
#include "graph/graph.h"
#include "op/grad.h"
#include "engine/exec.h"
#include "weights/weights.h"

#include <dirent.h>
#include <hdf5.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 32 }; /* inputs or outputs of a network */

static const double output_limit = 1e-5, gradient_limit = 1e-4;

/* ---- what Keras computed ---- */

struct array {
    struct dnn_shape shape;
    float *data; /* owned; NULL: none */
    int64_t n;
};

static struct array read_array(hid_t file, const char *path)
{
    struct array a = {0};
    hsize_t dims[DNN_MAX_DIMS];
    hid_t data = H5Dopen2(file, path, H5P_DEFAULT);

    if (data < 0) return a;
    hid_t space = H5Dget_space(data);
    a.shape.ndim = H5Sget_simple_extent_dims(space, dims, NULL);
    a.n = 1;
    for (int i = 0; i < a.shape.ndim; i++)
        a.n *= a.shape.dim[i] = (int64_t)dims[i];
    a.data = dnn_alloc((size_t)a.n * sizeof *a.data + 1);
    if (H5Dread(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, a.data) < 0) {
        dnn_free(a.data);
        a.data = NULL;
    }
    H5Sclose(space);
    H5Dclose(data);
    return a;
}

static struct array read_number(hid_t file, const char *what, int k)
{
    char *path = dnn_format("%s/%d", what, k);
    struct array a = read_array(file, path);

    dnn_free(path);
    return a;
}

/* Number of arrays in a group and its subgroups, and their largest value. */
struct tally {
    int n;
    double most;
};

static herr_t add_array(hid_t at, const char *name, const H5O_info2_t *info, void *arg)
{
    struct tally *t = arg;

    if (info->type != H5O_TYPE_DATASET) return 0;
    struct array a = read_array(at, name);
    for (int64_t i = 0; i < a.n && a.data != NULL; i++)
        t->most = fmax(t->most, fabs((double)a.data[i]));
    dnn_free(a.data);
    t->n++;
    return 0;
}

static struct tally count_arrays(hid_t file, const char *group)
{
    hid_t at = H5Gopen2(file, group, H5P_DEFAULT);
    struct tally t = {0};

    if (at < 0) return t;
    H5Ovisit3(at, H5_INDEX_NAME, H5_ITER_NATIVE, add_array, &t, H5O_INFO_BASIC);
    H5Gclose(at);
    return t;
}

/* The largest difference, relative to the largest number, or to most if that is larger.
 */
static double apart(const float *got, const struct array *want, double most)
{
    double worst = 0;

    for (int64_t i = 0; i < want->n; i++) {
        double d = fabs((double)got[i] - want->data[i]);

        if (!(d <= worst)) worst = isfinite(d) ? d : INFINITY;
        if (fabs((double)want->data[i]) > most) most = fabs((double)want->data[i]);
    }
    return most > 0 ? worst / most : worst;
}

/* ---- a network on a device ---- */

struct net {
    const char *name; /* for messages */
    const struct dnn_graph *graph;
    int64_t batch;
    const struct dnn_backend *backend;
    struct dnn_prog *prog;
    struct dnn_plan *plan;
    struct dnn_dev *dev;
    struct dnn_exec *exec;
    int input[MOST], output[MOST], seed[MOST];
};

/* Lower; in training also differentiate with a seed for every output. */
static int make_prog(struct net *net, bool training, struct dnn_err *err)
{
    int noutputs = net->graph->noutputs, n = 0;
    struct dnn_grad_of of[MOST];

    net->prog = dnn_prog_make(DNN_F32, training);
    DNN_TRY(dnn_graph_lower(net->graph, net->batch, net->prog, net->output, err));
    for (int v = 0; v < net->prog->nvalues; v++)
        if (net->prog->value[v].role == DNN_INPUT) net->input[n++] = v;
    for (int k = 0; training && k < noutputs; k++) {
        struct dnn_shape shape = *dnn_prog_shape(net->prog, net->output[k]);

        net->seed[k] = dnn_prog_input(net->prog, "seed", DNN_F32, &shape);
        of[k] = (struct dnn_grad_of){net->output[k], net->seed[k]};
    }
    if (training) dnn_grad(net->prog, noutputs, of, false);
    return 0;
}

static int start(struct net *net, bool training, struct dnn_err *err)
{
    struct dnn_device device = {.threads = 2, .kernels = DNN_KERNELS_HEURISTIC};

    DNN_TRY(make_prog(net, training, err));
    int *keep = dnn_alloc((size_t)net->prog->nvalues * sizeof *keep), n = 0;
    for (int k = 0; k < net->graph->noutputs; k++)
        keep[n++] = net->output[k];
    for (int v = 0; v < net->prog->nvalues; v++)
        if (net->prog->value[v].role == DNN_WEIGHT &&
            net->prog->value[v].grad != DNN_NONE)
            keep[n++] = net->prog->value[v].grad;
    struct dnn_plan_opts opts = {.nkeep = n, .keep = keep};
    int rc = dnn_plan_make(net->prog, &opts, &net->plan, err);
    dnn_free(keep);
    if (rc == 0) rc = net->backend->open(&device, &net->dev, err);
    if (rc == 0) rc = dnn_exec_make(net->plan, net->backend, net->dev, &net->exec, err);
    return rc == 0 ? dnn_exec_start(net->exec, err) : rc;
}

static void stop(struct net *net)
{
    dnn_exec_close(net->exec);
    if (net->dev != NULL) net->backend->close(net->dev);
    dnn_plan_free(net->plan);
    dnn_prog_free(net->prog);
    *net = (struct net){.name = net->name,
                        .graph = net->graph,
                        .batch = net->batch,
                        .backend = net->backend};
}

/* Load all weights; none may be missing on either side. */
static int load(struct net *net, const char *path, struct dnn_err *err)
{
    const struct dnn_graph *g = net->graph;
    struct dnn_weights_order order = {g->nlayers, g->layer_name, g->layer_class,
                                      g->layer_model};
    struct dnn_weights *file = NULL;
    struct dnn_weights_match *match = NULL;
    int rc = dnn_weights_open(path, &file, err);

    if (rc == 0) rc = dnn_weights_match(file, net->prog, &order, &match, err);
    if (rc == 0 && (match->nmissing > 0 || match->nskipped > 0 || match->nrefused > 0 ||
                    match->filled != match->wanted)) {
        dnn_weights_print(match, stdout);
        rc = dnn_fail(err, DNN_EDATA, "%s: %d of %d weights", path, match->filled,
                      match->wanted);
    }
    for (int v = 0; rc == 0 && v < match->nvalues; v++) {
        size_t bytes = 0;

        if (match->array[v] == DNN_NONE) continue;
        rc = dnn_tensor_bytes(&net->prog->value[v].is, &bytes, err);
        void *data = dnn_alloc(bytes + 1);
        if (rc == 0) rc = dnn_weights_get(file, match->array[v], DNN_F32, data, err);
        if (rc == 0) rc = dnn_exec_put(net->exec, v, data, err);
        dnn_free(data);
    }
    dnn_weights_match_free(match);
    dnn_weights_close(file);
    return rc;
}

static int put_all(struct net *net, hid_t data, const char *what, int n,
                   const int *value, struct dnn_err *err)
{
    int rc = 0;

    for (int k = 0; rc == 0 && k < n; k++) {
        struct array a = read_number(data, what, k);

        if (a.data == NULL ||
            !dnn_shape_equal(&a.shape, dnn_prog_shape(net->prog, value[k])))
            rc = dnn_fail(err, DNN_EDATA,
                          "%s/%d does not match the input of the network", what, k);
        else
            rc = dnn_exec_put(net->exec, value[k], a.data, err);
        dnn_free(a.data);
    }
    return rc;
}

/* Compare a value with what Keras has; adds to *worst. */
static int compare(struct net *net, hid_t data, const char *path, int value,
                   double least, double *worst, struct dnn_err *err)
{
    struct array want = read_array(data, path);
    char x[DNN_SHAPE_TEXT], y[DNN_SHAPE_TEXT];
    const struct dnn_shape *shape = dnn_prog_shape(net->prog, value);
    int rc = 0;

    if (want.data == NULL)
        rc = dnn_fail(err, DNN_EDATA, "%s is not in the data", path);
    else if (!dnn_shape_equal(&want.shape, shape))
        rc = dnn_fail(err, DNN_EDATA, "%s is %s, here %s", path,
                      dnn_shape_text(x, sizeof x, &want.shape),
                      dnn_shape_text(y, sizeof y, shape));
    else {
        float *got = dnn_alloc((size_t)want.n * sizeof *got + 1);

        rc = dnn_exec_get(net->exec, value, got, err);
        double d = apart(got, &want, least);
        if (d > output_limit) printf("# %s: %s: %g apart\n", net->name, path, d);
        if (!(d <= *worst)) *worst = d;
        dnn_free(got);
    }
    dnn_free(want.data);
    return rc;
}

static int compare_outputs(struct net *net, hid_t data, const char *what, double *worst,
                           struct dnn_err *err)
{
    int rc = 0;

    for (int k = 0; rc == 0 && k < net->graph->noutputs; k++) {
        char *path = dnn_format("%s/%d", what, k);

        rc = compare(net, data, path, net->output[k], 0, worst, err);
        dnn_free(path);
    }
    return rc;
}

/* Gradients or moving averages; as many as in the data. */
static int compare_weights(struct net *net, hid_t data, const char *what, double *worst,
                           struct dnn_err *err)
{
    struct tally all = count_arrays(data, what);
    int found = 0, rc = 0;
    bool grads = strcmp(what, "grad") == 0;
    /* The gradient of a bias before a batch norm is only rounding. */
    double least = grads ? all.most / 100 : 0;

    for (int v = 0; rc == 0 && v < net->prog->nvalues; v++) {
        const struct dnn_value *value = &net->prog->value[v];

        if (value->role != (grads ? DNN_WEIGHT : DNN_STATE) ||
            (grads && !value->trainable))
            continue;
        if (grads && value->grad == DNN_NONE)
            return dnn_fail(err, DNN_EDATA, "%s/%s has no gradient", value->layer,
                            value->is.name);
        char *path = dnn_format("%s/%s/%s", what, value->layer, value->is.name);
        rc = compare(net, data, path, grads ? value->grad : v, least, worst, err);
        dnn_free(path);
        found++;
    }
    if (rc == 0 && found != all.n)
        rc = dnn_fail(err, DNN_EDATA, "%s: Keras has %d, here are %d", what, all.n,
                      found);
    return rc;
}

/* ---- the tests ---- */

static void infer(struct net *net, const char *weights, hid_t data)
{
    struct dnn_now now = {.seed = 1};
    struct dnn_err err = {0};
    double worst = 0;

    int rc = start(net, false, &err);
    if (rc == 0) rc = load(net, weights, &err);
    if (rc == 0)
        rc = put_all(net, data, "input", net->graph->ninputs, net->input, &err);
    if (rc == 0) rc = dnn_exec_run(net->exec, 0, net->prog->nops, &now, &err);
    if (rc == 0) rc = compare_outputs(net, data, "output", &worst, &err);
    if (rc < 0) printf("# %s\n", err.text);
    ok(rc == 0 && worst <= output_limit, "%s on %s: %s gives the outputs, %.1e apart",
       net->name, net->backend->name, strrchr(weights, '/') + 1, worst);
    stop(net);
}

static void train(struct net *net, const char *weights, hid_t data)
{
    struct dnn_now now = {.seed = 1};
    struct dnn_err err = {0};
    double worst = 0, grads = 0;

    int rc = start(net, true, &err);
    if (rc == 0) rc = load(net, weights, &err);
    if (rc == 0)
        rc = put_all(net, data, "input", net->graph->ninputs, net->input, &err);
    if (rc == 0) rc = put_all(net, data, "seed", net->graph->noutputs, net->seed, &err);
    if (rc == 0) rc = dnn_exec_run(net->exec, 0, net->prog->nops, &now, &err);
    if (rc == 0) rc = compare_outputs(net, data, "train", &worst, &err);
    if (rc == 0) rc = compare_weights(net, data, "after", &worst, &err);
    if (rc == 0) rc = compare_weights(net, data, "grad", &grads, &err);
    if (rc < 0) printf("# %s\n", err.text);
    ok(rc == 0 && worst <= output_limit && grads <= gradient_limit,
       "%s on %s: a training step, %.1e apart, gradients %.1e", net->name,
       net->backend->name, worst, grads);
    stop(net);
}

static int read_graph(const char *path, hid_t data, struct dnn_graph **out,
                      int64_t *batch, struct dnn_err *err)
{
    struct dnn_shape shape[MOST];
    struct dnn_graph_opts opts = {.input = shape};

    for (; opts.ninputs < MOST; opts.ninputs++) {
        struct array a = read_number(data, "input", opts.ninputs);

        dnn_free(a.data);
        if (a.data == NULL) break;
        shape[opts.ninputs] = a.shape;
        *batch = a.shape.dim[0];
        shape[opts.ninputs].dim[0] = DNN_UNKNOWN;
    }
    return dnn_graph_read(path, &opts, out, err);
}

/* One network: every file of weights it has, on every backend. */
static void one(const char *dir, const char *name)
{
    static const char *const forms[] = {"h5", "weights.h5", "keras"};
    char *json = dnn_format("%s/%s.json", dir, name);
    char *path = dnn_format("%s/%s.data.h5", dir, name);
    hid_t data = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    struct dnn_graph *graph = NULL;
    struct dnn_err err = {0};
    int64_t batch = 0;
    int files = 0;

    if (ok(data >= 0 && read_graph(json, data, &graph, &batch, &err) == 0, "%s is read",
           name))
        for (int f = 0; f < 3; f++) {
            char *weights = dnn_format("%s/%s.%s", dir, name, forms[f]);

            if (access(weights, R_OK) == 0) {
                const struct dnn_backend *b;

                for (int i = 0; (b = dnn_backend_at(i)) != NULL; i++) {
                    struct net net = {
                        .name = name, .graph = graph, .batch = batch, .backend = b};

                    infer(&net, weights, data);
                    if (files == 0 && H5Lexists(data, "seed", H5P_DEFAULT) > 0)
                        train(&net, weights, data);
                }
                files++;
            }
            dnn_free(weights);
        }
    else
        printf("# %s\n", err.text);
    ok(files > 0, "%s has weights", name);
    dnn_graph_free(graph);
    if (data >= 0) H5Fclose(data);
    dnn_free(json);
    dnn_free(path);
}

static int is_network(const struct dirent *e)
{
    size_t len = strlen(e->d_name);

    return len > 8 && e->d_name[0] == 'k' && e->d_name[2] == '_' &&
           strcmp(e->d_name + len - 5, ".json") == 0;
}

int main(int argc, char **argv)
{
    const char *srcdir = getenv("srcdir");
    char *dir = dnn_format("%s/tests/data/keras", srcdir == NULL ? "." : srcdir);
    struct dirent **entry;

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    int n = scandir(dir, &entry, is_network, alphasort);
    ok(n > 0, "there are networks");
    for (int i = 0; i < n; i++) {
        char *name = dnn_strndup(entry[i]->d_name, strlen(entry[i]->d_name) - 5);

        if (argc < 2 || strcmp(argv[1], name) == 0) one(dir, name);
        dnn_free(name);
        free(entry[i]);
    }
    free(entry);
    dnn_free(dir);
    return done();
}

#else

int main(void)
{
    skip("real Keras networks", "built without HDF5");
    return done();
}
#endif
