/* import_impl.h - what an importer is, inside this component.
 *
 * An importer knows one kind of file.  It opens one file as a source, of one sample
 * or of many; directories, lists, pairs and classes are made from such sources
 * elsewhere in this component (tree.c, series.c, pairs.c, folder.c).
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
    bool single;          /* one file is one sample: a directory need not open each  */
    bool labels;          /* files hold their targets themselves (IDX by its partner,
                           * CIFAR, NPZ with y, TFRecord, tables)                    */
    /* Whether the first bytes (n of them) look like this format; NULL: only the
     * suffix tells. */
    bool (*sniff)(const unsigned char *head, size_t n);
    /* One file.  side is the part of how that the path belongs to.  NULL: not in this
     * build, lacks says what it would need ("libtiff"). */
    int (*open)(const char *path, const struct dnn_import *how,
                const struct dnn_import_side *side, struct dnn_source **out,
                struct dnn_err *err);
    const char *lacks;
    /* A directory that is one dataset of this format (IDX: four files); *out stays
     * NULL if it is none.  NULL: there is no such thing. */
    int (*open_dir)(const char *path, const struct dnn_import *how,
                    const struct dnn_import_side *side, struct dnn_source **out,
                    struct dnn_err *err);
};

/* NULL-ended; the one list. */
extern const struct dnn_importer *const dnn_importers[];

extern const struct dnn_importer dnn_importer_idx, dnn_importer_cifar, dnn_importer_npy,
    dnn_importer_npz, dnn_importer_hdf5, dnn_importer_png, dnn_importer_jpeg,
    dnn_importer_tiff, dnn_importer_nifti, dnn_importer_raw, dnn_importer_csv,
    dnn_importer_tfrecord, dnn_importer_bp;

/* What an importer says that is not in this build. */
int dnn_importer_lacks(const struct dnn_importer *importer, struct dnn_err *err);
/* The one among the list whose suffix ends path, the longest, ignoring case; or NULL.
 */
const struct dnn_importer *dnn_importer_by_suffix(const char *path);
bool dnn_importer_owns(const struct dnn_importer *importer, const char *path);

/* The importer of a format's name, or of a file by suffix, then by content. */
int dnn_importer_find(const char *format, const char *path,
                      const struct dnn_importer **out, struct dnn_err *err);

/* Sources made of sources; each takes over what it is given, also on failure. */
int dnn_import_series(struct dnn_source **part, int64_t nparts, struct dnn_source **out,
                      struct dnn_err *err);
int dnn_import_pair(struct dnn_source *input, struct dnn_source *target, int pairing,
                    struct dnn_source **out, struct dnn_err *err);

/* Files that are to be one series.  Start from {0}; all is in its arena. */
struct dnn_import_file {
    const char *path; /* to open it                                              */
    const char *name; /* for people and pairing: relative to the directory       */
    const struct dnn_importer *importer;
    int64_t class_of; /* -1: none                                                */
};
struct dnn_import_list {
    struct dnn_arena *arena;
    struct dnn_import_file *file;
    size_t n, cap;
};
void dnn_import_list_free(struct dnn_import_list *list);
void dnn_import_list_add(struct dnn_import_list *list, const char *path,
                         const char *name);
/* Every file below a directory, by the bytes of its relative path; hidden ones are
 * left out, a directory ending in stop (".bp"; or NULL) is one file. */
int dnn_import_tree(const char *dir, const char *stop, struct dnn_import_list *list,
                    struct dnn_err *err);
/* The files right in a directory, in the same order. */
int dnn_import_dir(const char *dir, struct dnn_import_list *list, struct dnn_err *err);
/* The lines of a text file, each a path relative to it; empty lines and those that
 * begin with # are left out. */
int dnn_import_lines(const char *path, struct dnn_import_list *list,
                     struct dnn_err *err);
/* Only the files below a directory called tag, at any level, and those whose names
 * begin with it; none is an error. */
int dnn_import_tagged(struct dnn_import_list *list, const char *dir, const char *tag,
                      struct dnn_err *err);
/* Give the files their classes by directory: the part of the name behind the part tag,
 * or, if tag is NULL, the first (the second where all first ones are names of splits).
 * *names: the classes, sorted, in the list's arena.  The number of them; 0 and nothing
 * changed if these are no class directories. */
int64_t dnn_import_classes(struct dnn_import_list *list, const char *tag,
                           const char *const **names);
/* A series of files, opened as they are needed.  one_each: each is one sample, so that
 * they need not be opened to be counted.  nclasses > 0: with a label of class_of.  how
 * is copied.  Takes over the list, also on failure. */
struct dnn_import_series_how {
    const struct dnn_import *how;
    bool target, one_each;
    const char *const *class_name;
    int64_t nclasses;
};
int dnn_import_files(struct dnn_import_list *list,
                     const struct dnn_import_series_how *as, struct dnn_source **out,
                     struct dnn_err *err);
/* The columns of a series: those of its first file, then what they have in common with
 * those of another; extents that differ become unknown, all else is refused. */
void dnn_import_columns_copy(struct dnn_source *base, const struct dnn_source *from,
                             struct dnn_arena *arena);
int dnn_import_columns_join(struct dnn_source *base, const char *base_path,
                            const struct dnn_source *from, const char *path,
                            struct dnn_err *err);
bool dnn_import_is_series(const struct dnn_source *source);
/* What a side names, a file, a directory or a list, as one source. */
int dnn_import_open_side(const struct dnn_import *how,
                         const struct dnn_import_side *side, struct dnn_source **out,
                         struct dnn_err *err);
/* The last part of a path; the rest of a name without suffix, "[7]" kept, into out. */
const char *dnn_import_base(const char *path);
void dnn_import_key(const char *name, char out[DNN_SAMPLE_NAME]);

/* Decoded images and archive members must not be larger than the limit.  what says
 * which: "a.png". */
int dnn_import_fits(const struct dnn_import *how, const char *what, enum dnn_dtype type,
                    const struct dnn_shape *shape, struct dnn_err *err);
int64_t dnn_import_limit(const struct dnn_import *how);

/* A file of bytes, plain or gzip (by content); reading is at any place, gzip going
 * back to the start where it must.  Safe from several threads. */
struct dnn_bytes;
int dnn_bytes_open(const char *path, struct dnn_bytes **out, struct dnn_err *err);
/* Exactly n bytes at a place of the (decompressed) content; DNN_EDATA "ends after N of
 * M bytes" if there are fewer. */
int dnn_bytes_read(struct dnn_bytes *file, int64_t at, void *to, size_t n,
                   struct dnn_err *err);
/* Bytes in all; -1 for gzip, which does not know before it was read. */
int64_t dnn_bytes_size(const struct dnn_bytes *file);
/* Up to n bytes at a place, as many as there are: *got. */
int dnn_bytes_some(struct dnn_bytes *file, int64_t at, void *to, size_t n, size_t *got,
                   struct dnn_err *err);
/* Bytes in all, also of gzip, which is read to its end for that. */
int dnn_bytes_length(struct dnn_bytes *file, int64_t *out, struct dnn_err *err);
void dnn_bytes_close(struct dnn_bytes *file); /* NULL is fine */

#endif
