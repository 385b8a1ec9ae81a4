/* metrics_run.c - compute metrics of raw arrays, for metrics.py.  Each line on stdin is
 *
 *   N PLACES CHANNELS OUTPUT labels|values TARGET IGNORE LOGITS LIST
 *
 * OUTPUT is f32, TARGET i32 or f32; LIST a JSON text.  The batch is added in two parts.
 * Prints "name value" lines, the matrix as "confusion a b c...", and an empty line.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"
#include "metric/metric.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int print(const struct dnn_metrics *m)
{
    const struct dnn_metric_value *v;
    int64_t classes;
    int n = dnn_metrics_values(m, &v);
    const double *count = dnn_metrics_confusion(m, &classes);

    for (int i = 0; i < n; i++)
        printf("%s %.17g\n", v[i].name, v[i].value);
    if (count != NULL) {
        printf("confusion");
        for (int64_t i = 0; i < classes * classes; i++)
            printf(" %.0f", count[i]);
        printf("\n");
    }
    printf("\n");
    return 0;
}

static int add_halves(struct dnn_metrics *m, const struct dnn_metric_batch *all,
                      struct dnn_err *err)
{
    const int64_t half = all->n / 2, rows = half * all->positions;
    struct dnn_metric_batch a = *all, b = *all;

    a.n = half;
    b.n = all->n - half;
    b.output += rows * all->channels;
    if (b.labels != NULL) b.labels += rows;
    if (b.values != NULL) b.values += rows * all->channels;
    DNN_TRY(dnn_metrics_add(m, &a, err));
    return dnn_metrics_add(m, &b, err);
}

static int one(char *line, struct dnn_err *err)
{
    char output[512], kind[16], target[512], *x = NULL, *t = NULL;
    struct dnn_metric_batch b = {0};
    struct dnn_metrics *m = NULL;
    struct dnn_json *json = NULL;
    size_t nx, nt;
    int logits, at = 0;

    if (sscanf(line,
               "%" SCNd64 " %" SCNd64 " %" SCNd64 " %511s %15s %511s %" SCNd64 " %d %n",
               &b.n, &b.positions, &b.channels, output, kind, target, &b.ignore,
               &logits, &at) < 8)
        return dnn_fail(err, DNN_EUSAGE, "invalid line: %s", line);
    DNN_TRY(dnn_file_read(output, 1 << 30, &x, &nx, err));
    DNN_TRY(dnn_file_read(target, 1 << 30, &t, &nt, err));
    b.output = (const float *)(void *)x;
    b.logits = logits != 0;
    if (kind[0] == 'l')
        b.labels = (const int32_t *)(void *)t;
    else
        b.values = (const float *)(void *)t;
    int rc = dnn_json_text("list", line + at, strlen(line + at), &json, err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(json);

        rc = dnn_metrics_read(&top, NULL, b.channels, &m, err);
    }
    if (rc == 0) rc = add_halves(m, &b, err);
    if (rc == 0) rc = print(m);
    dnn_metrics_free(m);
    dnn_json_free(json);
    dnn_free(x);
    dnn_free(t);
    return rc;
}

int main(void)
{
    struct dnn_err err = {0};
    char line[4096];

    while (fgets(line, sizeof line, stdin) != NULL)
        if (one(line, &err) < 0) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
    return 0;
}
