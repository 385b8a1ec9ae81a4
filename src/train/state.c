/* state.c - the list of arrays that a checkpoint stores.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/state_impl.h"

#include "base/mem.h"
#include "engine/load.h"

void dnn_train_state_add(struct train_state *state, const char *name,
                         enum dnn_dtype type, struct dnn_shape shape, void *data)
{
    state->array =
        dnn_grow(state->array, &state->cap, (size_t)state->n + 1, sizeof *state->array);
    state->array[state->n++] =
        (struct dnn_ckpt_array){dnn_strdup(name), type, shape, data};
}

void dnn_train_state_fields(struct train_state *state, const char *group, int n,
                            const struct train_field field[])
{
    for (int i = 0; i < n; i++) {
        const struct train_field *f = &field[i];
        const struct dnn_shape shape = {f->n > 0, {f->n}};
        char *name = dnn_format("%s/%s", group, f->name);

        dnn_train_state_add(state, name, f->type, shape, f->data);
        dnn_free(name);
    }
}

void dnn_train_state_model(struct train_state *state, const struct dnn_model *m,
                           float *ema)
{
    for (int v = 0; v < m->prog->nvalues; v++) {
        const struct dnn_value *x = &m->prog->value[v];
        const struct dnn_spot *s = &m->plan->spot[v];

        if (x->role != DNN_WEIGHT && x->role != DNN_STATE && x->role != DNN_SLOT)
            continue;
        char *name = dnn_load_name(x);
        char *block = dnn_exec_block(m->exec, s->block);
        dnn_train_state_add(state, name, x->is.dtype, x->is.shape, block + s->offset);
        dnn_free(name);
        if (ema == NULL || x->role != DNN_WEIGHT || x->grad == DNN_NONE) continue;
        name = dnn_format("%s/%s" DNN_LOAD_EMA, x->layer == NULL ? "" : x->layer,
                          x->is.name);
        dnn_train_state_add(state, name, x->is.dtype, x->is.shape,
                            (char *)ema + s->offset);
        dnn_free(name);
    }
    state->nmodel = state->n;
}

void dnn_train_state_free(struct train_state *state)
{
    for (int i = 0; i < state->n; i++)
        dnn_free((void *)(uintptr_t)state->array[i].name);
    dnn_free(state->array);
}
