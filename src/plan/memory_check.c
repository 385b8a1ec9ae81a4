/* memory_check.c - whether a plan fits, and what to change if it does not.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "plan/plan_impl.h"

#include "base/text.h"

#include <inttypes.h>

struct parts {
    size_t fixed;  /* weights, gradients, slots, states, constants */
    size_t moving; /* data and temps: they grow with the batch    */
};

static struct parts parts_of(const struct dnn_plan *plan)
{
    struct parts p = {0};

    p.moving = plan->bytes[DNN_BLOCK_DATA] + plan->bytes[DNN_BLOCK_TEMPS];
    p.fixed = dnn_plan_bytes(plan) - p.moving;
    return p;
}

/* The largest batch, halved again and again, with which it fits; 0: none. */
static int64_t smaller_batch(const struct dnn_plan_memory *fit, struct parts p,
                             size_t *bytes)
{
    for (int64_t b = fit->batch / 2; b > 0; b /= 2) {
        /* The last bits do not matter: it is an estimate. */
        double need = (double)(p.fixed + fit->beside) +
                      (double)p.moving * (double)b / (double)fit->batch;
        *bytes = (size_t)need;
        if (*bytes <= fit->limit) return b;
    }
    return 0;
}

/* What recomputing all it can would take; 0 if it is in use or cannot be known. */
static size_t recomputed(const struct dnn_plan_memory *fit, struct parts *p)
{
    struct dnn_recompute_opts opts = {.how = DNN_RECOMPUTE_ALL};
    struct dnn_prog *prog = NULL;
    struct dnn_plan *plan = NULL;
    size_t bytes = 0;

    if (fit->plain == NULL || fit->opts == NULL) return 0;
    opts.plan = *fit->opts;
    if (dnn_plan_recompute(fit->plain, &opts, &prog, NULL, NULL) == 0 &&
        dnn_plan_make(prog, fit->opts, &plan, NULL) == 0) {
        bytes = dnn_plan_bytes(plan) + fit->beside;
        *p = parts_of(plan);
    }
    dnn_plan_free(plan);
    dnn_prog_free(prog);
    return bytes;
}

static void advise(const struct dnn_plan_memory *fit, struct dnn_buf *text)
{
    struct parts p = parts_of(fit->plan), q = {0};
    size_t now = dnn_plan_bytes(fit->plan) + fit->beside, bytes = 0;
    size_t again = recomputed(fit, &q);
    int64_t batch = smaller_batch(fit, p, &bytes);
    bool any = false;
    char size[32];

    if (again > 0 && again <= fit->limit) {
        dnn_buf_add(text, "; set \"recompute\": true (%s)",
                    dnn_text_bytes(size, sizeof size, (double)again));
        any = true;
    }
    if (batch > 0) {
        dnn_buf_add(text, "%s a batch of %" PRId64 " instead of %" PRId64 " (about %s)",
                    any ? " or" : ";", batch, fit->batch,
                    dnn_text_bytes(size, sizeof size, (double)bytes));
        return;
    }
    if (any) return;
    if (again > 0 && again < now) {
        batch = smaller_batch(fit, q, &bytes);
        if (batch > 0)
            dnn_buf_add(text,
                        "; set \"recompute\": true and a batch of %" PRId64
                        " instead of %" PRId64 " (about %s)",
                        batch, fit->batch,
                        dnn_text_bytes(size, sizeof size, (double)bytes));
        else
            dnn_buf_add(text,
                        "; even with \"recompute\": true it is %s: make the input or "
                        "the network smaller",
                        dnn_text_bytes(size, sizeof size, (double)again));
        return;
    }
    dnn_buf_add(text, "; make the input or the network smaller");
}

int dnn_plan_check_memory(const struct dnn_plan_memory *fit, struct dnn_err *err)
{
    const struct dnn_plan *plan = fit->plan;
    size_t all = dnn_plan_bytes(plan) + fit->beside;
    struct parts p = parts_of(plan);
    char need[32], moving[32], fixed[32], beside[32], limit[32];
    struct dnn_buf text = {0};

    if (all <= fit->limit) return 0;
    dnn_buf_add(&text,
                "%s needs %s (activations %s, weights%s %s, workspace %s), %s are "
                "allowed",
                plan->prog->training ? "the training step" : "inference",
                dnn_text_bytes(need, sizeof need, (double)all),
                dnn_text_bytes(moving, sizeof moving, (double)p.moving),
                plan->prog->training ? " and optimizer" : "",
                dnn_text_bytes(fixed, sizeof fixed, (double)p.fixed),
                dnn_text_bytes(beside, sizeof beside, (double)fit->beside),
                dnn_text_bytes(limit, sizeof limit, (double)fit->limit));
    advise(fit, &text);
    int rc = dnn_fail(err, DNN_ENOMEM, "%s", text.text);
    dnn_buf_free(&text);
    return rc;
}
