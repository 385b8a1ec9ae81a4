/* open.c - opens weights files of all formats, and reads arrays.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "weights/weights_impl.h"

#include "archive/archive.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct dnn_weights_array *dnn_weights_at(const struct dnn_weights *file, int i)
{
    return i < 0 || (size_t)i >= file->narrays ? NULL : &file->array[i];
}

#if DNN_HAVE_HDF5
#include "weights/h5_impl.h"

/* Whether the file begins like a zip archive. */
static int is_archive(const char *path, bool *out, struct dnn_err *err)
{
    char magic[4] = "";
    FILE *f = fopen(path, "rbe");

    if (f == NULL) return dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(errno));
    size_t n = fread(magic, 1, sizeof magic, f);
    int rc = 0;
    if (ferror(f)) rc = dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(errno));
    fclose(f);
    *out = n == sizeof magic && memcmp(magic, "PK\3\4", 4) == 0;
    return rc;
}

/* ---- a file in memory: HDF5 uses our buffer without a copy ---- */

static void *image_malloc(size_t size, H5FD_file_image_op_t op, void *memory)
{
    (void)size, (void)op;
    return memory;
}

static void *image_memcpy(void *to, const void *from, size_t size,
                          H5FD_file_image_op_t op, void *memory)
{
    (void)from, (void)size, (void)op;
    return to == memory ? to : NULL;
}

static void *image_realloc(void *mem, size_t size, H5FD_file_image_op_t op,
                           void *memory)
{
    (void)mem, (void)size, (void)op, (void)memory;
    return NULL; /* the file is only read */
}

static herr_t image_free(void *mem, H5FD_file_image_op_t op, void *memory)
{
    (void)mem, (void)op, (void)memory;
    return 0; /* dnn_weights_close() frees it */
}

static void *same(void *memory)
{
    return memory;
}

static herr_t nothing(void *memory)
{
    (void)memory;
    return 0;
}

static int use_memory(hid_t fapl, struct dnn_weights *w, size_t *len,
                      struct dnn_err *err)
{
    char *bytes = NULL;

    DNN_TRY(
        dnn_archive_read(w->path, DNN_WEIGHTS_MEMBER, SIZE_MAX / 2, &bytes, len, err));
    if (bytes == NULL)
        return dnn_fail(err, DNN_EDATA,
                        "%s: not a complete .keras or model file: " DNN_WEIGHTS_MEMBER
                        " is missing",
                        w->path);
    w->memory = bytes;
    H5FD_file_image_callbacks_t calls = {image_malloc, image_memcpy, image_realloc,
                                         image_free,   same,         nothing,
                                         w->memory};
    if (H5Pset_fapl_core(fapl, 1 << 20, false) < 0 ||
        H5Pset_file_image_callbacks(fapl, &calls) < 0 ||
        H5Pset_file_image(fapl, w->memory, *len) < 0)
        return dnn_h5_fail(w->path, err, "HDF5 cannot read from memory");
    return 0;
}

static int open_file(struct dnn_weights *w, struct dnn_err *err)
{
    bool archive = false;
    size_t len = 0;

    DNN_TRY(is_archive(w->path, &archive, err));
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 12, 1)
    /* Files are not changed in place, and some file systems do not support locks. */
    H5Pset_file_locking(fapl, false, true);
#endif
    int rc = archive ? use_memory(fapl, w, &len, err) : 0;
    /* HDF5 needs a unique name for a file in memory. */
    char *name =
        archive ? dnn_format("%s/%p", w->path, w->memory) : dnn_strdup(w->path);
    if (rc == 0 && (w->file = H5Fopen(name, H5F_ACC_RDONLY, fapl)) < 0)
        rc = dnn_h5_fail(w->path, err, "cannot be read as an HDF5 file");
    dnn_free(name);
    H5Pclose(fapl);
    return rc == 0 ? dnn_h5_check_heaps(w, len, err) : rc;
}

static bool has_names(hid_t at)
{
    return H5Aexists(at, "layer_names") > 0 || H5Aexists(at, "layer_names0") > 0;
}

static int list(struct dnn_weights *w, struct dnn_err *err)
{
    hid_t root = H5Gopen2(w->file, "/", H5P_DEFAULT);
    hid_t inner = root < 0 ? -1 : dnn_h5_open(root, "model_weights", H5O_TYPE_GROUP);
    int rc;

    if (root < 0)
        rc = dnn_h5_fail(w->path, err, "cannot open the root group");
    else if (inner >= 0 && has_names(inner))
        rc = dnn_h5_list_named(w, inner, "model_weights/", err);
    else if (has_names(root))
        rc = dnn_h5_list_named(w, root, "", err);
    else
        rc = dnn_h5_list_numbered(w, err);
    if (inner >= 0) H5Oclose(inner);
    if (root >= 0) H5Gclose(root);
    if (rc == 0 && w->narrays == 0)
        rc = dnn_fail(err, DNN_EDATA,
                      "%s: holds no weights: neither \"layer_names\" as of Keras 2 nor "
                      "\"layers\" as of Keras 3 with arrays in them",
                      w->path);
    return rc;
}

int dnn_weights_open(const char *path, struct dnn_weights **out, struct dnn_err *err)
{
    struct dnn_weights *w = dnn_alloc(sizeof *w);

    dnn_h5_quiet();
    w->arena = dnn_arena_make();
    w->path = dnn_arena_strdup(w->arena, path);
    w->file = -1;
    int rc = open_file(w, err);
    if (rc == 0) rc = list(w, err);
    if (rc < 0) {
        dnn_weights_close(w);
        return rc;
    }
    *out = w;
    return 0;
}

void dnn_weights_close(struct dnn_weights *file)
{
    if (file == NULL) return;
    if (file->file >= 0) H5Fclose(file->file);
    free(file->memory);
    dnn_arena_free(file->arena);
    dnn_free(file->array);
    dnn_free(file->group);
    dnn_free(file);
}

/* Convert f32 to f16 or bf16. */
static void narrow(enum dnn_dtype dtype, const float *from, uint16_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] =
            dtype == DNN_F16 ? dnn_f16_from_f32(from[i]) : dnn_bf16_from_f32(from[i]);
}

int dnn_weights_get(struct dnn_weights *file, int i, enum dnn_dtype dtype, void *to,
                    struct dnn_err *err)
{
    const struct dnn_weights_array *a = &file->array[i];
    bool half = dtype == DNN_F16 || dtype == DNN_BF16;
    int64_t n = 0;
    int rc = 0;

    if (!half && dtype != DNN_F32 && dtype != DNN_F64)
        return dnn_fail(err, DNN_ECONFIG, "%s: weights are not read as %s", file->path,
                        dnn_dtype_name(dtype));
    DNN_TRY(dnn_shape_count(&a->is.shape, &n, err));
    hid_t root = H5Gopen2(file->file, "/", H5P_DEFAULT);
    hid_t data = root < 0 ? -1 : dnn_h5_open(root, a->path, H5O_TYPE_DATASET);
    hid_t space = data < 0 ? -1 : H5Dget_space(data);
    void *buffer = half ? dnn_alloc((size_t)n * sizeof(float) + 1) : to;
    if (space < 0 || H5Sget_simple_extent_npoints(space) != n ||
        H5Dread(data, dtype == DNN_F64 ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT, H5S_ALL,
                H5S_ALL, H5P_DEFAULT, buffer) < 0)
        rc = dnn_h5_fail(file->path, err, "the array %.200s", a->path);
    else if (half)
        narrow(dtype, buffer, to, (size_t)n);
    if (half) dnn_free(buffer);
    if (space >= 0) H5Sclose(space);
    if (data >= 0) H5Oclose(data);
    if (root >= 0) H5Gclose(root);
    return rc;
}

#else

int dnn_weights_open(const char *path, struct dnn_weights **out, struct dnn_err *err)
{
    (void)out;
    return dnn_fail(err, DNN_ECONFIG,
                    "%s: files of weights need HDF5, which this was built without",
                    path);
}

void dnn_weights_close(struct dnn_weights *file)
{
    (void)file; /* never opened */
}

int dnn_weights_get(struct dnn_weights *file, int i, enum dnn_dtype dtype, void *to,
                    struct dnn_err *err)
{
    (void)i, (void)dtype, (void)to;
    return dnn_weights_open(file->path, NULL, err);
}

int dnn_weights_image(const char *path, const struct dnn_prog *prog,
                      const struct dnn_weights_order *order, const char *scaling,
                      dnn_weights_source *source, void *arg, char **out, size_t *len,
                      struct dnn_err *err)
{
    (void)prog, (void)order, (void)scaling, (void)source, (void)arg;
    (void)out, (void)len;
    return dnn_weights_open(path, NULL, err);
}

int dnn_weights_save(const char *path, const struct dnn_prog *prog,
                     const struct dnn_weights_order *order, const char *scaling,
                     dnn_weights_source *source, void *arg, struct dnn_err *err)
{
    return dnn_weights_image(path, prog, order, scaling, source, arg, NULL, NULL, err);
}
#endif
