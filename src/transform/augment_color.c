/* augment_color.c - convert_color: color conversions with the names of OpenCV.
 *
 * Grayscale has the weights of BT.601 (0.299 red, 0.587 green, 0.114 blue).  Hue,
 * saturation and value are as in OpenCV: in u8, hue is degrees / 2, and saturation and
 * value are 0 to 255; in floating point, hue is in degrees, the others 0 to 1.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/augment_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

enum what { SWAP, GRAY, SPREAD, DROP_ALPHA, ADD_ALPHA, HSV, FROM_HSV };

/* A conversion: index of red, and number of channels, in input and output. */
struct code {
    enum what what;
    int red_in, red_out, from, to;
};

enum {
    BGR2RGB,
    RGB2BGR,
    RGB2GRAY,
    BGR2GRAY,
    GRAY2RGB,
    GRAY2BGR,
    RGBA2RGB,
    BGRA2BGR,
    RGBA2BGR,
    BGRA2RGB,
    RGB2RGBA,
    BGR2BGRA,
    RGBA2GRAY,
    BGRA2GRAY,
    RGB2HSV,
    BGR2HSV,
    HSV2RGB,
    HSV2BGR
};

static const struct code codes[] = {
    [BGR2RGB] = {SWAP,       2, 0, 3, 3},
      [RGB2BGR] = {SWAP,       0, 2, 3, 3},
    [RGB2GRAY] = {GRAY,       0, 0, 3, 1},
      [BGR2GRAY] = {GRAY,       2, 0, 3, 1},
    [GRAY2RGB] = {SPREAD,     0, 0, 1, 3},
      [GRAY2BGR] = {SPREAD,     0, 0, 1, 3},
    [RGBA2RGB] = {DROP_ALPHA, 0, 0, 4, 3},
      [BGRA2BGR] = {DROP_ALPHA, 2, 2, 4, 3},
    [RGBA2BGR] = {DROP_ALPHA, 0, 2, 4, 3},
      [BGRA2RGB] = {DROP_ALPHA, 2, 0, 4, 3},
    [RGB2RGBA] = {ADD_ALPHA,  0, 0, 3, 4},
      [BGR2BGRA] = {ADD_ALPHA,  2, 2, 3, 4},
    [RGBA2GRAY] = {GRAY,       0, 0, 4, 1},
      [BGRA2GRAY] = {GRAY,       2, 0, 4, 1},
    [RGB2HSV] = {HSV,        0, 0, 3, 3},
      [BGR2HSV] = {HSV,        2, 0, 3, 3},
    [HSV2RGB] = {FROM_HSV,   0, 0, 3, 3},
      [HSV2BGR] = {FROM_HSV,   0, 2, 3, 3},
};

static const struct dnn_choice names[] = {
    {"BGR2RGB",   BGR2RGB  },
    {"RGB2BGR",   RGB2BGR  },
    {"RGB2GRAY",  RGB2GRAY },
    {"BGR2GRAY",  BGR2GRAY },
    {"GRAY2RGB",  GRAY2RGB },
    {"GRAY2BGR",  GRAY2BGR },
    {"RGBA2RGB",  RGBA2RGB },
    {"BGRA2BGR",  BGRA2BGR },
    {"RGBA2BGR",  RGBA2BGR },
    {"BGRA2RGB",  BGRA2RGB },
    {"RGB2RGBA",  RGB2RGBA },
    {"BGR2BGRA",  BGR2BGRA },
    {"RGBA2GRAY", RGBA2GRAY},
    {"BGRA2GRAY", BGRA2GRAY},
    {"RGB2HSV",   RGB2HSV  },
    {"BGR2HSV",   BGR2HSV  },
    {"HSV2RGB",   HSV2RGB  },
    {"HSV2BGR",   HSV2BGR  },
    {NULL,        0        },
};

struct opts {
    int code;
};

static const struct dnn_field fields[] = {
    {"code", DNN_F_ENUM, offsetof(struct opts, code), NULL, 0, 0, names,
     "conversion, source to destination", NULL},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

static int columns(const struct dnn_aug_step *step, int ncols, struct dnn_column *col,
                   struct dnn_err *err)
{
    const struct opts *o = step->opts;
    const struct code *code = &codes[o->code];

    for (int c = 0; c < ncols; c++) {
        int64_t *channels = &col[c].shape.dim[col[c].shape.ndim - 1];

        if (!dnn_aug_touches(step, &col[c])) continue;
        if (*channels != DNN_UNKNOWN && *channels != code->from)
            return dnn_aug_fail(step, err,
                                "'%s' has %" PRId64 " channel%s; %s needs %d",
                                col[c].name, *channels, *channels == 1 ? "" : "s",
                                dnn_choice_name(names, o->code), code->from);
        *channels = code->to;
        bool exact =
            col[c].type == DNN_U8 || col[c].type == DNN_F32 || col[c].type == DNN_F64;
        if ((code->what == HSV || code->what == FROM_HSV || code->what == ADD_ALPHA) &&
            !exact)
            return dnn_aug_fail(step, err, "'%s' has dtype %s; %s needs u8, f32 or f64",
                                col[c].name, dnn_dtype_name(col[c].type),
                                dnn_choice_name(names, o->code));
    }
    return 0;
}

/* rgb is 0 to 1; hue is in degrees. */
static void to_hsv(const float rgb[3], float hsv[3])
{
    const float r = rgb[0], g = rgb[1], b = rgb[2];
    const float most = fmaxf(r, fmaxf(g, b)), least = fminf(r, fminf(g, b));
    const float span = most - least;
    float hue = 0;

    if (span > 0 && most == r)
        hue = 60 * (g - b) / span;
    else if (span > 0 && most == g)
        hue = 120 + 60 * (b - r) / span;
    else if (span > 0)
        hue = 240 + 60 * (r - g) / span;
    hsv[0] = hue < 0 ? hue + 360 : hue;
    hsv[1] = most > 0 ? span / most : 0;
    hsv[2] = most;
}

static void from_hsv(const float hsv[3], float rgb[3])
{
    static const int order[6][3] = {
        {1, 3, 0},
        {2, 1, 0},
        {0, 1, 3},
        {0, 2, 1},
        {3, 0, 1},
        {1, 0, 2}
    };
    const float s = hsv[1], v = hsv[2];
    float h = hsv[0] / 60;

    h -= 6 * floorf(h / 6);
    int sector = (int)h;
    if (sector > 5) sector = 5;
    const float f = h - (float)sector;
    const float level[4] = {v * (1 - s), v, v * (1 - s * f), v * (1 - s * (1 - f))};
    for (int k = 0; k < 3; k++)
        rgb[k] = level[order[sector][k]];
}

/* Convert one point.  bytes: values are 0 to 255. */
static void convert(const struct code *code, bool bytes, const float *in, float *out)
{
    const float one = bytes ? 255 : 1;
    float rgb[3], hsv[3];

    for (int k = 0; code->from >= 3 && k < 3; k++)
        rgb[k] = in[code->red_in == 0 ? k : 2 - k];
    if (code->what == GRAY) {
        out[0] = (float)(0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]);
        return;
    }
    for (int k = 0; code->what == SPREAD && k < 3; k++)
        rgb[k] = in[0];
    if (code->what == HSV) {
        for (int k = 0; k < 3; k++)
            rgb[k] /= one;
        to_hsv(rgb, hsv);
        rgb[0] = bytes ? hsv[0] / 2 : hsv[0];
        rgb[1] = hsv[1] * one;
        rgb[2] = hsv[2] * one;
    }
    if (code->what == FROM_HSV) {
        hsv[0] = bytes ? in[0] * 2 : in[0];
        hsv[1] = in[1] / one;
        hsv[2] = in[2] / one;
        from_hsv(hsv, rgb);
        for (int k = 0; k < 3; k++)
            rgb[k] *= one;
    }
    for (int k = 0; k < 3; k++)
        out[code->red_out == 0 ? k : 2 - k] = rgb[k];
    if (code->what == ADD_ALPHA) out[3] = one;
}

static int apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                 struct dnn_err *err)
{
    const struct code *code = &codes[((const struct opts *)step->opts)->code];

    for (int c = 0; c < run->ncols; c++) {
        struct dnn_array *array = &run->sample->col[c], *out = &run->scratch->spare;
        struct dnn_shape shape = array->shape;
        const enum dnn_dtype type = array->type;
        float *x;
        int64_t n;

        if (!dnn_aug_touches(step, &run->col[c])) continue;
        DNN_TRY(dnn_aug_floats(run, c, &x, &n, err));
        shape.dim[shape.ndim - 1] = code->to;
        DNN_TRY(dnn_array_make(out, DNN_F32, &shape, err));
        for (int k = 0; k < DNN_MAX_SPACE; k++)
            out->spacing[k] = array->spacing[k];
        float *to = out->data;
        for (int64_t k = 0; k < n; k += code->from, to += code->to)
            convert(code, type == DNN_U8, x + k, to);
        DNN_TRY(dnn_array_convert(out, type, false, err));
        dnn_array_swap(array, out);
    }
    return 0;
}

const struct dnn_aug_kind dnn_aug_convert_color = {
    .name = "convert_color",
    .params = "\"BGR2RGB\"",
    .help = "color conversion, with OpenCV's names",
    .main = "code",
    .scope = DNN_AUG_IMAGES,
    .size = sizeof(struct opts),
    .fields = fields,
    .columns = columns,
    .apply = apply,
};
