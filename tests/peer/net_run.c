/* net_run.c - one forward and backward pass of a network, with all arrays written to
 * files, for the Python tests: net_run run NET.json DIR; net_run zoo NAME KEY=VALUE...
 *
 * DIR gets one .npy per array, and a manifest: lines of kind, layer, name and file,
 * apart by tabs.  Kinds: input, seed (the gradient of an output), weight, state,
 * output, grad (of a weight), input_grad, after (a state after the step).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/rng.h"
#include "base/text.h"
#include "fuse/fuse.h"
#include "graph/graph.h"
#include "graph/zoo.h"
#include "op/grad.h"
#include "engine/exec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct opts {
    const char *backend, *weights;
    long batch, seed, threads;
    bool inference, fuse;
    int dtype, recompute;
};

struct net {
    struct dnn_graph *graph;
    struct dnn_prog *prog;
    struct dnn_prog *whole; /* before recomputing, or NULL */
    int *output, *seed;
    struct dnn_plan *plan;
    const struct dnn_backend *backend;
    struct dnn_dev *dev;
    struct dnn_exec *exec;
    const char *dir;
    FILE *manifest;
};

/* ---- .npy, version 1.0: what NumPy saves ---- */

static int npy_write(const char *path, const struct dnn_tensor *is, const void *data,
                     struct dnn_err *err)
{
    struct dnn_buf head = {0};
    size_t bytes;

    DNN_TRY(dnn_tensor_bytes(is, &bytes, err));
    dnn_buf_add(&head,
                "{'descr': '%s', 'fortran_order': False, "
                "'shape': (",
                is->dtype == DNN_F64 ? "<f8" : "<f4");
    for (int i = 0; i < is->shape.ndim; i++)
        dnn_buf_add(&head, "%" PRId64 ",", is->shape.dim[i]);
    dnn_buf_add(&head, "), }");
    while ((10 + head.len + 1) % 64 != 0)
        dnn_buf_add(&head, " ");
    dnn_buf_add(&head, "\n");
    unsigned char front[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 0, 0};
    front[8] = head.len & 255;
    front[9] = head.len >> 8 & 255;
    FILE *to = fopen(path, "wb");
    bool good = to != NULL && fwrite(front, 1, 10, to) == 10 &&
                fwrite(head.text, 1, head.len, to) == head.len &&
                fwrite(data, 1, bytes, to) == bytes;
    if (to != NULL && fclose(to) != 0) good = false;
    dnn_buf_free(&head);
    if (!good) return dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(errno));
    return 0;
}

/* The n elements of a file as doubles; *out is the caller's. */
static int npy_read(const char *path, int64_t n, double **out, struct dnn_err *err)
{
    char *text;
    size_t len;

    DNN_TRY(dnn_file_read(path, (size_t)1 << 34, &text, &len, err));
    const unsigned char *u = (const unsigned char *)text;
    size_t at = len < 10 ? len : 10 + u[8] + ((size_t)u[9] << 8);
    size_t size = 0;
    if (at < len && strstr(text + 10, "'<f8'") != NULL) size = 8;
    if (at < len && strstr(text + 10, "'<f4'") != NULL) size = 4;
    int rc = 0;
    if (size == 0 || len - at != (size_t)n * size) {
        rc = dnn_fail(err, DNN_EDATA,
                      "%s: must hold %" PRId64 " numbers of type <f4 or <f8", path, n);
    } else {
        double *x = *out = dnn_alloc((size_t)n * sizeof *x + 1);

        for (int64_t i = 0; i < n; i++) {
            float narrow;

            if (size == 8)
                memcpy(&x[i], text + at + 8 * i, 8);
            else {
                memcpy(&narrow, text + at + 4 * i, 4);
                x[i] = narrow;
            }
        }
    }
    dnn_free(text);
    return rc;
}

/* ---- values in and out ---- */

static int64_t count(const struct net *net, int value)
{
    int64_t n = 0;

    dnn_shape_count(&net->prog->value[value].is.shape, &n, NULL);
    return n;
}

static int put(struct net *net, int value, const double *from, struct dnn_err *err)
{
    int64_t n = count(net, value);

    if (net->prog->value[value].is.dtype == DNN_F64)
        return dnn_exec_put(net->exec, value, from, err);
    float *narrow = dnn_alloc((size_t)n * sizeof *narrow + 1);
    for (int64_t i = 0; i < n; i++)
        narrow[i] = (float)from[i];
    int rc = dnn_exec_put(net->exec, value, narrow, err);
    dnn_free(narrow);
    return rc;
}

/* Write a value to the directory, and a line about it. */
static int save(struct net *net, const char *kind, int value, const char *layer,
                const char *name, struct dnn_err *err)
{
    const struct dnn_tensor *is = &net->prog->value[value].is;
    size_t bytes;

    DNN_TRY(dnn_tensor_bytes(is, &bytes, err));
    void *data = dnn_alloc(bytes + 1);
    char *file = dnn_format("%s_%d.npy", kind, value);
    char *path = dnn_format("%s/%s", net->dir, file);
    int rc = dnn_exec_get(net->exec, value, data, err);
    if (rc == 0) rc = npy_write(path, is, data, err);
    if (rc == 0)
        fprintf(net->manifest, "%s\t%s\t%s\t%s\n", kind, layer == NULL ? "" : layer,
                name == NULL ? "" : name, file);
    dnn_free(path);
    dnn_free(file);
    dnn_free(data);
    return rc;
}

/* Normal numbers that a float holds exactly; nth of the inputs. */
static int fill(struct net *net, int value, int nth, uint64_t seed, struct dnn_err *err)
{
    int64_t n = count(net, value);
    struct dnn_rng rng = dnn_rng_make(seed, (uint64_t)nth + 1000);
    double *x = dnn_alloc((size_t)n * sizeof *x + 1);

    for (int64_t i = 0; i < n; i++)
        x[i] = (float)dnn_rng_normal(&rng, (struct dnn_rng_at){.index = (uint64_t)i});
    int rc = put(net, value, x, err);
    dnn_free(x);
    return rc;
}

/* ---- weights from files ---- */

static int find(const struct net *net, const char *layer, const char *name)
{
    for (int v = 0; v < net->prog->nvalues; v++) {
        const struct dnn_value *value = &net->prog->value[v];

        if ((value->role == DNN_WEIGHT || value->role == DNN_STATE) &&
            strcmp(value->layer, layer) == 0 && strcmp(value->is.name, name) == 0)
            return v;
    }
    return DNN_NONE;
}

static int load_one(struct net *net, const char *dir, char *line, bool *given,
                    struct dnn_err *err)
{
    char *rest = line, *word[4];

    for (int i = 0; i < 4; i++)
        if ((word[i] = strsep(&rest, "\t")) == NULL)
            return dnn_fail(err, DNN_EDATA,
                            "%s/manifest: a line must be kind, layer, name and file",
                            dir);
    if (strcmp(word[0], "weight") != 0 && strcmp(word[0], "state") != 0) return 0;
    int v = find(net, word[1], word[2]);
    if (v == DNN_NONE)
        return dnn_fail(err, DNN_EDATA, "%s/manifest: there is no weight %s of %s", dir,
                        word[2], word[1]);
    char *path = dnn_format("%s/%s", dir, word[3]);
    double *x = NULL;
    int rc = npy_read(path, count(net, v), &x, err);
    if (rc == 0) rc = put(net, v, x, err);
    given[v] = true;
    dnn_free(x);
    dnn_free(path);
    return rc;
}

static int load(struct net *net, const char *dir, struct dnn_err *err)
{
    char *path = dnn_format("%s/manifest", dir), *text = NULL;
    bool *given = dnn_alloc((size_t)net->prog->nvalues + 1);
    int rc = dnn_file_read_text(path, 1 << 26, &text, err);
    char *rest = text, *line;

    while (rc == 0 && rest != NULL && (line = strsep(&rest, "\n")) != NULL)
        if (line[0] != '\0') rc = load_one(net, dir, line, given, err);
    for (int v = 0; rc == 0 && v < net->prog->nvalues; v++) {
        const struct dnn_value *value = &net->prog->value[v];

        if ((value->role == DNN_WEIGHT || value->role == DNN_STATE) && !given[v])
            rc = dnn_fail(err, DNN_EDATA, "%s: the weight %s of %s is missing", path,
                          value->is.name, value->layer);
    }
    dnn_free(given);
    dnn_free(text);
    dnn_free(path);
    return rc;
}

/* ---- the network ---- */

/* Forward, and backward from a seed for each output. */
static int lower(struct net *net, const struct opts *o, struct dnn_err *err)
{
    int n = net->graph->noutputs;

    net->prog = dnn_prog_make((enum dnn_dtype)o->dtype, !o->inference);
    net->output = dnn_alloc((size_t)n * sizeof(int));
    net->seed = dnn_alloc((size_t)n * sizeof(int));
    DNN_TRY(dnn_graph_lower(net->graph, o->batch, net->prog, net->output, err));
    if (o->fuse) {
        struct dnn_prog *fused = dnn_fuse(net->prog, n, net->output);

        dnn_prog_free(net->prog);
        net->prog = fused;
    }
    if (o->inference) return 0;
    struct dnn_grad_of *of = dnn_alloc((size_t)n * sizeof *of);
    for (int i = 0; i < n; i++) {
        struct dnn_shape shape = *dnn_prog_shape(net->prog, net->output[i]);

        net->seed[i] = dnn_prog_input(net->prog, "seed", net->prog->dtype, &shape);
        of[i] = (struct dnn_grad_of){net->output[i], net->seed[i]};
    }
    dnn_grad(net->prog, n, of, true);
    dnn_free(of);
    return 0;
}

/* Heuristic selection: results must not depend on timings. */
static int open_device(struct net *net, const struct opts *o, struct dnn_err *err)
{
    struct dnn_device device = {.threads = (int)o->threads,
                                .kernels = DNN_KERNELS_HEURISTIC};

    net->backend = dnn_backend_find(o->backend, err);
    if (net->backend == NULL) return DNN_ECONFIG;
    return net->backend->open(&device, &net->dev, err);
}

/* Answers the plan's questions about the pitch of operands. */
static bool may_be_apart(void *arg, const struct dnn_prog *prog, int o, bool out, int i)
{
    const struct net *net = arg;
    const struct dnn_op *op = &prog->op[o];
    const struct dnn_tensor **in = dnn_alloc(((size_t)op->nin + 1) * sizeof *in);
    const struct dnn_tensor *outs[DNN_MAX_OUT] = {NULL};

    for (int k = 0; k < op->nin; k++)
        if (op->in[k] != DNN_NONE) in[k] = &prog->value[op->in[k]].is;
    for (int k = 0; k < op->nout; k++)
        if (op->out[k] != DNN_NONE) outs[k] = &prog->value[op->out[k]].is;
    bool may = net->backend->pitch(
        net->dev, &(struct dnn_step){.op = op, .in = in, .out = outs}, out, i);
    dnn_free(in);
    return may;
}

static int start(struct net *net, const struct opts *o, struct dnn_err *err)
{
    int *keep = dnn_alloc((size_t)(net->prog->nvalues + 1) * sizeof *keep), n = 0;

    for (int i = 0; i < net->graph->noutputs; i++)
        keep[n++] = net->output[i];
    for (int v = 0; v < net->prog->nvalues; v++) {
        const struct dnn_value *value = &net->prog->value[v];

        if ((value->role == DNN_INPUT || value->role == DNN_WEIGHT) &&
            value->grad != DNN_NONE)
            keep[n++] = value->grad;
    }
    struct dnn_recompute_opts opts = {
        .plan = {.nkeep = n, .keep = keep},
        .how = (enum dnn_recompute)o->recompute,
    };
    if (o->fuse) {
        opts.plan.pitch = may_be_apart;
        opts.plan.arg = net;
    }
    int rc = 0;
    if (o->recompute != DNN_RECOMPUTE_NEVER && !o->inference) {
        net->whole = net->prog;
        net->prog = NULL;
        rc = dnn_plan_recompute(net->whole, &opts, &net->prog, NULL, err);
    }
    if (rc == 0) rc = dnn_plan_make(net->prog, &opts.plan, &net->plan, err);
    dnn_free(keep);
    DNN_TRY(rc);
    DNN_TRY(dnn_exec_make(net->plan, net->backend, net->dev, &net->exec, err));
    return dnn_exec_start(net->exec, err);
}

static bool is_seed(const struct net *net, int v)
{
    for (int i = 0; i < net->graph->noutputs; i++)
        if (net->prog->training && net->seed[i] == v) return true;
    return false;
}

/* Inputs, seeds and weights at the start. */
static int supply(struct net *net, const struct opts *o, struct dnn_err *err)
{
    DNN_TRY(dnn_exec_init(net->exec, (uint64_t)o->seed, err));
    if (o->weights != NULL) DNN_TRY(load(net, o->weights, err));
    int inputs = 0;
    for (int v = 0; v < net->prog->nvalues; v++) {
        const struct dnn_value *value = &net->prog->value[v];

        if (value->role == DNN_INPUT) {
            DNN_TRY(fill(net, v, inputs++, (uint64_t)o->seed, err));
            DNN_TRY(save(net, is_seed(net, v) ? "seed" : "input", v, value->is.name,
                         NULL, err));
        } else if (value->role == DNN_WEIGHT || value->role == DNN_STATE)
            DNN_TRY(save(net, value->role == DNN_WEIGHT ? "weight" : "state", v,
                         value->layer, value->is.name, err));
    }
    return 0;
}

static int collect(struct net *net, struct dnn_err *err)
{
    for (int i = 0; i < net->graph->noutputs; i++)
        DNN_TRY(save(net, "output", net->output[i],
                     net->graph->node[net->graph->output[i]].name, NULL, err));
    for (int v = 0; v < net->prog->nvalues; v++) {
        const struct dnn_value *value = &net->prog->value[v];

        if (value->role == DNN_STATE)
            DNN_TRY(save(net, "after", v, value->layer, value->is.name, err));
        if (value->grad == DNN_NONE) continue;
        if (value->role == DNN_INPUT)
            DNN_TRY(save(net, "input_grad", value->grad, value->is.name, NULL, err));
        if (value->role == DNN_WEIGHT)
            DNN_TRY(save(net, "grad", value->grad, value->layer, value->is.name, err));
    }
    return 0;
}

static int work(struct net *net, const struct opts *o, const char *path,
                struct dnn_err *err)
{
    DNN_TRY(dnn_graph_read(path, NULL, &net->graph, err));
    DNN_TRY(lower(net, o, err));
    DNN_TRY(open_device(net, o, err));
    DNN_TRY(start(net, o, err));
    DNN_TRY(supply(net, o, err));
    DNN_TRY(dnn_exec_run(net->exec, 0, net->prog->nops,
                         &(struct dnn_now){.seed = (uint64_t)o->seed}, err));
    return collect(net, err);
}

static int cmd_run(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    const struct opts *o = opt;
    struct net net = {.dir = args[1]};

    (void)nargs;
    DNN_TRY(dnn_file_make_dirs(net.dir, err));
    char *path = dnn_format("%s/manifest", net.dir);
    net.manifest = fopen(path, "w");
    int rc = 0;
    if (net.manifest == NULL)
        rc = dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(errno));
    else
        rc = work(&net, o, args[0], err);
    if (net.manifest != NULL && fclose(net.manifest) != 0 && rc == 0)
        rc = dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(errno));
    dnn_free(path);
    dnn_exec_close(net.exec);
    if (net.backend != NULL) net.backend->close(net.dev);
    dnn_plan_free(net.plan);
    if (net.prog != NULL) dnn_prog_free(net.prog);
    if (net.whole != NULL) dnn_prog_free(net.whole);
    dnn_graph_free(net.graph);
    dnn_free(net.output);
    dnn_free(net.seed);
    return rc;
}

/* ---- the zoo ---- */

/* KEY=VALUE... as the object in a configuration file. */
static int cmd_zoo(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    struct dnn_buf text = {0};
    struct dnn_zoo_opts zoo;
    struct dnn_json *file = NULL;
    char *out = NULL;

    (void)opt;
    dnn_buf_add(&text, "{\"zoo\": \"%s\"", args[0]);
    for (int i = 1; i < nargs; i++) {
        const char *value = strchr(args[i], '=');
        if (value == NULL) {
            dnn_buf_free(&text);
            return dnn_fail(err, DNN_EUSAGE, "%s: must be KEY=VALUE", args[i]);
        }
        value++;
        const char *quote = strchr("[-0123456789", value[0]) != NULL ? "" : "\"";
        dnn_buf_add(&text, ", \"%.*s\": %s%s%s", (int)(value - args[i] - 1), args[i],
                    quote, value, quote);
    }
    dnn_buf_add(&text, "}");
    int rc = dnn_json_text("zoo", text.text, text.len, &file, err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        rc = dnn_field_fill(&top, dnn_zoo_fields, NULL, &zoo, err);
        if (rc == 0) rc = dnn_zoo_text(&zoo, &out, err);
    }
    if (rc == 0) fputs(out, stdout);
    dnn_free(out);
    dnn_json_free(file);
    dnn_buf_free(&text);
    return rc;
}

static int cmd_list(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    (void)opt;
    (void)nargs;
    (void)args;
    (void)err;
    for (int i = 0; dnn_zoo_name(i) != NULL; i++)
        printf("zoo\t%s\n", dnn_zoo_name(i));
    for (int i = 0; dnn_layer_at(i) != NULL; i++)
        printf("layer\t%s\n", dnn_layer_at(i)->name);
    for (int i = 0; dnn_backend_at(i) != NULL; i++)
        printf("backend\t%s\n", dnn_backend_at(i)->name);
    return 0;
}

static const struct dnn_choice dtypes[] = {
    {"f32", DNN_F32},
    {"f64", DNN_F64},
    {NULL,  0      }
};
static const struct dnn_choice recomputes[] = {
    {"never", DNN_RECOMPUTE_NEVER},
    {"cheap", DNN_RECOMPUTE_CHEAP},
    {"all",   DNN_RECOMPUTE_ALL  },
    {NULL,    0                  }
};
#define AT(f) offsetof(struct opts, f)
static const struct dnn_option options[] = {
    {"backend",   0, DNN_O_TEXT, AT(backend),   "NAME", "ref",   0, 0,    NULL,       "backend"       },
    {"batch",     0, DNN_O_INT,  AT(batch),     "N",    "2",     1, 1e6,  NULL,       "samples"       },
    {"seed",      0, DNN_O_INT,  AT(seed),      "N",    "1",     0, 1e9,  NULL,       "of all numbers"},
    {"threads",   0, DNN_O_INT,  AT(threads),   "N",    "2",     0, 1024, NULL,       "cpu: how many" },
    {"dtype",     0, DNN_O_ENUM, AT(dtype),     "TYPE", "f32",   0, 0,    dtypes,     "of all numbers"},
    {"inference", 0, DNN_O_FLAG, AT(inference), NULL,   NULL,    0, 0,    NULL,
     "inference only"                                                                                 },
    {"fuse",      0, DNN_O_FLAG, AT(fuse),      NULL,   NULL,    0, 0,    NULL,
     "with fusion and concatenations in place"                                                        },
    {"recompute", 0, DNN_O_ENUM, AT(recompute), "WHAT", "never", 0, 0,    recomputes,
     "recompute activations"                                                                          },
    {"weights",   0, DNN_O_TEXT, AT(weights),   "DIR",  NULL,    0, 0,    NULL,
     "directory with the weights"                                                                     },
    {NULL,        0, 0,          0,             NULL,   NULL,    0, 0,    NULL,       NULL            },
};
static const struct dnn_command commands[] = {
    {"run",  "NET.json DIR",        2, 2,  "one pass, arrays written to files",  options, NULL,
     cmd_run                                                                                            },
    {"zoo",  "NAME [KEY=VALUE]...", 1, -1, "print a network",                    NULL,    NULL, cmd_zoo },
    {"list", "",                    0, 0,  "list networks, layers and backends", NULL,    NULL, cmd_list},
    {NULL,   NULL,                  0, 0,  NULL,                                 NULL,    NULL, NULL    },
};

int main(int argc, char **argv)
{
    static const struct dnn_tool tool = {.name = "net_run",
                                         .help = "run a network once",
                                         .size = sizeof(struct opts),
                                         .commands = commands};

    return dnn_opt_main(&tool, argc, argv);
}
