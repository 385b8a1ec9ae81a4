/* part.c - what is stored of an output for each format, and where its values are.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "output/output_impl.h"

#include <inttypes.h>
#include <string.h>

enum { BYTE = 256, SHORT = 1 << 16 /* numbers of classes */ };

/* ---- the list ---- */

static void add(struct dnn_output *out, struct output_part part)
{
    out->part[out->nparts++] = part;
}

/* A format with a file for each sample, or datasets, in this place. */
static void add_contents(struct dnn_output *out, int k, enum dnn_output_format format,
                         enum output_place place, const char *suffix)
{
    struct output_part part = {.k = k,
                               .format = format,
                               .place = place,
                               .plane = format == DNN_OUTPUT_PNG,
                               .mark = "",
                               .suffix = suffix};

    if ((out->o.formats & (unsigned)format) == 0) return;
    if (out->o.contents & DNN_OUTPUT_VALUES) add(out, part);
    part.what = OUTPUT_CLASSES;
    part.mark = "_classes";
    if (out->o.contents & DNN_OUTPUT_CLASSES) add(out, part);
}

static void add_output(struct dnn_output *out, int k)
{
    const unsigned formats = out->o.formats;

    add_contents(out, k, DNN_OUTPUT_HDF5, OUTPUT_IN_HDF5, NULL);
    add_contents(out, k, DNN_OUTPUT_BP5, OUTPUT_IN_SCRATCH, NULL);
    add_contents(out, k, DNN_OUTPUT_NPY, OUTPUT_IN_FILE, ".npy");
    add_contents(out, k, DNN_OUTPUT_NIFTI, OUTPUT_IN_FILE,
                 out->o.gzip ? ".nii.gz" : ".nii");
    add_contents(out, k, DNN_OUTPUT_TIFF, OUTPUT_IN_FILE, ".tif");
    add_contents(out, k, DNN_OUTPUT_PNG, OUTPUT_IN_SCRATCH, ".png");
    if (formats & DNN_OUTPUT_OVERLAY)
        add(out, (struct output_part){.k = k,
                                      .format = DNN_OUTPUT_OVERLAY,
                                      .what = OUTPUT_CLASSES,
                                      .place = OUTPUT_IN_SCRATCH,
                                      .plane = true,
                                      .mark = "_overlay",
                                      .suffix = ".png"});
    if (formats & DNN_OUTPUT_OVERLAY)
        add(out, (struct output_part){.k = k,
                                      .format = DNN_OUTPUT_OVERLAY,
                                      .what = OUTPUT_INPUT,
                                      .place = OUTPUT_IN_SCRATCH,
                                      .plane = true,
                                      .mark = ""});
    if (formats & (DNN_OUTPUT_CSV | DNN_OUTPUT_JSON))
        add(out, (struct output_part){.k = k,
                                      .format = DNN_OUTPUT_CSV,
                                      .place = OUTPUT_IN_SCRATCH,
                                      .mark = ""});
}

static int check_built(const struct dnn_output *out, struct dnn_err *err)
{
    const struct {
        bool wanted, built;
        const char *format, *library;
    } needs[] = {
        {(out->o.formats & DNN_OUTPUT_HDF5) != 0,                       DNN_HAVE_HDF5, "hdf5", "HDF5"  },
        {(out->o.formats & DNN_OUTPUT_NIFTI) != 0 && out->o.gzip,       DNN_HAVE_ZLIB,
         "nifti with gzip",                                                                    "zlib"  },
        {(out->o.formats & (DNN_OUTPUT_PNG | DNN_OUTPUT_OVERLAY)) != 0, DNN_HAVE_PNG,
         "png and overlay",                                                                    "libpng"},
    };

    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        if (needs[i].wanted && !needs[i].built)
            return dnn_fail(err, DNN_ECONFIG,
                            "the output format %s needs %s, which this program was "
                            "built without",
                            needs[i].format, needs[i].library);
    return 0;
}

int dnn_output_parts(struct dnn_output *out, struct dnn_err *err)
{
    if (out->o.noutputs < 1 || out->o.noutputs > DNN_OUTPUT_MAX)
        return dnn_fail(err, DNN_ECONFIG,
                        "the network has %d outputs; dnn-infer supports up to %d",
                        out->o.noutputs, DNN_OUTPUT_MAX);
    for (int k = 0; k < out->o.noutputs; k++)
        add_output(out, k);
    if (out->nparts == 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "no output format, or neither values nor classes are wanted");
    return check_built(out, err);
}

/* ---- checks ---- */

/* Why an output of this shape cannot be stored, and what could be; NULL: it can. */
static const char *refusal(const struct output_part *p, const struct dnn_shape *s)
{
    int space = s->ndim - 1;
    int64_t channels = s->dim[space];

    switch (p->format) {
    case DNN_OUTPUT_NIFTI:
        if (space < 1 || space > 3) return "1 to 3 spatial axes are needed";
        for (int i = 0; i < s->ndim; i++)
            if (s->dim[i] > INT16_MAX) return "an axis can have at most 32767 points";
        return NULL;
    case DNN_OUTPUT_TIFF:
        if (space < 2 || space > 3) return "2 or 3 spatial axes are needed";
        if (channels > UINT16_MAX) return "at most 65535 channels are possible";
        for (int i = 0; i < space; i++)
            if (s->dim[i] > INT32_MAX)
                return "an axis can have at most 2147483647 points";
        return NULL;
    case DNN_OUTPUT_PNG:
    case DNN_OUTPUT_OVERLAY:
        if (space < 2 || space > 3) return "2 or 3 spatial axes are needed";
        if (s->dim[space - 1] > INT16_MAX || s->dim[space - 2] > INT16_MAX)
            return "an axis can have at most 32767 points";
        if (p->what == OUTPUT_VALUES && channels != 1 && channels != 3)
            return "values need 1 or 3 channels; write classes instead (--content "
                   "classes)";
        if (p->what == OUTPUT_CLASSES && channels > BYTE)
            return "at most 256 classes are possible";
        return NULL;
    case DNN_OUTPUT_CSV:
        return space == 0 ? NULL
                          : "outputs of a classifier, without spatial axes, are "
                            "needed";
    default:
        return NULL;
    }
}

int dnn_output_check(const struct dnn_output *out, int64_t sample,
                     const struct dnn_output_sample *about, struct dnn_err *err)
{
    char text[DNN_SHAPE_TEXT];

    for (int i = 0; i < out->nparts; i++) {
        const struct output_part *p = &out->part[i];
        const struct dnn_shape *s = &about->shape[p->k];
        const char *why = refusal(p, s);
        const char *instead = s->ndim == 1 ? "; write csv, json or npy instead"
                              : p->format == DNN_OUTPUT_CSV
                                  ? "; write npy, nifti or png instead"
                                  : "";
        const char *name = out->o.output_name == NULL ? "" : out->o.output_name[p->k];
        const char *format = dnn_choice_name(dnn_output_format_choices, (int)p->format);

        if (why == NULL) continue;
        if (p->format == DNN_OUTPUT_CSV && !(out->o.formats & DNN_OUTPUT_CSV))
            format = "json";
        return dnn_fail(err, DNN_EDATA,
                        "sample %" PRId64
                        " (%.200s): output%s%s of %s cannot be written "
                        "as %s: %s%s",
                        sample, about->name, name[0] == '\0' ? "" : " ", name,
                        dnn_shape_text(text, sizeof text, s), format, why, instead);
    }
    return 0;
}

/* ---- layout ---- */

static enum dnn_dtype type_of(const struct dnn_output *out, const struct output_part *p,
                              int64_t channels)
{
    static const enum dnn_dtype types[] = {[DNN_OUTPUT_SINGLE] = DNN_F32,
                                           [DNN_OUTPUT_HALF] = DNN_F16,
                                           [DNN_OUTPUT_DOUBLE] = DNN_F64};

    if (p->what == OUTPUT_INPUT) return DNN_U8;
    if (p->what == OUTPUT_CLASSES)
        return channels <= BYTE ? DNN_U8 : channels <= SHORT ? DNN_U16 : DNN_I32;
    if (p->format == DNN_OUTPUT_HDF5 || p->format == DNN_OUTPUT_BP5 ||
        p->format == DNN_OUTPUT_NPY)
        return types[out->o.precision];
    return DNN_F32;
}

/* Set stride and bytes from the shape: an array without gaps. */
static void set_strides(struct output_layout *l, bool first, bool channels)
{
    int64_t stride = channels && !first ? l->channels : 1;

    for (int i = l->nspace - 1; i >= 0; i--) {
        l->stride[i] = stride;
        stride *= l->shape.dim[first && channels ? i + 1 : i];
    }
    l->stride[l->nspace] = channels && first ? stride : 1;
    if (channels && first) stride *= l->channels;
    l->bytes = stride * (int64_t)dnn_dtype_size(l->type);
}

void dnn_output_layout(const struct dnn_output *out, int part, int64_t sample,
                       struct output_layout *layout)
{
    const struct output_part *p = &out->part[part];
    const struct output_sample *s = &out->sample[sample];
    const struct dnn_shape *is = &s->shape[p->k];
    int space = is->ndim - 1, skipped = p->plane && space == 3;
    bool channels = p->what != OUTPUT_CLASSES;
    bool first = p->format == DNN_OUTPUT_NIFTI ||
                 (p->format == DNN_OUTPUT_HDF5 && !s->channels_last);
    struct output_layout *l = layout;

    memset(l, 0, sizeof *l);
    l->type = type_of(out, p, is->dim[space]);
    l->nspace = space - skipped;
    l->channels = p->what == OUTPUT_VALUES    ? is->dim[space]
                  : p->what == OUTPUT_CLASSES ? 1
                                              : 3;
    l->shape.ndim = l->nspace + channels;
    memcpy(l->shape.dim + (first && channels), is->dim + skipped,
           (size_t)l->nspace * sizeof is->dim[0]);
    if (channels) l->shape.dim[first ? 0 : l->nspace] = l->channels;
    set_strides(l, first, channels);
}

int64_t dnn_output_plane(const struct dnn_shape *shape)
{
    return shape->ndim == 4 ? shape->dim[0] / 2 : 0;
}

void dnn_output_place(struct dnn_output *out)
{
    struct output_layout l;

    out->offset =
        dnn_alloc(((size_t)(out->o.nsamples * out->nparts) + 1) * sizeof *out->offset);
    for (int64_t i = 0; i < out->o.nsamples; i++)
        for (int p = 0; p < out->nparts; p++) {
            if (out->part[p].place != OUTPUT_IN_SCRATCH) continue;
            dnn_output_layout(out, p, i, &l);
            out->offset[i * out->nparts + p] = out->scratch_bytes;
            out->scratch_bytes += (l.bytes + 7) / 8 * 8;
        }
}
