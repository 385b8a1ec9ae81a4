/* import.h - files of common formats as a source of samples.
 *
 * Each format has a source file in this component; importers.c lists them.  Using a
 * format whose library is not in this build is an error.
 *
 * A path is a file, a directory, or a text file that lists files (one per line).  A
 * directory contains either class directories of images (the label of a sample is the
 * index of its directory), or files of the format, at any depth, which are read in the
 * order of their names.  With a target path, inputs and targets are paired by name
 * (relative to the directory, without suffix) or, for single files, by index.
 *
 * All functions are Local.  Damaged files are DNN_EDATA; the message names file and
 * sample.  Memory is never allocated for more data than the file can contain or the
 * limit allows, even if a header is wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_IMPORT_H
#define DNN_IMPORT_IMPORT_H

#include "base/field.h"
#include "sample/source.h"

/* Position of the channel axis in array files (NPY, NPZ, HDF5, raw). */
enum dnn_layout {
    DNN_LAYOUT_AUTO,  /* usually last; image formats define it                        */
    DNN_LAYOUT_LAST,  /* D,H,W,C                                                      */
    DNN_LAYOUT_FIRST, /* C,D,H,W                                                      */
    DNN_LAYOUT_NONE   /* no channel axis: one of extent 1 is added                    */
};

/* Description of one side, input or target. */
struct dnn_import_side {
    const char *path;      /* NULL: none (the input files may have targets)          */
    const char *format;    /* name of an importer; NULL: detected                    */
    const char *name;      /* of the dataset, key or feature; NULL: usual names      */
    int kind;              /* enum dnn_kind, or -1: depends on the format            */
    int layout;            /* enum dnn_layout                                        */
    bool gray;             /* convert color images to grayscale                      */
    struct dnn_list shape; /* raw: shape of one sample, in file order                */
    const char *type;      /* raw: element type ("u8", "f32"), NULL: u8; tables: type of
                            * numbers, NULL: f32                                     */
    bool big_endian;       /* raw                                                    */
    int64_t offset;        /* raw: bytes before the first sample                     */
};

struct dnn_import {
    struct dnn_import_side input, target;
    int pairing;       /* enum: DNN_PAIR_AUTO, _NAME, _ORDER                        */
    bool whole;        /* an array file is one sample; else its rows are            */
    const char *split; /* of formats that have splits (IDX, CIFAR: train, test), else
                        * files in a directory of that name; NULL: all samples      */
    struct dnn_list classes; /* images in class directories: in the order of their
                              * numbers; empty: all, sorted                         */
    bool no_classes;         /* directories of images are not classes               */
    const char *group; /* group of a sample: "directory", a column of a table, or the
                        * part of its name up to this text ("_"); NULL: none        */
    /* Tables. */
    const char *separator;   /* NULL: detected from the header: , or ; or tab   */
    struct dnn_list inputs;  /* names of input columns; empty: all others       */
    struct dnn_list targets; /* names of target columns                         */
    struct dnn_list objects; /* names of columns with paths of object files     */
    const char *object_dir;  /* directory of these paths; NULL: the table's     */
    int64_t limit;           /* maximum bytes of a decoded sample or archive member;
                              * 0: 16 GiB                                       */
};

enum dnn_pairing { DNN_PAIR_AUTO, DNN_PAIR_NAME, DNN_PAIR_ORDER };

extern const struct dnn_choice dnn_layout_choices[]; /* auto, last, first, none   */

/* The keys of struct dnn_import, for configuration files and documentation. */
extern const struct dnn_field dnn_import_fields[];

/* Open the files that how describes (its strings and lists must outlive the source).
 * The caller owns *out: dnn_source_close(). */
int dnn_import_open(const struct dnn_import *how, struct dnn_source **out,
                    struct dnn_err *err);

/* The name of a sample without the suffix of its file, but with "[7]". */
void dnn_import_key(const char *name, char out[DNN_SAMPLE_NAME]);

/* Name, suffixes and a one-line description of importer number index; false past the
 * end.  built: this build supports it. */
struct dnn_importer_info {
    const char *name, *suffixes, *help;
    bool built;
};
bool dnn_import_info(int index, struct dnn_importer_info *out);

#endif
