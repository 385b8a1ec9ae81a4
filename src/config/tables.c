/* tables.c - the sections of a configuration that hold plain values.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config/run_config_impl.h"

#include "parallel/rule.h"

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
         "directory to write checkpoints to; null: checkpoints in the output directory"),
    REAL("interval", AT(interval), "1", 0, 1e9,
         "epochs between checkpoints, fractions allowed; 0: not by epochs; one is always "
         "written at the end"),
    INT("steps", AT(steps), "0", 0, 1e15, "also write one every so many steps; 0: no"),
    REAL("minutes", AT(minutes), "0", 0, 1e9, "also write one every so many minutes; 0: no"),
    TEXT("load", AT(load), "null",
         "initial weights, matched by name: a checkpoint, .weights.h5, .h5 or .keras"),
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

#define AT(f) offsetof(struct dnn_config_telemetry, f)
const struct dnn_field dnn_config_telemetry_fields[] = {
    FLAG("csv", AT(csv), "true", "write metrics.csv"),
    FLAG("jsonl", AT(jsonl), "false", "write metrics.jsonl, one JSON object per line"),
    FLAG("tensorboard", AT(tensorboard), "false", "write event files for TensorBoard"),
    FLAG("report", AT(report), "true", "write report.html at the end"),
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
