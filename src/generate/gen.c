/* gen.c - functions shared by the generators: columns, options, random numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "generate/generate_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void dnn_gen_close(struct dnn_source *source)
{
    struct dnn_gen *gen = (struct dnn_gen *)source;

    dnn_arena_free(gen->arena);
    dnn_free(gen);
}

/* ---- columns ---- */

static int add_column(struct dnn_gen *gen, const struct dnn_column *like, int nspace,
                      const int64_t *extent, struct dnn_err *err)
{
    struct dnn_column *col = &gen->source.col[gen->source.ncols];
    int64_t count;

    *col = *like;
    col->shape = (struct dnn_shape){.ndim = nspace + 1};
    for (int k = 0; k < nspace; k++)
        col->shape.dim[k] = extent[k];
    col->shape.dim[nspace] = 1;
    if (dnn_shape_count(&col->shape, &count, err) < 0)
        return dnn_prefix(err, "generate: ");
    gen->source.ncols++;
    return 0;
}

int dnn_gen_input(struct dnn_gen *gen, int nspace, const int64_t *extent,
                  struct dnn_err *err)
{
    static const struct dnn_column like = {.name = "input",
                                           .role = DNN_ROLE_INPUT,
                                           .kind = DNN_KIND_IMAGE,
                                           .type = DNN_F32};

    return add_column(gen, &like, nspace, extent, err);
}

int dnn_gen_mask(struct dnn_gen *gen, int nspace, const int64_t *extent,
                 int64_t classes, struct dnn_err *err)
{
    const struct dnn_column like = {.name = "target",
                                    .role = DNN_ROLE_TARGET,
                                    .kind = DNN_KIND_MASK,
                                    .type = DNN_U8,
                                    .classes = classes};

    return add_column(gen, &like, nspace, extent, err);
}

int dnn_gen_arrays(const struct dnn_source *source, struct dnn_sample *out,
                   struct dnn_err *err)
{
    out->ncols = source->ncols;
    for (int c = 0; c < source->ncols; c++)
        DNN_TRY(dnn_array_make(&out->col[c], source->col[c].type, &source->col[c].shape,
                               err));
    return 0;
}

/* ---- options ---- */

int dnn_gen_extents(const struct dnn_jobj *obj, const char *key,
                    const struct dnn_list *list, int nspace, int64_t *extent,
                    struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(obj, key);

    if (list->count != 1 && list->count != nspace)
        return dnn_json_fail(
            &at, err,
            "must be one number, or one for each of the %d axes, not %" PRId64
            " numbers",
            nspace, list->count);
    for (int k = 0; k < nspace; k++)
        extent[k] = list->ints[list->count == 1 ? 0 : k];
    return 0;
}

static int range_error(const struct dnn_jobj *obj, const char *key, double low,
                       double high, struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(obj, key);

    return dnn_json_fail(&at, err, "must be [low, high], not [%g, %g]", low, high);
}

int dnn_gen_range_int(const struct dnn_jobj *obj, const char *key,
                      const struct dnn_list *list, struct dnn_err *err)
{
    if (list->ints[0] <= list->ints[1]) return 0;
    return range_error(obj, key, (double)list->ints[0], (double)list->ints[1], err);
}

int dnn_gen_range_real(const struct dnn_jobj *obj, const char *key,
                       const struct dnn_list *list, struct dnn_err *err)
{
    if (list->reals[0] <= list->reals[1]) return 0;
    return range_error(obj, key, list->reals[0], list->reals[1], err);
}

/* ---- random numbers ---- */

struct dnn_draw dnn_gen_draw(const struct dnn_gen *gen, int64_t i)
{
    return dnn_draw_make(gen->seed, DNN_GEN_SAMPLE, 0, (uint64_t)i);
}

int64_t dnn_gen_pick(struct dnn_draw *draw, const struct dnn_list *range)
{
    return range->ints[0] + dnn_draw_below(draw, range->ints[1] - range->ints[0] + 1);
}

/* A normalized 4-D normal vector is a uniformly distributed quaternion. */
void dnn_gen_rotation(struct dnn_draw *draw, double out[3][3])
{
    double q[4], sum = 0;

    for (int k = 0; k < 4; k++) {
        q[k] = dnn_draw_normal(draw);
        sum += q[k] * q[k];
    }
    for (int k = 0; k < 4; k++)
        q[k] = sum > 0 ? q[k] / sqrt(sum) : (k == 0);
    const double w = q[0], x = q[1], y = q[2], z = q[3];
    const double m[3][3] = {
        {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y)    },
        {2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x)    },
        {2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)},
    };
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            out[r][c] = m[r][c];
}

void dnn_gen_noise(const struct dnn_gen *gen, int64_t i, double std, float *x,
                   int64_t count)
{
    struct dnn_draw draw = dnn_draw_make(gen->seed, DNN_GEN_NOISE, 0, (uint64_t)i);
    double two[2];

    if (std == 0) return;
    for (int64_t k = 0; k < count; k += 2) {
        dnn_rng_normals(&draw.rng, draw.at, two);
        draw.at.index++;
        x[k] += (float)(std * two[0]);
        if (k + 1 < count) x[k + 1] += (float)(std * two[1]);
    }
}

void dnn_gen_intensity(const struct dnn_gen *gen, int64_t i, const uint8_t *mask,
                       int64_t count, int64_t nclasses, double contrast, double noise,
                       float *out)
{
    float level[256] = {0};

    for (int64_t c = 1; c <= nclasses && c < 256; c++)
        level[c] = (float)(1 - contrast * (double)(nclasses - c) / (double)nclasses);
    for (int64_t k = 0; k < count; k++)
        out[k] = level[mask[k]];
    dnn_gen_noise(gen, i, noise, out, count);
}
