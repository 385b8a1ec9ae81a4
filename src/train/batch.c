/* batch.c - conversion of a batch to the inputs of the network.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/train_impl.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

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

static int match(const char *what, const struct dnn_column *col, const int *found,
                 int nfound, int nwanted, const struct dnn_model *m, const int *value,
                 size_t **row, struct dnn_err *err)
{
    char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT];

    if (nfound != nwanted)
        return dnn_fail(
            err, DNN_EDATA,
            "the data has %d %s%s, but the network needs %d; set the role of "
            "each column in dnn-prepare",
            nfound, what, nfound == 1 ? "" : "s", nwanted);
    *row = dnn_alloc(((size_t)nwanted + 1) * sizeof **row);
    for (int i = 0; i < nwanted; i++) {
        const struct dnn_shape *expected = dnn_prog_shape(m->prog, value[i]);
        struct dnn_shape each = *expected;

        (*row)[i] = m->plan->spot[value[i]].bytes / (size_t)m->opts.batch;
        if (m->prog->value[value[i]].is.dtype == DNN_F64) (*row)[i] /= 2;
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

/* Allocate n buffers for max samples.  times: 2 for f64, else 1. */
static int make_buffers(int n, const size_t *row, int64_t max, int times, void ***out,
                        struct dnn_err *err)
{
    *out = dnn_alloc(((size_t)n + 1) * sizeof **out);
    for (int i = 0; i < n; i++)
        if (posix_memalign(&(*out)[i], 64, (size_t)(max * times) * row[i] + 64) != 0) {
            (*out)[i] = NULL;
            return dnn_fail(err, DNN_ENOMEM,
                            "a batch needs %zu MB of memory, which is not available",
                            (size_t)(max * times) * row[i] >> 20);
        }
    return 0;
}

int dnn_trainer_columns(const struct dnn_trainer *t, struct train_data *data,
                        struct dnn_err *err)
{
    const struct dnn_model *m = dnn_replica_model(t->replica);
    const struct dnn_column *col;
    int ncols = dnn_feed_columns(data->feed, &col);
    /* The largest number of samples in a batch of this rank. */
    int64_t max = dnn_feed_count(data->feed);
    bool f64 = m->opts.dtype == DNN_F64;

    if (max > t->config->batch_size) max = t->config->batch_size;
    if (data != &t->train && max < t->config->data->test_batch_size)
        max = t->config->data->test_batch_size;
    data->input = dnn_alloc(((size_t)ncols + 1) * sizeof *data->input);
    data->target = dnn_alloc(((size_t)ncols + 1) * sizeof *data->target);
    int n = columns_of_role(col, ncols, DNN_ROLE_INPUT, data->input);
    DNN_TRY(match("input", col, data->input, n, m->ninputs, m, m->input,
                  &data->input_row, err));
    DNN_TRY(make_buffers(n, data->input_row, max, 1, &data->input_mem, err));
    if (f64) DNN_TRY(make_buffers(n, data->input_row, max, 2, &data->input_f64, err));
    n = columns_of_role(col, ncols, DNN_ROLE_TARGET, data->target);
    data->targets = n > 0 && t->mode != DNN_CONFIG_INFER;
    if (!data->targets && data != &t->train && t->mode != DNN_CONFIG_EVAL) return 0;
    DNN_TRY(match("target", col, data->target, n, m->noutputs, m, m->target,
                  &data->target_row, err));
    DNN_TRY(make_buffers(n, data->target_row, max, 1, &data->target_mem, err));
    return f64 ? make_buffers(n, data->target_row, max, 2, &data->target_f64, err) : 0;
}

/* Convert f32 to f64; copy class labels. */
static void convert_f64(const struct dnn_model *m, const int *value, const size_t *row,
                        int n, void *const *mem, void **wide, int64_t samples)
{
    for (int i = 0; i < n; i++) {
        size_t bytes = (size_t)samples * row[i], count = bytes / sizeof(float);
        const float *from = mem[i];
        double *to = wide[i];

        if (m->prog->value[value[i]].is.dtype == DNN_F64)
            for (size_t k = 0; k < count; k++)
                to[k] = (double)from[k];
        else
            memcpy(to, from, bytes);
    }
}

static int convert(struct dnn_feed *feed, const struct dnn_batch *batch, int n,
                   const int *column, void *const *mem, struct dnn_err *err)
{
    for (int i = 0; i < n; i++)
        DNN_TRY(dnn_feed_values(feed, batch, column[i], 0, batch->n, mem[i], err));
    return 0;
}

int dnn_trainer_make_batch(const struct dnn_trainer *t, struct train_data *data,
                           const struct dnn_batch *batch, struct dnn_replica_batch *out,
                           struct dnn_err *err)
{
    const struct dnn_model *m = dnn_replica_model(t->replica);
    bool eval = data != &t->train;
    int64_t size = eval ? t->config->data->test_batch_size : t->config->batch_size;

    DNN_TRY(convert(data->feed, batch, m->ninputs, data->input, data->input_mem, err));
    if (data->targets)
        DNN_TRY(convert(data->feed, batch, m->noutputs, data->target, data->target_mem,
                        err));
    if (data->input_f64 != NULL)
        convert_f64(m, m->input, data->input_row, m->ninputs, data->input_mem,
                    data->input_f64, batch->n);
    if (data->target_f64 != NULL)
        convert_f64(m, m->target, data->target_row, m->noutputs, data->target_mem,
                    data->target_f64, batch->n);
    void **input = data->input_f64 != NULL ? data->input_f64 : data->input_mem;
    void **target = data->target_f64 != NULL ? data->target_f64 : data->target_mem;
    *out = (struct dnn_replica_batch){.total = batch->total,
                                      .first = batch->first - batch->number * size,
                                      .n = batch->n,
                                      .input = (const void *const *)input,
                                      .target = (const void *const *)target};
    return 0;
}

/* mem is NULL or ends with NULL. */
static void free_all(void **mem)
{
    for (int i = 0; mem != NULL && mem[i] != NULL; i++)
        free(mem[i]);
    dnn_free(mem);
}

void dnn_trainer_data_free(struct train_data *data)
{
    dnn_feed_close(data->feed);
    dnn_source_close(data->source);
    dnn_augment_free(data->augment);
    free_all(data->input_mem);
    free_all(data->target_mem);
    free_all(data->input_f64);
    free_all(data->target_f64);
    dnn_free(data->input);
    dnn_free(data->target);
    dnn_free(data->input_row);
    dnn_free(data->target_row);
    *data = (struct train_data){0};
}
