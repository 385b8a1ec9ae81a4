/* transform_augment.c - every transform is a pure function of seed, epoch and sample,
 * and applies to masks, too.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "transform_augment.h"

static const int64_t volume[3] = {9, 11, 10}, plane[2] = {12, 9};

/* ---- pure ---- */

static const char *const kinds[] = {
    "['random_horizontal_flip']",
    "[{'random_vertical_flip': 0.5}]",
    "[{'random_flip': {'p': 0.5}}]",
    "[{'jitter_crop': 0.6}]",
    "[{'random_crop': 5}]",
    "[{'random_crop': {'size': 10, 'pad': true, 'foreground': 0.5}}]",
    "[{'random_zoom': 0.5}]",
    "[{'random_rotate': 30}]",
    "[{'elastic': {'alpha': 1.5, 'sigma': 3}}]",
    "[{'gamma': {'low': 0.5, 'high': 2}}]",
    "[{'brightness': 3}]",
    "[{'contrast': {'low': 0.5, 'high': 2}}]",
    "[{'noise': 0.1}]",
    "[{'cutout': {'number': 2, 'size': 3}}]",
    "[{'random_patches': {'number': 3, 'size': 2}}]",
    "[{'noise': 0.1}, 'mixup']",
};
enum { NKINDS = sizeof kinds / sizeof kinds[0] };

static void pure(const char *list, int nspace, const int64_t *n)
{
    struct dnn_err err = {0};
    struct dnn_augment *a = read_both(list, &err);
    struct dnn_augment_scratch *s[2] = {dnn_augment_scratch_make(),
                                        dnn_augment_scratch_make()};
    bool good = a != NULL && dnn_augment_random(a), moves = false, epochs = false;
    struct place first = place_make(nspace, n);

    if (good) good = apply(a, 0, 0, &first, s[0], &err);
    for (int k = 11; good && k >= 0; k--) {
        struct place x = place_make(nspace, n), y = place_make(nspace, n);
        struct place z = place_make(nspace, n);

        good = apply(a, 3, k, &x, s[0], &err) && apply(a, 4, k, &y, s[0], &err) &&
               apply(a, 3, k, &z, s[1], &err) && same_sample(&x.sample, &z.sample);
        moves = moves || !same_sample(&x.sample, &first.sample);
        epochs = epochs || !same_sample(&x.sample, &y.sample);
        place_free(&x);
        place_free(&y);
        place_free(&z);
    }
    if (!ok(good && moves && epochs, "%dD %s: pure, and differs between samples",
            nspace, list))
        printf("# %s\n", err.text);
    place_free(&first);
    for (int k = 0; k < 2; k++)
        dnn_augment_scratch_free(s[k]);
    dnn_augment_free(a);
}

/* ---- in step ---- */

/* Except at the border, the channels of the image are the original coordinates of a
 * point; the mask has the number of the point nearest to them. */
static bool in_step(const struct place *p, int64_t *points, double *moved)
{
    const struct dnn_array *image = &p->sample.col[0], *mask = &p->sample.col[1];
    const int64_t count = dnn_array_count(mask);
    const int nspace = p->nspace;

    if (dnn_array_count(image) != 4 * count) return false;
    for (int64_t i = 0; i < count; i++) {
        const float *x = (const float *)image->data + 4 * i;
        int64_t number = ((const int32_t *)mask->data)[i] - 1;
        const int64_t from[3] = {number / (p->n[1] * p->n[2]),
                                 number / p->n[2] % p->n[1], number % p->n[2]};
        int64_t rest = i;

        if (fabsf(x[3] - 1) > 1e-4f) continue;
        if (number < 0) return false;
        ++*points;
        for (int k = 0; k < 3; k++)
            if (fabs(x[k] - (double)from[k]) > 0.5001) return false;
        for (int k = nspace - 1; k >= 0; k--) {
            *moved += fabs(x[3 - nspace + k] - (double)(rest % mask->shape.dim[k]));
            rest /= mask->shape.dim[k];
        }
    }
    return true;
}

static void geometry(const char *list, int nspace, const int64_t *n)
{
    struct dnn_err err = {0};
    struct dnn_augment *a = read_both(list, &err);
    struct dnn_augment_scratch *s = dnn_augment_scratch_make();
    struct dnn_column col[3];
    int64_t points = 0;
    double moved = 0;
    bool good = a != NULL, shapes = true;

    for (int k = 0; good && k < 8; k++) {
        struct place x = place_make(nspace, n);

        good = dnn_augment_columns(a, 3, x.col, col, &err) == 0 &&
               apply(a, 0, k, &x, s, &err) && in_step(&x, &points, &moved);
        for (int c = 0; good && c < 3; c++)
            for (int d = 0; d < col[c].shape.ndim; d++)
                shapes =
                    shapes && (col[c].shape.dim[d] == DNN_UNKNOWN ||
                               col[c].shape.dim[d] == x.sample.col[c].shape.dim[d]);
        place_free(&x);
    }
    if (!ok(good && shapes && points > 90 && moved > 0,
            "%dD %s: image and mask move together", nspace, list))
        printf("# %s (%lld points, %g)\n", err.text, (long long)points, moved);
    dnn_augment_scratch_free(s);
    dnn_augment_free(a);
}

static void all_geometry(void)
{
    static const char *const lists[] = {
        "[{'resize': 7}]",
        "[{'resize': 23}]",
        "[{'center_crop': 5}]",
        "[{'jitter_crop': 0.8}, {'resize': 16}]",
        "[{'random_crop': {'size': 6, 'foreground': 0.7, 'class': 30}}]",
        "[{'random_horizontal_flip': 0.5}, {'random_vertical_flip': 0.5}]",
        "[{'random_flip': {'axes': [1], 'p': 1}}]",
        "[{'random_zoom': 0.7}]",
        "[{'rotate': 33}]",
        "[{'rotate': {'angle': -100, 'fill': 7}}]",
        "[{'random_rotate': 90}]",
        "[{'elastic': {'alpha': 2, 'sigma': 2}}]",
    };
    for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++) {
        geometry(lists[k], 3, volume);
        geometry(lists[k], 2, plane);
    }
    geometry("[{'rotate': [10, 20, 30]}]", 3, volume);
    geometry("[{'random_rotate': [90, 20, 30]}, {'center_crop': [5, 6, 7]}]", 3,
             volume);
    geometry("[{'resize': [5, 6, 7]}, {'random_flip': {'p': 1}}]", 3, volume);
    geometry("[{'random_horizontal_flip': 1}, {'random_zoom': 0.3}]", 1, plane);
}

int main(void)
{
    for (int k = 0; k < NKINDS; k++) {
        pure(kinds[k], 3, volume);
        pure(kinds[k], 2, plane);
    }
    all_geometry();
    return done();
}
