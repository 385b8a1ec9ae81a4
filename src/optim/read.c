/* read.c - reads an optimizer from JSON, in either dialect, and prints it.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim_impl.h"

#include "base/mem.h"

#include <assert.h>
#include <string.h>

static const struct dnn_choice names[] = {
    {"sgd",  DNN_UPDATE_SGD },
    {"adam", DNN_UPDATE_ADAM},
    {NULL,   0              }
};

/* clang-format off */
const struct dnn_field dnn_optim_fields[] = {
    {"name", DNN_F_ENUM, AT(rule), "adam", 0, 0, names, "update rule", NULL},
    REAL("learning_rate", AT(rate), "0", 1e6,
         "learning rate; 0: the default, 0.01 (sgd) or 0.001 (adam)"),
    REAL("momentum", AT(momentum), "0", 1, "sgd: momentum"),
    FLAG("nesterov", AT(nesterov), "sgd: Nesterov momentum"),
    REAL("beta_1", AT(beta1), "0.9", 1, "adam: decay of the first moment"),
    REAL("beta_2", AT(beta2), "0.999", 1, "adam: decay of the second moment"),
    REAL("epsilon", AT(epsilon), "1e-7", 1, "adam: added to the denominator"),
    SCHEDULER, END,
};
/* clang-format on */

static double keras_rate(int rule)
{
    return rule == DNN_UPDATE_SGD ? 0.01 : 0.001;
}

/* ---- PyTorch's dialect ---- */

static int fill(const struct dnn_jobj *obj, int type, struct dnn_optim *out,
                struct dnn_err *err)
{
    const struct optim_rule *rule = dnn_optim_rule(type);
    struct dnn_jobj rate = dnn_json_sub(obj, "learning_rate");

    *out = (struct dnn_optim){.torch = true};
    DNN_TRY(dnn_field_fill(obj, rule->fields, NULL, out, err));
    if (type != DNN_OPTIM_HESSIAN && out->rate <= 0)
        return dnn_json_fail(&rate, err, "must be above 0, not 0");
    return rule->check == NULL ? 0 : rule->check(obj, out, err);
}

static int read_type(const struct dnn_jobj *obj, const struct dnn_jobj *type,
                     struct dnn_optim *out, struct dnn_err *err)
{
    struct dnn_jobj name = dnn_json_sub(obj, "name");
    struct dnn_err why;
    const char *word;
    int rule;

    if (name.val != NULL)
        return dnn_json_fail(
            &name, err,
            "is a key of Keras, \"type\" one of PyTorch; give only one "
            "of them");
    DNN_TRY(dnn_json_string(type, &word, err));
    if (dnn_choice_find(dnn_optim_types, word, &rule, &why) < 0)
        return dnn_json_fail(type, err, "%s", why.text);
    return fill(obj, rule, out, err);
}

/* The defaults of a rule: those of an object with only "type". */
static struct dnn_optim type_defaults(int rule)
{
    const char *name = dnn_choice_name(dnn_optim_types, rule);
    char *text = dnn_format("{\"type\": \"%s\"}", name);
    struct dnn_optim out = {0};
    struct dnn_json *file;

    if (dnn_json_text("defaults", text, strlen(text), &file, NULL) == 0) {
        struct dnn_jobj top = dnn_json_top(file);
        int rc = fill(&top, rule, &out, NULL);

        assert(rc == 0);
        (void)rc;
        dnn_json_free(file);
    }
    dnn_free(text);
    return out;
}

/* ---- Keras's ---- */

static int read_name(const struct dnn_jobj *obj, struct dnn_optim *out,
                     struct dnn_err *err)
{
    struct dnn_jobj name = dnn_json_sub(obj, "name");
    const char *word;
    int rule;

    if (dnn_json_string(&name, &word, NULL) == 0 &&
        dnn_choice_find(names, word, &rule, NULL) < 0 &&
        dnn_choice_find(dnn_optim_types, word, &rule, NULL) == 0)
        return dnn_json_fail(
            &name, err,
            "must be one of sgd, adam, not \"%s\"; for %s use \"type\" "
            "and the keys of PyTorch",
            word, dnn_choice_name(dnn_optim_types, rule));
    *out = (struct dnn_optim){0};
    DNN_TRY(dnn_field_fill(obj, dnn_optim_fields, NULL, out, err));
    if (out->rate == 0) out->rate = keras_rate(out->rule);
    return 0;
}

/* ---- public ---- */

struct dnn_optim dnn_optim_defaults(enum dnn_update rule)
{
    if (dnn_choice_name(names, (int)rule) == NULL) return type_defaults((int)rule);
    return (struct dnn_optim){.rule = (int)rule,
                              .rate = keras_rate((int)rule),
                              .beta1 = 0.9,
                              .beta2 = 0.999,
                              .epsilon = 1e-7};
}

int dnn_optim_read(const struct dnn_jobj *obj, struct dnn_optim *out,
                   struct dnn_err *err)
{
    struct dnn_jobj type = dnn_json_sub(obj, "type");
    int rule = DNN_UPDATE_ADAM;
    struct dnn_err why;
    const char *word;

    if (type.val != NULL) return read_type(obj, &type, out, err);
    if (dnn_json_type(obj) != DNN_J_ABSENT && dnn_json_type(obj) != DNN_J_TEXT)
        return read_name(obj, out, err);
    if (dnn_json_type(obj) == DNN_J_TEXT) {
        DNN_TRY(dnn_json_string(obj, &word, err));
        if (dnn_choice_find(dnn_optim_types, word, &rule, &why) < 0)
            return dnn_json_fail(obj, err, "%s", why.text);
    }
    *out = rule == DNN_OPTIM_HESSIAN ? type_defaults(rule)
                                     : dnn_optim_defaults((enum dnn_update)rule);
    return 0;
}

void dnn_optim_print(const struct dnn_optim *optim, FILE *where)
{
    dnn_field_print(optim->torch ? dnn_optim_rule(optim->rule)->fields
                                 : dnn_optim_fields,
                    optim, where);
}
