/* metrics.c - the list of metrics.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "metric/metric_impl.h"

const struct dnn_metric_kind *const dnn_metric_kinds[] = {
    &dnn_metric_accuracy, &dnn_metric_top_k,     &dnn_metric_dice,
    &dnn_metric_iou,      &dnn_metric_precision, &dnn_metric_recall,
    &dnn_metric_f1,       &dnn_metric_confusion, &dnn_metric_auc,
    &dnn_metric_mse,      &dnn_metric_rmse,      &dnn_metric_mae,
    &dnn_metric_r2,       &dnn_metric_rel_l2,    NULL,
};

const struct dnn_choice dnn_metric_scores[] = {
    {"auto",    DNN_SCORES_AUTO   },
    {"classes", DNN_SCORES_CLASSES},
    {"binary",  DNN_SCORES_BINARY },
    {NULL,      0                 }
};

const char *dnn_metric_info(int index, const char **help,
                            const struct dnn_field **fields)
{
    if (index < 0) return NULL;
    for (int k = 0; dnn_metric_kinds[k] != NULL; k++)
        if (k == index) {
            *help = dnn_metric_kinds[k]->help;
            *fields = dnn_metric_kinds[k]->fields;
            return dnn_metric_kinds[k]->name;
        }
    return NULL;
}
