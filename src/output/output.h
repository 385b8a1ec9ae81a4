/* output.h - outputs of a network as files: HDF5, BP5, NPY, NIfTI, TIFF, PNG, CSV,
 * JSON.
 *
 * Every rank writes what it has computed; nothing is gathered.  A sample is written in
 * boxes, so it need not fit into memory, and ranks may write boxes of the same sample.
 * Files get their names only when they are complete.  After an interruption, what was
 * complete is kept, and only the rest has to be computed.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OUTPUT_OUTPUT_H
#define DNN_OUTPUT_OUTPUT_H

#include "base/choice.h"
#include "comm/comm.h"
#include "sample/sample.h"

/* The names in configurations are in dnn_output_format_choices. */
enum dnn_output_format {
    DNN_OUTPUT_HDF5 = 1 << 0,    /* "hdf5": one file, layout and names of rmldnn:
                                  * channels first; a dataset per sample              */
    DNN_OUTPUT_BP5 = 1 << 1,     /* "bp5": one ADIOS2 file, a variable per sample,
                                  * channels last                                     */
    DNN_OUTPUT_NPY = 1 << 2,     /* "npy": a file per sample, channels last           */
    DNN_OUTPUT_NIFTI = 1 << 3,   /* "nifti": a file per sample, with orientation and
                                  * spacing of the input                              */
    DNN_OUTPUT_TIFF = 1 << 4,    /* "tiff": a file per sample, a page per plane       */
    DNN_OUTPUT_PNG = 1 << 5,     /* "png": a file per sample; of a volume the middle
                                  * plane                                             */
    DNN_OUTPUT_OVERLAY = 1 << 6, /* "overlay": the same, classes over the input       */
    DNN_OUTPUT_CSV = 1 << 7,     /* "csv": row_id, output_class, confidence           */
    DNN_OUTPUT_JSON = 1 << 8     /* "json": the classes of each sample with their
                                  * probabilities                                     */
};
enum dnn_output_content {
    DNN_OUTPUT_VALUES = 1 << 0, /* "values": the outputs themselves                   */
    DNN_OUTPUT_CLASSES = 1 << 1 /* "classes": the channel with the largest value; with
                                 * one channel, whether it is above the threshold     */
};
extern const struct dnn_choice dnn_output_format_choices[];
extern const struct dnn_choice dnn_output_content_choices[];

enum dnn_output_precision { DNN_OUTPUT_SINGLE, DNN_OUTPUT_HALF, DNN_OUTPUT_DOUBLE };

enum { DNN_OUTPUT_NAME = 512, DNN_OUTPUT_MAX = 64 }; /* outputs of a network at most */

/* A sample of the output. */
struct dnn_output_sample {
    char name[DNN_OUTPUT_NAME]; /* of its file, "cats/12.jpg", and its dataset; unique
                                 * names are made from equal ones                     */
    struct dnn_shape shape[DNN_OUTPUT_MAX]; /* of each output, channels last          */
    int64_t units; /* of work into which the sample is divided: 1, or boxes of points
                    * of a large one                                                  */
    bool channels_last;           /* in HDF5, too: assembled slices                  */
    struct dnn_position position; /* of the points, in the file `input`              */
    const char *input; /* path of the input file, for the header of NIfTI files; NULL:
                        * none.  Valid until the next call                            */
};

/* Strings, callbacks and arrays must outlive the output. */
struct dnn_output_options {
    const char *dir;       /* of all files                                            */
    const char *name;      /* of files for all samples: DIR/NAME.h5; NULL: "outputs"  */
    const char *hdf5_path; /* the path of another HDF5 file with the same content, or
                            * NULL                                                    */
    unsigned formats, contents; /* sets of the two enums; contents of csv and json are
                                 * always classes                                     */
    int precision;    /* enum dnn_output_precision: of values in hdf5, npy, bp5  */
    bool gzip;        /* nifti: .nii.gz                                          */
    bool names;       /* csv: a column with the names of the samples             */
    int64_t top_k;    /* json: so many classes; 0: all                           */
    double threshold; /* of classes, with one channel                            */
    int noutputs;
    const char *const *output_name; /* [noutputs]; used if there are several         */
    const char *const *class_name;  /* of the first output, or NULL                   */
    int64_t nclass_names;
    const char *from; /* path of the inputs: names are relative to it; or NULL        */
    const char *const *input; /* [ninputs]: files that must not be replaced           */
    int64_t ninputs;
    int64_t nsamples;
    /* Local, thread-safe.  Describe a sample. */
    int (*describe)(void *arg, int64_t sample, struct dnn_output_sample *out,
                    struct dnn_err *err);
    void *arg;
    const char *settings; /* a checksum of all that decides the results: an interrupted
                           * run with the same settings and samples is continued; NULL:
                           * never                                                    */
};

struct dnn_output;

/* Collective.  Check that all formats can be written (libraries, shapes: a label has no
 * NIfTI file) and that no input would be replaced, make directories, reserve space, and
 * find out what an interrupted run has completed.  The caller owns *out:
 * dnn_output_close() or dnn_output_abandon(). */
int dnn_output_open(struct dnn_comm *comm, const struct dnn_output_options *options,
                    struct dnn_output **out, struct dnn_err *err);

/* Local.  Whether a unit was completed by an interrupted run; it need not be put. */
bool dnn_output_done(const struct dnn_output *out, int64_t sample, int64_t unit);
/* Local.  A box of output k of a sample: dense f32, channels last.  start, extent: of
 * its spatial axes (of none for a vector).  Each point is put once, by any rank. */
int dnn_output_put(struct dnn_output *out, int64_t sample, int k, const int64_t *start,
                   const int64_t *extent, const float *value, struct dnn_err *err);
/* Local.  The input of a sample, for overlays: f32, its shape, channels last; only
 * needed with DNN_OUTPUT_OVERLAY.  plane: only this plane of a volume is given; -1:
 * all. */
bool dnn_output_wants_input(const struct dnn_output *out);
int dnn_output_input(struct dnn_output *out, int64_t sample,
                     const struct dnn_shape *shape, int64_t plane, const float *value,
                     struct dnn_err *err);
/* Local.  All boxes of a unit have been put; returns when this is recorded.  Records of
 * the last 30 seconds only count if rank 0 of the next run is on the same node, which
 * has not been restarted; dnn_output_abandon() makes them count everywhere. */
int dnn_output_unit(struct dnn_output *out, int64_t sample, int64_t unit,
                    struct dnn_err *err);

/* Local.  Flush to disk what this rank has put, before another rank completes a unit
 * with boxes of this one. */
int dnn_output_sync_open(struct dnn_output *out, struct dnn_err *err);

/* Local.  The path of a file of the caller that is kept and removed with what is
 * complete; NULL: there are no settings, so this run cannot be continued.  The caller
 * owns it: dnn_free(). */
char *dnn_output_keep(const struct dnn_output *out, const char *name);

/* Collective.  Complete all files, at most once; nothing can be put afterwards. */
int dnn_output_commit(struct dnn_output *out, struct dnn_err *err);
/* Collective.  After a commit, and after all that needs files of dnn_output_keep():
 * remove the temporary files.  A failure is a warning.  NULL is fine. */
void dnn_output_close(struct dnn_output *out);
/* Collective.  Keep what is complete for the next run, if there are settings; else
 * remove it.  After a commit the next run has nothing to compute.  NULL is fine. */
void dnn_output_abandon(struct dnn_output *out);

/* Local.  The paths of the completed files for all samples, or of the directory if
 * there is a file per sample: one per format, for messages; NULL past the end. */
const char *dnn_output_path(const struct dnn_output *out, int i);

#endif
