/* array_impl.h - files of arrays (NPY, NPZ, HDF5): what their axes mean, which of
 * their arrays are used, and how long they are kept open.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_ARRAY_IMPL_H
#define DNN_IMPORT_ARRAY_IMPL_H

#include "import/import_impl.h"

#include <pthread.h>

/* ---- axes.c: what one sample of a file becomes ---- */

struct dnn_axes {
    enum dnn_kind kind;
    enum dnn_dtype type;    /* of the column: labels and masks are never reals        */
    struct dnn_shape shape; /* of the column: channels last                           */
    bool first;             /* the file has the channels first                        */
    int64_t colours;        /* channels that are to become grey; 0: none are          */
};

/* From the type and shape that a sample has in the file, which what names.  Where
 * channels cannot be told from space and side does not say it, it is an error. */
int dnn_axes_find(const char *what, const struct dnn_import_side *side, bool target,
                  enum dnn_dtype type, const struct dnn_shape *sample,
                  struct dnn_axes *out, struct dnn_err *err);

/* Turn a sample as the file has it into what axes says, in place. */
int dnn_axes_apply(const struct dnn_axes *axes, const char *what,
                   struct dnn_array *array, struct dnn_err *err);

/* The column of input or target that samples with these axes have. */
void dnn_axes_column(const struct dnn_axes *axes, bool target, struct dnn_column *out);

/* ---- choose.c: which arrays are input and target ---- */

/* An array of a file. */
struct dnn_part {
    char *name;  /* in the file; NULL: the file is the array                          */
    char *wrong; /* why it cannot be used ("holds texts, not numbers"), or NULL       */
    enum dnn_dtype type;
    struct dnn_shape shape; /* of all of it                                           */
    void *own;              /* of the format                                          */
};

struct dnn_chosen {
    int input, target; /* numbers of parts; -1: none.  Of a file opened as target, its
                        * array is input                                              */
    bool members;      /* every part is a sample                                      */
    const char *split; /* "train" or "test" if the names say it, or NULL              */
};

/* Whether a file that knows no splits itself is of the one asked for: it is in a
 * directory of that name, or its own name begins with it ("train-00001-of-01024").
 * NULL: any will do. */
bool dnn_import_of_split(const char *path, const char *split);

int dnn_part_choose(const char *path, const struct dnn_part *part, size_t nparts,
                    const struct dnn_import *how, const struct dnn_import_side *side,
                    struct dnn_chosen *out, struct dnn_err *err);

/* ---- store.c: the source that such a file is ---- */

struct dnn_store;
struct dnn_store_type {
    struct dnn_source_type source; /* name, dnn_store_read and so on                  */
    /* Row number row along axis 0 of a part, or all of it if row is -1, in C order and
     * this machine's order of bytes.  Safe from several threads at once. */
    int (*fetch)(const struct dnn_store *store, int part, int64_t row, size_t bytes,
                 void *to, struct dnn_err *err);
    void (*drop)(struct dnn_store *store); /* the format's own things                 */
};
#define DNN_STORE_SOURCE(name)                                                         \
    {name, dnn_store_read, dnn_store_label, NULL, dnn_store_class, dnn_store_close}

struct dnn_store {
    struct dnn_source source; /* first: it is one                                     */
    const struct dnn_store_type *type;
    struct dnn_import how;                 /* a copy: the caller's may be gone        */
    const struct dnn_import_side *side[2]; /* in it, of the columns                   */
    const char *path;                      /* owned                                   */
    struct dnn_part *part;                 /* dnn_grow() by the format                */
    size_t nparts, cap;
    struct dnn_chosen chosen;
    void *own; /* of the format */
};

/* A store without parts yet. */
struct dnn_store *dnn_store_make(const struct dnn_store_type *type, const char *path,
                                 const struct dnn_import *how, void *own);
/* A new part, whose name is copied. */
struct dnn_part *dnn_store_add(struct dnn_store *store, const char *name);
/* Choose parts and fill in the source, of inputs (and targets if they are there) or of
 * targets alone.  Takes over the store, also on failure. */
int dnn_store_open(struct dnn_store *store, bool target, struct dnn_source **out,
                   struct dnn_err *err);

int dnn_store_read(const struct dnn_source *source, int64_t i, struct dnn_sample *out,
                   struct dnn_err *err);
void dnn_store_label(const struct dnn_source *source, int64_t i,
                     char out[DNN_SAMPLE_NAME]);
int64_t dnn_store_class(const struct dnn_source *source, int64_t i);
void dnn_store_close(struct dnn_source *source);

/* ---- kept.c: open files and decoded members, a bounded number of them ---- */

/* Something that can be made again: embedded in what holds it. */
struct dnn_file_cache {
    struct dnn_file_cache *newer, *older;
    void (*drop)(struct dnn_file_cache *kept); /* give back what fill made */
    size_t bytes; /* of memory it takes: fill says it          */
    int users;
    bool full, listed;
    pthread_mutex_t lock;
};

void dnn_file_cache_make(struct dnn_file_cache *kept,
                         void (*drop)(struct dnn_file_cache *kept));
/* Have it there, made by fill if it is not; until dnn_file_cache_give() it stays. */
int dnn_file_cache_take(struct dnn_file_cache *kept,
                        int (*fill)(struct dnn_file_cache *kept, struct dnn_err *err),
                        struct dnn_err *err);
/* It may go if others need its place. */
void dnn_file_cache_give(struct dnn_file_cache *kept);
void dnn_file_cache_end(struct dnn_file_cache *kept);

/* ---- npy_header.c ---- */

struct dnn_npy {
    enum dnn_dtype type;
    bool swap;    /* not this machine's order of bytes                                */
    bool fortran; /* the first axis runs fastest                                      */
    struct dnn_shape shape;
    int64_t start; /* bytes before the numbers                                        */
    size_t bytes;  /* of the numbers                                                  */
};

enum { DNN_NPY_HEAD = 12 }; /* bytes that tell how long the header is */

/* How many bytes the header has in all, from the first DNN_NPY_HEAD; what names the
 * file or member. */
int dnn_npy_length(const char *what, const unsigned char *head, size_t n, size_t *out,
                   struct dnn_err *err);
/* The header, n bytes of it. */
int dnn_npy_parse(const char *what, const unsigned char *head, size_t n,
                  struct dnn_npy *out, struct dnn_err *err);
/* A row (-1: all) out of numbers that are in memory in the file's order. */
void dnn_npy_pick(const struct dnn_npy *npy, const unsigned char *numbers, int64_t row,
                  void *to);
/* n numbers of the file's type into this machine's order of bytes. */
void dnn_npy_swap(const struct dnn_npy *npy, void *numbers, size_t n);

#endif
