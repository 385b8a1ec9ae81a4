/* open.c - opens a model file and checks it.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "package/package_impl.h"

#include "archive/archive.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* The members that are texts; the first two must be there. */
enum { REQUIRED = 2 };
static const char *const names[PACKAGE_TEXTS] = {PACKAGE_INFO, PACKAGE_NETWORK,
                                                 PACKAGE_METADATA, PACKAGE_KERAS};

static int read_text(struct dnn_package *p, int i, struct dnn_err *err)
{
    size_t len = 0;

    DNN_TRY(
        dnn_archive_read(p->path, names[i], DNN_JSON_LIMIT, &p->text[i], &len, err));
    if (p->text[i] == NULL && i < REQUIRED)
        return dnn_fail(err, DNN_EDATA, "%s: not a complete model file: %s is missing",
                        p->path, names[i]);
    if (p->text[i] != NULL && strlen(p->text[i]) != len)
        return dnn_fail(err, DNN_EDATA, "%s: %s in it is not a text: byte %zu is NUL",
                        p->path, names[i], strlen(p->text[i]) + 1);
    return 0;
}

/* ---- the network ---- */

/* The shapes of the inputs in dnn.json. */
static int read_shapes(const struct dnn_package *p, struct dnn_shape *shape,
                       struct dnn_err *err)
{
    const struct dnn_package_input *in = p->info.inputs.objects;
    int64_t dim[DNN_MAX_DIMS] = {DNN_UNKNOWN};

    for (int64_t i = 0; i < p->info.inputs.count; i++) {
        const struct dnn_list *s = &in[i].shape;

        if (s->count >= DNN_MAX_DIMS)
            return dnn_fail(err, DNN_EDATA,
                            "%s: " PACKAGE_INFO ": input '%.80s' has %lld axes, more "
                            "than %d",
                            p->path, in[i].name, (long long)s->count, DNN_MAX_DIMS - 1);
        memcpy(dim + 1, s->ints, (size_t)s->count * sizeof *dim);
        DNN_TRY(dnn_shape_make((int)s->count + 1, dim, &shape[i], err));
    }
    return 0;
}

static int read_graph(const struct dnn_package *p, const struct dnn_graph_opts *opts,
                      struct dnn_graph **out, struct dnn_err *err)
{
    char *name = dnn_format("%s/" PACKAGE_NETWORK, p->path);
    struct dnn_json *file = NULL;
    int rc = dnn_json_text(name, p->text[1], strlen(p->text[1]), &file, err);

    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        rc = dnn_graph_read_json(&top, opts, out, err);
    }
    dnn_json_free(file);
    dnn_free(name);
    return rc;
}

int dnn_package_graph(const struct dnn_package *package,
                      const struct dnn_graph_opts *opts, struct dnn_graph **out,
                      struct dnn_err *err)
{
    struct dnn_graph_opts own = {.ninputs = (int)package->info.inputs.count};

    if (opts != NULL && opts->ninputs > 0) return read_graph(package, opts, out, err);
    struct dnn_shape *shape = dnn_alloc(((size_t)own.ninputs + 1) * sizeof *shape);
    own.input = shape;
    int rc = read_shapes(package, shape, err);
    if (rc == 0) rc = read_graph(package, &own, out, err);
    dnn_free(shape);
    return rc;
}

/* ---- whether network and weights belong together ---- */

static int fits(const struct dnn_package *p, const struct dnn_weights_match *m,
                const struct dnn_graph *g, struct dnn_err *err)
{
    const char *what = m->nrefused > 0   ? package_after_path(p->path, m->refused[0])
                       : m->nmissing > 0 ? m->missing[0]
                       : m->nskipped > 0 ? m->skipped[0]
                                         : NULL;

    if (what == NULL) return 0;
    return dnn_fail(err, DNN_EDATA,
                    "%s: " DNN_WEIGHTS_MEMBER
                    " in it does not fit the network '%.80s' of " PACKAGE_NETWORK
                    " (%d of %d weights fit): %s%.300s",
                    p->path, g->name, m->filled, m->wanted,
                    m->nrefused > 0   ? ""
                    : m->nmissing > 0 ? "no weights for "
                                      : "not in the network: ",
                    what);
}

static int match(const struct dnn_package *p, const struct dnn_graph *g,
                 struct dnn_err *err)
{
    const struct dnn_weights_order order = {g->nlayers, g->layer_name, g->layer_class,
                                            g->layer_model};
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, false);
    int *output = dnn_alloc(((size_t)g->noutputs + 1) * sizeof *output);
    struct dnn_weights_match *m = NULL;
    int rc = dnn_graph_lower(g, 1, prog, output, err);

    if (rc == 0) rc = dnn_weights_match(p->weights, prog, &order, &m, err);
    if (rc == 0) rc = fits(p, m, g, err);
    dnn_weights_match_free(m);
    dnn_free(output);
    dnn_prog_free(prog);
    return rc;
}

static int open_all(struct dnn_package *p, struct dnn_err *err)
{
    struct dnn_graph *graph = NULL;

    for (int i = REQUIRED; i < PACKAGE_TEXTS; i++)
        DNN_TRY(read_text(p, i, err));
    DNN_TRY(dnn_weights_open(p->path, &p->weights, err));
    DNN_TRY(dnn_package_graph(p, NULL, &graph, err));
    int rc = match(p, graph, err);
    dnn_graph_free(graph);
    return rc;
}

/* ---- opening ---- */

static int open_package(const char *path, bool whole, struct dnn_package **out,
                        struct dnn_err *err)
{
    struct dnn_package *p = dnn_alloc(sizeof *p);

    p->path = dnn_strdup(path);
    int rc = package_seal_check(path, whole, p->sum, err);
    for (int i = 0; i < REQUIRED && rc == 0; i++)
        rc = read_text(p, i, err);
    if (rc == 0) rc = package_info_read(p, err);
    if (rc == 0 && whole) rc = open_all(p, err);
    if (rc < 0) {
        dnn_package_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

int dnn_package_open(const char *path, struct dnn_package **out, struct dnn_err *err)
{
    return open_package(path, true, out, err);
}

int dnn_package_open_network(const char *path, struct dnn_package **out,
                             struct dnn_err *err)
{
    return open_package(path, false, out, err);
}

void dnn_package_close(struct dnn_package *package)
{
    if (package == NULL) return;
    for (int i = 0; i < PACKAGE_TEXTS; i++)
        free(package->text[i]);
    dnn_json_free(package->file);
    dnn_weights_close(package->weights);
    dnn_free(package->path);
    dnn_free(package);
}

int dnn_package_open_weights(const char *path, struct dnn_weights **out,
                             struct dnn_err *err)
{
    struct dnn_package *p;

    if (!dnn_package_is(path)) return dnn_weights_open(path, out, err);
    DNN_TRY(dnn_package_open(path, &p, err));
    *out = p->weights;
    p->weights = NULL;
    dnn_package_close(p);
    return 0;
}

/* ---- content ---- */

const struct dnn_package_info *dnn_package_info(const struct dnn_package *package)
{
    return &package->info;
}

const char *dnn_package_text(const struct dnn_package *package, const char *member)
{
    for (int i = 0; i < PACKAGE_TEXTS; i++)
        if (strcmp(names[i], member) == 0) return package->text[i];
    return NULL;
}

const char *dnn_package_config(const struct dnn_package *package)
{
    return package->info.inference == NULL ? "{}" : package->info.inference;
}

struct dnn_weights *dnn_package_weights(const struct dnn_package *package)
{
    return package->weights;
}
