/* load.c - load weights from a checkpoint, a model file or a Keras file into a network.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "engine/load.h"
#include "engine/model_impl.h"

#include "base/log.h"
#include "base/mem.h"
#include "ckpt/ckpt.h"
#include "package/package.h"
#include "sample/sample.h"
#include "weights/weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BLOCK = 64 << 20 }; /* bytes of one broadcast */

/* ---- find the file ---- */

static bool is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Whether a directory is a BP file, perhaps damaged. */
static bool is_bp(const char *path)
{
    size_t len = strlen(path);
    char *inside = dnn_format("%s/md.idx", path);
    struct stat st;
    bool found =
        stat(inside, &st) == 0 || (len > 3 && strcmp(path + len - 3, ".bp") == 0);

    dnn_free(inside);
    return found;
}

/* Find the checkpoint of "DIR/best" or "DIR/1234", if no file has this name. */
static int find_named(const char *path, char **out, struct dnn_err *err)
{
    const char *slash = strrchr(path, '/'), *last = slash == NULL ? path : slash + 1;
    char *dir = slash == NULL
                    ? dnn_strdup(".")
                    : dnn_strndup(path, slash == path ? 1 : (size_t)(slash - path));
    bool named = strcmp(last, "best") == 0 ||
                 (last[0] != '\0' && last[strspn(last, "0123456789")] == '\0');
    int rc = 0;

    if (named && is_dir(dir)) {
        char *below = dnn_format("%s/checkpoints", dir);

        rc = dnn_ckpt_find(is_dir(below) ? below : dir, last, out, err);
        dnn_free(below);
    } else
        rc =
            dnn_fail(err, DNN_EIO,
                     "%s: cannot be read: %s; checkpoints.load must be a checkpoint, a "
                     "directory of checkpoints, or a .dnn, .weights.h5, .h5 or .keras "
                     "file",
                     path, strerror(errno));
    dnn_free(dir);
    return rc;
}

/* Find the file to open (*out, dnn_free()), and whether it is a checkpoint. */
static int find(const char *path, char **out, bool *ckpt, struct dnn_err *err)
{
    struct stat st;

    *ckpt = true;
    if (stat(path, &st) < 0) {
        DNN_TRY(dnn_load_rmldnn(path, out, err));
        return *out != NULL ? 0 : find_named(path, out, err);
    }
    *ckpt = S_ISDIR(st.st_mode);
    if (!*ckpt || is_bp(path)) {
        *out = dnn_strdup(path);
        return 0;
    }
    char *below = dnn_format("%s/checkpoints", path);
    int rc = dnn_ckpt_find(is_dir(below) ? below : path, NULL, out, err);
    dnn_free(below);
    return rc;
}

/* ---- match the arrays of a checkpoint ---- */

char *dnn_load_name(const struct dnn_value *value)
{
    return dnn_format("%s/%s", value->layer == NULL ? "" : value->layer,
                      value->is.name);
}

struct matcher {
    const struct dnn_ckpt_file *file;
    struct dnn_weights_match *out;
    int *array;
    const char **missing, **skipped, **refused;
};

static int find_array(const struct dnn_ckpt_file *file, const char *name, size_t len,
                      const char *end)
{
    for (int i = 0; i < dnn_ckpt_file_count(file); i++) {
        const char *is = dnn_ckpt_file_array(file, i)->name;

        if (strncmp(is, name, len) == 0 && strcmp(is + len, end) == 0) return i;
    }
    return DNN_NONE;
}

static const char *move_text(const struct matcher *m, char *text)
{
    const char *copy = dnn_arena_strdup(m->out->arena, text);

    dnn_free(text);
    return copy;
}

/* Find the array of the file for a value. */
static void match_value(struct matcher *m, const struct dnn_prog *prog, int v)
{
    const struct dnn_tensor *is = &prog->value[v].is;
    struct dnn_weights_match *out = m->out;
    char x[DNN_SHAPE_TEXT], y[DNN_SHAPE_TEXT];
    char *name = dnn_load_name(&prog->value[v]);
    size_t len = strlen(name);
    int i = find_array(m->file, name, len, DNN_LOAD_EMA);

    if (i < 0) i = find_array(m->file, name, len, "");
    dnn_shape_text(x, sizeof x, &is->shape);
    out->wanted++;
    if (i < 0) {
        m->missing[out->nmissing++] = move_text(m, dnn_format("%s %s", name, x));
    } else {
        const struct dnn_ckpt_array *a = dnn_ckpt_file_array(m->file, i);

        if (dnn_shape_equal(&a->shape, &is->shape)) {
            m->array[v] = i;
            out->filled++;
        } else
            m->refused[out->nrefused++] = move_text(
                m, dnn_format("%s: %s is %s in the file, %s here", out->path, name,
                              dnn_shape_text(y, sizeof y, &a->shape), x));
    }
    dnn_free(name);
}

/* Whether an array is a weight, in contrast to an optimizer slot ("conv/kernel.m") or
 * the progress of the run ("run/..."). */
static bool is_weight(const struct dnn_ckpt_file *file, const char *name)
{
    const char *dot = strrchr(name, '.');

    return strncmp(name, "run/", 4) != 0 &&
           (dot == NULL || find_array(file, name, (size_t)(dot - name), "") < 0);
}

static bool is_in_network(const struct dnn_prog *prog, const char *name)
{
    bool found = false;

    for (int v = 0; v < prog->nvalues && !found; v++) {
        if (prog->value[v].role != DNN_WEIGHT && prog->value[v].role != DNN_STATE)
            continue;
        char *is = dnn_load_name(&prog->value[v]);
        found = strcmp(is, name) == 0;
        dnn_free(is);
    }
    return found;
}

/* As dnn_weights_match(), but for a checkpoint. */
static struct dnn_weights_match *match_ckpt(const char *path,
                                            const struct dnn_ckpt_file *file,
                                            const struct dnn_prog *prog)
{
    struct dnn_arena *arena = dnn_arena_make();
    struct dnn_weights_match *out = dnn_arena_alloc(arena, sizeof *out);
    size_t values = (size_t)prog->nvalues + 1;
    int n = dnn_ckpt_file_count(file);
    struct matcher m = {
        .file = file,
        .out = out,
        .array = dnn_arena_alloc(arena, values * sizeof *m.array),
        .missing = dnn_arena_alloc(arena, values * sizeof *m.missing),
        .refused = dnn_arena_alloc(arena, values * sizeof *m.refused),
        .skipped = dnn_arena_alloc(arena, ((size_t)n + 1) * sizeof *m.skipped)};
    char x[DNN_SHAPE_TEXT];

    out->arena = arena;
    out->path = dnn_arena_strdup(arena, path);
    out->nvalues = prog->nvalues;
    out->array = m.array;
    out->missing = m.missing;
    out->refused = m.refused;
    out->skipped = m.skipped;
    for (int v = 0; v < prog->nvalues; v++) {
        enum dnn_role role = prog->value[v].role;

        m.array[v] = DNN_NONE;
        if (role == DNN_WEIGHT || role == DNN_STATE) match_value(&m, prog, v);
    }
    for (int i = 0; i < n; i++) {
        const struct dnn_ckpt_array *a = dnn_ckpt_file_array(file, i);

        if (is_weight(file, a->name) && !is_in_network(prog, a->name))
            m.skipped[out->nskipped++] =
                move_text(&m, dnn_format("%s %s", a->name,
                                         dnn_shape_text(x, sizeof x, &a->shape)));
    }
    return out;
}

/* ---- copy into the network ---- */

/* An open file; one of the two is NULL. */
struct weight_file {
    struct dnn_ckpt_file *ckpt;
    struct dnn_weights *keras;
};

static int read_array(const struct weight_file *file, int i, enum dnn_dtype type,
                      int64_t count, void *to, struct dnn_err *err)
{
    if (file->keras != NULL) return dnn_weights_get(file->keras, i, type, to, err);
    const struct dnn_ckpt_array *a = dnn_ckpt_file_array(file->ckpt, i);
    if (a->type == type) return dnn_ckpt_file_read(file->ckpt, i, to, err);
    void *stored = malloc((size_t)count * dnn_dtype_size(a->type) + 1);
    if (stored == NULL)
        return dnn_fail(err, DNN_ENOMEM, "%s: %lld elements do not fit into memory",
                        a->name, (long long)count);
    int rc = dnn_ckpt_file_read(file->ckpt, i, stored, err);
    if (rc == 0) rc = dnn_convert(stored, a->type, to, type, count, false, err);
    free(stored);
    return rc;
}

static int fill(struct dnn_model *model, const struct weight_file *file,
                const struct dnn_weights_match *match, struct dnn_err *err)
{
    int rc = 0;

    for (int v = 0; rc == 0 && v < match->nvalues; v++) {
        const struct dnn_tensor *is = &model->prog->value[v].is;
        int64_t count;
        size_t bytes;

        if (match->array[v] < 0) continue;
        DNN_TRY(dnn_shape_count(&is->shape, &count, err));
        DNN_TRY(dnn_tensor_bytes(is, &bytes, err));
        void *host = malloc(bytes + 1);
        if (host == NULL)
            return dnn_fail(err, DNN_ENOMEM,
                            "%s: an array of %zu bytes does not fit into memory",
                            match->path, bytes);
        rc = read_array(file, match->array[v], is->dtype, count, host, err);
        if (rc == 0) rc = dnn_exec_put(model->exec, v, host, err);
        free(host);
    }
    return rc;
}

/* Log which weights match; as warnings if shapes differ. */
static void log_match(const struct dnn_weights_match *match)
{
    enum dnn_level level = match->nrefused > 0 ? DNN_WARN : DNN_INFO;
    char *text = NULL, *state = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    if (to == NULL) return;
    dnn_weights_print(match, to);
    fclose(to);
    for (char *l = strtok_r(text, "\n", &state); l != NULL;
         l = strtok_r(NULL, "\n", &state))
        dnn_log(level, "weights", "%s", l);
    free(text);
}

/* Fail unless each weight of the network is in the file with its shape. */
static int check_complete(const struct dnn_model *model,
                          const struct dnn_weights_match *match, struct dnn_err *err)
{
    if (match->nrefused > 0)
        return dnn_fail(err, DNN_EDATA,
                        "%.300s; %d of %d weights differ like this: the network must "
                        "be the one that was trained",
                        match->refused[0], match->nrefused, match->wanted);
    if (match->nmissing > 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: has %d of the %d weights of network '%.80s'; the first "
                        "that is missing is %.200s: the network must be the one that "
                        "was trained",
                        match->path, match->filled, match->wanted, model->graph->name,
                        match->missing[0]);
    return 0;
}

static int load_matched(struct dnn_model *model, const struct weight_file *file,
                        const struct dnn_weights_match *match, bool complete,
                        struct dnn_err *err)
{
    if (complete && match->filled > 0) DNN_TRY(check_complete(model, match, err));
    if (match->filled > 0 || !complete) log_match(match);
    if (match->filled > 0) return fill(model, file, match, err);
    if (match->nrefused > 0)
        return dnn_fail(
            err, DNN_EDATA,
            "%.300s; no other weight fits network '%.80s', either; shapes must be "
            "the same",
            match->refused[0], model->graph->name);
    return dnn_fail(
        err, DNN_EDATA,
        "%s: no weight matches network '%.80s': found %.200s, expected %.200s; "
        "names of layers must be the same",
        match->path, model->graph->name,
        match->nskipped > 0 ? match->skipped[0] : "none",
        match->nmissing > 0 ? match->missing[0] : "none");
}

static int load_ckpt(struct dnn_model *model, const char *path, bool complete,
                     struct dnn_err *err)
{
    struct weight_file file = {0};

    DNN_TRY(dnn_ckpt_file_open(path, &file.ckpt, err));
    struct dnn_weights_match *match = match_ckpt(path, file.ckpt, model->prog);
    int rc = load_matched(model, &file, match, complete, err);
    dnn_weights_match_free(match);
    dnn_ckpt_file_close(file.ckpt);
    return rc;
}

static int load_keras(struct dnn_model *model, const char *path, bool complete,
                      struct dnn_err *err)
{
    const struct dnn_graph *g = model->graph;
    const struct dnn_weights_order order = {g->nlayers, g->layer_name, g->layer_class,
                                            g->layer_model};
    struct dnn_weights_match *match = NULL;
    struct weight_file file = {0};

    DNN_TRY(dnn_package_open_weights(path, &file.keras, err));
    int rc = dnn_weights_match(file.keras, model->prog, &order, &match, err);
    if (rc == 0) rc = load_matched(model, &file, match, complete, err);
    dnn_weights_match_free(match);
    dnn_weights_close(file.keras);
    return rc;
}

/* ---- for all ranks ---- */

static int broadcast(struct dnn_model *model, struct dnn_comm *comm,
                     enum dnn_block block, struct dnn_err *err)
{
    char *mem = dnn_exec_block(model->exec, block);
    size_t bytes = model->plan->bytes[block];

    for (size_t at = 0; mem != NULL && at < bytes; at += BLOCK) {
        size_t n = bytes - at < BLOCK ? bytes - at : BLOCK;

        DNN_TRY(dnn_comm_bcast(comm, "initial weights", mem + at, n, 0, err));
    }
    return 0;
}

int dnn_load_weights(struct dnn_model *model, struct dnn_comm *comm, const char *path,
                     bool complete, struct dnn_err *err)
{
    int rc = 0;

    if (dnn_comm_rank(comm) == 0) {
        char *file = NULL;
        bool ckpt;

        rc = find(path, &file, &ckpt, err);
        if (rc == 0)
            rc = ckpt ? load_ckpt(model, file, complete, err)
                      : load_keras(model, file, complete, err);
        dnn_free(file);
    }
    DNN_TRY(dnn_comm_agree(comm, rc, err));
    if (dnn_comm_size(comm) > 1) {
        DNN_TRY(broadcast(model, comm, DNN_BLOCK_WEIGHTS, err));
        DNN_TRY(broadcast(model, comm, DNN_BLOCK_STATES, err));
    }
    dnn_exec_changed(model->exec);
    return 0;
}
