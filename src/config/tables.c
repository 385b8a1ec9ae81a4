/* tables.c - the sections of a job that are plain numbers and words.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config/job_impl.h"

#include "parallel/rule.h"

#include <math.h>

static const struct dnn_choice resumes[] = {
    {"false", DNN_RESUME_NO  },
    {"true",  DNN_RESUME_YES },
    {"auto",  DNN_RESUME_AUTO},
    {NULL,    0              }
};

/* clang-format off */
#define AT(f) offsetof(struct dnn_job_ckpt, f)
const struct dnn_field dnn_job_ckpt_fields[] = {
    TEXT("save", AT(save), "null",
         "directory they are written to; null: checkpoints in the run's directory"),
    REAL("interval", AT(interval), "1", 0, 1e9,
         "epochs from one to the next, also parts of one; 0: not by epochs; there is "
         "always one at the end"),
    INT("steps", AT(steps), "0", 0, 1e15, "also every so many updates; 0: not"),
    REAL("minutes", AT(minutes), "0", 0, 1e9, "also every so many minutes; 0: not"),
    TEXT("load", AT(load), "null",
         "weights to begin with, taken by name: a checkpoint, .weights.h5, .h5 or .keras"),
    INT("keep", AT(keep), "3", 1, 1e6, "how many of the last stay, besides the best"),
    TEXT("best", AT(best), "null",
         "the metric by which one is the best; null: early_stopping's, else val_loss, "
         "else loss, and no such checkpoint if interval is 0"),
    INT("best_interval", AT(best_interval), "1", 1, 1e9,
        "epochs from one that may be the best to the next"),
    WORD("resume", AT(resume), "auto", resumes,
         "go on from the newest: true (it must be there), auto (if there is one), false"),
    END,
};
#undef AT

#define AT(f) offsetof(struct dnn_job_parallel, f)
const struct dnn_field dnn_job_parallel_fields[] = {
    TEXT("rule", AT(rule), "bsp", "how ranks exchange what they learned"),
    INT("micro_batches", AT(micro_batches), "0", 0, DNN_JOB_BATCH,
        "deterministic: parts of a batch, the most ranks that can share it; 0: 8"),
    WORD("compress", AT(compress), "none", dnn_compress_choices,
         "what gradients travel as; not with deterministic"),
    BYTES("bucket_size", AT(bucket), "null",
          "gradients that are exchanged together; null: the first steps show what is best"),
    END,
};
#undef AT

#define AT(f) offsetof(struct dnn_job_telemetry, f)
const struct dnn_field dnn_job_telemetry_fields[] = {
    FLAG("csv", AT(csv), "true", "metrics.csv in the run's directory"),
    FLAG("jsonl", AT(jsonl), "false", "metrics.jsonl, one object a line"),
    FLAG("tensorboard", AT(tensorboard), "false", "event files for TensorBoard"),
    FLAG("report", AT(report), "true", "report.html at the end"),
    REAL("interval", AT(interval), "10", 0, 1e6,
         "seconds between lines, when the output is no terminal"),
    INT("steps", AT(steps), "0", 0, 1e15,
        "also a record every so many updates, in steps.csv and its kin; 0: epochs only"),
    INT("pictures", AT(pictures), "4", 0, 99,
        "evaluated samples that are drawn: input, target and prediction; 0: none"),
    END,
};
#undef AT
/* clang-format on */
