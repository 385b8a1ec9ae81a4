/* transform_run.c - transforms and statistics of arrays, for transform.py.  Each line
 * on stdin is one of
 *
 *   resize TYPE SHAPE IN OUT linear|nearest EXTENTS
 *   warp   TYPE SHAPE IN OUT linear|nearest FILL FIELD|- MATRIX... SHIFT...
 *   stats  TYPE SHAPE IN OUT
 *
 * IN, FIELD and OUT are raw numbers, shapes 4x5x1; the OUT of stats is a text.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "transform/stats.h"
#include "transform/transform.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 24 };

static const struct dnn_choice hows[] = {
    {"nearest", DNN_INTERP_NEAREST},
    {"linear",  DNN_INTERP_LINEAR },
    {NULL,      0                 },
};

static int read_array(char **word, struct dnn_array *a, struct dnn_err *err)
{
    enum dnn_dtype type;
    struct dnn_shape shape;
    char *bytes;
    size_t len;

    DNN_TRY(dnn_dtype_find(word[1], &type, err));
    DNN_TRY(dnn_shape_parse(word[2], &shape, err));
    DNN_TRY(dnn_array_make(a, type, &shape, err));
    DNN_TRY(dnn_file_read(word[3], dnn_array_bytes(a), &bytes, &len, err));
    if (len == dnn_array_bytes(a)) memcpy(a->data, bytes, len);
    dnn_free(bytes);
    if (len == dnn_array_bytes(a)) return 0;
    return dnn_fail(err, DNN_EDATA, "%s: %zu bytes; %s %s has %zu", word[3], len,
                    word[1], word[2], dnn_array_bytes(a));
}

static int resize(char **word, const struct dnn_array *a, struct dnn_array *out,
                  struct dnn_err *err)
{
    struct dnn_shape extent;
    int how;

    DNN_TRY(dnn_choice_find(hows, word[5], &how, err));
    DNN_TRY(dnn_shape_parse(word[6], &extent, err));
    return dnn_resize(a, extent.dim, (enum dnn_interp)how, out, err);
}

static int warp(char **word, const struct dnn_array *a, struct dnn_array *out,
                struct dnn_err *err)
{
    int how, nspace = a->shape.ndim - 1, at = 8;
    struct dnn_warp w = {.fill = strtod(word[6], NULL)};
    char *field = NULL;
    size_t len;

    DNN_TRY(dnn_choice_find(hows, word[5], &how, err));
    w.how = (enum dnn_interp)how;
    for (int i = 0; i < nspace; i++)
        for (int j = 0; j < nspace; j++)
            w.matrix[i][j] = strtod(word[at++], NULL);
    for (int i = 0; i < nspace; i++)
        w.shift[i] = strtod(word[at++], NULL);
    if (strcmp(word[7], "-") != 0)
        DNN_TRY(dnn_file_read(word[7], (size_t)1 << 30, &field, &len, err));
    w.displacement = (const float *)field;
    int rc = dnn_warp(a, &w, out, err);
    dnn_free(field);
    return rc;
}

/* One statistic per line: its name and its numbers. */
static int stats(char **word, const struct dnn_array *a, struct dnn_err *err)
{
    struct dnn_column col = {.name = "x", .kind = DNN_KIND_IMAGE, .type = a->type};
    struct dnn_stats *s = dnn_alloc(sizeof *s);
    struct dnn_buf text = {0};

    dnn_stats_start(s, &col);
    int rc = dnn_stats_add(s, &col, a, err);
    dnn_buf_add(&text, "count %" PRId64 "\nbad %" PRId64 "\nspan %.17g %.17g\n",
                s->count, s->bad, s->low, s->high);
    for (int c = 0; c < s->nchannels; c++)
        dnn_buf_add(&text, "channel %.17g %.17g %.17g %.17g\n", s->mean[c],
                    dnn_stats_std(s, c), s->min[c], s->max[c]);
    dnn_buf_add(&text, "quantiles");
    for (int i = 0; i <= 20; i++)
        dnn_buf_add(&text, " %.17g", dnn_stats_quantile(s, i / 20.0));
    dnn_buf_add(&text, "\nbins");
    for (int i = 0; i < DNN_STATS_BINS; i++)
        dnn_buf_add(&text, " %" PRId64, s->bin[i]);
    dnn_buf_add(&text, "\n");
    if (rc == 0) rc = dnn_file_write(word[4], text.text, text.len, err);
    dnn_buf_free(&text);
    dnn_free(s);
    return rc;
}

static int run(char **word, int n, struct dnn_err *err)
{
    struct dnn_array a = {0}, out = {0};
    int rc = -1;

    if (n < 5)
        return dnn_fail(err, DNN_EUSAGE, "WHAT TYPE SHAPE IN OUT...; %d words", n);
    if ((rc = read_array(word, &a, err)) == 0) {
        if (strcmp(word[0], "stats") == 0)
            rc = stats(word, &a, err);
        else if (strcmp(word[0], "resize") == 0 && n == 7)
            rc = resize(word, &a, &out, err);
        else if (strcmp(word[0], "warp") == 0 &&
                 n == 8 + (a.shape.ndim - 1) * a.shape.ndim)
            rc = warp(word, &a, &out, err);
        else
            rc = dnn_fail(err, DNN_EUSAGE, "%s with %d words", word[0], n);
    }
    if (rc == 0 && out.data != NULL)
        rc = dnn_file_write(word[4], out.data, dnn_array_bytes(&out), err);
    dnn_array_free(&a);
    dnn_array_free(&out);
    return rc;
}

int main(void)
{
    char line[4096], *word[WORDS];
    struct dnn_err err = {0};

    while (fgets(line, sizeof line, stdin) != NULL) {
        int n = 0;

        for (char *at = strtok(line, " \n"); at != NULL && n < WORDS;
             at = strtok(NULL, " \n"))
            word[n++] = at;
        if (run(word, n, &err) < 0) {
            fprintf(stderr, "transform_run: %s\n", err.text);
            return dnn_exit_status(err.code);
        }
    }
    return 0;
}
