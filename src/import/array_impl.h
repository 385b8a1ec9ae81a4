/* array_impl.h - array files (NPY, NPZ, HDF5, BP): the meaning of their axes, the
 * selection of arrays, and the cache of open files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_ARRAY_IMPL_H
#define DNN_IMPORT_ARRAY_IMPL_H

#include "import/import_impl.h"

#include <pthread.h>

/* ---- axes.c: from a sample in a file to the column ---- */

struct dnn_axes {
    enum dnn_kind kind;
    enum dnn_dtype type;    /* of the column; labels and masks are integers           */
    struct dnn_shape shape; /* of the column, channels last                           */
    bool first;             /* channels are first in the file                         */
    int64_t colours;        /* channels to convert to grayscale; 0: none              */
};

/* Determine the axes from the type and shape of a sample in the file; what names the
 * sample in messages.  It is an error if the channel axis is ambiguous and side does
 * not specify a layout. */
int dnn_axes_find(const char *what, const struct dnn_import_side *side, bool target,
                  enum dnn_dtype type, const struct dnn_shape *sample,
                  struct dnn_axes *out, struct dnn_err *err);

/* Convert a sample from the layout of the file to that of the column, in place. */
int dnn_axes_apply(const struct dnn_axes *axes, const char *what,
                   struct dnn_array *array, struct dnn_err *err);

/* The same for a box of the sample, whose extents in the file are those of array. */
int dnn_axes_apply_box(const struct dnn_axes *axes, const char *what,
                       struct dnn_array *array, struct dnn_err *err);
/* The box in the file, of a sample of ndim axes, that a box of an image or a mask is
 * made of. */
void dnn_axes_box(const struct dnn_axes *axes, int ndim, const int64_t *start,
                  const int64_t *extent, int64_t *file_start, int64_t *file_extent);

/* The description of the input or target column. */
void dnn_axes_column(const struct dnn_axes *axes, bool target, struct dnn_column *out);

/* ---- select_arrays.c: which arrays are input and target ---- */

/* An array of a file. */
struct dnn_store_array {
    char *name;  /* in the file; NULL: the file contains only this array              */
    char *error; /* why it cannot be used ("is truncated"), or NULL                   */
    enum dnn_dtype type;
    struct dnn_shape shape; /* of the complete array                                  */
    void *own;              /* private data of the format                             */
};

struct dnn_chosen {
    int input, target; /* indices of arrays; -1: none.  If the file is opened as target,
                        * input is the index of its array                             */
    bool members;      /* every array is a sample                                     */
    const char *split; /* "train" or "test" if given by the names, or NULL            */
};

/* For formats without splits: whether the file belongs to the split, that is, it is in
 * a directory of that name, or its own name begins with it ("train-00001-of-01024").
 * True if split is NULL. */
bool dnn_import_of_split(const char *path, const char *split);

int dnn_store_select(const char *path, const struct dnn_store_array *array,
                     size_t narrays, const struct dnn_import *how,
                     const struct dnn_import_side *side, struct dnn_chosen *out,
                     struct dnn_err *err);

/* ---- array_file.c: an array file as a source ---- */

struct dnn_store;
struct dnn_store_type {
    struct dnn_source_type source; /* name, dnn_store_read and so on                  */
    /* Read row number row along axis 0 of an array, or the complete array if row is -1,
     * in C order and native byte order.  Thread-safe. */
    int (*fetch)(const struct dnn_store *store, int array, int64_t row, size_t bytes,
                 void *to, struct dnn_err *err);
    void (*drop)(struct dnn_store *store); /* free the private data                   */
    /* Read a box of an array, all axes of it, in the same order; NULL: not possible.
     * DNN_SOURCE_WHOLE: not in this file.  Thread-safe. */
    int (*fetch_box)(const struct dnn_store *store, int array, const int64_t *start,
                     const int64_t *extent, void *to, struct dnn_err *err);
};
#define DNN_STORE_SOURCE(format)                                                       \
    {.name = format,                                                                   \
     .read = dnn_store_read,                                                           \
     .label = dnn_store_label,                                                         \
     .class_of = dnn_store_class,                                                      \
     .close = dnn_store_close,                                                         \
     .shape = dnn_store_shape,                                                         \
     .read_box = dnn_store_box}

struct dnn_store {
    struct dnn_source source; /* must be first                                        */
    const struct dnn_store_type *type;
    struct dnn_import how;                 /* a copy                                  */
    const struct dnn_import_side *side[2]; /* of the columns, in how                  */
    const char *path;                      /* owned                                   */
    struct dnn_store_array *array;         /* allocated by dnn_grow()                 */
    size_t narrays, cap;
    struct dnn_chosen chosen;
    void *own; /* private data of the format */
};

/* A store without arrays. */
struct dnn_store *dnn_store_make(const struct dnn_store_type *type, const char *path,
                                 const struct dnn_import *how, void *own);
/* Add an array; its name is copied. */
struct dnn_store_array *dnn_store_add(struct dnn_store *store, const char *name);
/* Select arrays and complete the source: inputs (and targets, if the file has them) or
 * targets only.  Takes ownership of the store, also on failure. */
int dnn_store_open(struct dnn_store *store, bool target, struct dnn_source **out,
                   struct dnn_err *err);

int dnn_store_read(const struct dnn_source *source, int64_t i, struct dnn_sample *out,
                   struct dnn_err *err);
void dnn_store_label(const struct dnn_source *source, int64_t i,
                     char out[DNN_SAMPLE_NAME]);
int64_t dnn_store_class(const struct dnn_source *source, int64_t i);
int dnn_store_shape(const struct dnn_source *source, int64_t i, int c,
                    struct dnn_shape *out, struct dnn_err *err);
int dnn_store_box(const struct dnn_source *source, int64_t i, int c,
                  const int64_t *start, const int64_t *extent, struct dnn_array *out,
                  struct dnn_err *err);
void dnn_store_close(struct dnn_source *source);

/* ---- file_cache.c: a bounded number of open files and decoded arrays ---- */

/* An entry of the cache, which can be dropped and filled again.  It is embedded in the
 * struct of the file or array. */
struct dnn_file_cache {
    struct dnn_file_cache *newer, *older;
    void (*drop)(struct dnn_file_cache *entry); /* release what fill made */
    size_t bytes; /* memory in use; set by fill                 */
    int users;
    bool full, listed;
    pthread_mutex_t lock;
};

void dnn_file_cache_make(struct dnn_file_cache *entry,
                         void (*drop)(struct dnn_file_cache *entry));
/* Acquire the entry, calling fill if it is empty.  It stays until
 * dnn_file_cache_give(). */
int dnn_file_cache_take(struct dnn_file_cache *entry,
                        int (*fill)(struct dnn_file_cache *entry, struct dnn_err *err),
                        struct dnn_err *err);
/* Release the entry; it may be dropped to free space for others. */
void dnn_file_cache_give(struct dnn_file_cache *entry);
void dnn_file_cache_end(struct dnn_file_cache *entry);

/* ---- npy_header.c ---- */

struct dnn_npy {
    enum dnn_dtype type;
    bool swap;    /* values are not in native byte order                              */
    bool fortran; /* the first axis varies fastest                                    */
    struct dnn_shape shape;
    int64_t start; /* bytes before the values                                         */
    size_t bytes;  /* of the values                                                   */
};

enum { DNN_NPY_HEAD = 12 }; /* bytes that contain the length of the header */

/* The total number of bytes of the header, from its first DNN_NPY_HEAD bytes; what
 * names the file or member. */
int dnn_npy_length(const char *what, const unsigned char *head, size_t n, size_t *out,
                   struct dnn_err *err);
/* Parse the header of n bytes. */
int dnn_npy_parse(const char *what, const unsigned char *head, size_t n,
                  struct dnn_npy *out, struct dnn_err *err);
/* Copy a row (-1: all rows) of values that are in memory in the order of the file. */
void dnn_npy_copy(const struct dnn_npy *npy, const unsigned char *values, int64_t row,
                  void *to);
/* The distances between values along each axis in the file, in bytes. */
void dnn_npy_strides(const struct dnn_npy *npy, int64_t stride[DNN_MAX_DIMS]);
/* Convert n values of the file's type to native byte order. */
void dnn_npy_swap(const struct dnn_npy *npy, void *values, size_t n);

#endif
