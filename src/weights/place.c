/* place.c - the group of a layer in files of Keras 3, by class and order.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "weights/weights_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool upper(char c)
{
    return isupper((unsigned char)c) != 0;
}

static bool lower(char c)
{
    return islower((unsigned char)c) != 0;
}

/* "BatchNormalization" is batch_normalization, "Conv2DTranspose" conv2d_transpose,
 * "PReLU" p_re_lu: a word begins at a capital letter before or after a small letter. */
static void snake(const char *class_name, struct dnn_buf *out)
{
    size_t len = strlen(class_name);

    for (size_t i = 0; i < len; i++) {
        char c = class_name[i];

        if (i > 0 && upper(c) && (lower(class_name[i + 1]) || lower(class_name[i - 1])))
            dnn_buf_add(out, "_");
        dnn_buf_add(out, "%c", tolower((unsigned char)c));
    }
}

/* The name of a layer's group in that of its model; equal names are numbered. */
struct entry {
    int model;
    const char *word;
    int at;
};

static int by_word(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->word, y->word);

    if (x->model != y->model) return x->model < y->model ? -1 : 1;
    return order != 0 ? order : x->at - y->at;
}

static const char *keep(struct dnn_arena *arena, char *text)
{
    const char *copy = dnn_arena_strdup(arena, text);

    dnn_free(text);
    return copy;
}

const char **dnn_weights_class_paths(const struct dnn_weights_order *order,
                                     struct dnn_arena *arena)
{
    size_t n = (size_t)order->n;
    struct entry *all = dnn_alloc((n + 1) * sizeof *all);
    const char **out = dnn_arena_alloc(arena, (n + 1) * sizeof *out);
    int count = 0;

    for (size_t i = 0; i < n; i++) {
        struct dnn_buf word = {0};

        snake(order->class_name[i], &word);
        all[i] = (struct entry){
            order->model[i],
            dnn_arena_strdup(arena, word.text == NULL ? "" : word.text), (int)i};
        dnn_buf_free(&word);
    }
    qsort(all, n, sizeof *all, by_word);
    for (size_t i = 0; i < n; i++) {
        const struct entry *e = &all[i];

        count = i > 0 && e->model == e[-1].model && strcmp(e->word, e[-1].word) == 0
                    ? count + 1
                    : 0;
        out[e->at] =
            count == 0 ? e->word : keep(arena, dnn_format("%s_%d", e->word, count));
    }
    for (size_t i = 0; i < n; i++) /* models come before their layers */
        if (order->model[i] != DNN_NONE)
            out[i] = keep(arena, dnn_format("%s/%s", out[order->model[i]], out[i]));
    dnn_free(all);
    return out;
}
