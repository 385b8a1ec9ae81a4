/* nifti_write.c - headers of NIfTI-1 files.
 *
 * The file's axes are those of nifti.c: i runs fastest and is the array's last spatial
 * axis; channels are axis 5, the components of a vector.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import/nifti_write.h"

#include "import/nifti_impl.h"

#include <inttypes.h>
#include <string.h>

enum { MILLIMETRES = 2, ALIGNED = 2 /* sform_code of an unknown origin */ };

/* ---- geometry ---- */

struct place {
    double spacing[3]; /* of i, j, k                                                 */
    double affine[12];
    int code; /* 0: unknown */
};

static void place_of(const struct dnn_nifti_make *make, struct place *out)
{
    int space = make->shape->ndim - 1;

    *out = (struct place){0};
    for (int i = 0; i < 3; i++) {
        double d = i < space ? make->position->spacing[space - 1 - i] : 0;

        out->spacing[i] = d > 0 ? d : 1;
        out->affine[5 * i] = out->spacing[i];
    }
}

#if DNN_HAVE_NIFTI
/* Point number x of each of the axes i, j, k is point first + x * step of the file;
 * false: they are not in it. */
static bool find_axes(const struct dnn_nifti_make *make, const struct dnn_nifti *h,
                      double first[3], double step[3])
{
    int space = make->shape->ndim - 1;
    bool same = true, known = true;

    for (int i = 0; i < 3; i++) {
        int d = space - 1 - i;

        same &= h->dim[i + 1] == (d >= 0 ? make->shape->dim[d] : 1);
        known &= d >= 0 ? make->position->step[d] > 0 : h->dim[i + 1] == 1;
        first[i] = d >= 0 && make->position->step[d] > 0 ? make->position->first[d] : 0;
        step[i] = d >= 0 && make->position->step[d] > 0 ? make->position->step[d] : 1;
    }
    return same || known;
}

static void place_like(const struct dnn_nifti_make *make, struct place *out)
{
    struct dnn_bytes *file;
    struct dnn_nifti h;
    double first[3], step[3];

    if (dnn_bytes_open(make->like, &file, NULL) < 0) return;
    if (dnn_nifti_header(file, make->like, &h, NULL) == 0 &&
        find_axes(make, &h, first, step)) {
        for (int i = 0; i < 3; i++)
            if (h.spacing[i] > 0) out->spacing[i] = h.spacing[i] * step[i];
        for (int i = 0; i < 12; i++)
            out->affine[i] = h.affine[i] * h.mm * (i % 4 < 3 ? step[i % 4] : 1);
        for (int i = 0; i < 12; i++)
            if (i % 4 < 3)
                out->affine[i / 4 * 4 + 3] += h.affine[i] * h.mm * first[i % 4];
        out->code = h.space_code > 0 ? h.space_code : ALIGNED;
    }
    dnn_bytes_close(file);
}
#else
static void place_like(const struct dnn_nifti_make *make, struct place *out)
{
    (void)make, (void)out;
}
#endif

/* ---- bytes ---- */

static void put16(unsigned char *at, int value)
{
    int16_t number = (int16_t)value;

    memcpy(at, &number, sizeof number);
}

static void put32(unsigned char *at, double value)
{
    float real = (float)value;

    memcpy(at, &real, sizeof real);
}

/* The code of a type in NIfTI files; 0: there is none. */
static int code_of(enum dnn_dtype type)
{
    switch (type) {
    case DNN_U8:
        return 2;
    case DNN_I16:
        return 4;
    case DNN_I32:
        return 8;
    case DNN_F32:
        return 16;
    case DNN_F64:
        return 64;
    case DNN_I8:
        return 256;
    case DNN_U16:
        return 512;
    case DNN_U32:
        return 768;
    default:
        return 0;
    }
}

static int check(const char *what, const struct dnn_nifti_make *make,
                 struct dnn_err *err)
{
    const struct dnn_shape *s = make->shape;
    char text[DNN_SHAPE_TEXT];

    if (s->ndim < 2 || s->ndim > 4)
        return dnn_fail(err, DNN_EDATA,
                        "%s: an array of %s cannot be a NIfTI file, which has 1 to 3 "
                        "spatial axes and channels",
                        what, dnn_shape_text(text, sizeof text, s));
    for (int i = 0; i < s->ndim; i++)
        if (s->dim[i] > INT16_MAX)
            return dnn_fail(err, DNN_EDATA,
                            "%s: %" PRId64
                            " points along an axis; NIfTI-1 files have at most %d",
                            what, s->dim[i], INT16_MAX);
    if (code_of(make->type) == 0)
        return dnn_fail(err, DNN_EDATA, "%s: NIfTI files cannot have the type %s", what,
                        dnn_dtype_name(make->type));
    return 0;
}

int dnn_nifti_make(const char *what, const struct dnn_nifti_make *make,
                   unsigned char head[DNN_NIFTI_HEAD], struct dnn_err *err)
{
    const struct dnn_shape *s = make->shape;
    const int space = s->ndim - 1, size = DNN_NIFTI_HEAD - 4;
    struct place place;

    DNN_TRY(check(what, make, err));
    place_of(make, &place);
    if (make->like != NULL) place_like(make, &place);
    memset(head, 0, DNN_NIFTI_HEAD);
    memcpy(head, &size, 4);
    put16(head + 40, s->dim[space] > 1 ? 5 : space);
    for (int i = 1; i < 8; i++) {
        put16(head + 40 + 2 * i, i <= space ? (int)s->dim[space - i] : 1);
        put32(head + 76 + 4 * i, i <= 3 ? place.spacing[i - 1] : 1);
    }
    put16(head + 50, (int)s->dim[space]);
    put16(head + 70, code_of(make->type));
    put16(head + 72, 8 * (int)dnn_dtype_size(make->type));
    put32(head + 76, 1);
    put32(head + 108, DNN_NIFTI_HEAD);
    put32(head + 112, 1);
    head[123] = MILLIMETRES;
    put16(head + 254, place.code); /* sform_code: use the matrix at offset 280 */
    for (int i = 0; i < 12; i++)
        put32(head + 280 + 4 * i, place.affine[i]);
    memcpy(head + 344, "n+1", 4);
    return 0;
}
