/* transform_augment.h - samples and lists of transforms for the tests of augment.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_TRANSFORM_AUGMENT_H
#define DNN_TESTS_TRANSFORM_AUGMENT_H

#include "transform_cases.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "transform/augment.h"

/* Lists of transforms from JSON with ' for ", or NULL and the message. */
static inline struct dnn_augment *read_lists(const char *text, struct dnn_err *err)
{
    char *json = dnn_strdup(text);
    struct dnn_json *file = NULL;
    struct dnn_augment *out = NULL;

    for (char *c = json; *c != '\0'; c++)
        if (*c == '\'') *c = '"';
    if (dnn_json_text("train.json", json, strlen(json), &file, err) == 0) {
        struct dnn_jobj top = dnn_json_top(file);
        struct dnn_jobj both = dnn_json_sub(&top, "transforms");
        struct dnn_jobj inputs = dnn_json_sub(&top, "input_transforms");
        struct dnn_jobj targets = dnn_json_sub(&top, "target_transforms");

        if (dnn_augment_read(&both, &inputs, &targets, &out, err) < 0) out = NULL;
    }
    dnn_json_free(file);
    dnn_free(json);
    return out;
}

static inline struct dnn_augment *read_both(const char *list, struct dnn_err *err)
{
    char *text = dnn_format("{'transforms': %s}", list);
    struct dnn_augment *out = read_lists(text, err);

    dnn_free(text);
    return out;
}

/* ---- a sample with coordinates as values ---- */

/* An image with the coordinates of each point in its channels and a 1 in the last, a
 * mask with the point's number, from 1, and a label. */
struct place {
    int nspace;
    int64_t n[3];
    struct dnn_column col[3];
    struct dnn_sample sample;
};

static inline struct dnn_column column(const char *name, enum dnn_column_role role,
                                       enum dnn_kind kind, const struct dnn_array *like)
{
    struct dnn_column col = {.role = role, .kind = kind};

    snprintf(col.name, sizeof col.name, "%s", name);
    col.type = like->type;
    col.shape = like->shape;
    return col;
}

static inline struct place place_make(int nspace, const int64_t *n)
{
    struct place p = {
        .nspace = nspace, .n = {1, 1, 1}
    };
    struct dnn_buf image = {0};
    int64_t count = 1;

    for (int k = 0; k < nspace; k++) {
        p.n[3 - nspace + k] = n[k];
        dnn_buf_add(&image, "%lldx", (long long)n[k]);
        count *= n[k];
    }
    char *mask = dnn_format("%s1", image.text);
    dnn_buf_add(&image, "4");
    p.sample.ncols = 3;
    p.sample.col[0] = blank(DNN_F32, image.text);
    p.sample.col[1] = blank(DNN_I32, mask);
    p.sample.col[2] = blank(DNN_I32, "scalar");
    for (int64_t i = 0; i < count; i++) {
        float *x = (float *)p.sample.col[0].data + 4 * i;

        x[0] = (float)(i / (p.n[1] * p.n[2]));
        x[1] = (float)(i / p.n[2] % p.n[1]);
        x[2] = (float)(i % p.n[2]);
        x[3] = 1;
        ((int32_t *)p.sample.col[1].data)[i] = (int32_t)i + 1;
    }
    p.col[0] = column("input", DNN_ROLE_INPUT, DNN_KIND_IMAGE, &p.sample.col[0]);
    p.col[1] = column("target", DNN_ROLE_TARGET, DNN_KIND_MASK, &p.sample.col[1]);
    p.col[2] = column("age", DNN_ROLE_TARGET, DNN_KIND_LABEL, &p.sample.col[2]);
    p.col[1].classes = count + 1;
    p.col[2].classes = 3;
    dnn_buf_free(&image);
    dnn_free(mask);
    return p;
}

static inline void place_free(struct place *p)
{
    dnn_sample_free(&p->sample);
}

/* Apply to a fresh sample; NULL partner unless it mixes. */
static inline bool apply(const struct dnn_augment *a, int64_t epoch, int64_t index,
                         struct place *p, struct dnn_augment_scratch *scratch,
                         struct dnn_err *err)
{
    struct place other = place_make(p->nspace, p->n + 3 - p->nspace);
    int rc =
        dnn_augment_apply(a, 3, p->col, 42, epoch, index, &p->sample,
                          dnn_augment_mixes(a) ? &other.sample : NULL, scratch, err);

    place_free(&other);
    return rc == 0;
}

static inline bool same_sample(const struct dnn_sample *a, const struct dnn_sample *b)
{
    for (int c = 0; c < a->ncols; c++)
        if (!dnn_shape_equal(&a->col[c].shape, &b->col[c].shape) ||
            a->col[c].type != b->col[c].type ||
            memcmp(a->col[c].data, b->col[c].data, dnn_array_bytes(&a->col[c])) != 0)
            return false;
    return true;
}

#endif
