/* stopping.h - early stopping, and the best epoch.
 *
 * {"metric": "val_loss", "patience": 10, "min_delta": 0, "mode": "auto"} (PyDTNN's
 * early_stopping), or a text as NNLO's --early-stopping "val_loss,~<,4" and
 * --target-metric "val_acc,>,0.97".  The state is part of the run's state.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_SCHEDULE_STOPPING_H
#define DNN_SCHEDULE_STOPPING_H

#include "schedule/schedule.h"

enum { DNN_STOPPING_WINDOW = 16 };

struct dnn_stopping {
    const char *metric; /* "val_loss"; "loss" is the training's                      */
    int mode;           /* enum dnn_better                                           */
    int64_t patience;   /* epochs without improvement; 0: stop only at target        */
    int64_t window;     /* stop when the mean of as many epochs is no better than that
                           of as many before; 0: no means; at most
                           DNN_STOPPING_WINDOW                                       */
    double min_delta;   /* minimum change that is an improvement                     */
    bool has_target;
    double target; /* stop when the metric reaches it     */
    bool restore;  /* restore the best weights at the end */
};
enum dnn_better { DNN_BETTER_AUTO, DNN_BETTER_LESS, DNN_BETTER_MORE };
extern const struct dnn_choice dnn_better_choices[]; /* auto, min, max */
/* All keys but target, which dnn_stopping_read() reads. */
extern const struct dnn_field dnn_stopping_fields[];

/* Whether higher is better.  AUTO: higher for accuracies, Dice, IoU, Jaccard,
 * precision, recall, F1, AUC, R2, unless the name contains "loss" or "error"; lower for
 * others. */
bool dnn_better_more(const char *metric, int mode);

struct dnn_stopping_state {
    double best;
    int64_t best_epoch, bad, seen;
    double recent[2 * DNN_STOPPING_WINDOW]; /* of the last epochs: ring buffer */
};

/* Local.  From an object, or a text as in NNLO.  Strings are in arena; NULL: they live
 * as long as the file. */
int dnn_stopping_read(const struct dnn_jobj *obj, struct dnn_arena *arena,
                      struct dnn_stopping *out, struct dnn_err *err);

/* Call after each epoch.  Sets *stop, with the reason in why (for the log), and
 * *improved if the epoch is the best so far.  A metric that does not exist is an error
 * that lists the available ones. */
int dnn_stopping_epoch(const struct dnn_stopping *rule,
                       struct dnn_stopping_state *state, int64_t epoch, int n,
                       const struct dnn_named *metric, bool *stop, bool *improved,
                       char why[256], struct dnn_err *err);

#endif
