/* schedule_stopping.c - early stopping, the best epoch, and error messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/mem.h"
#include "schedule/stopping.h"

#include <math.h>
#include <string.h>

static struct dnn_err err;

static int read_text(const char *text, struct dnn_json **file, struct dnn_stopping *out)
{
    DNN_TRY(dnn_json_text("train.json", text, strlen(text), file, &err));
    struct dnn_jobj top = dnn_json_top(*file), at = dnn_json_sub(&top, "s");
    return dnn_stopping_read(&at, NULL, out, &err);
}

/* The epoch after which it stops (0: never) and the reason; improved: a letter per
 * epoch. */
static void stops(const char *text, const double *value, int n, int want,
                  const char *why_want, const char *improved_want)
{
    struct dnn_stopping_state memory = {0};
    struct dnn_stopping how = {0};
    struct dnn_json *file = NULL;
    char why[256] = "", improved[64] = "";
    bool stop = false, is = false;
    int e = 0;

    if (!ok(read_text(text, &file, &how) == 0, "%s", text)) {
        printf("# %s\n", err.text);
        dnn_json_free(file);
        return;
    }
    for (; e < n && !stop; e++) {
        const struct dnn_named named[] = {
            {"loss",     100     },
            {how.metric, value[e]}
        };

        if (dnn_stopping_epoch(&how, &memory, e + 1, 2, named, &stop, &is, why, &err) <
            0)
            break;
        improved[e] = is ? 'y' : 'n';
    }
    is_int(stop ? e : 0, want, "the epoch it stops after");
    is_text(stop ? why : "", why_want, "why");
    is_text(improved, improved_want, "epochs with an improvement");
    dnn_json_free(file);
}

static void patience(void)
{
    stops("{\"s\": {\"patience\": 2}}", (double[]){5, 4, 4, 3, 3.5, 3, 2}, 7, 6,
          "val_loss has not improved for 2 epochs; the best was 3 after epoch 4",
          "yynynn");
    stops("{\"s\": {\"metric\": \"val_accuracy\", \"patience\": 2}}",
          (double[]){.5, .6, .6, .7, .6, .65, .9}, 7, 6,
          "val_accuracy has not improved for 2 epochs; the best was 0.7 after epoch 4",
          "yynynn");
    stops("{\"s\": {\"patience\": 3, \"min_delta\": 0.5}}",
          (double[]){5, 4.6, 4.4, 4.3, 4.2, 4.1}, 6, 6,
          "val_loss has not improved for 3 epochs; the best was 4.4 after epoch 3",
          "ynynnn");
    stops("{\"s\": {\"metric\": \"val_accuracy\", \"mode\": \"MIN\", \"patience\": 1}}",
          (double[]){.5, .6}, 2, 2,
          "val_accuracy has not improved for 1 epochs; the best was 0.5 after epoch 1",
          "yn");
    stops("{\"s\": {}}", (double[]){1, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 10, 0, "",
          "ynnnnnnnnn");
    stops("{\"s\": {\"patience\": 3}}", (double[]){NAN, NAN, 7, NAN, 8, 9}, 6, 6,
          "val_loss has not improved for 3 epochs; the best was 7 after epoch 3",
          "nnynnn");
    stops("{\"s\": {\"patience\": 2}}", (double[]){NAN, NAN}, 2, 2,
          "val_loss has not improved for 2 epochs; the best was nan after epoch 1",
          "nn");
}

static void targets(void)
{
    stops("{\"s\": \"val_acc,>,0.97\"}", (double[]){.9, .8, .98}, 3, 3,
          "val_acc is 0.98, target 0.97 reached", "yny");
    stops("{\"s\": \"x,<,-1e-1\"}", (double[]){.9, .8, -.2}, 3, 3,
          "x is -0.2, target -0.1 reached", "yyy");
    stops("{\"s\": {\"metric\": \"val_loss\", \"target\": 0.5}}",
          (double[]){1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, .5}, 13, 13,
          "val_loss is 0.5, target 0.5 reached", "ynnnnnnnnnnny");
    stops("{\"s\": {\"target\": 0.5, \"patience\": 2}}", (double[]){1, 2, 2, 2}, 4, 3,
          "val_loss has not improved for 2 epochs; the best was 1 after epoch 1",
          "ynn");
}

static void windows(void)
{
    /* Means of two: 4.5 and 3.5; 4 and 3; 3.5 and 3; 3 and 3. */
    stops("{\"s\": \"val_loss,~<,2\"}", (double[]){5, 4, 4, 3, 3, 3, 3}, 7, 6 + 1,
          "the mean of val_loss was 3 in the last 2 epochs, and 3 in those before",
          "yynynnn");
    stops("{\"s\": \"score,~>,1\"}", (double[]){1, 2, 3, 2.5}, 4, 4,
          "the mean of score was 2.5 in the last 1 epochs, and 3 in those before",
          "yyyn");
    stops("{\"s\": {\"window\": 2, \"min_delta\": 2}}", (double[]){5, 4, 4, 3}, 4, 4,
          "the mean of val_loss was 3.5 in the last 2 epochs, and 4.5 in those before",
          "ynnn");
}

static void refuses(const char *text, const char *want)
{
    struct dnn_stopping how;
    struct dnn_json *file = NULL;
    int rc = read_text(text, &file, &how);

    is_text(rc == DNN_ECONFIG ? err.text : "it was read", want, want);
    dnn_json_free(file);
}

#define MUST                                                                           \
    "train.json:1: s: must be \"METRIC,>,NUMBER\" (or <), or \"METRIC,~<,EPOCHS\" "    \
    "(or "                                                                             \
    "~>), not "

static void refusals(void)
{
    refuses("{\"s\": \"val_loss\"}", MUST "\"val_loss\"");
    refuses("{\"s\": \"val_loss,<\"}", MUST "\"val_loss,<\"");
    refuses("{\"s\": \",<,4\"}", MUST "\",<,4\"");
    refuses("{\"s\": \"a,=,4\"}", MUST "\"a,=,4\"");
    refuses("{\"s\": \"a,~,4\"}", MUST "\"a,~,4\"");
    refuses("{\"s\": \"a,<,four\"}", MUST "\"a,<,four\"");
    refuses("{\"s\": \"a,<,\"}", MUST "\"a,<,\"");
    refuses("{\"s\": \"a,~<,1.5\"}", MUST "\"a,~<,1.5\"");
    refuses("{\"s\": \"a,~<,17\"}",
            "train.json:1: s: \"a,~<,17\": the number of epochs "
            "must be between 1 and 16");
    refuses("{\"s\": {\"window\": 17}}",
            "train.json:1: s.window: must be between 0 and 16, not 17");
    refuses("{\"s\": {\"patience\": 0}}",
            "train.json:1: s: never stops: give a patience, a window or a target");
    refuses("{\"s\": {\"target\": \"x\"}}",
            "train.json:1: s.target: must be a number, not \"x\"");
    refuses("{\"s\": {\"pateince\": 2}}",
            "train.json:1: s.pateince: unknown key; did you mean \"patience\"?");
    refuses("{\"s\": {\"mode\": \"up\"}}",
            "train.json:1: s.mode: must be one of auto, min, max, not \"up\"");
    refuses("{\"s\": 5}", "train.json:1: s: must be an object, not 5");
}

static void metrics(void)
{
    const struct dnn_stopping how = {.metric = "dice", .patience = 1};
    const struct dnn_named named[] = {
        {"loss",    1},
        {"val_mse", 2}
    };
    struct dnn_stopping_state memory = {0};
    char why[256];
    bool stop, improved;

    is_int(dnn_stopping_epoch(&how, &memory, 1, 2, named, &stop, &improved, why, &err),
           DNN_ECONFIG, "no such metric");
    is_text(err.text,
            "early stopping: unknown metric \"dice\"; available: loss, val_mse",
            "its message");
    const struct dnn_named seen[] = {
        {"val_balanced_accuracy", 0.5},
        {"val_accuracy",          0.9}
    };
    double value = 0;
    is_int(dnn_schedule_find("who", "val_acc", 2, seen, &value, &err), 0,
           "acc is an alias of accuracy");
    ok(value == 0.9, "with its value");
    is_int(dnn_schedule_find("who", "val_categorical_accuracy", 2, seen, &value, &err),
           0, "and the name of Keras");
    ok(value == 0.9, "the value of accuracy");
    is_int(dnn_schedule_find("who", "val_categorical_cross_entropy", 1,
                             &(struct dnn_named){"val_loss", 0.25}, &value, &err),
           0, "a name of cross-entropy means the loss");
    ok(value == 0.25, "the validation loss");
    is_int(dnn_schedule_find("who", "val_cross_entropy", 1,
                             &(struct dnn_named){"loss", 0.25}, &value, &err),
           DNN_ECONFIG, "not the training loss");
    is_int(dnn_schedule_find("who", "acc", 2, seen, &value, &err), DNN_ECONFIG,
           "other names with that ending are other metrics");
    static const char *const more[] = {"accuracy", "val_Acc",   "val_dice", "IoU",
                                       "jaccard",  "precision", "recall",   "val_f1",
                                       "AUC",      "r2",        NULL};
    static const char *const less[] = {"loss",      "val_loss", "mse", "dice_loss",
                                       "iou_error", "val_mae",  NULL};
    for (int i = 0; more[i] != NULL; i++)
        ok(dnn_better_more(more[i], DNN_BETTER_AUTO), "%s: more", more[i]);
    for (int i = 0; less[i] != NULL; i++)
        ok(!dnn_better_more(less[i], DNN_BETTER_AUTO), "%s: less", less[i]);
    ok(dnn_better_more("loss", DNN_BETTER_MORE) &&
           !dnn_better_more("acc", DNN_BETTER_LESS),
       "as given by mode");
    is_int(dnn_field_check(dnn_stopping_fields, &err), 0, "the table is valid");
}

int main(void)
{
    patience();
    targets();
    windows();
    refusals();
    metrics();
    return done();
}
