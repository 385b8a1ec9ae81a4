/* run_config.h - the configuration file of a run.
 *
 * {"layers": "net.json"} is enough.  The keys may also be inside an object under
 * "neural_network", as in rmldnn's files, whose keys are all supported.  The case of
 * names given as values does not matter.  Relative paths start at the directory of the
 * file.
 *
 * Each section has its struct and its table.  What belongs to another component (a
 * loss, an optimizer, transforms...) is read by that component, here or when one of the
 * functions below is called.  All of this is Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_CONFIG_RUN_CONFIG_H
#define DNN_CONFIG_RUN_CONFIG_H

#include "base/choice.h"
#include "base/field.h"
#include "config/run_config_data.h"
#include "config/net.h"
#include "loss/loss.h"
#include "metric/metric.h"
#include "op/op.h"
#include "optim/optim.h"
#include "plan/plan.h"
#include "schedule/schedule.h"
#include "schedule/stopping.h"
#include "transform/augment.h"

extern const struct dnn_choice dnn_config_recomputes[]; /* enum dnn_recompute */

enum dnn_resume { DNN_RESUME_NO, DNN_RESUME_YES, DNN_RESUME_AUTO };

/* "checkpoints": saving and loading of checkpoints. */
struct dnn_config_ckpt {
    const char *save; /* directory; NULL: checkpoints, in the run directory          */
    double interval;  /* epochs between checkpoints; 0: not by epochs                */
    int64_t steps;    /* the same in steps                                           */
    double minutes;   /* and in minutes                                              */
    const char *load; /* initial weights: a checkpoint, .h5, .keras; or NULL         */
    int64_t keep;     /* recent ones to keep; 0: all                                 */
    const char *best; /* metric that selects the best one; NULL: that of early_stopping,
                       * else val_loss, else loss */
    int64_t best_interval; /* epochs between checks for a new best one                */
    int resume; /* enum dnn_resume; AUTO: if there is one to resume from       */
};
extern const struct dnn_field dnn_config_ckpt_fields[];

/* "parallel": data parallelism. */
struct dnn_config_parallel {
    const char *rule;
    int64_t micro_batches; /* deterministic: per batch; 0: 8 */
    int compress;   /* enum dnn_compress                                            */
    int64_t bucket; /* bytes of a gradient bucket; 0: autotuned                     */
};
extern const struct dnn_field dnn_config_parallel_fields[];

/* "kernels": restrictions of the backend's kernel selection. */
struct dnn_config_kernels {
    const char *conv; /* algorithm for convolutions; NULL: any                       */
};

/* "telemetry": logs, metric files and the report. */
struct dnn_config_telemetry {
    bool csv, jsonl, tensorboard, report;
    double interval;  /* seconds between progress lines                               */
    int64_t steps;    /* between records in files; 0: epochs only                     */
    int64_t pictures; /* of predictions; 0: none                                     */
};
extern const struct dnn_field dnn_config_telemetry_fields[];

/* "inference": how outputs are computed and written. */
enum dnn_infer_activation {
    DNN_ACTIVATION_AUTO, /* what the loss applies, except for files like rmldnn's */
    DNN_ACTIVATION_NONE,
    DNN_ACTIVATION_SOFTMAX,
    DNN_ACTIVATION_SIGMOID
};
enum dnn_infer_tiles { DNN_TILES_AUTO, DNN_TILES_ALWAYS, DNN_TILES_WHOLE };
struct dnn_config_infer {
    struct dnn_list formats, contents; /* of int: enum dnn_output_format, _content;
                                        * empty: those that fit the task */
    int activation;          /* enum dnn_infer_activation                           */
    int tiles;               /* enum dnn_infer_tiles                                */
    struct dnn_list tile;    /* spatial extents; empty: those of the network        */
    struct dnn_list overlap; /* fraction of the tile, for all axes or for each      */
    int blend;               /* enum dnn_window_blend                               */
    double sigma;            /* of the Gaussian, as a fraction of the tile          */
    struct dnn_list flips;   /* spatial axes along which samples are also flipped   */
    int64_t batch;           /* tiles computed together                             */
    int64_t memory;          /* bytes for overlapping outputs; 0: no limit          */
    bool names, gzip;        /* csv: names of samples; nifti: .nii.gz               */
    int64_t top_k;           /* json: classes with probabilities; 0: all            */
    bool surfaces;           /* measure surface distances                           */
    int64_t bins, worst;     /* of the calibration; worst samples to report         */
    int64_t background;      /* class that is not part of averages; -1: none        */
};
extern const struct dnn_field dnn_config_infer_fields[];

struct dnn_config {
    struct dnn_json *file; /* owned: contains the strings                        */
    struct dnn_net net;    /* owned                                              */
    bool wrapped;          /* the keys are under "neural_network"                */
    const char *layers;    /* as JSON, for printing                              */
    struct dnn_list input; /* extents of the data without the batch; empty: the
                            * network's own */
    int64_t num_epochs, seed;
    int64_t steps_per_epoch; /* 0: all batches                                     */
    int64_t batch_size;      /* over all ranks                                        */
    struct dnn_loss *loss;   /* owned                                              */
    bool has_loss;           /* the key is given                                   */
    struct dnn_optim optimizer;
    struct dnn_schedule *schedule; /* owned: optimizer.lr_scheduler              */
    bool learning_rate_scaling;    /* see dnn_config_set_ranks()                    */
    double clip_norm, clip_value;  /* of gradients; 0: no                        */
    int64_t accumulate;            /* gradient accumulation steps                */
    double ema; /* decay of the moving average of the weights; 0: none           */
    const struct dnn_stopping *early;   /* or NULL                                 */
    const struct dnn_stopping *goal;    /* target_metric, or NULL                  */
    const struct dnn_config_data *data; /* or NULL                                 */
    const struct dnn_config_ckpt *ckpt;
    bool deterministic; /* bitwise identical on any number of ranks             */
    const struct dnn_config_parallel *parallel;
    const struct dnn_config_telemetry *telemetry;
    const struct dnn_config_infer *infer;
    const char *outfile;  /* base name of rmldnn's two text files, or NULL         */
    bool debug;           /* write the network's graph as .dot                     */
    const char *backend;  /* NULL: the fastest that is built                      */
    int64_t memory_limit; /* bytes; 0: what the system has                        */
    int recompute;        /* enum dnn_recompute                                   */
    bool fuse;            /* fuse ops                                             */
    const struct dnn_config_kernels *kernels;
    int precision; /* enum dnn_dtype                                       */
    int64_t threads;
    const char *run_dir; /* "dir" as written, or NULL: see dnn_config_dir()          */
    /* As JSON with defaults, for printing. */
    const char *loss_text, *optimizer_text, *metrics_text, *early_text;
    const char *goal_text;
};

/* All keys of a configuration. */
extern const struct dnn_field dnn_config_fields[];

/* Read a configuration and its network.  set: n changes such as "data.batch_size=32",
 * see dnn_config_set().  The caller owns *out: dnn_config_free(). */
int dnn_config_read_set(const char *path, int n, const char *const *set,
                        struct dnn_config *out, struct dnn_err *err);
/* The same from text; name: a path for messages and relative paths. */
int dnn_config_read_text(const char *name, const char *text, size_t len, int n,
                         const char *const *set, struct dnn_config *out,
                         struct dnn_err *err);
void dnn_config_free(struct dnn_config *config); /* of one filled with zeros, too */

/* Change a value of a JSON file in memory: "a.b[0].c=VALUE", where VALUE is JSON, or
 * else taken as a string.  Missing objects and lists are added.  If all keys are under
 * "neural_network", so is a.  Later messages about the value begin with "--set
 * a.b[0].c=VALUE". */
int dnn_config_set(struct dnn_json *file, const char *set, struct dnn_err *err);

/* A path of the configuration, resolved relative to the directory of its file; NULL for
 * NULL.  Lives as long as the configuration. */
const char *dnn_config_path(const struct dnn_config *config, const char *path);
/* The run directory: "dir", else "run-NAME" next to NAME.json. */
const char *dnn_config_dir(const struct dnn_config *config);
/* The directory of the checkpoints: "checkpoints.save", else in the output directory.
 */
const char *dnn_config_ckpt_dir(const struct dnn_config *config);
/* The network as JSON for a file of its own; the caller frees it: dnn_free(). */
int dnn_config_network(const struct dnn_config *config, char **out,
                       struct dnn_err *err);

/* The network of the configuration with another input: its extents without the batch.
 * The caller owns *out: dnn_net_free(). */
int dnn_config_net(const struct dnn_config *config, const struct dnn_list *input,
                   struct dnn_net *out, struct dnn_err *err);

/* The metrics; usual, classes and *out as for dnn_metrics_read(). */
int dnn_config_metrics(const struct dnn_config *config, const char *const *usual,
                       int64_t classes, struct dnn_metrics **out, struct dnn_err *err);

/* Whether the loss ignores a class ("ignore_index"), which then need not be one of the
 * network's. */
bool dnn_config_ignores(const struct dnn_config *config);
/* That class; -1: none. */
int64_t dnn_config_ignored(const struct dnn_config *config);

/* The transforms of training or of test data; *out is NULL if there are none.  Test
 * data has those of test_transforms, test_input_transforms and test_target_transforms
 * or, if none of them is given, those of training without the random ones.  The caller
 * owns *out. */
int dnn_config_augment(const struct dnn_config *config, bool test,
                       struct dnn_augment **out, struct dnn_err *err);

/* Apply the keys that depend on the number of ranks, batch_size_per_rank and
 * learning_rate_scaling: afterwards batch_size and the learning rate are global, and
 * these keys are off.  Call it once, before the run. */
int dnn_config_set_ranks(struct dnn_config *config, int ranks, struct dnn_err *err);

/* The objects of a configuration; do not copy it: objects point to each other. */
struct dnn_config_at {
    struct dnn_jobj file, inner;
    const struct dnn_jobj *top; /* file or inner */
    struct dnn_jobj data;
};
void dnn_config_find(const struct dnn_config *config, struct dnn_config_at *out);

/* Print the configuration with all defaults, as JSON that can be read again, except
 * that layers written in the file itself are replaced by a placeholder. */
void dnn_config_print(const struct dnn_config *config, FILE *where);

/* Print all keys as Markdown. */
void dnn_config_docs(FILE *where);

#endif
