/* columns.c - which column of the data is which input or target of the network.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "stage/stage_impl.h"

#include "base/mem.h"

/* Find the columns of a role, in their order; returns their number. */
static int columns_of_role(const struct dnn_column *col, int ncols,
                           enum dnn_column_role role, int *out)
{
    int n = 0;

    for (int k = 0; k < ncols; k++)
        if (col[k].role == role) out[n++] = k;
    return n;
}

/* Whether the shapes of a column and of an input or target agree, apart from trailing
 * dimensions of size 1. */
static bool fits(const struct dnn_shape *column, const struct dnn_shape *value)
{
    int a = column->ndim, b = value->ndim - 1; /* without the batch axis */

    while (a > 0 && column->dim[a - 1] == 1 && a > b)
        a--;
    while (b > 0 && value->dim[b] == 1 && b > a)
        b--;
    for (int i = 0; i < a && a == b; i++)
        if (column->dim[i] != value->dim[i + 1]) return false;
    return a == b;
}

/* The targets of validation and test data must be class numbers if those of the
 * training data are. */
static int check_kind(const struct dnn_stage *s, const struct dnn_column *target, int i,
                      struct dnn_err *err)
{
    bool labels = s->target_is[i] == DNN_TARGET_LABELS;

    if ((target->type == DNN_I32) == labels) return 0;
    return dnn_fail(err, DNN_EDATA,
                    "target '%s' of the data has %s, but that of the training data has "
                    "%s; prepare both with the same --target-kind",
                    target->name, labels ? "values" : "class numbers",
                    labels ? "class numbers" : "values");
}

static int match(const char *what, const struct dnn_column *col, const int *found,
                 int nfound, int nwanted, const struct dnn_model *m, const int *value,
                 struct dnn_err *err)
{
    char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT];

    if (nfound != nwanted)
        return dnn_fail(
            err, DNN_EDATA,
            "the data has %d %s%s, but the network needs %d; set the role of "
            "each column in dnn-prepare",
            nfound, what, nfound == 1 ? "" : "s", nwanted);
    for (int i = 0; i < nwanted; i++) {
        if (value[i] == DNN_NONE) continue; /* a target that no loss uses */
        const struct dnn_shape *expected = dnn_prog_shape(m->prog, value[i]);
        struct dnn_shape each = *expected;

        if (fits(&col[found[i]].shape, expected)) continue;
        each.dim[0] = DNN_UNKNOWN;
        return dnn_fail(
            err, DNN_EDATA,
            "%s '%s' of the data has shape %s, but the network expects %s (? is "
            "the batch); resize, crop or slice the data, or change \"input\"",
            what, col[found[i]].name, dnn_shape_text(a, sizeof a, &col[found[i]].shape),
            dnn_shape_text(b, sizeof b, &each));
    }
    return 0;
}

int dnn_stage_columns(const struct dnn_stage *s, struct dnn_stage_data *data,
                      struct dnn_err *err)
{
    const struct dnn_model *m = dnn_replica_model(s->replica);
    const struct dnn_column *col;
    int ncols = dnn_feed_columns(data->feed, &col);

    data->input = dnn_alloc(((size_t)ncols + 1) * sizeof *data->input);
    data->target = dnn_alloc(((size_t)ncols + 1) * sizeof *data->target);
    int n = columns_of_role(col, ncols, DNN_ROLE_INPUT, data->input);
    DNN_TRY(match("input", col, data->input, n, m->ninputs, m, m->input, err));
    n = columns_of_role(col, ncols, DNN_ROLE_TARGET, data->target);
    if (data->role == DNN_MODEL_INFER) return 0;
    DNN_TRY(match("target", col, data->target, n, m->noutputs, m, m->target, err));
    for (int i = 0; i < n; i++)
        DNN_TRY(check_kind(s, &col[data->target[i]], i, err));
    return 0;
}

static int read(void *arg, bool target, int i, int64_t skip, int64_t count, void *to,
                struct dnn_err *err)
{
    struct dnn_stage_data *data = arg;
    int column = target ? data->target[i] : data->input[i];

    return dnn_feed_values(data->feed, data->batch, column, skip, count, to, err);
}

void dnn_stage_batch(struct dnn_stage_data *data, const struct dnn_batch *batch,
                     struct dnn_replica_batch *out)
{
    data->batch = batch;
    *out = (struct dnn_replica_batch){.total = batch->total,
                                      .first = batch->first -
                                               batch->number * data->batch_size,
                                      .n = batch->n,
                                      .read = read,
                                      .arg = data};
}
