/* table.c - CSV and JSON files: the classes of all samples, in their order.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "output/output_impl.h"

#include "base/file.h"
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

/* The shortest number that is read as x again. */
static void add_number(struct dnn_buf *to, float x, const char *no_number)
{
    char text[32];

    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)x);
        if (strtof(text, NULL) == x) break;
    }
    dnn_buf_add(to, "%s", isfinite(x) ? text : no_number);
}

/* The name of a class, or NULL: only its number is known. */
static const char *class_name(const struct dnn_output *out, int k, int64_t class)
{
    return k == 0 && out->o.class_name != NULL && class < out->o.nclass_names
               ? out->o.class_name[class]
               : NULL;
}

/* ---- classes ---- */

struct class
{
    int64_t class;
    float probability;
};

/* The most probable first, then by number; NaN last. */
static int by_probability(const void *a, const void *b)
{
    const struct class *x = a, *y = b;

    if (x->probability > y->probability) return -1;
    if (x->probability < y->probability) return 1;
    if (isnan(x->probability) != isnan(y->probability))
        return isnan(x->probability) ? 1 : -1;
    return x->class < y->class ? -1 : x->class > y->class;
}

/* All classes of a sample, the predicted one first.  One channel is the probability of
 * class 1 of two. */
static int64_t classes_of(const struct dnn_output *out, const float *value,
                          int64_t channels, struct class *class)
{
    int64_t n = channels == 1 ? 2 : channels;

    if (channels == 1) {
        bool one = (double)value[0] > out->o.threshold;

        class[0] = (struct class){one, one ? value[0] : 1 - value[0]};
        class[1] = (struct class){!one, one ? 1 - value[0] : value[0]};
        return n;
    }
    for (int64_t c = 0; c < n; c++)
        class[c] = (struct class){c, value[c]};
    qsort(class, (size_t)n, sizeof *class, by_probability);
    return n;
}

/* ---- rows ---- */

static void add_csv(const struct dnn_output *out, int k, int64_t row,
                    const struct class *class, struct dnn_buf *to)
{
    const char *name = class_name(out, k, class->class);

    dnn_buf_add(to, "%" PRId64 ",", row);
    if (out->o.names) {
        dnn_buf_csv(to, out->sample[row].name);
        dnn_buf_add(to, ",");
    }
    if (name != NULL)
        dnn_buf_csv(to, name);
    else
        dnn_buf_add(to, "%" PRId64, class->class);
    dnn_buf_add(to, ",");
    add_number(to, class->probability, "nan");
    dnn_buf_add(to, "\n");
}

static void add_json(const struct dnn_output *out, int k, int64_t row,
                     const struct class *class, int64_t n, struct dnn_buf *to)
{
    if (out->o.top_k > 0 && out->o.top_k < n) n = out->o.top_k;
    dnn_buf_add(to, "%s{\"row_id\": %" PRId64 ", \"name\": ", row == 0 ? "" : ",\n",
                row);
    dnn_json_quoted(to, out->sample[row].name);
    dnn_buf_add(to, ", \"classes\": [");
    for (int64_t i = 0; i < n; i++) {
        const char *name = class_name(out, k, class[i].class);

        dnn_buf_add(to, "%s{\"class\": ", i == 0 ? "" : ", ");
        if (name != NULL)
            dnn_json_quoted(to, name);
        else
            dnn_buf_add(to, "%" PRId64, class[i].class);
        dnn_buf_add(to, ", \"probability\": ");
        add_number(to, class[i].probability, "null");
        dnn_buf_add(to, "}");
    }
    dnn_buf_add(to, "]}");
}

static int add_row(struct dnn_output *out, enum dnn_output_format format, int part,
                   int64_t row, struct dnn_buf *to, struct dnn_err *err)
{
    struct output_layout l;

    dnn_output_layout(out, part, row, &l);
    float *value = dnn_alloc((size_t)l.bytes);
    struct class *class = dnn_alloc((size_t)(l.channels + 1) * sizeof *class);
    int rc = dnn_output_read_part(out, part, row, value, (size_t)l.bytes, err);
    if (rc == 0) {
        int64_t n = classes_of(out, value, l.channels, class);

        if (format == DNN_OUTPUT_CSV)
            add_csv(out, out->part[part].k, row, class, to);
        else
            add_json(out, out->part[part].k, row, class, n, to);
    }
    dnn_free(value);
    dnn_free(class);
    return rc;
}

/* ---- the file ---- */

static int add_rows(struct dnn_output *out, enum dnn_output_format format, int part,
                    struct dnn_file *file, struct dnn_err *err)
{
    enum { FLUSH = 1 << 20 };
    bool csv = format == DNN_OUTPUT_CSV;
    struct dnn_buf text = {0};
    int rc = 0;

    dnn_buf_add(&text, !csv           ? "[\n"
                       : out->o.names ? "row_id,name,output_class,confidence\n"
                                      : "row_id,output_class,confidence\n");
    for (int64_t i = 0; i < out->o.nsamples && rc == 0; i++) {
        rc = add_row(out, format, part, i, &text, err);
        if (rc < 0 || text.len < FLUSH) continue;
        rc = dnn_file_add(file, text.text, text.len, err);
        text.len = 0;
    }
    if (!csv) dnn_buf_add(&text, "\n]\n");
    if (rc == 0) rc = dnn_file_add(file, text.text, text.len, err);
    dnn_buf_free(&text);
    return rc;
}

int dnn_output_table(struct dnn_output *out, enum dnn_output_format format, int k,
                     const char *path, struct dnn_err *err)
{
    struct dnn_file *file;
    int part = 0;

    while (out->part[part].format != DNN_OUTPUT_CSV || out->part[part].k != k)
        part++;
    DNN_TRY(dnn_file_open(path, &file, err));
    int rc = add_rows(out, format, part, file, err);
    if (rc == 0) return dnn_file_commit(file, err);
    dnn_file_abandon(file);
    return rc;
}
