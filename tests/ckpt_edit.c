/* ckpt_edit.c - change the newest checkpoint of a directory, for tests of what a run
 * says about it.
 *
 *   ckpt_edit DIR drop NAME    without this array
 *   ckpt_edit DIR real NAME    its whole numbers of 8 bytes become f64
 *   ckpt_edit DIR short NAME   with one element only
 *   ckpt_edit DIR format N     of this format
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/log.h"
#include "unit/ckpt_made.h"

struct content {
    int64_t step;
    int n;
    struct dnn_ckpt_array *array;
    char *state;
};

static int read_all(const char *path, struct content *c, struct dnn_err *err)
{
    struct dnn_ckpt_file *file;

    DNN_TRY(dnn_ckpt_file_open(path, &file, err));
    c->step = dnn_ckpt_file_step(file);
    c->n = dnn_ckpt_file_count(file);
    c->state = dnn_strdup(dnn_ckpt_file_state(file));
    c->array = dnn_alloc((size_t)c->n * sizeof *c->array);
    for (int i = 0; i < c->n; i++) {
        struct dnn_ckpt_array *a = &c->array[i];

        *a = *dnn_ckpt_file_array(file, i);
        a->name = dnn_strdup(a->name);
        a->data = dnn_alloc(made_bytes(a) + 1);
        DNN_TRY(dnn_ckpt_file_read(file, i, a->data, err));
    }
    dnn_ckpt_file_close(file);
    return 0;
}

static int change(struct content *c, const char *how, const char *name,
                  struct dnn_err *err)
{
    int i = 0;

    while (i < c->n && strcmp(c->array[i].name, name) != 0)
        i++;
    if (i == c->n) return dnn_fail(err, DNN_EUSAGE, "there is no array %s", name);
    if (strcmp(how, "drop") == 0) {
        dnn_free((char *)c->array[i].name);
        dnn_free(c->array[i].data);
        c->array[i] = c->array[--c->n];
    } else if (strcmp(how, "real") == 0 && dnn_dtype_size(c->array[i].type) == 8)
        c->array[i].type = DNN_F64;
    else if (strcmp(how, "short") == 0)
        c->array[i].shape = (struct dnn_shape){1, {1}};
    else
        return dnn_fail(err, DNN_EUSAGE, "%s: cannot be done", how);
    return 0;
}

static int edit(char **argv, struct dnn_err *err)
{
    const struct dnn_ckpt_cfg cfg = {.dir = argv[1], .keep = 1000};
    struct content c = {0};
    struct dnn_ckpts *ckpts;
    char *path;

    DNN_TRY(dnn_ckpt_find(argv[1], NULL, &path, err));
    if (strcmp(argv[2], "format") == 0) {
        DNN_TRY(dnn_file_remove_tree(path, err));
        int made = made_format(path, atoi(argv[3]), err);
        dnn_free(path);
        return made;
    }
    int rc = read_all(path, &c, err);
    dnn_free(path);
    if (rc == 0) rc = change(&c, argv[2], argv[3], err);
    if (rc == 0) rc = dnn_ckpt_open(NULL, &cfg, &ckpts, err);
    if (rc == 0) {
        rc = dnn_ckpt_save(ckpts, c.step, c.n, c.array, c.state, false, err);
        dnn_ckpt_close(ckpts, NULL);
    }
    made_free(c.n, c.array);
    dnn_free(c.state);
    return rc;
}

int main(int argc, char **argv)
{
    struct dnn_err err = {0};

    if (argc != 4) return 2;
    dnn_log_levels("warn", &err);
    if (edit(argv, &err) == 0) return 0;
    fprintf(stderr, "ckpt_edit: %s\n", err.text);
    return dnn_exit_status(err.code);
}
