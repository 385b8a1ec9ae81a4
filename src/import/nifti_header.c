/* nifti_header.c - read and check NIfTI headers.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import/nifti_impl.h"

#if DNN_HAVE_NIFTI
#include <nifti2_io.h>

enum { SIZE1 = 348, SIZE2 = 540, MORE = 4 /* bytes of the extension flag */ };

/* Convert a header of version 1 to version 2. */
static void convert_header(const nifti_1_header *a, nifti_2_header *b)
{
    memset(b, 0, sizeof(*b));
    b->datatype = a->datatype;
    b->bitpix = a->bitpix;
    for (int i = 0; i < 8; i++) {
        b->dim[i] = a->dim[i];
        b->pixdim[i] = (double)a->pixdim[i];
    }
    for (int i = 0; i < 4; i++) {
        b->srow_x[i] = (double)a->srow_x[i];
        b->srow_y[i] = (double)a->srow_y[i];
        b->srow_z[i] = (double)a->srow_z[i];
    }
    b->scl_slope = (double)a->scl_slope;
    b->scl_inter = (double)a->scl_inter;
    b->quatern_b = (double)a->quatern_b;
    b->quatern_c = (double)a->quatern_c;
    b->quatern_d = (double)a->quatern_d;
    b->qoffset_x = (double)a->qoffset_x;
    b->qoffset_y = (double)a->qoffset_y;
    b->qoffset_z = (double)a->qoffset_z;
    b->qform_code = a->qform_code;
    b->sform_code = a->sform_code;
    b->xyzt_units = (unsigned char)a->xyzt_units;
}

static int read_version1(struct dnn_bytes *file, const char *what, nifti_2_header *h,
                         struct dnn_nifti *out, struct dnn_err *err)
{
    nifti_1_header old;

    DNN_TRY(dnn_bytes_read(file, 0, &old, sizeof(old), err));
    if (memcmp(old.magic, "ni1", 4) == 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: NIfTI pairs (.hdr and .img) are not supported; save it as "
                        "one .nii file",
                        what);
    if (memcmp(old.magic, "n+1", 4) != 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: not a NIfTI file: the magic number is missing", what);
    if (out->swapped) swap_nifti_header(&old, 1);
    convert_header(&old, h);
    /* It is a float; invalid values become -1, which the caller rejects. */
    float offset = old.vox_offset;
    h->vox_offset = offset >= 0 && offset < 1e18F && truncf(offset) == offset
                        ? (int64_t)offset
                        : -1;
    return 0;
}

static int read_version2(struct dnn_bytes *file, const char *what, nifti_2_header *h,
                         struct dnn_nifti *out, struct dnn_err *err)
{
    DNN_TRY(dnn_bytes_read(file, 0, h, sizeof(*h), err));
    if (memcmp(h->magic, "ni2", 4) == 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: NIfTI pairs (.hdr and .img) are not supported; save it as "
                        "one .nii file",
                        what);
    if (memcmp(h->magic, "n+2\0\r\n\032\n", 8) != 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: not a NIfTI file: the magic number is missing or was "
                        "changed by a text-mode transfer",
                        what);
    if (out->swapped) swap_nifti_header(h, 2);
    return 0;
}

static int read_axes(const nifti_2_header *h, const char *what, struct dnn_nifti *out,
                     struct dnn_err *err)
{
    out->dim[0] = h->dim[0];
    if (h->dim[0] < 1 || h->dim[0] > 7)
        return dnn_fail(err, DNN_EDATA, "%s: %" PRId64 " axes; NIfTI files have 1 to 7",
                        what, (int64_t)h->dim[0]);
    for (int i = 1; i < 8; i++) {
        out->dim[i] = i <= h->dim[0] ? h->dim[i] : 1;
        if (out->dim[i] < 1)
            return dnn_fail(err, DNN_EDATA, "%s: axis %d has length %" PRId64, what, i,
                            out->dim[i]);
    }
    return 0;
}

static int read_type(const nifti_2_header *h, const char *what, struct dnn_nifti *out,
                     struct dnn_err *err)
{
    static const struct {
        int code, colours;
        enum dnn_dtype type;
    } types[] = {
        {NIFTI_TYPE_UINT8,   1, DNN_U8 },
        {NIFTI_TYPE_INT8,    1, DNN_I8 },
        {NIFTI_TYPE_INT16,   1, DNN_I16},
        {NIFTI_TYPE_UINT16,  1, DNN_U16},
        {NIFTI_TYPE_INT32,   1, DNN_I32},
        {NIFTI_TYPE_UINT32,  1, DNN_U32},
        {NIFTI_TYPE_INT64,   1, DNN_I64},
        {NIFTI_TYPE_UINT64,  1, DNN_U64},
        {NIFTI_TYPE_FLOAT32, 1, DNN_F32},
        {NIFTI_TYPE_FLOAT64, 1, DNN_F64},
        {NIFTI_TYPE_RGB24,   3, DNN_U8 },
        {NIFTI_TYPE_RGBA32,  4, DNN_U8 },
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].code != h->datatype) continue;
        int bits = (int)dnn_dtype_size(types[i].type) * 8 * types[i].colours;
        if (h->bitpix != bits)
            return dnn_fail(err, DNN_EDATA,
                            "%s: the header declares %d bits per voxel, but its data "
                            "type (%d) has %d",
                            what, h->bitpix, h->datatype, bits);
        out->type = types[i].type;
        out->colours = types[i].colours;
        return 0;
    }
    return dnn_fail(err, DNN_EDATA, "%s: unsupported data type %d (%s)", what,
                    h->datatype, nifti_datatype_string(h->datatype));
}

/* A slope of 0 or NaN means that values are not scaled. */
static int read_scale(const nifti_2_header *h, const char *what, struct dnn_nifti *out,
                      struct dnn_err *err)
{
    double slope = isnan(h->scl_slope) ? 0 : h->scl_slope;

    if (slope != 0 && (!isfinite(slope) || !isfinite(h->scl_inter)))
        return dnn_fail(err, DNN_EDATA, "%s: invalid scaling: slope %g, intercept %g",
                        what, slope, h->scl_inter);
    if (slope != 0 && (slope != 1 || h->scl_inter != 0) && out->colours > 1)
        return dnn_fail(err, DNN_EDATA, "%s: scaling of color values is not supported",
                        what);
    out->slope = slope;
    out->inter = slope == 0 ? 0 : h->scl_inter;
    return 0;
}

static void read_space(const nifti_2_header *h, struct dnn_nifti *out)
{
    int unit = XYZT_TO_SPACE(h->xyzt_units);
    double mm = unit == NIFTI_UNITS_METER ? 1e3 : unit == NIFTI_UNITS_MICRON ? 1e-3 : 1;
    double d[3];

    for (int i = 0; i < 3; i++) {
        double size = fabs(h->pixdim[i + 1]);

        d[i] = isfinite(size) ? size : 0;
        out->spacing[i] = d[i] * mm;
        if (d[i] == 0) d[i] = 1;
    }
    out->mm = mm;
    out->space_code = h->sform_code > 0   ? h->sform_code
                      : h->qform_code > 0 ? h->qform_code
                                          : 0;
    if (h->sform_code > 0) {
        memcpy(out->affine, h->srow_x, sizeof(h->srow_x));
        memcpy(out->affine + 4, h->srow_y, sizeof(h->srow_y));
        memcpy(out->affine + 8, h->srow_z, sizeof(h->srow_z));
        return;
    }
    memset(out->affine, 0, sizeof(out->affine));
    out->affine[0] = d[0];
    out->affine[5] = d[1];
    out->affine[10] = d[2];
    if (h->qform_code <= 0) return;
    nifti_dmat44 m = nifti_quatern_to_dmat44(
        h->quatern_b, h->quatern_c, h->quatern_d, h->qoffset_x, h->qoffset_y,
        h->qoffset_z, d[0], d[1], d[2], h->pixdim[0] < 0 ? -1 : 1);
    for (int i = 0; i < 12; i++)
        out->affine[i] = m.m[i / 4][i % 4];
}

int dnn_nifti_header(struct dnn_bytes *file, const char *what, struct dnn_nifti *out,
                     struct dnn_err *err)
{
    nifti_2_header h;
    int32_t size;

    _Static_assert(sizeof(nifti_1_header) == SIZE1 && sizeof(h) == SIZE2, "packed");
    DNN_TRY(dnn_bytes_read(file, 0, &size, sizeof(size), err));
    uint32_t other = __builtin_bswap32((uint32_t)size);
    out->swapped = other == SIZE1 || other == SIZE2;
    if (out->swapped) size = (int32_t)other;
    if (size == SIZE1)
        DNN_TRY(read_version1(file, what, &h, out, err));
    else if (size == SIZE2)
        DNN_TRY(read_version2(file, what, &h, out, err));
    else
        return dnn_fail(
            err, DNN_EDATA,
            "%s: not a NIfTI file: the header size is neither %d nor %d bytes", what,
            SIZE1, SIZE2);
    DNN_TRY(read_axes(&h, what, out, err));
    DNN_TRY(read_type(&h, what, out, err));
    DNN_TRY(read_scale(&h, what, out, err));
    /* 0 means directly after the header. */
    out->offset = h.vox_offset == 0 ? size + MORE : h.vox_offset;
    if (out->offset < size || out->offset > INT64_MAX / 4)
        return dnn_fail(err, DNN_EDATA,
                        "%s: invalid data offset: it lies inside the header of %d "
                        "bytes or beyond the end",
                        what, size);
    read_space(&h, out);
    return 0;
}
#else
typedef int dnn_nifti_is_not_built; /* a C file must not be empty */
#endif
