/* metrics.c - the list of metrics.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "metric/metric_impl.h"

#include <string.h>

const struct dnn_metric_kind *const dnn_metric_kinds[] = {
    &dnn_metric_accuracy,
    &dnn_metric_top_k,
    &dnn_metric_dice,
    &dnn_metric_iou,
    &dnn_metric_precision,
    &dnn_metric_recall,
    &dnn_metric_f1,
    &dnn_metric_confusion,
    &dnn_metric_auc,
    &dnn_metric_mse,
    &dnn_metric_rmse,
    &dnn_metric_mae,
    &dnn_metric_r2,
    &dnn_metric_rel_l2,
    &dnn_metric_categorical_hinge,
    &dnn_metric_categorical_mse,
    &dnn_metric_categorical_mae,
    &dnn_metric_kl_divergence,
    NULL,
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

/* Names that Keras, PyTorch and PyDTNN have for the same. */
static const struct {
    const char *alias, *name;
} aliases[] = {
    {"acc",                         "accuracy"     },
    {"categorical_accuracy",        "accuracy"     },
    {"sparse_categorical_accuracy", "accuracy"     },
    {"binary_accuracy",             "accuracy"     },
    {"f1_score",                    "f1"           },
    {"jaccard",                     "iou"          },
    {"mean_iou",                    "iou"          },
    {"confusion_matrix",            "confusion"    },
    {"binary_confusion_matrix",     "confusion"    },
    {"multiclass_confusion_matrix", "confusion"    },
    {"mean_squared_error",          "mse"          },
    {"regression_mse",              "mse"          },
    {"root_mean_squared_error",     "rmse"         },
    {"mean_absolute_error",         "mae"          },
    {"regression_mae",              "mae"          },
    {"r2_score",                    "r2"           },
    {"kl_divergence_metric",        "kl_divergence"},
    {"kullback_leibler_divergence", "kl_divergence"},
};

const char *dnn_metric_alias(int index, const char **name)
{
    enum { COUNT = sizeof aliases / sizeof *aliases };

    if (index < 0 || index >= COUNT) return NULL;
    *name = aliases[index].name;
    return aliases[index].alias;
}

const char *dnn_metric_canonical(const char *name)
{
    const char *alias, *known;

    for (int i = 0; (alias = dnn_metric_alias(i, &known)) != NULL; i++)
        if (strcmp(alias, name) == 0) return known;
    return name;
}
