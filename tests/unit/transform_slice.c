/* transform_slice.c - boxes of a volume: positions and content.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform_cases.h"

#include "base/json.h"
#include "base/mem.h"
#include "transform/slice.h"

#include <inttypes.h>

static struct dnn_err err;

#define FULL(...) ((const int64_t[]){__VA_ARGS__})

/* A slicer as a user writes it; the file must outlive it. */
static struct dnn_json *slicer_of(const char *text, struct dnn_slicer *out)
{
    struct dnn_json *file = NULL;

    if (dnn_json_text("train.json", text, strlen(text), &file, &err) == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        if (dnn_field_fill(&top, dnn_slicer_fields, NULL, out, &err) == 0) return file;
    }
    dnn_json_free(file);
    return NULL;
}

/* "11*9*45 = 4455 of 64x64x256x1", or the message. */
static const char *layout(const char *slicer, int nspace, const int64_t *full)
{
    static char text[256];
    char shape_text[DNN_SHAPE_TEXT];
    struct dnn_slicer how;
    struct dnn_slices s;
    struct dnn_shape shape;
    struct dnn_json *file = slicer_of(slicer, &how);
    int at = 0;

    if (file == NULL || dnn_slices_make(&how, nspace, full, &s, &err) < 0) {
        dnn_json_free(file);
        return err.text;
    }
    for (int i = 0; i < nspace; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%" PRId64,
                       i > 0 ? "*" : "", s.count[i]);
    dnn_slices_shape(&s, 1, &shape);
    snprintf(text + at, sizeof text - (size_t)at, " = %" PRId64 " of %s", s.total,
             dnn_shape_text(shape_text, sizeof shape_text, &shape));
    dnn_json_free(file);
    return text;
}

static void layouts(void)
{
    const char *seismic = "{\"sizes\": [64, 64, 256], \"strides\": [64, 64, 17], "
                          "\"discard_remainders\": true}";

    ok(dnn_field_check(dnn_slicer_fields, &err) == 0, "the table is valid");
    is_text(layout(seismic, 3, FULL(704, 590, 1006)), "11*9*45 = 4455 of 64x64x256x1",
            "the seismic volume: training");
    is_text(layout(seismic, 3, FULL(78, 590, 1006)), "1*9*45 = 405 of 64x64x256x1",
            "the seismic volume: test");
    is_text(layout("{\"sizes\": [64, 64, 256], \"strides\": [64, 64, 17]}", 3,
                   FULL(704, 590, 1006)),
            "11*10*46 = 5060 of 64x64x256x1", "remainders kept");
    is_text(layout("{\"sizes\": [10]}", 1, FULL(30)), "3 = 3 of 10x1",
            "no remainder, no more boxes");
    is_text(layout("{\"sizes\": [10], \"padding\": [3]}", 1, FULL(31)), "4 = 4 of 16x1",
            "padding on both sides");
    is_text(layout("{\"sizes\": [1, 8, 6], \"padded_sizes\": [1, 11, 6]}", 3,
                   FULL(5, 16, 6)),
            "5*2*1 = 10 of 11x6x1", "a size of 1 drops its axis");
    is_text(layout("{\"sizes\": [8, 1, 6], \"transpose\": true}", 3, FULL(8, 3, 6)),
            "1*3*1 = 3 of 6x8x1", "transposed");
    is_text(layout("{\"sizes\": [2], \"strides\": [5]}", 1, FULL(11)), "3 = 3 of 2x1",
            "a gap, and one point of the last box");
    is_text(layout("{\"sizes\": [2], \"strides\": [5]}", 1, FULL(10)), "2 = 2 of 2x1",
            "no box that starts at the end");
}

static void refusals(void)
{
    is_text(layout("{\"sizes\": [4, 4]}", 3, FULL(8, 8, 8)),
            "slices: 2 sizes given for a volume of 3 axes", "too few sizes");
    is_text(layout("{\"sizes\": [4, 9], \"name\": \"top\"}", 2, FULL(8, 8)),
            "top: sizes[1] is 9; it must be 1 to 8, the size of the volume",
            "a box larger than the volume");
    is_text(layout("{\"sizes\": [4, 4], \"strides\": [0, 1]}", 2, FULL(8, 8)),
            "train.json:1: strides[0]: must be between 1 and 1073741824, not 0",
            "a stride of 0");
    is_text(
        layout("{\"sizes\": [4], \"padding\": [1], \"padded_sizes\": [6]}", 1, FULL(8)),
        "slices: give either padding or padded_sizes", "both paddings");
    is_text(layout("{\"sizes\": [4], \"padded_sizes\": [3]}", 1, FULL(8)),
            "slices: padded_sizes[0] is 3; it must be at least the size, 4",
            "padded to less");
    is_text(layout("{\"sizes\": [1, 4], \"padding\": [1, 0]}", 2, FULL(8, 8)),
            "slices: size 1 drops axis 0, so it cannot have padding",
            "padding of a dropped axis");
    is_text(layout("{\"sizes\": [1, 1]}", 2, FULL(8, 8)),
            "slices: all sizes are 1, so no axis would be left", "points");
    is_text(layout("{\"sizes\": [2, 2, 2], \"transpose\": true}", 3, FULL(8, 8, 8)),
            "slices: only boxes of 2 axes can be transposed; these have 3",
            "transpose in 3D");
    is_text(layout("{\"sizes\": [2, 2], \"strides\": [1]}", 2, FULL(8, 8)),
            "slices: 1 strides given for a volume of 2 axes", "too few strides");
    is_text(layout("{\"size\": [2, 2]}", 2, FULL(8, 8)),
            "train.json:1: size: unknown key; did you mean \"sizes\"?", "a wrong word");
}

/* ---- content of a box ---- */

static void contents(void)
{
    struct dnn_slicer how;
    struct dnn_slices s;
    struct dnn_array v = counted(DNN_U8, "4x5x1"), box = {0};
    struct dnn_json *file = slicer_of("{\"sizes\": [3, 2], \"padded_sizes\": [3, 3], "
                                      "\"transpose\": true}",
                                      &how);

    v.spacing[0] = 2;
    v.spacing[1] = 3;
    dnn_slices_make(&how, 2, FULL(4, 5), &s, &err);
    is_int(s.total, 6, "2 by 3 boxes");
    dnn_slices_cut(&s, &v, 0, &box, &err);
    is_text(words(&box), "3x3x1: 0 5 10 1 6 11 2 7 12",
            "an odd voxel of padding is at the end");
    ok(box.spacing[0] == 3 && box.spacing[1] == 2, "spacing is transposed too");
    dnn_slices_cut(&s, &v, 5, &box, &err);
    is_text(words(&box), "3x3x1: 19 0 0 0 0 0 0 0 0", "the remainder of both axes");
    int64_t start[3];
    dnn_slices_start(&s, 5, start);
    ok(start[0] == 3 && start[1] == 4, "its start");
    is_text(dnn_slices_cut(&s, &v, 6, &box, &err) < 0 ? err.text : "",
            "slices: box 6 requested, but there are only 6", "no such box");
    dnn_array_free(&v);
    v = blank(DNN_U8, "5x4x1");
    is_text(dnn_slices_cut(&s, &v, 0, &box, &err) < 0 ? err.text : "",
            "slices: the volume is 5x4x1, but the boxes are for 4x5x1",
            "another volume");
    dnn_json_free(file);
    dnn_array_free(&v);
    dnn_array_free(&box);
}

/* ---- random boxes ---- */

/* A random valid slicer; lists are stored in ints. */
static struct dnn_slicer any_slicer(int nspace, const int64_t *full, int64_t ints[4][3])
{
    struct dnn_slicer how = {.discard_remainders = draw(3) == 0};
    int axes = 0, pad = (int)draw(3);

    do {
        axes = 0;
        for (int i = 0; i < nspace; i++) {
            ints[0][i] = draw(4) == 0 ? 1 : draw(full[i]) + 1;
            ints[1][i] = draw(ints[0][i]) + 1;
            ints[2][i] = ints[0][i] == 1 ? 0 : draw(3);
            ints[3][i] = ints[0][i] == 1 ? 1 : ints[0][i] + draw(5);
            axes += ints[0][i] > 1;
        }
    } while (axes == 0);
    how.sizes = (struct dnn_list){nspace, {ints[0]}};
    if (draw(2) == 0) how.strides = (struct dnn_list){nspace, {ints[1]}};
    if (pad == 1) how.padding = (struct dnn_list){nspace, {ints[2]}};
    if (pad == 2) how.padded_sizes = (struct dnn_list){nspace, {ints[3]}};
    how.transpose = axes == 2 && draw(2) == 0;
    return how;
}

/* Whether a voxel is covered by boxes if remainders are discarded. */
static bool covered(const struct dnn_slices *s, int64_t point)
{
    for (int i = s->nspace - 1; i >= 0; i--) {
        int64_t at = point % s->full[i];

        point /= s->full[i];
        if (at >= (s->count[i] - 1) * s->stride[i] + s->size[i]) return false;
    }
    return true;
}

/* Compare a box with the volume, whose values are not 0, and count the points that it
 * has without its padding. */
static bool is_box(const struct dnn_slices *s, const struct dnn_array *v,
                   int64_t number, const struct dnn_array *box, unsigned char *found)
{
    int64_t c = v->shape.dim[s->nspace], start[3];
    int axis[3], n = dnn_slices_axes(s, axis);

    dnn_slices_start(s, number, start);
    for (int64_t i = 0; i < dnn_array_count(box); i++) {
        int64_t at[3] = {start[0], start[1], start[2]}, rest = i / c, point = 0;
        bool inside = true, padding = false;

        for (int k = n - 1; k >= 0; k--) {
            int64_t x = rest % box->shape.dim[k] - s->before[axis[k]];

            rest /= box->shape.dim[k];
            at[axis[k]] += x;
            padding = padding || x < 0 || x >= s->size[axis[k]];
        }
        for (int k = 0; k < s->nspace; k++) {
            inside = inside && at[k] >= 0 && at[k] < s->full[k];
            point = point * s->full[k] + at[k];
        }
        if (value_of(box, i) != (inside ? value_of(v, point * c + i % c) : 0))
            return false;
        if (inside && !padding) found[point] = 1;
    }
    return true;
}

static bool all_boxes(const struct dnn_slices *s, const struct dnn_array *v)
{
    int64_t points = dnn_array_count(v) / v->shape.dim[s->nspace];
    unsigned char *found = dnn_alloc((size_t)points);
    struct dnn_array box = {0};
    bool good = true;

    for (int64_t i = 0; i < s->total && good; i++)
        good = dnn_slices_cut(s, v, i, &box, &err) == 0 && is_box(s, v, i, &box, found);
    for (int64_t i = 0; i < points && good; i++)
        good = found[i] == covered(s, i);
    dnn_array_free(&box);
    dnn_free(found);
    return good;
}

static void any_boxes(void)
{
    bool good = true;

    for (int i = 0; i < 400 && good; i++) {
        int nspace = 1 + (int)draw(3);
        int64_t full[3], ints[4][3];
        char text[64];
        int at = 0;
        struct dnn_slices s;

        for (int k = 0; k < nspace; k++) {
            full[k] = draw(9) + 2;
            at +=
                snprintf(text + at, sizeof text - (size_t)at, "%" PRId64 "x", full[k]);
        }
        snprintf(text + at, sizeof text - (size_t)at, "%d", (int)draw(3) + 1);
        struct dnn_array v = counted(draw(2) == 0 ? DNN_F32 : DNN_I32, text);
        struct dnn_slicer how = any_slicer(nspace, full, ints);
        for (int64_t k = 0; k < dnn_array_count(&v); k++)
            set_value(&v, k, (double)k + 1);
        good = dnn_slices_make(&how, nspace, full, &s, &err) == 0 && all_boxes(&s, &v);
        if (!good) printf("# %s %s\n", text, err.text);
        dnn_array_free(&v);
    }
    ok(good, "any boxes have the values of the volume, and cover it");
}

int main(void)
{
    layouts();
    refusals();
    contents();
    any_boxes();
    return done();
}
