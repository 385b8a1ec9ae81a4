/* tables.c - the sections of a configuration that hold plain values.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config/run_config_impl.h"

#include "output/output.h"
#include "parallel/rule.h"
#include "window/window.h"

#include <math.h>

static const struct dnn_choice resumes[] = {
    {"false", DNN_RESUME_NO  },
    {"true",  DNN_RESUME_YES },
    {"auto",  DNN_RESUME_AUTO},
    {NULL,    0              }
};

/* clang-format off */
#define AT(f) offsetof(struct dnn_config_ckpt, f)
const struct dnn_field dnn_config_ckpt_fields[] = {
    TEXT("save", AT(save), "null",
         "directory to write checkpoints to; null: checkpoints in the run directory"),
    REAL("interval", AT(interval), "1", 0, 1e9,
         "epochs between checkpoints, fractions allowed; 0: not by epochs; one is always "
         "written at the end"),
    INT("steps", AT(steps), "0", 0, 1e15, "also write one every so many steps; 0: no"),
    REAL("minutes", AT(minutes), "0", 0, 1e9, "also write one every so many minutes; 0: no"),
    TEXT("load", AT(load), "null",
         "initial weights, matched by name: a checkpoint, .dnn, .weights.h5, .h5 or .keras"),
    INT("keep", AT(keep), "3", 0, 1e6,
        "number of recent checkpoints to keep, besides the best; 0: all, which is the "
        "default for keys under neural_network"),
    TEXT("best", AT(best), "null",
         "the metric that selects the best checkpoint; null: that of early_stopping, else "
         "val_loss, else loss, and no best checkpoint if interval is 0"),
    INT("best_interval", AT(best_interval), "1", 1, 1e9,
        "epochs between checks for a new best checkpoint"),
    WORD("resume", AT(resume), "auto", resumes,
         "resume from the newest checkpoint: true (it must exist), auto (if there is one), "
         "false"),
    END,
};
#undef AT

#define AT(f) offsetof(struct dnn_config_parallel, f)
const struct dnn_field dnn_config_parallel_fields[] = {
    TEXT("rule", AT(rule), "bsp", "how ranks exchange gradients; see below"),
    INT("micro_batches", AT(micro_batches), "0", 0, DNN_CONFIG_BATCH,
        "deterministic: number of micro-batches a batch is cut into, the most ranks that "
        "can share it; 0: 8"),
    WORD("compress", AT(compress), "none", dnn_compress_choices,
         "compression of exchanged gradients; not with deterministic"),
    BYTES("bucket_size", AT(bucket), "null",
          "gradient bucket size; null: autotuned in the first steps"),
    END,
};
#undef AT

static const struct dnn_choice activations[] = {
    {"auto",    DNN_ACTIVATION_AUTO   },
    {"none",    DNN_ACTIVATION_NONE   },
    {"softmax", DNN_ACTIVATION_SOFTMAX},
    {"sigmoid", DNN_ACTIVATION_SIGMOID},
    {NULL,      0                     }
};
static const struct dnn_choice tilings[] = {
    {"auto",  DNN_TILES_AUTO  },
    {"true",  DNN_TILES_ALWAYS},
    {"whole", DNN_TILES_WHOLE },
    {NULL,    0               }
};
static const struct dnn_choice blends[] = {
    {"constant", DNN_WINDOW_CONSTANT},
    {"gaussian", DNN_WINDOW_GAUSSIAN},
    {NULL,       0                  }
};
static const struct dnn_sub one_or_more = {.min = 1, .max = DNN_WINDOW_DIMS, .single = true};
static const struct dnn_sub some_axes = {.max = DNN_WINDOW_DIMS, .single = true};
static const struct dnn_sub words = {.single = true};

#define AT(f) offsetof(struct dnn_config_infer, f)
const struct dnn_field dnn_config_infer_fields[] = {
    {"formats", DNN_F_ENUMS, AT(formats), "[]", 0, 0, dnn_output_format_choices,
     "files to write: hdf5, bp5, npy, nifti, tiff, png, overlay, csv, json; empty: hdf5 "
     "if test_output_path or hdf5_outfile is set and for configurations of rmldnn, else csv for "
     "classifiers, npy for others", &words},
    {"contents", DNN_F_ENUMS, AT(contents), "[]", 0, 0, dnn_output_content_choices,
     "what is written of each output: values, classes (the channel with the largest value); "
     "empty: values", &words},
    WORD("activation", AT(activation), "auto", activations,
         "applied to outputs before they are written: none, softmax, sigmoid; auto: the one "
         "that the loss applies, or none for configurations of rmldnn"),
    WORD("tiles", AT(tiles), "auto", tilings,
         "samples larger than the network's input: auto (cut into tiles that overlap), true "
         "(all samples), whole (change the network's input to the size of the sample)"),
    {"tile", DNN_F_INTS, AT(tile), "[]", 1, 1e9, NULL,
     "size of a tile (patch), such as [64, 64, 64]; empty: that of the network's input", &some_axes},
    {"overlap", DNN_F_REALS, AT(overlap), "[0.25]", 0, 0.99, NULL,
     "overlap of neighbouring tiles, as a fraction of the tile, for all axes or for each",
     &one_or_more},
    WORD("blend", AT(blend), "gaussian", blends,
         "weights of overlapping tiles: gaussian (less at the edges), constant"),
    REAL("sigma", AT(sigma), "0.125", 0.001, 10, "of the Gaussian, as a fraction of the tile"),
    {"flips", DNN_F_INTS, AT(flips), "[]", 0, DNN_WINDOW_DIMS - 1, NULL,
     "test-time augmentation: average over flips of these spatial axes and all their "
     "combinations", &some_axes},
    INT("batch", AT(batch), "1", 1, 1024, "tiles computed together"),
    BYTES("memory", AT(memory), "null",
          "memory limit for accumulating overlapping tiles, of all outputs together; null: no limit"),
    FLAG("names", AT(names), "false", "csv: add a column with the names of the samples"),
    FLAG("gzip", AT(gzip), "false", "nifti: write .nii.gz"),
    INT("top_k", AT(top_k), "0", 0, 1e6, "json: write only so many classes; 0: all"),
    FLAG("surfaces", AT(surfaces), "true",
         "evaluation of masks: surface distances (Hausdorff 95 %, mean)"),
    INT("bins", AT(bins), "15", 1, 1000, "evaluation: bins of the calibration"),
    INT("worst", AT(worst), "8", 0, 100, "evaluation: worst samples to report; 0: none"),
    INT("background", AT(background), "-1", -1, 65535,
        "evaluation of masks: class that is not part of averages; -1: none"),
    END,
};
#undef AT

#define AT(f) offsetof(struct dnn_config_telemetry, f)
const struct dnn_field dnn_config_telemetry_fields[] = {
    FLAG("csv", AT(csv), "true", "write metrics.csv"),
    FLAG("jsonl", AT(jsonl), "false", "write metrics.jsonl, one JSON object per line"),
    FLAG("tensorboard", AT(tensorboard), "false", "write event files for TensorBoard"),
    FLAG("report", AT(report), "true", "write report.html, or test.html of an evaluation"),
    REAL("interval", AT(interval), "10", 0, 1e6,
         "seconds between progress lines if the output is not a terminal"),
    INT("steps", AT(steps), "0", 0, 1e15,
        "also record every so many steps, in steps.csv and the like; 0: epochs only"),
    INT("pictures", AT(pictures), "4", 0, 99,
        "evaluated samples to draw: input, target and prediction; 0: none"),
    END,
};
#undef AT
/* clang-format on */
