/* evaluate_made.h - evaluations of random samples for tests.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_EVALUATE_MADE_H
#define DNN_TESTS_EVALUATE_MADE_H

#include "base/draw.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "evaluate/evaluate.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static inline struct dnn_comm *made_comm(void)
{
    static struct dnn_comm *comm;
    struct dnn_comm_cfg cfg = {.kind = DNN_COMM_SELF};
    struct dnn_err err = {0};

    if (comm == NULL && dnn_comm_open(&cfg, &comm, &err) < 0) exit(99);
    return comm;
}

static inline struct dnn_evaluation *made_open(const struct dnn_evaluate_cfg *cfg)
{
    struct dnn_evaluation *e = NULL;
    struct dnn_err err = {0};

    if (dnn_evaluate_open(cfg, &e, &err) < 0) {
        printf("Bail out! %s\n", err.text);
        exit(99);
    }
    return e;
}

static inline void made_combine(struct dnn_evaluation *e, struct dnn_comm *comm)
{
    struct dnn_err err = {0};

    if (dnn_evaluate_combine(e, comm, &err) == 0) return;
    printf("Bail out! %s\n", err.text);
    exit(99);
}

/* A total; -1 if there is none. */
static inline double made_total(const struct dnn_evaluation *e, const char *name)
{
    const struct dnn_evaluate_value *v;

    for (int i = dnn_evaluate_totals(e, &v) - 1; i >= 0; i--)
        if (strcmp(v[i].name, name) == 0) return v[i].value;
    return -1;
}

static inline double made_cell(const struct dnn_evaluation *e, int64_t c,
                               const char *name)
{
    const char *const *column;
    const double *value;
    const int n = dnn_evaluate_classes(e, &column, &value);

    for (int i = 0; i < n; i++)
        if (strcmp(column[i], name) == 0) return value[c * n + i];
    return -1;
}

/* Equal up to a tolerance, or both NaN. */
static inline bool is_near(double got, double want, double near, const char *what)
{
    const bool same = isnan(want) ? isnan(got) : fabs(got - want) <= near;

    if (!ok(same, "%s", what)) printf("#   got: %.17g\n#  want: %.17g\n", got, want);
    return same;
}

/* All results as JSON, and both CSV files: the caller frees it. */
static inline char *made_text(const struct dnn_evaluation *e)
{
    static const char *const name[] = {"evaluation.csv", "samples.csv"};
    char dir[] = "/tmp/dnn-evaluate-XXXXXX";
    struct dnn_buf out = {0};
    struct dnn_err err = {0};

    if (mkdtemp(dir) == NULL) exit(99);
    dnn_evaluate_json(e, &out);
    bool good = dnn_evaluate_csv(e, dir, &err) == 0;
    for (int i = 0; i < 2; i++) {
        char *path = dnn_format("%s/%s", dir, name[i]), *text = NULL;

        good = good && dnn_file_read_text(path, 1 << 24, &text, &err) == 0;
        dnn_buf_add(&out, "%s", good ? text : err.text);
        dnn_free(text);
        dnn_free(path);
    }
    dnn_file_remove_tree(dir, &err);
    return out.text;
}

/* What dnn_evaluate_print() prints: the caller frees it. */
static inline char *made_print(const struct dnn_evaluation *e)
{
    char *text = NULL;
    size_t len;
    FILE *where = open_memstream(&text, &len);

    if (where == NULL) exit(99);
    dnn_evaluate_print(e, where);
    fclose(where);
    return text;
}

/* Adding the part to an evaluation, or combining it, must fail with this message. */
static inline void made_cannot(const struct dnn_evaluate_cfg *cfg,
                               const struct dnn_evaluate_part *part, int parts,
                               const char *want)
{
    struct dnn_evaluation *e = made_open(cfg);
    struct dnn_err err = {0};
    int rc = 0;

    for (int i = 0; i < parts && rc == 0; i++)
        rc = dnn_evaluate_add(e, &part[i], &err);
    if (rc == 0) rc = dnn_evaluate_combine(e, made_comm(), &err);
    ok(rc == DNN_EDATA, "is refused as data");
    is_text(err.text, want, want);
    dnn_evaluate_close(e);
}

/* The JSON must be valid. */
static inline void made_json(const struct dnn_evaluation *e)
{
    struct dnn_buf out = {0};
    struct dnn_json *json = NULL;
    struct dnn_err err = {0};

    dnn_evaluate_json(e, &out);
    if (!ok(dnn_json_text("results", out.text, out.len, &json, &err) == 0,
            "the results are valid JSON"))
        printf("# %s\n", err.text);
    dnn_json_free(json);
    dnn_buf_free(&out);
}

/* A random order of n things. */
static inline void made_order(struct dnn_draw *draw, int *order, int n)
{
    for (int i = 0; i < n; i++) {
        int j = (int)dnn_draw_below(draw, i + 1);

        order[i] = order[j];
        order[j] = i;
    }
}

#endif
