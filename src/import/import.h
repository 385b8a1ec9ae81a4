/* import.h - raw files of the common kinds as a source of samples.
 *
 * One file of this component per format, one list of them in importers.c.  Formats that
 * need a library the build does not have say so when they are asked for.
 *
 * A path may be a file, a directory, or a text file that lists files (one a line).
 * What a directory means: class directories of images (each sample has its
 * directory's number as label); else every file of the format below it, in the order
 * of their names, one after the other.  With a target path, inputs and targets are
 * joined by name (what is left of the suffix, relative to the directory) or, for
 * single files, by number.
 *
 * All is Local.  Damaged files are DNN_EDATA with file and sample named; whatever a
 * header claims, memory is not asked for beyond what the file can hold or the limit.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_IMPORT_H
#define DNN_IMPORT_IMPORT_H

#include "base/field.h"
#include "sample/source.h"

/* Where the channels are in arrays that do not say it (NPY, NPZ, HDF5, raw). */
enum dnn_layout {
    DNN_LAYOUT_AUTO,  /* as the format's users have it: last; images say themselves   */
    DNN_LAYOUT_LAST,  /* D,H,W,C                                                      */
    DNN_LAYOUT_FIRST, /* C,D,H,W                                                      */
    DNN_LAYOUT_NONE   /* there is no such axis: it is added, of extent 1              */
};

/* What is said about one of the two sides, input and target. */
struct dnn_import_side {
    const char *path;      /* NULL: none (targets may be in the input's files)       */
    const char *format;    /* name of an importer; NULL: by suffix and content       */
    const char *name;      /* dataset, key or feature within the file; NULL: usual   */
    int kind;              /* enum dnn_kind, or -1: what the format suggests         */
    int layout;            /* enum dnn_layout                                        */
    bool gray;             /* colour images become grey                              */
    struct dnn_list shape; /* raw: extents of one sample, in the order of the file   */
    const char *type;      /* raw: element type ("u8", "f32"), NULL: u8; tables: of
                            * numbers, NULL: f32                                     */
    bool big_endian;       /* raw                                                    */
    int64_t offset;        /* raw: bytes before the first sample                     */
};

struct dnn_import {
    struct dnn_import_side input, target;
    int pairing;       /* enum: DNN_PAIR_AUTO, _NAME, _ORDER                        */
    bool whole;        /* an array file is one sample, not a row of samples         */
    const char *split; /* of those a format knows (IDX, CIFAR: train, test), else the
                        * files below a directory of that name; NULL: all there is  */
    const char *group; /* group of a sample: "directory", a column of a table, or the
                        * part of its name up to this text ("_"); NULL: none        */
    /* Tables. */
    const char *separator;   /* NULL: , or ; or tab, whichever the header has   */
    struct dnn_list inputs;  /* texts: columns that are inputs; none: all others */
    struct dnn_list targets; /* texts: columns that are targets                 */
    struct dnn_list objects; /* texts: columns that name object files           */
    const char *object_dir;  /* what those names are relative to; NULL: the table */
    int64_t limit;           /* bytes one sample or archive member may take once
                              * decoded; 0: 16 GiB                              */
};

enum dnn_pairing { DNN_PAIR_AUTO, DNN_PAIR_NAME, DNN_PAIR_ORDER };

extern const struct dnn_choice dnn_layout_choices[];  /* auto, last, first, none   */
extern const struct dnn_choice dnn_pairing_choices[]; /* auto, name, order         */

/* The keys of struct dnn_import, for configuration files and manuals. */
extern const struct dnn_field dnn_import_fields[];

/* Open what how describes (its texts and lists must outlive the source).  The caller
 * owns *out: dnn_source_close(). */
int dnn_import_open(const struct dnn_import *how, struct dnn_source **out,
                    struct dnn_err *err);

/* Name, suffixes and one line about the importer at a place of the list; false past
 * the end.  built: this build can read it. */
struct dnn_importer_info {
    const char *name, *suffixes, *help;
    bool built;
};
bool dnn_import_info(int index, struct dnn_importer_info *out);

#endif
