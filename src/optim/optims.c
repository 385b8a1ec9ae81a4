/* optims.c - the list of update rules.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim_impl.h"

#include <assert.h>

const struct dnn_choice dnn_optim_types[] = {
    {"sgd",      DNN_UPDATE_SGD     },
    {"adam",     DNN_UPDATE_ADAM    },
    {"adamw",    DNN_UPDATE_ADAMW   },
    {"nadam",    DNN_UPDATE_NADAM   },
    {"lamb",     DNN_UPDATE_LAMB    },
    {"lars",     DNN_UPDATE_LARS    },
    {"adagrad",  DNN_UPDATE_ADAGRAD },
    {"adadelta", DNN_UPDATE_ADADELTA},
    {"rmsprop",  DNN_UPDATE_RMSPROP },
    {"hessian",  DNN_OPTIM_HESSIAN  },
    {NULL,       0                  }
};

static const struct optim_rule *const rules[] = {
    [DNN_UPDATE_SGD] = &dnn_optim_sgd,
    [DNN_UPDATE_ADAM] = &dnn_optim_adam,
    [DNN_UPDATE_ADAMW] = &dnn_optim_adamw,
    [DNN_UPDATE_NADAM] = &dnn_optim_nadam,
    [DNN_UPDATE_LAMB] = &dnn_optim_lamb,
    [DNN_UPDATE_LARS] = &dnn_optim_lars,
    [DNN_UPDATE_ADAGRAD] = &dnn_optim_adagrad,
    [DNN_UPDATE_ADADELTA] = &dnn_optim_adadelta,
    [DNN_UPDATE_RMSPROP] = &dnn_optim_rmsprop,
    [DNN_OPTIM_HESSIAN] = &dnn_optim_hessian,
};

const struct optim_rule *dnn_optim_rule(int rule)
{
    assert(rule >= 0 && rule <= DNN_OPTIM_HESSIAN);
    return rules[rule];
}

const char *dnn_optim_info(int index, const char **help,
                           const struct dnn_field **fields)
{
    int n = (int)(sizeof dnn_optim_types / sizeof dnn_optim_types[0]) - 1;

    if (index < 0 || index >= n) return NULL;
    const struct optim_rule *rule = dnn_optim_rule(dnn_optim_types[index].value);
    *help = rule->help;
    *fields = rule->fields;
    return dnn_optim_types[index].name;
}
