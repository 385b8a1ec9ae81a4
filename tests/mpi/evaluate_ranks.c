/* evaluate_ranks.c - an evaluation on several ranks: the same bits as on one.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/draw.h"
#include "base/mem.h"
#include "evaluate/evaluate.h"
#include "ranks.h"

#include <stdlib.h>

enum { SAMPLES = 7, Z = 9, Y = 20, X = 15, CLASSES = 3, POINTS = Z * Y * X };

struct data {
    float output[SAMPLES][POINTS][CLASSES], values[SAMPLES][POINTS][CLASSES];
    int32_t labels[SAMPLES][POINTS];
};

static void make(struct data *d)
{
    for (int s = 0; s < SAMPLES; s++) {
        struct dnn_draw draw = dnn_draw_make(1, 2, 3, (uint64_t)s);

        for (int i = 0; i < POINTS; i++) {
            const int near = abs(i % X - X / 2) + abs(i / X % Y - 8) < 3 + s;

            d->labels[s][i] = near + (i / X / Y > 4 && near);
            for (int c = 0; c < CLASSES; c++) {
                d->values[s][i][c] = (float)(10 + dnn_draw_normal(&draw));
                d->output[s][i][c] =
                    (float)dnn_draw_normal(&draw) + 3 * (d->labels[s][i] == c);
            }
        }
    }
}

static struct dnn_evaluate_cfg cfg_of(enum dnn_evaluate_task task)
{
    return (struct dnn_evaluate_cfg){.task = task,
                                     .classes = CLASSES,
                                     .channels = CLASSES,
                                     .ignore = -1,
                                     .background = 0,
                                     .surfaces = true,
                                     .ndim = 3,
                                     .logits = true,
                                     .bins = 10,
                                     .worst = 3};
}

/* Planes `first` to `first` + n - 1 of a sample; one label. */
static int add(struct dnn_evaluation *e, enum dnn_evaluate_task task,
               const struct data *d, int64_t s, int64_t first, int64_t n,
               struct dnn_err *err)
{
    char name[16];
    struct dnn_evaluate_part part = {
        .sample = s,
        .name = name,
        .full = {Z,     Y,   X  },
        .start = {first, 0,   0  },
        .extent = {n,     Y,   X  },
        .spacing = {1.5,   0.7, 0.9},
        .output = d->output[s][first * Y * X],
        .labels = &d->labels[s][first * Y * X],
        .values = d->values[s][first * Y * X]
    };

    snprintf(name, sizeof name, "s%d", (int)s);
    if (task == DNN_EVALUATE_LABELS) {
        part.sample = s * Z + first;
        for (int64_t z = 0; z < n; z++, part.sample++) {
            DNN_TRY(dnn_evaluate_add(e, &part, err));
            part.labels += Y * X;
            part.output += Y * X * CLASSES;
        }
        return 0;
    }
    return dnn_evaluate_add(e, &part, err);
}

static void text_of(struct dnn_evaluation *e, struct dnn_comm *comm, int rc,
                    struct dnn_buf *out, struct dnn_err *err)
{
    rc = dnn_comm_agree(comm, rc, err);
    if (rc == 0) rc = dnn_evaluate_combine(e, comm, err);
    if (rc == 0)
        dnn_evaluate_json(e, out);
    else
        dnn_buf_add(out, "%s", err->text);
    dnn_evaluate_close(e);
}

/* Whole samples on one rank. */
static void on_one(struct dnn_comm *self, enum dnn_evaluate_task task,
                   const struct data *d, struct dnn_buf *out)
{
    struct dnn_evaluate_cfg cfg = cfg_of(task);
    struct dnn_evaluation *e = NULL;
    struct dnn_err err = {0};
    int rc = dnn_evaluate_open(&cfg, &e, &err);

    for (int64_t s = 0; s < SAMPLES && rc == 0; s++)
        rc = add(e, task, d, s, 0, Z, &err);
    text_of(e, self, rc, out, &err);
}

/* Save what was added, and load it into an evaluation that has other parts. */
static int move(struct dnn_evaluation *from, struct dnn_evaluation *to,
                struct dnn_err *err)
{
    struct dnn_buf state = {0};

    dnn_evaluate_save(from, &state);
    int rc = dnn_evaluate_load(to, state.text, state.len, err);
    dnn_buf_free(&state);
    return rc;
}

/* Slabs of `planes` planes, dealt to the first `ranks` ranks; odd turns in descending
 * order.  resumed: only a third of the slabs is added directly, the others are from two
 * states that were saved. */
static void on_ranks(struct dnn_comm *comm, enum dnn_evaluate_task task, int ranks,
                     int64_t planes, bool resumed, const struct data *d,
                     struct dnn_buf *out)
{
    struct dnn_evaluate_cfg cfg = cfg_of(task);
    struct dnn_evaluation *turn[3] = {NULL, NULL, NULL};
    struct dnn_err err = {0};
    int rc = 0, turns = resumed ? 3 : 1;
    const int64_t slabs = SAMPLES * (Z / planes);

    for (int t = 0; t < turns && rc == 0; t++)
        rc = dnn_evaluate_open(&cfg, &turn[t], &err);
    for (int64_t i = 0; i < slabs && rc == 0; i++) {
        const int64_t k = planes > 1 ? slabs - 1 - i : i;

        if (k % ranks != dnn_comm_rank(comm)) continue;
        rc = add(turn[i / ranks % turns], task, d, k / (Z / planes),
                 k % (Z / planes) * planes, planes, &err);
    }
    for (int t = 1; t < turns; t++) {
        if (rc == 0) rc = move(turn[t], turn[0], &err);
        dnn_evaluate_close(turn[t]);
    }
    text_of(turn[0], comm, rc, out, &err);
}

static void compare(struct dnn_comm *comm, struct dnn_comm *self, const struct data *d,
                    enum dnn_evaluate_task task, const char *name)
{
    static const int64_t planes[] = {1, 3, Z};
    struct dnn_buf want = {0};

    on_one(self, task, d, &want);
    all_ok(comm, strstr(want.text, "\"worst\": [\n") != NULL, "%s on one rank", name);
    for (int ranks = 1; ranks <= dnn_comm_size(comm); ranks++)
        for (int i = 0; i < 6; i++) {
            struct dnn_buf got = {0};

            on_ranks(comm, task, ranks, planes[i % 3], i > 2, d, &got);
            all_ok(comm, strcmp(got.text, want.text) == 0,
                   "%s in slabs of %d planes on %d ranks%s: the same bits", name,
                   (int)planes[i % 3], ranks, i > 2 ? ", resumed" : "");
            dnn_buf_free(&got);
        }
    dnn_buf_free(&want);
}

/* Parts that are missing or added twice are found, and all ranks have the message. */
static void refusals(struct dnn_comm *comm, const struct data *d)
{
    struct dnn_evaluate_cfg cfg = cfg_of(DNN_EVALUATE_MASKS);
    struct dnn_evaluation *e = NULL;
    struct dnn_err err = {0};
    struct dnn_buf text = {0};
    int rc = dnn_evaluate_open(&cfg, &e, &err);

    if (rc == 0) rc = add(e, DNN_EVALUATE_MASKS, d, 2, 0, 6, &err);
    text_of(e, comm, rc, &text, &err);
    all_ok(comm,
           dnn_comm_size(comm) == 1 ||
               strstr(text.text, "sample \"s2\" (2): was added more than once, or its "
                                 "boxes overlap") != NULL,
           "a box that all ranks have is refused");
    dnn_buf_free(&text);
    rc = dnn_evaluate_open(&cfg, &e, &err);
    if (rc == 0 && dnn_comm_rank(comm) == dnn_comm_size(comm) - 1)
        rc = add(e, DNN_EVALUATE_MASKS, d, 2, 0, 3, &err);
    text_of(e, comm, rc, &text, &err);
    all_ok(comm,
           strstr(text.text, "sample \"s2\" (2): only 900 of its 2700 points were "
                             "evaluated") != NULL,
           "an incomplete sample is refused");
    dnn_buf_free(&text);
}

/* A state that is cut or of another evaluation is refused. */
static void damage(struct dnn_comm *comm, const struct data *d)
{
    struct dnn_evaluate_cfg cfg = cfg_of(DNN_EVALUATE_MASKS), other = cfg;
    struct dnn_evaluation *e = NULL, *empty = NULL, *values = NULL;
    struct dnn_err err = {0};
    struct dnn_buf state = {0};
    int bad = 0, rc = dnn_evaluate_open(&cfg, &e, &err);

    other.task = DNN_EVALUATE_VALUES;
    if (rc == 0) rc = dnn_evaluate_open(&cfg, &empty, &err);
    if (rc == 0) rc = dnn_evaluate_open(&other, &values, &err);
    if (rc == 0) rc = add(e, DNN_EVALUATE_MASKS, d, 0, 0, 2, &err);
    if (rc == 0) rc = add(e, DNN_EVALUATE_MASKS, d, 1, 0, Z, &err);
    if (rc == 0) dnn_evaluate_save(e, &state);
    for (size_t len = 0; len < state.len && rc == 0; len++)
        bad += dnn_evaluate_load(empty, state.text, len, &err) != DNN_EDATA;
    all_ok(comm, rc == 0 && state.len > 0 && bad == 0, "states that are cut");
    all_ok(comm,
           rc == 0 &&
               dnn_evaluate_load(values, state.text, state.len, &err) == DNN_EDATA,
           "the state of another evaluation");
    all_ok(comm, rc == 0 && dnn_evaluate_load(empty, state.text, state.len, &err) == 0,
           "nothing was added then");
    dnn_buf_free(&state);
    dnn_evaluate_close(e);
    dnn_evaluate_close(empty);
    dnn_evaluate_close(values);
}

/* Ranks that disagree about a sample are found before its maps are assembled. */
static void disagreement(struct dnn_comm *comm, const struct data *d)
{
    struct dnn_evaluate_cfg cfg = cfg_of(DNN_EVALUATE_MASKS);
    const int rank = dnn_comm_rank(comm);
    struct dnn_evaluate_part part = {
        .sample = 0,
        .name = "scan",
        .full = {rank == 0 ? 2 : 3, Y, X},
        .start = {rank == 0 ? 0 : 2, 0, 0},
        .extent = {1,                 Y, X},
        .output = d->output[0][0],
        .labels = d->labels[0]
    };
    struct dnn_evaluation *e = NULL;
    struct dnn_err err = {0};
    struct dnn_buf text = {0};
    int rc = dnn_evaluate_open(&cfg, &e, &err);

    if (rc == 0 && rank < 2) rc = dnn_evaluate_add(e, &part, &err);
    text_of(e, comm, rc, &text, &err);
    all_ok(comm,
           dnn_comm_size(comm) == 1 ||
               strstr(text.text, "sample \"scan\" (0): its boxes disagree about its "
                                 "extents") != NULL,
           "different extents are refused");
    dnn_buf_free(&text);
}

int main(void)
{
    struct dnn_comm *comm = NULL, *self = NULL;
    struct dnn_comm_cfg alone = {.kind = DNN_COMM_SELF};
    struct data *d = dnn_alloc(sizeof *d);
    struct dnn_err err = {0};

    if (dnn_comm_open(NULL, &comm, &err) < 0 ||
        dnn_comm_open(&alone, &self, &err) < 0) {
        printf("Bail out! %s\n", err.text);
        return 99;
    }
    make(d);
    compare(comm, self, d, DNN_EVALUATE_LABELS, "labels");
    compare(comm, self, d, DNN_EVALUATE_MASKS, "masks");
    compare(comm, self, d, DNN_EVALUATE_VALUES, "values");
    refusals(comm, d);
    disagreement(comm, d);
    damage(comm, d);
    dnn_free(d);
    dnn_comm_close(self);
    return all_done(comm);
}
