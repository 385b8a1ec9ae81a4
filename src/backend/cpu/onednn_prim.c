/* onednn_prim.c - a oneDNN primitive with its memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/onednn_prim.h"

#include "base/mem.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

struct prim {
    dnnl_primitive_t main, pack;                /* pack: a reorder; NULL: not packed */
    dnnl_memory_t memory[CPU_PRIM_ARGS], plain; /* plain: NULL: not packed           */
    dnnl_exec_arg_t args[CPU_PRIM_ARGS], reorder_args[2];
    int count;
    bool gradient;
    struct cpu_packed packed;
    char text[80];
};

static const char *impl(const_dnnl_primitive_desc_t desc)
{
    const char *text = NULL;

    dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &text);
    return text == NULL ? "" : text;
}

void dnn_cpu_plan_finish(struct cpu_plan *plan)
{
    const_dnnl_memory_desc_t scratch =
        dnnl_primitive_desc_query_md(plan->desc, dnnl_query_scratchpad_md, 0);

    plan->native = dnnl_primitive_desc_query_md(
        plan->desc, plan->gradient ? dnnl_query_diff_weights_md : dnnl_query_weights_md,
        0);
    plan->packed = !dnnl_memory_desc_equal(plan->native, plan->plain);
    plan->pack = plan->packed ? dnnl_memory_desc_get_size(plan->native) : 0;
    plan->scratch = scratch == NULL ? 0 : dnnl_memory_desc_get_size(scratch);
}

bool dnn_cpu_plan_uses_im2col(const struct cpu_plan *plan)
{
    return strstr(impl(plan->desc), "gemm") != NULL;
}

struct dnn_need dnn_cpu_plan_need(const struct cpu_plan *plan)
{
    if (plan->gradient)
        return (struct dnn_need){.work =
                                     cpu_lines(plan->scratch) + cpu_lines(plan->pack)};
    return (struct dnn_need){.work = cpu_lines(plan->scratch),
                             .keep = cpu_lines(plan->pack)};
}

void dnn_cpu_plan_free(struct cpu_plan *plan)
{
    if (plan->desc != NULL) dnnl_primitive_desc_destroy(plan->desc);
    if (plan->plain != NULL) dnnl_memory_desc_destroy(plan->plain);
    *plan = (struct cpu_plan){0};
}

void dnn_cpu_prim_discard(void *state)
{
    struct prim *p = state;

    if (p == NULL) return;
    for (int i = 0; i < CPU_PRIM_ARGS; i++)
        if (p->memory[i] != NULL) dnnl_memory_destroy(p->memory[i]);
    if (p->plain != NULL) dnnl_memory_destroy(p->plain);
    if (p->main != NULL) dnnl_primitive_destroy(p->main);
    if (p->pack != NULL) dnnl_primitive_destroy(p->pack);
    dnn_free(p);
}

static int add(struct prim *p, struct dnn_dev *dev, const_dnnl_memory_desc_t desc,
               int arg, void *mem, struct dnn_err *err)
{
    assert(p->count < CPU_PRIM_ARGS);
    CALL(dnnl_memory_create(&p->memory[p->count], desc, dev->engine, mem), "memory");
    p->args[p->count] = (dnnl_exec_arg_t){arg, p->memory[p->count]};
    p->count++;
    return 0;
}

/* The reorder between plain and packed weights: packs weights, unpacks a gradient. */
static int add_pack(struct prim *p, struct dnn_dev *dev, const struct cpu_plan *plan,
                    void *plain, struct dnn_err *err)
{
    dnnl_primitive_desc_t desc;
    bool out = plan->gradient;

    CALL(dnnl_memory_create(&p->plain, plan->plain, dev->engine, plain), "memory");
    CALL(dnnl_reorder_primitive_desc_create(
             &desc, out ? plan->native : plan->plain, dev->engine,
             out ? plan->plain : plan->native, dev->engine, NULL),
         "packing weights");
    dnnl_status_t status = dnnl_primitive_create(&p->pack, desc);
    dnnl_primitive_desc_destroy(desc);
    CALL(status, "packing weights");
    p->reorder_args[0] =
        (dnnl_exec_arg_t){DNNL_ARG_FROM, out ? p->memory[0] : p->plain};
    p->reorder_args[1] = (dnnl_exec_arg_t){DNNL_ARG_TO, out ? p->plain : p->memory[0]};
    return 0;
}

static int fill(struct prim *p, struct dnn_dev *dev, const struct cpu_plan *plan,
                const struct cpu_prim_arg *args, int count, const struct cpu_call *call,
                struct dnn_err *err)
{
    char *work = call->work;
    void *native = !plan->packed    ? args[0].mem
                   : plan->gradient ? (void *)(work + cpu_lines(plan->scratch))
                                    : call->keep;

    CALL(dnnl_primitive_create(&p->main, plan->desc), "primitive");
    DNN_TRY(add(p, dev, plan->native, args[0].arg, native, err));
    for (int i = 1; i < count; i++)
        if (args[i].mem != NULL)
            DNN_TRY(add(p, dev,
                        dnnl_primitive_desc_query_md(plan->desc, dnnl_query_exec_arg_md,
                                                     args[i].arg),
                        args[i].arg, args[i].mem, err));
    if (plan->scratch > 0)
        DNN_TRY(
            add(p, dev,
                dnnl_primitive_desc_query_md(plan->desc, dnnl_query_scratchpad_md, 0),
                DNNL_ARG_SCRATCHPAD, work, err));
    if (plan->packed) DNN_TRY(add_pack(p, dev, plan, args[0].mem, err));
    return 0;
}

int dnn_cpu_prim_make(struct dnn_dev *dev, const struct cpu_plan *plan,
                      const struct cpu_prim_arg *args, int count,
                      const struct cpu_call *call, void **out, struct dnn_err *err)
{
    struct prim *p = dnn_alloc(sizeof *p);
    int rc = fill(p, dev, plan, args, count, call, err);

    if (rc < 0) {
        dnn_cpu_prim_discard(p);
        return rc;
    }
    p->gradient = plan->gradient;
    snprintf(p->text, sizeof p->text, "oneDNN %s", impl(plan->desc));
    *out = p;
    return 0;
}

int dnn_cpu_prim_run(struct dnn_dev *dev, const struct cpu_call *call, void *state,
                     struct dnn_err *err)
{
    struct prim *p = state;

    omp_set_num_threads(dev->threads);
    if (p->pack != NULL && !p->gradient && cpu_pack_needed(&p->packed, call))
        CALL(dnnl_primitive_execute(p->pack, dev->stream, 2, p->reorder_args),
             "packing weights");
    CALL(dnnl_primitive_execute(p->main, dev->stream, p->count, p->args), "running");
    if (p->pack != NULL && p->gradient)
        CALL(dnnl_primitive_execute(p->pack, dev->stream, 2, p->reorder_args),
             "unpacking weights");
    CALL(dnnl_stream_wait(dev->stream), "waiting");
    return 0;
}

const struct cpu_packed *dnn_cpu_prim_packed(const void *state)
{
    const struct prim *p = state;

    return p->pack == NULL || p->gradient ? NULL : &p->packed;
}

const char *dnn_cpu_prim_describe(const void *state)
{
    return ((const struct prim *)state)->text;
}
