/* volume_impl.h - samples in tiles: shared by volume.c, row.c, plane.c, input.c and
 * tiles.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_INFER_VOLUME_IMPL_H
#define DNN_INFER_VOLUME_IMPL_H

#include "infer/infer_impl.h"
#include "window/window.h"

/* ---- tiles.c: the network at the extents of a tile.  Local. ---- */

struct infer_net {
    const struct dnn_config *config;
    const struct dnn_graph *graph;
    struct dnn_net net; /* owned; empty if the configuration's extents are used      */
    struct dnn_model *model; /* owned */
    char *cache;             /* owned */
    int ndim;                /* spatial axes */
    int64_t tile[DNN_WINDOW_DIMS], batch;
    int64_t channels[INFER_OUTPUTS];
};
/* owner: whose weights are used; NULL: its own, which are not loaded yet.  DNN_ENOMEM:
 * it does not fit into memory.  The caller owns *out: dnn_infer_net_close(). */
int dnn_infer_net_open(const struct dnn_stage_cfg *cfg, const int64_t *tile,
                       int64_t batch, struct infer_net *owner, struct infer_net **out,
                       struct dnn_err *err);
void dnn_infer_net_close(struct infer_net *net); /* NULL is fine */
/* Run it once; fill() writes the input block of all tiles. */
int dnn_infer_net_run(struct infer_net *net, dnn_exec_filler *fill, void *arg,
                      struct dnn_err *err);

/* ---- input.c: samples, and parts of them, as the network gets them.  Local. ---- */

struct infer_input;
/* The test samples of a configuration.  The caller owns *out: dnn_infer_input_close().
 */
int dnn_infer_input_open(const struct dnn_config *config, struct infer_input **out,
                         struct dnn_err *err);
void dnn_infer_input_close(struct infer_input *in); /* NULL is fine */
int64_t dnn_infer_input_count(const struct infer_input *in);
/* The columns of the input and of the target (NULL: none) after the transforms; extents
 * may be unknown. */
const struct dnn_column *dnn_infer_input_column(const struct infer_input *in);
const struct dnn_column *dnn_infer_target_column(const struct infer_input *in);
/* Where the samples are, for names relative to it; or NULL. */
const char *dnn_infer_input_from(const struct infer_input *in);
/* The samples as they are in files, and the path of their dataset or NULL. */
const struct dnn_source *dnn_infer_input_source(const struct infer_input *in);
const char *dnn_infer_input_dataset(const struct infer_input *in);

/* A sample of the input. */
struct infer_about {
    char name[DNN_SAMPLE_NAME];
    const char *file;       /* of the sample; NULL: unknown */
    struct dnn_shape shape; /* after the transforms         */
};
int dnn_infer_input_about(struct infer_input *in, int64_t sample,
                          struct infer_about *out, struct dnn_err *err);
/* Of the sample after the transforms, which has this shape: as dnn_infer_position(). */
int dnn_infer_input_position(const struct infer_input *in, int64_t sample,
                             const struct dnn_shape *shape, struct dnn_position *out,
                             struct dnn_err *err);
/* Fail unless the target of a sample has the spatial extents of its input, and values
 * for so many channels of the output. */
int dnn_infer_target_check(struct infer_input *in, int64_t sample, int64_t channels,
                           struct dnn_err *err);
/* A box of spatial extents; all channels. */
int dnn_infer_input_box(struct infer_input *in, int64_t sample, const int64_t *start,
                        const int64_t *extent, float *to, struct dnn_err *err);
/* The same of the target: i32 if it is of classes, else f32.  The result is in memory
 * of the input until the next call. */
int dnn_infer_target_box(struct infer_input *in, int64_t sample, const int64_t *start,
                         const int64_t *extent, const struct dnn_array **out,
                         struct dnn_err *err);

/* ---- plane.c: what is drawn of a sample.  Local. ---- */

/* The middle plane of a volume, or all of a picture. */
struct infer_plane {
    int ndim;
    int64_t start[DNN_WINDOW_DIMS], extent[DNN_WINDOW_DIMS]; /* 1 beyond ndim         */
    int64_t points, channels;                                /* of the output         */
    float *output; /* owned; NULL: not needed                                       */
};
void dnn_infer_plane_of(const struct infer_about *about, struct infer_plane *out);
/* Memory for its output, whose channels are set; false, with a warning that names the
 * sample, if it is too large for a picture.  The caller owns the memory: free(). */
bool dnn_infer_plane_alloc(struct infer_plane *plane, const struct infer_about *about);
/* Whether some of it is in a box. */
bool dnn_infer_plane_in(const struct infer_plane *plane, const int64_t *start,
                        const int64_t *extent);
/* The same of the input.  The caller owns *out: free(). */
int dnn_infer_plane_input(const struct infer_plane *plane, struct infer_input *in,
                          int64_t sample, int64_t channels, float **out,
                          struct dnn_err *err);
/* Copy what it has of a box of the output. */
void dnn_infer_plane_keep(struct infer_plane *plane, const int64_t *start,
                          const int64_t *extent, const float *value);
/* Draw it as number i of the worst samples. */
int dnn_infer_plane_draw(const struct infer_plane *plane, struct infer_input *in,
                         const struct infer_about *about, struct infer_worst *worst,
                         int i, struct dnn_err *err);

/* ---- plan.c: which tiles and units the samples have.  Local. ---- */

struct infer_sample_plan {
    int64_t extent[DNN_WINDOW_DIMS];
    int64_t units, first; /* number, and that of the first among all samples */
};
struct infer_plan {
    const struct dnn_config *config;
    int ndim;                         /* spatial axes                               */
    int64_t tile[DNN_WINDOW_DIMS];    /* 0: the extents of the sample               */
    int64_t batch;                    /* of tiles                                   */
    int64_t count, units, tiles;      /* of samples; of all of them                 */
    struct infer_sample_plan *sample; /* owned                                      */
};
/* Check the settings; find the extents of a tile.  config must outlive it.  The caller
 * owns the content: dnn_infer_plan_close(), also on failure. */
int dnn_infer_plan_open(struct infer_plan *p, const struct dnn_config *config,
                        struct dnn_err *err);
void dnn_infer_plan_close(struct infer_plan *p);
/* Find the extents of each sample, and the batch; then, when the tile is final, the
 * units. */
int dnn_infer_plan_read(struct infer_plan *p, struct infer_input *input,
                        struct dnn_err *err);
int dnn_infer_plan_units(struct infer_plan *p, struct dnn_err *err);
bool dnn_infer_plan_evaluated(const struct infer_plan *p,
                              const struct infer_input *input);
int64_t dnn_infer_plan_largest(const struct infer_plan *p); /* sample */
/* The tiles of a sample.  The caller owns *out: dnn_window_free(). */
int dnn_infer_plan_window(const struct infer_plan *p, int64_t sample,
                          struct dnn_window **out, struct dnn_err *err);
/* The most memory that sums of tiles need, of any sample.  DNN_ENOMEM: more than
 * inference.memory. */
int dnn_infer_plan_sums(const struct infer_plan *p, const struct infer_result *r,
                        const struct infer_net *net, size_t *out, struct dnn_err *err);

/* ---- row.c: units of one sample.  Local. ---- */

struct infer_volume {
    struct infer_net *net;
    struct infer_input *input;
    const struct dnn_window *window;
    struct infer_result *r;
    int64_t sample;
    const struct infer_about *about;
    const unsigned char *wanted; /* [units], not 0: to be computed                   */
    int64_t unit;            /* number of the first unit of the sample, among all    */
    bool (*stop)(void *arg); /* asked between rows of tiles                          */
    void (*tiles)(void *arg, int64_t n); /* so many more are done: after each batch   */
    void *arg;
    struct infer_plane *keep; /* keep only this of the output; NULL: to the result   */
};
/* DNN_ESTOP: stopped; units that are complete are written. */
int dnn_infer_volume_run(const struct infer_volume *v, struct dnn_err *err);

#endif
