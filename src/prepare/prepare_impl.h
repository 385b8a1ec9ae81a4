/* prepare_impl.h - declarations shared by the files of this component.
 *
 * config.c reads the configuration; steps*.c are the steps; sources.c opens the input
 * files or the generator; splits.c and partition.c assign samples to splits; pipeline.c
 * applies the steps to a sample; first_pass.c computes classes, boxes and statistics of
 * all samples; piece.c computes pieces of the result; work.c saves finished pieces on
 * disk; assemble.c writes the dataset; run.c calls all of them in this order.  apply.c
 * applies the steps of a finished dataset to other samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PREPARE_PREPARE_IMPL_H
#define DNN_PREPARE_PREPARE_IMPL_H

#include "base/mem.h"
#include "base/text.h"
#include "prepare/prepare.h"
#include "sample/source.h"
#include "transform/slice.h"

enum { DNN_PREPARE_STEPS = 32, DNN_PREPARE_SETS = 8, DNN_PREPARE_PARTS = 3 };

/* A column between two steps: value = stored * scale + offset.  Integers stay integers
 * until a step needs their values. */
struct dnn_column_state {
    struct dnn_column column;
    struct dnn_position position; /* of one sample; all 0: unknown */
    int nscale;                   /* 0: none; else 1 or the number of channels */
    double scale[DNN_STATS_CHANNELS], offset[DNN_STATS_CHANNELS];
};

struct dnn_column_states {
    int n;
    struct dnn_column_state state[DNN_MAX_COLUMNS];
};

/* ---- steps ---- */

/* Statistics that a step needs before it can be applied: none, of the train split, or
 * of all samples. */
enum dnn_prepare_step_need { DNN_NEED_NOTHING, DNN_NEED_TRAIN, DNN_NEED_ALL };

/* What a step took from the statistics of a column, such as mean and standard deviation
 * of each channel. */
struct dnn_step_fit {
    int n; /* numbers in each array; 0: the step needs no statistics */
    double first[DNN_STATS_CHANNELS], second[DNN_STATS_CHANNELS];
};

struct dnn_prepare_step_type;
struct dnn_prepare_step {
    const struct dnn_prepare_step_type *type;
    void *cfg;         /* begins with a struct dnn_list of column names  */
    const char *where; /* "a.json:3: steps[1].resize", for messages      */
    unsigned columns;  /* bit k: it is applied to column k               */
    struct dnn_column_states *before; /* owned: columns before the step */
    struct dnn_step_fit *fit; /* owned: of each column, if needed              */
};

struct dnn_prepare_step_type {
    const char *name, *help;
    size_t size;                    /* of its cfg                                */
    const struct dnn_field *fields; /* keys of the object under its name; NULL: there is
                                     * only the short form */
    const struct dnn_field *brief;  /* the short form: {"NAME": value} */
    /* Reads and checks what the tables cannot; may be NULL.  at: the value under the
     * name. */
    int (*read)(const struct dnn_jobj *at, struct dnn_arena *arena, void *cfg,
                struct dnn_err *err);
    /* Whether it is applied to a column by default, and whether it may be. */
    bool (*is_default)(const struct dnn_column_state *state);
    bool (*is_allowed)(const struct dnn_column_state *state);
    enum dnn_prepare_step_need (*needs)(
        const void *cfg, const struct dnn_column_state *state); /* or NULL   */
    /* Takes what it needs from statistics, and its names in the record (the second may
     * be NULL). */
    int (*fit)(const struct dnn_prepare_step *step, int k,
               const struct dnn_stats *stats, struct dnn_step_fit *out,
               struct dnn_err *err);
    const char *fit_name[2];
    /* Whether it acts on each point alone, so that it can be applied to a part of a
     * sample; NULL: no. */
    bool (*is_pointwise)(const void *cfg);
    /* Updates the state of a column.  While step->fit is NULL, the result must be
     * right only in what does not depend on statistics. */
    int (*state)(const struct dnn_prepare_step *step, int k,
                 struct dnn_column_state *state, struct dnn_err *err);
    /* Applies the step to an array of column k; other is a work array. */
    int (*apply)(const struct dnn_prepare_step *step, int k, struct dnn_array *array,
                 struct dnn_array *other, struct dnn_err *err);
};

extern const struct dnn_prepare_step_type dnn_prepare_step_split,
    dnn_prepare_step_balance, dnn_prepare_step_slice, dnn_prepare_step_resize,
    dnn_prepare_step_resample, dnn_prepare_step_crop, dnn_prepare_step_pad,
    dnn_prepare_step_normalise, dnn_prepare_step_clip, dnn_prepare_step_store,
    dnn_prepare_step_remap, dnn_prepare_step_one_hot;
/* All step types; NULL-ended. */
extern const struct dnn_prepare_step_type *const dnn_prepare_steps[];

/* Reads an element of "steps".  The result lives in arena. */
int dnn_prepare_step_read(const struct dnn_jobj *at, struct dnn_arena *arena,
                          struct dnn_prepare_step *out, struct dnn_err *err);
/* Chooses the columns and copies states to step->before. */
int dnn_prepare_step_select(struct dnn_prepare_step *step,
                            const struct dnn_column_states *states,
                            struct dnn_err *err);
/* What it needs for column k, and for all its columns. */
enum dnn_prepare_step_need
dnn_prepare_step_needs_for(const struct dnn_prepare_step *step, int k);
enum dnn_prepare_step_need dnn_prepare_step_needs(const struct dnn_prepare_step *step);
/* Updates states to those after the step. */
int dnn_prepare_step_states(const struct dnn_prepare_step *step,
                            struct dnn_column_states *states, struct dnn_err *err);
void dnn_prepare_step_free(struct dnn_prepare_step *step);
bool dnn_prepare_step_pointwise(const void *cfg); /* always true */

/* Number of spatial axes: all but the channels; 0 for labels and values. */
int dnn_column_state_space(const struct dnn_column_state *state);
int64_t dnn_column_state_channels(const struct dnn_column_state *state);
/* Converts stored elements to values in f32, with the scale and offset of state. */
int dnn_column_state_values(const struct dnn_column_state *state,
                            struct dnn_array *array, struct dnn_err *err);
/* Updates state accordingly. */
void dnn_column_state_become_values(struct dnn_column_state *state);
/* value -> (value - mean[c]) / std[c] by changing scale and offset alone. */
void dnn_column_state_standardise(struct dnn_column_state *state, int nchannels,
                                  const double *mean, const double *std);

/* Settings of the steps that are not applied column by column. */
struct dnn_split_cfg {
    struct dnn_list columns; /* always empty                                        */
    double share[DNN_PREPARE_PARTS];     /* train, validation, test                */
    const char *list[DNN_PREPARE_PARTS]; /* or a file with names; NULL: none       */
    bool stratify, group, partial, again;
    int64_t folds, seed;
};
extern const char *const dnn_prepare_parts[]; /* "train", "validation", "test", NULL */

struct dnn_balance_cfg {
    struct dnn_list columns;
    int how; /* enum dnn_balance */
    const char *split;
};
enum dnn_balance { DNN_BALANCE_OVER, DNN_BALANCE_UNDER };

struct dnn_slice_cfg {
    struct dnn_list columns;
    struct dnn_list sets; /* of struct dnn_slicer */
};

/* ---- the configuration ---- */

struct dnn_origin_cfg {
    struct dnn_import how;
    const char *split; /* split of its samples; NULL: as in the files               */
    bool generated;
    int index; /* in "sources"; -1: at the top level                                 */
};

struct dnn_prepare {
    struct dnn_json *file; /* owned                                                  */
    const char *to, *compress;
    int64_t seed, chunk, piece;
    double scale;
    bool allow_nan, checksums, shuffle;
    int norigins;
    struct dnn_origin_cfg *origin;
    int nsteps, slice; /* slice: index of that step, or -1                           */
    struct dnn_prepare_step step[DNN_PREPARE_STEPS];
    const struct dnn_split_cfg *split;     /* or NULL                                */
    const struct dnn_balance_cfg *balance; /* or NULL                                */
};

extern const struct dnn_field dnn_prepare_fields[], dnn_prepare_source_fields[];

/* Reads "steps" of a configuration. */
int dnn_prepare_read_steps(const struct dnn_jobj *top, struct dnn_arena *arena,
                           struct dnn_prepare *p, struct dnn_err *err);

/* Appends a value as compact JSON, keys in the order of the file. */
void dnn_prepare_json(struct dnn_buf *out, const struct dnn_jobj *at);
/* Appends a JSON string. */
void dnn_prepare_quote(struct dnn_buf *out, const char *text);

/* ---- where samples come from ---- */

struct dnn_origin {
    struct dnn_source *source; /* owned                                              */
    char split[32];            /* "": not known                                      */
    int64_t first;             /* number of its first sample among all               */
};

struct dnn_origins {
    int n;
    struct dnn_origin *at; /* owned                                                  */
    int64_t count;         /* samples of all                                         */
    struct dnn_column_states states;
    bool groups; /* some source has groups                                           */
};

int dnn_origins_open(const struct dnn_prepare *prepare, struct dnn_origins *out,
                     struct dnn_err *err);
/* A single source, of which it takes ownership. */
void dnn_origins_wrap(struct dnn_source *source, double scale, struct dnn_origins *out);
void dnn_origins_close(struct dnn_origins *origins);
/* The factor of a column's elements as they are read; scale: of the configuration. */
double dnn_origins_scale(enum dnn_kind kind, enum dnn_dtype type, double scale);
const struct dnn_origin *dnn_origins_find(const struct dnn_origins *origins,
                                          int64_t sample);
void dnn_origins_label(const struct dnn_origins *origins, int64_t sample,
                       char out[DNN_SAMPLE_NAME]);
/* "" if the sample has no group. */
void dnn_origins_group(const struct dnn_origins *origins, int64_t sample,
                       char out[DNN_SAMPLE_NAME]);
/* NaN and infinite values (unless allow_nan) and invalid class numbers are errors. */
int dnn_origins_check(const struct dnn_origins *origins, bool allow_nan, int64_t sample,
                      int k, const struct dnn_array *array, struct dnn_err *err);
/* Reads a sample and checks it. */
int dnn_origins_read(const struct dnn_origins *origins, bool allow_nan, int64_t sample,
                     struct dnn_sample *out, struct dnn_err *err);

/* ---- splits and folds: pure functions ---- */

/* Assigns n samples to parts by shares (their sum is at most 1; the rest gets part -1).
 * group: samples with the same number, below ngroups, stay together.  class:
 * stratified, each part gets its share of each class.  Both may be NULL.  Without
 * groups, counts are exact (largest remainder method).  The result depends on the
 * arguments only. */
struct dnn_partition {
    int64_t n;
    const int64_t *group, *class;
    int64_t ngroups, nclasses;
    int nparts;
    const double *share;
    uint64_t seed;
};
void dnn_partition(const struct dnn_partition *in, int32_t *part);
/* The number of samples of each part; count has nparts + 1 elements, the last is the
 * rest. */
void dnn_partition_counts(int64_t n, int nparts, const double *share, int64_t *count);

/* The part (index in name; -1: none) and the fold of every sample.  class may be NULL
 * if no classes are needed. */
struct dnn_parts {
    int n;
    char name[DNN_MAX_SPLITS][32];
    int32_t *part, *fold; /* owned [count]; fold NULL: no folds                     */
    int64_t folds;
};
int dnn_parts_make(const struct dnn_prepare *prepare, const struct dnn_origins *origins,
                   const int64_t *class, struct dnn_parts *out, struct dnn_err *err);
void dnn_parts_free(struct dnn_parts *parts);

/* The samples of one split of the result: source samples in order, each with one or
 * more boxes. */
struct dnn_output {
    int64_t n;       /* samples of the sources                                       */
    int64_t *sample; /* owned [n]                                                    */
    int64_t *first;  /* owned [n + 1]: number of its first box                       */
};
/* boxes: number of boxes of each source sample; NULL: 1 each. */
int dnn_outputs_make(const struct dnn_prepare *prepare, const struct dnn_parts *parts,
                     int64_t count, const int64_t *class, const int64_t *boxes,
                     struct dnn_output out[DNN_MAX_SPLITS], struct dnn_err *err);
void dnn_outputs_free(struct dnn_output out[DNN_MAX_SPLITS]);

/* ---- a sample through the steps ---- */

struct dnn_pipeline {
    const struct dnn_prepare *prepare;
    const struct dnn_origins *origins;
    int64_t loaded; /* the loaded source sample; -1: none                           */
    int end;        /* steps [0, end) are applied                                    */
    struct dnn_sample whole, box;
    int nsets;
    struct dnn_slices set[DNN_PREPARE_SETS];
    int64_t nboxes; /* of the loaded sample                                          */
    struct dnn_array other;
};
void dnn_pipeline_start(struct dnn_pipeline *pipeline,
                        const struct dnn_prepare *prepare,
                        const struct dnn_origins *origins, int end);
/* Reads a sample and applies the steps before slice, or all steps without slice. */
int dnn_pipeline_load(struct dnn_pipeline *pipeline, int64_t sample,
                      struct dnn_err *err);
/* Box b of the loaded sample after all steps; valid until the next call. */
int dnn_pipeline_box(struct dnn_pipeline *pipeline, int64_t b, struct dnn_sample **out,
                     struct dnn_err *err);
/* "vol.nii[3,0,1]" */
void dnn_pipeline_name(const struct dnn_pipeline *pipeline, int64_t b,
                       char out[DNN_SAMPLE_NAME]);
void dnn_pipeline_stop(struct dnn_pipeline *pipeline);
/* The column with the dtype of its values, for statistics. */
struct dnn_column dnn_column_state_column(const struct dnn_column_state *state);
/* Adds the values of an array to stats, which was started with that column. */
int dnn_pipeline_stats(struct dnn_pipeline *pipeline,
                       const struct dnn_column_state *state,
                       const struct dnn_array *array, struct dnn_stats *stats,
                       struct dnn_err *err);

/* ---- the work directory ---- */

struct dnn_work {
    char *dir; /* owned: ".NAME.work" next to the dataset                           */
    char fingerprint[33]; /* of configuration and files */
    int lock; /* rank 0: file descriptor of the lock; else -1                      */
};

/* Local, rank 0.  Creates and locks the directory; empties it if restart is set or its
 * fingerprint differs. */
int dnn_work_open(struct dnn_work *work, const char *to, const char *fingerprint,
                  bool restart, struct dnn_err *err);
/* Removes the directory (finished) or keeps it, to continue later. */
void dnn_work_close(struct dnn_work *work, bool finished);
char *dnn_work_dir(const char *to); /* its path; the caller frees it                 */

/* Saves the bytes of a finished unit under (pass, number). */
int dnn_work_save(const struct dnn_work *work, const char *pass, int64_t number,
                  const void *bytes, size_t len, struct dnn_err *err);
/* Loads and checks these bytes; the caller frees *out: dnn_free().  Damaged units are
 * removed. */
int dnn_work_load(const struct dnn_work *work, const char *pass, int64_t number,
                  char **out, size_t *len, struct dnn_err *err);
/* Removes a unit, if it exists. */
void dnn_work_remove(const struct dnn_work *work, const char *pass, int64_t number);
/* Sets done[i] = 1 for those of the n units that are saved. */
int dnn_work_list(const struct dnn_work *work, const char *pass, int64_t n,
                  unsigned char *done, struct dnn_err *err);

/* Collective.  Computes and saves those of n units that are not saved yet, distributed
 * round-robin over the ranks; make() fills out.  Returns DNN_ESTOP after a signal. */
struct dnn_units {
    const char *name;  /* in file names: [a-z0-9]                                    */
    const char *title; /* in messages                                                */
    int64_t n;
    int (*make)(void *arg, int64_t number, struct dnn_buf *out, struct dnn_err *err);
    void *arg;
};
int dnn_units_run(const struct dnn_work *work, struct dnn_comm *comm,
                  const struct dnn_units *pass, struct dnn_err *err);

/* ---- first passes over all samples ---- */

struct dnn_prepare_state {
    struct dnn_prepare *prepare;
    struct dnn_comm *comm;
    const struct dnn_prepare_opts *opts;
    struct dnn_origins origins;
    struct dnn_parts parts;
    struct dnn_output output[DNN_MAX_SPLITS];
    struct dnn_work work;
    int64_t *class, *boxes; /* owned [count]; NULL: not needed                       */
    struct dnn_column_states states; /* of the result */
    struct dnn_dataset_info info; /* of the result                                   */
    struct dnn_piece *piece;      /* owned                                           */
    int64_t npieces;
    int64_t nfiles;
    const char **file; /* owned array: of all sources, each once                     */
    struct dnn_buf files; /* their sizes and checksums, as JSON                      */
};

/* Collective. */
int dnn_pass_classes(struct dnn_prepare_state *s, struct dnn_err *err);
int dnn_pass_stats(struct dnn_prepare_state *s, int step,
                   enum dnn_prepare_step_need need, struct dnn_err *err);
int dnn_pass_boxes(struct dnn_prepare_state *s, struct dnn_err *err);
int dnn_pass_files(struct dnn_prepare_state *s, struct dnn_err *err);

/* ---- pieces of the result ---- */

struct dnn_piece {
    int split;
    int64_t first, n;
};

/* Pointers into the bytes of a piece. */
struct dnn_piece_view {
    const char *data[DNN_MAX_COLUMNS];
    const char **name, **group; /* owned arrays [n]; group NULL: none                */
    int32_t *fold;              /* owned; NULL: none                                 */
};

/* Summary of a piece, readable without its samples.  It is stored as bytes, so it has
 * no pointers. */
struct dnn_piece_summary {
    double spacing[DNN_MAX_COLUMNS][DNN_MAX_SPACE]; /* -1: differs                   */
    struct dnn_stats stats[];                       /* of each column                */
};

/* Local.  Bytes of one sample of a column as stored. */
size_t dnn_piece_bytes(const struct dnn_column_state *state);
int dnn_pieces_plan(struct dnn_prepare_state *s, struct dnn_err *err);
/* make() of struct dnn_units; arg is the dnn_prepare_state. */
int dnn_piece_make(void *arg, int64_t number, struct dnn_buf *out, struct dnn_err *err);
int dnn_piece_read(const struct dnn_prepare_state *s, int64_t number, const char *bytes,
                   size_t len, struct dnn_piece_view *out, struct dnn_err *err);
/* The caller frees *out: dnn_free(). */
int dnn_piece_summary(const struct dnn_prepare_state *s, int64_t number,
                      struct dnn_piece_summary **out, struct dnn_err *err);
void dnn_piece_view_free(struct dnn_piece_view *view);
/* Collective.  Writes all pieces to the dataset. */
int dnn_assemble(struct dnn_prepare_state *s, char hash[33], struct dnn_err *err);

/* ---- the record ---- */

/* XXH3, 128 bits, as xxhsum -H2 prints it. */
void dnn_sum_text(const void *bytes, size_t len, char out[33]);
int dnn_sum_file(const char *path, char out[33], int64_t *size, struct dnn_err *err);
/* The files of a path: itself or, if it is a directory (BP5), the files in it sorted by
 * name.  The caller frees *out: dnn_record_files_free(). */
int dnn_record_files(const char *path, char ***out, int64_t *n, struct dnn_err *err);
void dnn_record_files_free(char **file, int64_t n);
/* The fingerprint: hash of configuration, version and files (path, size, modification
 * time). */
int dnn_record_fingerprint(const struct dnn_prepare_state *s, char out[33],
                           struct dnn_err *err);
/* The JSON stored in the dataset; the caller frees it: dnn_free(). */
char *dnn_record_text(const struct dnn_prepare_state *s);

#endif
