/* output_impl.h - declarations shared by the files of this component.
 *
 * output.c    the calls of the interface, in their order;
 * samples.c   the descriptions of all samples, known to all ranks;
 * names.c     unique names of datasets and files;
 * part.c      what is stored of an output for each format, and where its values are;
 * box.c       conversion of a box, written where its values are;
 * header.c    the bytes around the values in NPY, NIfTI and TIFF files;
 * store.c     the temporary files that boxes are written to;
 * state.c     the temporary directory: settings, journals, what is complete;
 * journal.c   records of completed units;
 * commit.c    from temporary to complete files;
 * picture.c   PNG files;   table.c   CSV and JSON files;   bp.c   BP5 files.
 *
 * All that is not complete is in the directory DIR/.NAME.tmp:
 *
 *   settings    what decides the results, and where datasets begin in outputs.h5
 *   journal.R   completed units, written by rank R; journal: those of earlier runs
 *   committing  exists if all units are complete; a file that is missing was renamed
 *   outputs.h5  the HDF5 file
 *   scratch     values for files that cannot be written in boxes
 *   N/S.P       the file of part P for sample S
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OUTPUT_OUTPUT_IMPL_H
#define DNN_OUTPUT_OUTPUT_IMPL_H

#include "base/mem.h"
#include "base/text.h"
#include "output/output.h"

#include <pthread.h>
#include <stdio.h>

/* ---- the parts of an output ---- */

enum output_place {
    OUTPUT_IN_FILE, /* a temporary file per sample, which is renamed                 */
    OUTPUT_IN_HDF5,
    OUTPUT_IN_SCRATCH
};
enum output_what {
    OUTPUT_VALUES,
    OUTPUT_CLASSES,
    OUTPUT_INPUT /* the picture below an overlay: RGB bytes                          */
};

/* What is stored of output k for a format. */
struct output_part {
    int k;
    enum dnn_output_format format; /* CSV: also for JSON                             */
    enum output_what what;
    enum output_place place;
    bool plane;         /* only the middle plane of a volume                        */
    const char *mark;   /* at the end of its name: "_classes", "_overlay" or ""     */
    const char *suffix; /* of its file for each sample; NULL: there is none         */
};

/* Formats times contents: csv and json share a part. */
enum { OUTPUT_PARTS = 15 * DNN_OUTPUT_MAX };

struct output_sample {
    const char *name;              /* relative to the inputs                         */
    const struct dnn_shape *shape; /* [noutputs]; equal ones are shared              */
    int64_t units, first; /* its units, and the number of units before it            */
    bool channels_last;
};

/* Where the values of a part are in its file. */
struct output_layout {
    enum dnn_dtype type;
    struct dnn_shape shape;       /* in the order of the file                       */
    int nspace;                   /* spatial axes of the sample that are stored     */
    int64_t stride[DNN_MAX_DIMS]; /* in elements: of these axes, then of channels   */
    int64_t channels;             /* 1 for classes                                  */
    int64_t bytes;
};

/* ---- the output ---- */

enum { OUTPUT_HANDLES = 64 };

struct output_handle {
    int64_t id; /* sample * nparts + part                                            */
    int64_t at; /* bytes before the values                                           */
    int fd, users;
    uint64_t used;
};

struct dnn_output {
    struct dnn_output_options o;
    struct dnn_comm *comm;
    int rank, size;
    char *name, *work; /* owned; work: the temporary directory                       */
    char *path[16];    /* owned: of dnn_output_path(), NULL at the end               */
    struct dnn_arena *arena;
    int nparts;
    struct output_part part[OUTPUT_PARTS];
    struct output_sample *sample; /* owned: [nsamples]                               */
    const char **final; /* owned: [nsamples * nparts], name of dataset or file       */
    int64_t *offset;    /* owned: [nsamples * nparts], in outputs.h5 and scratch     */
    int64_t scratch_bytes;
    /* Units: those of the samples, then, if inputs are stored, one per sample. */
    int64_t nunits, units_of_samples;
    unsigned char *done; /* owned: [nunits], complete: 1 in an earlier run, 2 in this */
    uint32_t key, boot;  /* of this output, and of this node, in journal records     */
    int64_t *loose;      /* owned: units recorded since the last flush               */
    size_t nloose, loose_cap;
    double flushed;  /* when                                                          */
    bool committing; /* an interrupted commit is continued                       */
    int hdf5, scratch, journal, lock; /* descriptors; -1: none                        */
    pthread_mutex_t mutex; /* of journal, done and handles                            */
    struct output_handle handle[OUTPUT_HANDLES];
    uint64_t clock;
};

/* ---- samples.c ---- */

/* Collective.  Describe all samples; *hash: the checksum of all descriptions. */
int dnn_output_describe(struct dnn_output *out, uint64_t *hash, struct dnn_err *err);
/* Local.  Whether this rank checks and completes the files of a sample. */
bool dnn_output_mine(const struct dnn_output *out, int64_t sample);

/* ---- names.c ---- */

/* Local.  The name of a sample relative to the inputs, without "..", "." and empty
 * components.  The caller owns the result. */
char *dnn_output_relative(const struct dnn_output *out, const char *name);
/* Local.  Set out->final. */
int dnn_output_name(struct dnn_output *out, struct dnn_err *err);
/* Local, for rank 0.  Fail if a file of the outputs is one of the inputs. */
int dnn_output_protect(const struct dnn_output *out, struct dnn_err *err);

/* ---- part.c.  Local. ---- */

/* Make the list of parts; an unusable combination of options is an error. */
int dnn_output_parts(struct dnn_output *out, struct dnn_err *err);
/* Check that all formats can store outputs of these shapes. */
int dnn_output_check(const struct dnn_output *out, int64_t sample,
                     const struct dnn_output_sample *about, struct dnn_err *err);
void dnn_output_layout(const struct dnn_output *out, int part, int64_t sample,
                       struct output_layout *layout);
/* Set the offsets in scratch, and out->scratch_bytes. */
void dnn_output_place(struct dnn_output *out);
/* The middle plane of a volume. */
int64_t dnn_output_plane(const struct dnn_shape *shape);

/* ---- box.c ---- */

/* Local, thread-safe.  Write a box into part of a sample. */
int dnn_output_box(struct dnn_output *out, int part, int64_t sample,
                   const int64_t *start, const int64_t *extent, const float *value,
                   struct dnn_err *err);

/* ---- header.c ---- */

/* The bytes before and after the values of a file. */
struct output_header {
    struct dnn_buf head, tail;
};
/* Local, thread-safe.  The caller owns head and tail. */
int dnn_output_header(const struct dnn_output *out, int part, int64_t sample,
                      const struct output_layout *layout, struct output_header *header,
                      struct dnn_err *err);

/* ---- store.c.  Local, thread-safe. ---- */

/* The temporary file of a part; owned by the caller. */
char *dnn_output_temp(const struct dnn_output *out, int part, int64_t sample);
/* Acquire the file that contains a part, and where its values begin; a new file gets
 * its header.  The path is for messages, and owned by the caller. */
struct output_store {
    int fd, slot; /* of out->handle; -1: none                                        */
    int64_t at;
    char *path;
};
int dnn_output_take(struct dnn_output *out, int part, int64_t sample,
                    struct output_store *store, struct dnn_err *err);
void dnn_output_give(struct dnn_output *out, struct output_store *store);
/* Whether the temporary file of a part has its length. */
bool dnn_output_is_whole(struct dnn_output *out, int part, int64_t sample);
/* Close all files of samples. */
int dnn_output_close_handles(struct dnn_output *out, struct dnn_err *err);
int dnn_output_write(int fd, const char *path, const void *bytes, size_t n, int64_t at,
                     struct dnn_err *err);
int dnn_output_read(int fd, const char *path, void *to, size_t n, int64_t at,
                    struct dnn_err *err);
int dnn_output_sync(int fd, const char *path, struct dnn_err *err);
/* Read all values of a part in scratch. */
int dnn_output_read_part(struct dnn_output *out, int part, int64_t sample, void *to,
                         size_t bytes, struct dnn_err *err);

/* ---- state.c ---- */

/* Collective.  Make or continue the temporary directory. */
int dnn_output_begin(struct dnn_output *out, uint64_t hash, struct dnn_err *err);
/* Collective.  out->done becomes what any rank has. */
int dnn_output_combine(struct dnn_output *out, struct dnn_err *err);
/* Local.  The lowest unit that is not complete; -1: none. */
int64_t dnn_output_missing(const struct dnn_output *out);
/* Local.  A file of the temporary directory; owned by the caller. */
char *dnn_output_work(const struct dnn_output *out, const char *name);

/* ---- journal.c.  Local. ---- */

/* Set the keys of records. */
void dnn_output_journal(struct dnn_output *out, uint32_t key);
/* Append a record; flushes from time to time. */
int dnn_output_record(struct dnn_output *out, int64_t unit, struct dnn_err *err);
/* Flush to disk what is recorded. */
int dnn_output_flush(struct dnn_output *out, struct dnn_err *err);
/* Set out->done from all journals in the directory. */
int dnn_output_replay(struct dnn_output *out, struct dnn_err *err);
/* Replace all journals by one with out->done. */
int dnn_output_compact(struct dnn_output *out, struct dnn_err *err);

/* ---- commit.c, picture.c, table.c, bp.c ---- */

/* Collective. */
int dnn_output_complete_bp(struct dnn_output *out, struct dnn_err *err);
/* Local.  Write a PNG file. */
int dnn_output_picture(struct dnn_output *out, int part, int64_t sample,
                       const char *path, struct dnn_err *err);
/* Local, thread-safe.  Store the picture below an overlay. */
int dnn_output_below(struct dnn_output *out, int part, int64_t sample,
                     const struct dnn_shape *shape, int64_t plane, const float *value,
                     struct dnn_err *err);
/* Local.  format: CSV or JSON of output k. */
int dnn_output_table(struct dnn_output *out, enum dnn_output_format format, int k,
                     const char *path, struct dnn_err *err);
/* Local.  DIR/NAME.h5, or DIR/OUTPUT/NAME.csv if there are several outputs and k >= 0;
 * owned by the caller. */
char *dnn_output_shared(const struct dnn_output *out, int k, const char *suffix);
/* Local.  "sample 3 (cats/12.jpg)". */
const char *dnn_output_text(const struct dnn_output *out, int64_t sample, char *text,
                            size_t size);

#endif
