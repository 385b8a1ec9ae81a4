/* import_nifti.c - NIfTI headers of both versions and byte orders: valid, truncated,
 * wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "tap.h"

#include "base/file.h"
#include "base/mem.h"
#include "import/import_impl.h"

#include <stdlib.h>
#include <unistd.h>

#if DNN_HAVE_NIFTI
/* A file as bytes: offsets and sizes are those of the standard. */
struct file {
    unsigned char at[2048];
    size_t len;
    bool other; /* byte order */
};

static void put(struct file *f, size_t at, const void *value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        f->at[at + i] = ((const unsigned char *)value)[f->other ? size - 1 - i : i];
}

static void put16(struct file *f, size_t at, int value)
{
    int16_t x = (int16_t)value;

    put(f, at, &x, 2);
}

static void put32(struct file *f, size_t at, int32_t value)
{
    put(f, at, &value, 4);
}

static void put64(struct file *f, size_t at, int64_t value)
{
    put(f, at, &value, 8);
}

static void real32(struct file *f, size_t at, float value)
{
    put(f, at, &value, 4);
}

static void real64(struct file *f, size_t at, double value)
{
    put(f, at, &value, 8);
}

/* 4 x 3 x 2 voxels of i16, counting from 0; spacing 1.5, 2, 3 mm. */
static struct file first(bool other)
{
    struct file f = {.other = other};
    static const int dim[] = {3, 4, 3, 2, 1, 1, 1, 1};
    static const float pixdim[] = {1, 1.5F, 2, 3, 1, 1, 1, 1};

    put32(&f, 0, 348);
    for (size_t i = 0; i < 8; i++) {
        put16(&f, 40 + 2 * i, dim[i]);
        real32(&f, 76 + 4 * i, pixdim[i]);
    }
    put16(&f, 70, 4);
    put16(&f, 72, 16);
    real32(&f, 108, 352);
    real32(&f, 112, 1);
    f.at[123] = 2;
    memcpy(f.at + 344, "n+1", 4);
    for (int i = 0; i < 24; i++)
        put16(&f, 352 + 2 * (size_t)i, i);
    f.len = 352 + 48;
    return f;
}

static struct file second(bool other)
{
    struct file f = {.other = other};
    static const int dim[] = {3, 4, 3, 2, 1, 1, 1, 1};

    put32(&f, 0, 540);
    memcpy(f.at + 4, "n+2\0\r\n\032\n", 8);
    put16(&f, 12, 4);
    put16(&f, 14, 16);
    for (size_t i = 0; i < 8; i++) {
        put64(&f, 16 + 8 * i, dim[i]);
        real64(&f, 104 + 8 * i, 1);
    }
    put64(&f, 168, 544);
    for (int i = 0; i < 24; i++)
        put16(&f, 544 + 2 * (size_t)i, i);
    f.len = 544 + 48;
    return f;
}

static void save(const struct file *f, size_t len)
{
    struct dnn_err err = {0};

    if (dnn_file_write("a.nii", f->at, len, &err) < 0) printf("# %s\n", err.text);
}

/* The message; or kind, type, shape, spacing, numbers and the matrix. */
static const char *read_as(struct dnn_import *how, bool target)
{
    static char out[1200];
    struct dnn_err err = {0};
    struct dnn_sample sample = {0};
    struct dnn_source *source = NULL;
    struct dnn_array real = {0};
    char shape[DNN_SHAPE_TEXT];

    int rc = dnn_importer_nifti.open("a.nii", how, target ? &how->target : &how->input,
                                     &source, &err);
    if (rc == 0) rc = dnn_source_read(source, 0, &sample, &err);
    if (rc == 0) rc = dnn_array_copy(&sample.col[0], &real, &err);
    if (rc == 0) rc = dnn_array_convert(&real, DNN_F64, false, &err);
    snprintf(out, sizeof(out), "%s", err.text);
    if (rc == 0) {
        const struct dnn_array *a = &sample.col[0];
        const double *affine = sample.col[1].data;
        size_t n = (size_t)snprintf(
            out, sizeof(out), "%s %s %s, %g %g %g:",
            dnn_choice_name(dnn_kind_choices, source->col[0].kind),
            dnn_dtype_name(a->type), dnn_shape_text(shape, sizeof(shape), &a->shape),
            a->spacing[0], a->spacing[1], a->spacing[2]);

        for (int64_t i = 0; i < dnn_array_count(a) && i < 6; i++)
            n += (size_t)snprintf(out + n, sizeof(out) - n, " %g",
                                  ((double *)real.data)[i]);
        n += (size_t)snprintf(out + n, sizeof(out) - n, "; %s", source->col[1].name);
        for (int i = 0; i < 12; i++)
            n += (size_t)snprintf(out + n, sizeof(out) - n, " %g", affine[i]);
    }
    dnn_array_free(&real);
    dnn_sample_free(&sample);
    dnn_source_close(source);
    return out;
}

static struct dnn_import usual(void)
{
    return (struct dnn_import){.input.kind = -1, .target.kind = -1};
}

static void message_is(const struct file *f, const char *want, const char *what)
{
    struct dnn_import how = usual();

    save(f, f->len);
    is_text(read_as(&how, false), want, what);
}

/* ---- valid files ---- */

static void good(void)
{
    for (int other = 0; other < 2; other++) {
        struct file f = first(other != 0);

        message_is(
            &f,
            "image i16 2x3x4x1, 3 2 1.5: 0 1 2 3 4 5; input.affine 1.5 0 0 0 0 2 0 "
            "0 0 0 3 0",
            "version 1");
        f = second(other != 0);
        message_is(
            &f,
            "image i16 2x3x4x1, 1 1 1: 0 1 2 3 4 5; input.affine 1 0 0 0 0 1 0 0 0 "
            "0 1 0",
            "version 2");
    }
    struct file f = first(false);
    struct dnn_import how = usual();

    save(&f, f.len);
    is_text(read_as(&how, true),
            "mask i16 2x3x4x1, 3 2 1.5: 0 1 2 3 4 5; target.affine 1.5 0 0 0 0 2 0 0 0 "
            "0 3 0",
            "integers as a target are a mask");
    real32(&f, 108, 0);
    message_is(
        &f,
        "image i16 2x3x4x1, 3 2 1.5: 0 1 2 3 4 5; input.affine 1.5 0 0 0 0 2 0 0 0 "
        "0 3 0",
        "no data offset: data after the header");
    put16(&f, 40, 4);
    put16(&f, 46, 1);
    put16(&f, 48, 2);
    message_is(
        &f,
        "image i16 1x3x4x2, 3 2 1.5: 0 12 1 13 2 14; input.affine 1.5 0 0 0 0 2 0 "
        "0 0 0 3 0",
        "time steps are channels");
}

static void values(void)
{
    struct file f = first(false);
    struct dnn_import how = usual();

    real32(&f, 112, 0.5F);
    real32(&f, 116, -1);
    message_is(
        &f,
        "image f32 2x3x4x1, 3 2 1.5: -1 -0.5 0 0.5 1 1.5; input.affine 1.5 0 0 0 0 "
        "2 0 0 0 0 3 0",
        "scaled");
    how.target.kind = DNN_KIND_MASK;
    is_text(read_as(&how, true),
            "a.nii: a mask must contain integer class numbers: element 1 is -0.5, out "
            "of range of i32",
            "scaled values that are not classes");
    real32(&f, 112, 2);
    save(&f, f.len);
    is_text(read_as(&how, true),
            "mask i32 2x3x4x1, 3 2 1.5: -1 1 3 5 7 9; target.affine 1.5 0 0 0 0 2 0 0 "
            "0 0 3 0",
            "scaled to whole numbers");
    real32(&f, 112, 1.0F / 0.0F);
    message_is(&f, "a.nii: invalid scaling: slope inf, intercept -1",
               "scaled by infinity");
    f = first(false);
    put16(&f, 252, 1);   /* qform: rotation by 180 degrees about k */
    real32(&f, 264, 1);  /* d */
    real32(&f, 268, 10); /* offset of i */
    message_is(
        &f,
        "image i16 2x3x4x1, 3 2 1.5: 0 1 2 3 4 5; input.affine -1.5 0 0 10 0 -2 0 "
        "0 0 0 3 0",
        "a quaternion");
    put16(&f, 254, 1); /* sform */
    real32(&f, 280, 7);
    real32(&f, 300, 8);
    real32(&f, 320, 9);
    message_is(
        &f,
        "image i16 2x3x4x1, 3 2 1.5: 0 1 2 3 4 5; input.affine 7 0 0 0 0 8 0 0 0 0 "
        "9 0",
        "a matrix is preferred to a quaternion");
    f.at[123] = 3;
    message_is(
        &f,
        "image i16 2x3x4x1, 0.003 0.002 0.0015: 0 1 2 3 4 5; input.affine 7 0 0 0 "
        "0 8 0 0 0 0 9 0",
        "micrometres");
}

/* ---- wrong headers ---- */

static void lies(void)
{
    struct file f = first(false);

    put32(&f, 0, 349);
    message_is(&f,
               "a.nii: not a NIfTI file: the header size is neither 348 nor 540 bytes",
               "another size");
    f = first(false), f.at[344] = 'x';
    message_is(&f, "a.nii: not a NIfTI file: the magic number is missing", "no magic");
    f = first(false), memcpy(f.at + 344, "ni1", 4);
    message_is(
        &f,
        "a.nii: NIfTI pairs (.hdr and .img) are not supported; save it as one .nii "
        "file",
        "a pair");
    f = second(false), f.at[8] = '\n';
    message_is(
        &f,
        "a.nii: not a NIfTI file: the magic number is missing or was changed by a "
        "text-mode transfer",
        "transferred as text");
    f = first(false), put16(&f, 40, 8);
    message_is(&f, "a.nii: 8 axes; NIfTI files have 1 to 7", "too many axes");
    f = first(false), put16(&f, 40, 0);
    message_is(&f, "a.nii: 0 axes; NIfTI files have 1 to 7", "no axes");
    f = first(false), put16(&f, 44, -3);
    message_is(&f, "a.nii: axis 2 has length -3", "a negative extent");
    f = first(false), put16(&f, 44, 30000), put16(&f, 46, 30000);
    message_is(
        &f, "a.nii: truncated: the header declares 7200000352 bytes, but there are 400",
        "more data than in the file");
    f = second(false), put64(&f, 24, INT64_MAX / 2), put64(&f, 32, 16);
    message_is(
        &f, "a.nii: shape 2x16x4611686018427387903x1: the number of elements overflows",
        "overflow of the size");
    f = first(false), put16(&f, 72, 8);
    message_is(
        &f, "a.nii: the header declares 8 bits per voxel, but its data type (4) has 16",
        "bits that do not match the type");
    f = first(false), put16(&f, 70, 32);
    message_is(&f, "a.nii: unsupported data type 32 (COMPLEX64)", "complex numbers");
    f = first(false), put16(&f, 70, 777);
    message_is(&f, "a.nii: unsupported data type 777 (**ILLEGAL**)", "an unknown type");
    f = first(false), real32(&f, 108, 100);
    message_is(&f,
               "a.nii: invalid data offset: it lies inside the header of 348 bytes or "
               "beyond the end",
               "data in the header");
    f = first(false), real32(&f, 108, 0.0F / 0.0F);
    message_is(&f,
               "a.nii: invalid data offset: it lies inside the header of 348 bytes or "
               "beyond the end",
               "invalid data offset");
    f = first(false), real32(&f, 108, 380);
    message_is(&f, "a.nii: truncated: the header declares 428 bytes, but there are 400",
               "data offset too large");
    f = first(false), put16(&f, 40, 6), put16(&f, 52, 2);
    message_is(&f, "a.nii: 6 axes; axes 6 and 7 are not supported", "six axes");
    f = first(false), put16(&f, 40, 5), put16(&f, 48, 2), put16(&f, 50, 2);
    message_is(
        &f,
        "a.nii: 2 time steps, 2 vector components and 1 colors per voxel; only one "
        "of them can become channels",
        "two kinds of channels");
}

static void cuts(void)
{
    struct file f[2] = {first(false), second(false)};
    struct dnn_import how = usual();
    int bad = 0;

    for (int v = 0; v < 2; v++)
        for (size_t n = 0; n < f[v].len; n++) {
            save(&f[v], n);
            const char *message = read_as(&how, false);
            if (strncmp(message, "a.nii: ", 7) != 0 && ++bad < 5)
                printf("# cut at %zu: %s\n", n, message);
        }
    is_int(bad, 0, "truncated at any byte, it is refused");
    save(&f[0], 100);
    is_text(read_as(&how, false), "a.nii: truncated: 100 of 348 bytes",
            "a truncated header");
    save(&f[1], 500);
    is_text(read_as(&how, false), "a.nii: truncated: 500 of 540 bytes",
            "a truncated header of version 2");
    save(&f[0], 399);
    is_text(read_as(&how, false),
            "a.nii: truncated: the header declares 400 bytes, but there are 399",
            "the last byte is missing");
    how.limit = 47;
    save(&f[0], f[0].len);
    is_text(read_as(&how, false),
            "a.nii: i16 2x3x4x1 needs 48 B, which exceeds the limit of 47 B",
            "more than the limit");
}
#endif

int main(void)
{
#if DNN_HAVE_NIFTI
    char dir[] = "/tmp/dnn-nifti-XXXXXX";

    if (mkdtemp(dir) == NULL || chdir(dir) != 0) return 1;
    good();
    values();
    lies();
    cuts();
    if (chdir("/") == 0) dnn_file_remove_tree(dir, NULL);
#else
    skip("NIfTI", "built without libnifti2");
#endif
    return done();
}
