/* memory_check.c - check whether a plan fits in memory, and advise what to change.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "plan/plan_impl.h"

#include "base/text.h"

#include <inttypes.h>

struct memory {
    size_t fixed;  /* weights, gradients, slots, states, constants */
    size_t scaled; /* data and temps: they grow with the batch */
};

/* Without shared blocks. */
static struct memory memory_of(const struct dnn_plan_memory *fit,
                               const struct dnn_plan *plan)
{
    struct memory p = {0};

    for (int b = 0; b < DNN_BLOCKS; b++) {
        if (fit->shared[b]) continue;
        if (b == DNN_BLOCK_DATA || b == DNN_BLOCK_TEMPS)
            p.scaled += plan->bytes[b];
        else
            p.fixed += plan->bytes[b];
    }
    return p;
}

static size_t total(const struct dnn_plan_memory *fit, struct memory p)
{
    return p.fixed + p.scaled + fit->workspace + fit->others;
}

/* The largest batch that fits, found by halving; 0: none. */
static int64_t smaller_batch(const struct dnn_plan_memory *fit, struct memory p,
                             size_t *bytes)
{
    for (int64_t b = fit->batch / 2; b > 0; b /= 2) {
        /* An estimate: rounding does not matter. */
        double need = (double)(p.fixed + fit->workspace) +
                      (double)p.scaled * (double)b / (double)fit->batch;
        *bytes = (size_t)need;
        if (*bytes <= fit->limit) return b;
    }
    return 0;
}

/* The bytes with "recompute": true; 0 if it is set already or cannot be computed. */
static size_t recomputed(const struct dnn_plan_memory *fit, struct memory *p)
{
    struct dnn_recompute_opts opts = {.how = DNN_RECOMPUTE_ALL};
    struct dnn_prog *prog = NULL;
    struct dnn_plan *plan = NULL;
    size_t bytes = 0;

    if (fit->plain == NULL || fit->opts == NULL) return 0;
    opts.plan = *fit->opts;
    if (dnn_plan_recompute(fit->plain, &opts, &prog, NULL, NULL) == 0 &&
        dnn_plan_make(prog, fit->opts, &plan, NULL) == 0) {
        *p = memory_of(fit, plan);
        bytes = total(fit, *p);
    }
    dnn_plan_free(plan);
    dnn_prog_free(prog);
    return bytes;
}

static void advise(const struct dnn_plan_memory *fit, struct dnn_buf *text)
{
    /* The other models would change, too: without numbers. */
    if (fit->others > 0) {
        dnn_buf_add(text, "; set %sa smaller batch size",
                    fit->plain != NULL ? "\"recompute\": true or " : "");
        return;
    }
    struct memory p = memory_of(fit, fit->plan), q = {0};
    size_t now = total(fit, p), bytes = 0;
    size_t lowest = recomputed(fit, &q);
    int64_t batch = smaller_batch(fit, p, &bytes);
    bool any = false;
    char size[32];

    if (lowest > 0 && lowest <= fit->limit) {
        dnn_buf_add(text, "; set \"recompute\": true (%s)",
                    dnn_text_bytes(size, sizeof size, (double)lowest));
        any = true;
    }
    if (batch > 0) {
        dnn_buf_add(text,
                    "%s a batch size of %" PRId64 " instead of %" PRId64 " (about %s)",
                    any ? " or" : "; set", batch, fit->batch,
                    dnn_text_bytes(size, sizeof size, (double)bytes));
        return;
    }
    if (any) return;
    if (lowest > 0 && lowest < now) {
        batch = smaller_batch(fit, q, &bytes);
        if (batch > 0)
            dnn_buf_add(text,
                        "; set \"recompute\": true and a batch size of %" PRId64
                        " instead of %" PRId64 " (about %s)",
                        batch, fit->batch,
                        dnn_text_bytes(size, sizeof size, (double)bytes));
        else
            dnn_buf_add(text,
                        "; even with \"recompute\": true it needs %s: reduce the "
                        "input or the network",
                        dnn_text_bytes(size, sizeof size, (double)lowest));
        return;
    }
    dnn_buf_add(text, "; reduce the input or the network");
}

int dnn_plan_check_memory(const struct dnn_plan_memory *fit, struct dnn_err *err)
{
    const struct dnn_plan *plan = fit->plan;
    struct memory p = memory_of(fit, plan);
    size_t all = total(fit, p);
    char need[32], scaled[32], fixed[32], workspace[32], others[64] = "", limit[32];
    struct dnn_buf text = {0};

    if (all <= fit->limit) return 0;
    if (fit->others > 0)
        snprintf(others, sizeof others, ", other models %s",
                 dnn_text_bytes(limit, sizeof limit, (double)fit->others));
    dnn_buf_add(&text,
                "%s needs %s (activations %s, weights%s %s, workspace %s%s), but only "
                "%s is allowed",
                plan->prog->training ? "the training step" : "inference",
                dnn_text_bytes(need, sizeof need, (double)all),
                dnn_text_bytes(scaled, sizeof scaled, (double)p.scaled),
                plan->prog->training ? " and optimizer" : "",
                dnn_text_bytes(fixed, sizeof fixed, (double)p.fixed),
                dnn_text_bytes(workspace, sizeof workspace, (double)fit->workspace),
                others, dnn_text_bytes(limit, sizeof limit, (double)fit->limit));
    advise(fit, &text);
    int rc = dnn_fail(err, DNN_ENOMEM, "%s", text.text);
    dnn_buf_free(&text);
    return rc;
}
