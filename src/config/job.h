/* job.h - one JSON file that says what to do.
 *
 * {"layers": "net.json"} is enough.  The keys may also stand in an object under
 * "neural_network", as rmldnn's files have it; what belongs to training itself is
 * accepted there by name.  Values that are words may be written in any case.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_CONFIG_JOB_H
#define DNN_CONFIG_JOB_H

#include "base/choice.h"
#include "base/field.h"
#include "config/net.h"
#include "op/op.h"
#include "optim/optim.h"
#include "plan/plan.h"

extern const struct dnn_choice dnn_job_recomputes[]; /* enum dnn_recompute */

struct dnn_job {
    struct dnn_json *file; /* owned: texts are in it                             */
    struct dnn_net net;    /* owned                                              */
    char *layers;          /* owned: as JSON, where the network is from          */
    struct dnn_list input; /* extents of the data without the batch; none: as the
                              network says                                       */
    int64_t batch_size, threads;
    const char *backend;  /* NULL: the fastest that is built                      */
    int64_t memory_limit; /* bytes; 0: what the system has                        */
    int recompute;        /* enum dnn_recompute                                   */
    int loss;             /* enum dnn_op_kind                                        */
    struct dnn_optim optimizer;
};

/* The keys of a job, for its manual. */
extern const struct dnn_field dnn_job_fields[];

/* Local.  Read a job and the network it names.  The caller owns *out:
 * dnn_job_free(). */
int dnn_job_read(const char *path, struct dnn_job *out, struct dnn_err *err);
void dnn_job_free(struct dnn_job *job); /* of one filled with zeros, too */

/* The job with its defaults filled in, as JSON that would be read as the same, but
 * that layers written in the job itself are only mentioned. */
void dnn_job_print(const struct dnn_job *job, FILE *where);

#endif
