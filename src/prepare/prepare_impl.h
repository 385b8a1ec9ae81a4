/* prepare_impl.h - how a preparation is cut into files of this component.
 *
 * config.c reads the configuration; steps*.c are the steps; sources.c opens the input
 * files or the generator; splits.c and partition.c assign samples to splits; pipeline.c
 * applies the steps to a sample; first_pass.c collects what a step must know of all
 * samples; piece.c computes pieces of the result; work.c keeps finished pieces on disk;
 * assemble.c writes the dataset; run.c calls all of them in this order.
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

/* A column on its way: value = number * scale + offset, so that integers stay integers
 * as long as nothing asks for their values. */
struct dnn_column_state {
    struct dnn_column column;
    int nscale; /* 0: values are the numbers themselves; 1 or as many as channels */
    double scale[DNN_STATS_CHANNELS], offset[DNN_STATS_CHANNELS];
};

struct dnn_column_states {
    int n;
    struct dnn_column_state state[DNN_MAX_COLUMNS];
};

/* ---- steps ---- */

/* What a step must know of all samples before it can be applied to one. */
enum dnn_prepare_step_need { DNN_NEED_NOTHING, DNN_NEED_TRAIN, DNN_NEED_ALL };

struct dnn_prepare_step_type;
struct dnn_prepare_step {
    const struct dnn_prepare_step_type *type;
    void *cfg;         /* begins with a struct dnn_list of column names  */
    const char *where; /* "a.json:3: steps[1].resize", for messages      */
    unsigned on;       /* bits of the columns it changes                 */
    struct dnn_column_states *before; /* owned: what it is given */
    struct dnn_stats *found; /* owned: of each column, if it needs them        */
};

struct dnn_prepare_step_type {
    const char *name, *help;
    size_t size;                    /* of its struct                             */
    const struct dnn_field *fields; /* of the object under its name; NULL: brief is
                                     * the only form                             */
    const struct dnn_field *brief;  /* of the object the name is in: its short form */
    /* More than the tables can say; NULL: nothing.  at: the object or short form. */
    int (*read)(const struct dnn_jobj *at, struct dnn_arena *arena, void *cfg,
                struct dnn_err *err);
    bool (*takes)(
        const struct dnn_column_state *state); /* columns it is for, unless named   */
    bool (*can)(
        const struct dnn_column_state *state); /* columns it can be told to take    */
    enum dnn_prepare_step_need (*needs)(
        const void *cfg, const struct dnn_column_state *state); /* or NULL   */
    /* What becomes of a column; before it is known what needs() asked for (found is
     * NULL) only what does not depend on it need be right. */
    int (*state)(const struct dnn_prepare_step *step, int k,
                 struct dnn_column_state *state, struct dnn_err *err);
    /* The same of an array; other is another one to work in. */
    int (*apply)(const struct dnn_prepare_step *step, int k, struct dnn_array *array,
                 struct dnn_array *other, struct dnn_err *err);
};

extern const struct dnn_prepare_step_type dnn_prepare_step_split,
    dnn_prepare_step_balance, dnn_prepare_step_slice, dnn_prepare_step_resize,
    dnn_prepare_step_resample, dnn_prepare_step_crop, dnn_prepare_step_pad,
    dnn_prepare_step_normalise, dnn_prepare_step_clip, dnn_prepare_step_store,
    dnn_prepare_step_remap, dnn_prepare_step_one_hot;
/* NULL-ended; the one list. */
extern const struct dnn_prepare_step_type *const dnn_prepare_steps[];

/* One element of "steps".  The result lives in arena. */
int dnn_prepare_step_read(const struct dnn_jobj *at, struct dnn_arena *arena,
                          struct dnn_prepare_step *out, struct dnn_err *err);
/* Choose the columns, keep a copy of states in before. */
int dnn_prepare_step_place(struct dnn_prepare_step *step,
                           const struct dnn_column_states *states, struct dnn_err *err);
enum dnn_prepare_step_need dnn_prepare_step_needs(const struct dnn_prepare_step *step);
/* states after the step. */
int dnn_prepare_step_lanes(const struct dnn_prepare_step *step,
                           struct dnn_column_states *states, struct dnn_err *err);
void dnn_prepare_step_free(struct dnn_prepare_step *step);

/* Spatial axes of a column, or of an array of it: all but the channels; 0 of labels
 * and values. */
int dnn_column_state_space(const struct dnn_column_state *state);
int64_t dnn_column_state_channels(const struct dnn_column_state *state);
/* Numbers become their values, in f32; state says what they are now. */
int dnn_column_state_values(const struct dnn_column_state *state,
                            struct dnn_array *array, struct dnn_err *err);
/* The state of an array after that. */
void dnn_column_state_become_values(struct dnn_column_state *state);
/* value -> (value - mean[c]) / std[c] by changing scale and offset alone. */
void dnn_column_state_standardise(struct dnn_column_state *state, int nchannels,
                                  const double *mean, const double *std);

/* The settings of the steps that are not applied to single columns. */
struct dnn_split_cfg {
    struct dnn_list columns; /* none: it has no columns                             */
    double share[DNN_PREPARE_PARTS];     /* train, validation, test                */
    const char *list[DNN_PREPARE_PARTS]; /* instead: a file of names; or NULL      */
    bool stratify, group, partial, again;
    int64_t folds, seed;
};
extern const char *const dnn_prepare_parts[]; /* their names */

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
    const char *split; /* what its samples are; NULL: what the files say            */
    bool generated;
    int index; /* in "sources"; -1: the configuration itself                         */
};

struct dnn_prepare {
    struct dnn_json *file; /* owned                                                  */
    const char *to, *compress;
    int64_t seed, chunk, piece;
    double scale;
    bool allow_nan, checksums, shuffle;
    int norigins;
    struct dnn_origin_cfg *origin;
    int nsteps, slice; /* slice: which step, or -1                                   */
    struct dnn_prepare_step step[DNN_PREPARE_STEPS];
    const struct dnn_split_cfg *split;     /* or NULL                                */
    const struct dnn_balance_cfg *balance; /* or NULL                                */
};

extern const struct dnn_field dnn_prepare_fields[], dnn_prepare_source_fields[];

/* A value as compact JSON, keys in the order of the file. */
void dnn_prepare_json(struct dnn_buf *out, const struct dnn_jobj *at);
/* A text in quotes. */
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
    bool groups; /* some source knows them                                           */
};

int dnn_origins_open(const struct dnn_prepare *prepare, struct dnn_origins *out,
                     struct dnn_err *err);
void dnn_origins_close(struct dnn_origins *origins);
const struct dnn_origin *dnn_origins_find(const struct dnn_origins *origins,
                                          int64_t sample);
void dnn_origins_label(const struct dnn_origins *origins, int64_t sample,
                       char out[DNN_SAMPLE_NAME]);
/* "" if none is known. */
void dnn_origins_group(const struct dnn_origins *origins, int64_t sample,
                       char out[DNN_SAMPLE_NAME]);
/* Read it; numbers that are none and classes there are not are refused. */
int dnn_origins_read(const struct dnn_origins *origins, bool allow_nan, int64_t sample,
                     struct dnn_sample *out, struct dnn_err *err);

/* ---- who goes where: pure functions ---- */

/* Deal n things to parts by shares (whose sum is at most 1; what is left over gets
 * part -1).  group: things of one number stay together, numbers below ngroups; class:
 * each part gets its share of each; both may be NULL.  Counts without groups are
 * exact: those of the largest remainders.  A pure function of its arguments. */
struct dnn_partition {
    int64_t n;
    const int64_t *group, *class;
    int64_t ngroups, nclasses;
    int nparts;
    const double *share;
    uint64_t seed;
};
void dnn_partition(const struct dnn_partition *deal, int32_t *part);
/* n things by shares; count has nparts + 1 elements, the last is what is left over. */
void dnn_partition_counts(int64_t n, int nparts, const double *share, int64_t *count);

/* Every sample's part (-1: in none) and fold, by the configuration, the sources, and
 * class (NULL: not needed). */
struct dnn_parts {
    int n;
    char name[DNN_MAX_SPLITS][32];
    int32_t *part, *fold; /* owned [count]; fold NULL: there are none               */
    int64_t folds;
};
int dnn_parts_make(const struct dnn_prepare *prepare, const struct dnn_origins *origins,
                   const int64_t *class, struct dnn_parts *out, struct dnn_err *err);
void dnn_parts_free(struct dnn_parts *parts);

/* The samples of the result: for each part its sources' samples in order, each with
 * so many boxes. */
struct dnn_output {
    int64_t n;       /* samples of the sources                                       */
    int64_t *sample; /* owned [n]                                                    */
    int64_t *first;  /* owned [n + 1]: number of its first box                       */
};
/* boxes: of each sample of the sources; NULL: each is one. */
int dnn_outputs_make(const struct dnn_prepare *prepare, const struct dnn_parts *parts,
                     int64_t count, const int64_t *class, const int64_t *boxes,
                     struct dnn_output out[DNN_MAX_SPLITS], struct dnn_err *err);
void dnn_outputs_free(struct dnn_output out[DNN_MAX_SPLITS]);

/* ---- a sample through the steps ---- */

struct dnn_pipeline {
    const struct dnn_prepare *prepare;
    const struct dnn_origins *origins;
    int64_t loaded; /* which sample of the sources is here, -1: none                */
    int end;        /* steps [0, end) are taken                                      */
    struct dnn_sample whole, box;
    int nsets;
    struct dnn_slices set[DNN_PREPARE_SETS];
    int64_t nboxes; /* of the sample that is here                                    */
    struct dnn_array other;
};
void dnn_pipeline_start(struct dnn_pipeline *pipeline,
                        const struct dnn_prepare *prepare,
                        const struct dnn_origins *origins, int end);
/* Read a sample and take it to the slices, or to the end if it is not sliced. */
int dnn_pipeline_load(struct dnn_pipeline *pipeline, int64_t sample,
                      struct dnn_err *err);
/* Box number b of it at the end of the steps; valid until the next call. */
int dnn_pipeline_box(struct dnn_pipeline *pipeline, int64_t b, struct dnn_sample **out,
                     struct dnn_err *err);
/* "vol.nii[3,0,1]" */
void dnn_pipeline_name(const struct dnn_pipeline *pipeline, int64_t b,
                       char out[DNN_SAMPLE_NAME]);
void dnn_pipeline_stop(struct dnn_pipeline *pipeline);
/* The column of a state's values, for statistics. */
struct dnn_column dnn_column_state_column(const struct dnn_column_state *state);
/* Count an array's values; stats was started with that column. */
int dnn_pipeline_stats(struct dnn_pipeline *pipeline,
                       const struct dnn_column_state *state,
                       const struct dnn_array *array, struct dnn_stats *stats,
                       struct dnn_err *err);

/* ---- the work directory ---- */

struct dnn_work {
    char *dir; /* owned: ".NAME.work" beside the dataset                            */
    char print[33]; /* fingerprint of configuration and files                        */
    int lock; /* rank 0: descriptor of the lock; -1                                */
};

/* Local, for rank 0.  Make the directory, lock it, and forget what is in it unless it
 * has this fingerprint. */
int dnn_work_open(struct dnn_work *work, const char *to, const char *print,
                  bool restart, struct dnn_err *err);
/* Remove it (finished) or leave it for another time. */
void dnn_work_close(struct dnn_work *work, bool finished);
char *dnn_work_dir(const char *to); /* its name; the caller's: dnn_free()            */

/* One finished unit of a pass: bytes under (pass, number). */
int dnn_work_save(const struct dnn_work *work, const char *pass, int64_t number,
                  const void *bytes, size_t len, struct dnn_err *err);
/* The bytes, checked; the caller's: dnn_free().  What is damaged is removed. */
int dnn_work_load(const struct dnn_work *work, const char *pass, int64_t number,
                  char **out, size_t *len, struct dnn_err *err);
/* Remove it, if it is there. */
void dnn_work_forget(const struct dnn_work *work, const char *pass, int64_t number);
/* done[i] = 1 for those of the n units that are there. */
int dnn_work_list(const struct dnn_work *work, const char *pass, int64_t n,
                  unsigned char *done, struct dnn_err *err);

/* Collective.  Do what is not yet done of n units, ranks in turn; each is given to
 * make(), which fills out.  Ends with DNN_ESTOP if a signal asked for it. */
struct dnn_units {
    const char *name;  /* of files: [a-z0-9]                                         */
    const char *title; /* for people                                                 */
    int64_t n;
    int (*make)(void *arg, int64_t number, struct dnn_buf *out, struct dnn_err *err);
    void *arg;
};
int dnn_units_run(const struct dnn_work *work, struct dnn_comm *comm,
                  const struct dnn_units *pass, struct dnn_err *err);

/* ---- what is learnt of all samples first ---- */

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
int dnn_learn_classes(struct dnn_prepare_state *s, struct dnn_err *err);
int dnn_learn_stats(struct dnn_prepare_state *s, int step,
                    enum dnn_prepare_step_need need, struct dnn_err *err);
int dnn_learn_boxes(struct dnn_prepare_state *s, struct dnn_err *err);
int dnn_learn_files(struct dnn_prepare_state *s, struct dnn_err *err);

/* ---- pieces of the result ---- */

struct dnn_piece {
    int split;
    int64_t first, n;
};

/* Where the parts of a piece's bytes are. */
struct dnn_piece_view {
    const char *data[DNN_MAX_COLUMNS];
    const char **name, **group; /* owned arrays [n]; group NULL: none                */
    int32_t *fold;              /* owned; NULL: none                                 */
};

/* What is known of a piece without looking at its samples; without pointers: it is
 * stored as bytes. */
struct dnn_piece_known {
    double spacing[DNN_MAX_COLUMNS][DNN_MAX_SPACE]; /* -1: not the same in all       */
    struct dnn_stats stats[];                       /* of each column                */
};

/* Local.  Bytes of one sample of a column as stored. */
size_t dnn_piece_bytes(const struct dnn_column_state *state);
int dnn_pieces_plan(struct dnn_prepare_state *s, struct dnn_err *err);
/* A dnn_units's make(); arg is the state. */
int dnn_piece_make(void *arg, int64_t number, struct dnn_buf *out, struct dnn_err *err);
int dnn_piece_read(const struct dnn_prepare_state *s, int64_t number, const char *bytes,
                   size_t len, struct dnn_piece_view *out, struct dnn_err *err);
/* The caller's: dnn_free(). */
int dnn_piece_known(const struct dnn_prepare_state *s, int64_t number,
                    struct dnn_piece_known **out, struct dnn_err *err);
void dnn_piece_view_free(struct dnn_piece_view *view);
/* Collective.  All pieces into the dataset. */
int dnn_assemble(struct dnn_prepare_state *s, char hash[33], struct dnn_err *err);

/* ---- the record ---- */

/* XXH3, 128 bits, as xxhsum -H2 prints it. */
void dnn_sum_text(const void *bytes, size_t len, char out[33]);
int dnn_sum_file(const char *path, char out[33], int64_t *size, struct dnn_err *err);
/* What is read of a path: itself, or, as a BP5 file is a directory, the files in it by
 * name.  *out: so many texts and the array, all the caller's: dnn_record_inside_free().
 */
int dnn_record_inside(const char *path, char ***out, int64_t *n, struct dnn_err *err);
void dnn_record_inside_free(char **file, int64_t n);
/* Configuration, version and files (path, size, time of change). */
int dnn_record_print(const struct dnn_prepare_state *s, char out[33],
                     struct dnn_err *err);
/* The JSON kept in the dataset; the caller's: dnn_free(). */
char *dnn_record_text(const struct dnn_prepare_state *s);

#endif
