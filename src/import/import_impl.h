/* import_impl.h - the interface of importers, and what they share.
 *
 * An importer supports one file format.  It opens a file as a source of one or more
 * samples.  Directories, lists, pairs and classes are made of such sources by tree.c,
 * series.c, pairs.c and folder.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_IMPORT_IMPL_H
#define DNN_IMPORT_IMPORT_IMPL_H

#include "import/import.h"

#include <stdio.h>

struct dnn_arena;

struct dnn_importer {
    const char *name;     /* "png"                                                   */
    const char *suffixes; /* ".tif .tiff", in lower case                             */
    const char *help;     /* one line                                                */
    bool single;          /* one file is one sample; need not be opened to count     */
    bool labels;          /* files can contain targets, too (IDX by its label file,
                           * CIFAR, NPZ with y, TFRecord, tables)                    */
    /* Whether the first n bytes of a file look like this format; NULL: detected only by
     * suffix. */
    bool (*sniff)(const unsigned char *head, size_t n);
    /* Open a file.  side is the side of how to which the path belongs.  NULL: not in
     * this build; lacks is the missing library ("libtiff"). */
    int (*open)(const char *path, const struct dnn_import *how,
                const struct dnn_import_side *side, struct dnn_source **out,
                struct dnn_err *err);
    const char *lacks;
    /* Open a directory that is one dataset of this format (IDX: four files); *out stays
     * NULL if it is not.  NULL: the format has no such directories. */
    int (*open_dir)(const char *path, const struct dnn_import *how,
                    const struct dnn_import_side *side, struct dnn_source **out,
                    struct dnn_err *err);
};

/* All importers; ends with NULL. */
extern const struct dnn_importer *const dnn_importers[];

extern const struct dnn_importer dnn_importer_idx, dnn_importer_cifar, dnn_importer_npy,
    dnn_importer_npz, dnn_importer_hdf5, dnn_importer_png, dnn_importer_jpeg,
    dnn_importer_tiff, dnn_importer_nifti, dnn_importer_raw, dnn_importer_csv,
    dnn_importer_tfrecord, dnn_importer_bp;

/* The error of an importer that is not in this build. */
int dnn_importer_lacks(const struct dnn_importer *importer, struct dnn_err *err);
/* The importer with the longest suffix that matches path, ignoring case, or NULL. */
const struct dnn_importer *dnn_importer_by_suffix(const char *path);
bool dnn_importer_owns(const struct dnn_importer *importer, const char *path);

/* The importer with the name format, or, if that is NULL, of a file by suffix, then by
 * content. */
int dnn_importer_find(const char *format, const char *path,
                      const struct dnn_importer **out, struct dnn_err *err);

/* Sources made of sources; they take ownership of their arguments, also on failure. */
int dnn_import_series(struct dnn_source **part, int64_t nparts, struct dnn_source **out,
                      struct dnn_err *err);
int dnn_import_pair(struct dnn_source *input, struct dnn_source *target, int pairing,
                    struct dnn_source **out, struct dnn_err *err);

/* A list of files.  Start from {0}; all memory is in its arena. */
struct dnn_import_file {
    const char *path; /* to open the file                                        */
    const char *name; /* for messages and pairing: relative to the directory     */
    const struct dnn_importer *importer;
    int64_t class_of; /* -1: none                                                */
};
struct dnn_import_list {
    struct dnn_arena *arena;
    struct dnn_import_file *file;
    size_t n, cap;
};
void dnn_import_list_free(struct dnn_import_list *list);
/* All files below a directory, sorted by the bytes of their relative paths.  Hidden
 * files are skipped; a directory with the suffix stop (".bp"; or NULL) counts as one
 * file. */
int dnn_import_tree(const char *dir, const char *stop, struct dnn_import_list *list,
                    struct dnn_err *err);
/* The files of a directory without its subdirectories, in the same order. */
int dnn_import_dir(const char *dir, struct dnn_import_list *list, struct dnn_err *err);
/* The lines of a text file, each a path relative to it; empty lines and those that
 * begin with # are skipped. */
int dnn_import_lines(const char *path, struct dnn_import_list *list,
                     struct dnn_err *err);
/* Keep only files in a directory named tag, at any level, and those whose names begin
 * with tag; it is an error if there are none. */
int dnn_import_tagged(struct dnn_import_list *list, const char *dir, const char *tag,
                      struct dnn_err *err);
/* Set the classes of files by directory: the one after directory tag in the name or, if
 * tag is NULL, the first one (the second one if all first ones are names of splits).
 * *names: the sorted class names, in the list's arena.  Returns the number of classes;
 * 0, and nothing is changed, if there are no class directories. */
int64_t dnn_import_classes(struct dnn_import_list *list, const char *tag,
                           const char *const **names);
/* A source of consecutive files, opened when needed.  one_each: each file is one sample
 * and need not be opened to count samples.  nclasses > 0: adds a label, class_of.  how
 * is copied.  Takes ownership of the list, also on failure. */
struct dnn_import_series_how {
    const struct dnn_import *how;
    bool target, one_each;
    const char *const *class_name;
    int64_t nclasses;
};
int dnn_import_files(struct dnn_import_list *list,
                     const struct dnn_import_series_how *as, struct dnn_source **out,
                     struct dnn_err *err);
/* The columns of a series: copied from its first file, then joined with those of the
 * other files; extents that differ become unknown, other differences are an error. */
void dnn_import_columns_copy(struct dnn_source *base, const struct dnn_source *from,
                             struct dnn_arena *arena);
int dnn_import_columns_join(struct dnn_source *base, const char *base_path,
                            const struct dnn_source *from, const char *path,
                            struct dnn_err *err);
bool dnn_import_is_series(const struct dnn_source *source);
/* The last component of a path. */
const char *dnn_import_base(const char *path);

/* Check that a decoded image or archive member is not larger than the limit; what names
 * it in messages. */
int dnn_import_fits(const struct dnn_import *how, const char *what, enum dnn_dtype type,
                    const struct dnn_shape *shape, struct dnn_err *err);
int64_t dnn_import_limit(const struct dnn_import *how);

/* Random access to a file, plain or gzip (detected by content); reading gzip backwards
 * may decompress it from the start again.  Thread-safe. */
struct dnn_bytes;
int dnn_bytes_open(const char *path, struct dnn_bytes **out, struct dnn_err *err);
/* Read exactly n bytes at an offset of the (decompressed) content; DNN_EDATA if there
 * are less. */
int dnn_bytes_read(struct dnn_bytes *file, int64_t at, void *to, size_t n,
                   struct dnn_err *err);
/* File size in bytes; -1 for gzip, where it is not known without reading. */
int64_t dnn_bytes_size(const struct dnn_bytes *file);
/* Read up to n bytes at an offset; *got: how many were available. */
int dnn_bytes_some(struct dnn_bytes *file, int64_t at, void *to, size_t n, size_t *got,
                   struct dnn_err *err);
/* Size of the content in bytes; a gzip file is read to its end. */
int dnn_bytes_length(struct dnn_bytes *file, int64_t *out, struct dnn_err *err);
void dnn_bytes_close(struct dnn_bytes *file); /* NULL is fine */
/* Read a box into a dense array: its first element is at an offset of the file; stride:
 * distances along the axes in the file in bytes.  Not for gzip, which is read from the
 * start. */
int dnn_bytes_box(struct dnn_bytes *file, int64_t at, size_t size, int ndim,
                  const int64_t *extent, const int64_t *stride, void *to,
                  struct dnn_err *err);

#endif
