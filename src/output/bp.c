/* bp.c - BP5 files, written at the end from scratch: ADIOS2 writes rows, not boxes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "output/output_impl.h"

#include "base/file.h"
#include "bp/bp.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { PIECE = 32 << 20 }; /* bytes that a rank has in memory at a time */

struct writing {
    struct dnn_output *out;
    struct dnn_bp *bp;
    int64_t piece;    /* number of the next piece                                    */
    int64_t buffered; /* bytes put since the last flush, on all ranks                */
    void *memory;     /* owned                                                       */
    size_t bytes;
    int rc; /* of this rank; it goes on until the next agreement                     */
};

static void shape_of(const struct dnn_output *out, int part, int64_t sample,
                     struct output_layout *l)
{
    dnn_output_layout(out, part, sample, l);
    if (l->shape.ndim == 0) l->shape = (struct dnn_shape){.ndim = 1, .dim = {1}};
}

static int put_rows(struct writing *w, int part, int64_t sample, int var, int64_t first,
                    int64_t rows, size_t row, struct dnn_err *err)
{
    struct dnn_output *out = w->out;
    size_t n = (size_t)rows * row;
    char *path = dnn_output_work(out, "scratch");

    if (n > w->bytes) {
        dnn_free(w->memory);
        w->memory = dnn_alloc(w->bytes = n);
    }
    int rc = dnn_output_read(
        out->scratch, path, w->memory, n,
        out->offset[sample * out->nparts + part] + first * (int64_t)row, err);
    if (rc == 0) rc = dnn_bp_put(w->bp, var, first, rows, w->memory, err);
    dnn_free(path);
    return rc;
}

/* The pieces go to the ranks in turn; all ranks flush at the same pieces. */
static int put_array(struct writing *w, int part, int64_t sample, int var,
                     struct dnn_err *err)
{
    struct output_layout l;

    shape_of(w->out, part, sample, &l);
    int64_t rows = l.shape.dim[0], row = l.bytes / rows;
    int64_t each = row < PIECE ? PIECE / row : 1;
    for (int64_t first = 0; first < rows; first += each) {
        int64_t n = rows - first < each ? rows - first : each;

        if (w->rc == 0 && w->piece % w->out->size == w->out->rank)
            w->rc = put_rows(w, part, sample, var, first, n, (size_t)row, err);
        w->piece++;
        w->buffered += n * row;
        if (w->buffered < (int64_t)PIECE * w->out->size) continue;
        w->buffered = 0;
        DNN_TRY(dnn_comm_agree(w->out->comm, w->rc, err));
        DNN_TRY(dnn_bp_flush(w->bp, err));
    }
    return 0;
}

static int put_all(struct writing *w, struct dnn_err *err)
{
    const struct dnn_output *out = w->out;
    int *var = dnn_alloc((size_t)(out->o.nsamples * out->nparts + 1) * sizeof *var);
    int rc = 0;

    for (int64_t i = 0; i < out->o.nsamples && rc == 0; i++)
        for (int p = 0; p < out->nparts && rc == 0; p++) {
            struct output_layout l;

            if (out->part[p].format != DNN_OUTPUT_BP5) continue;
            shape_of(out, p, i, &l);
            rc = dnn_bp_define(w->bp, out->final[i * out->nparts + p], l.type, &l.shape,
                               false, &var[i * out->nparts + p], err);
        }
    rc = dnn_comm_agree(out->comm, rc, err);
    for (int64_t i = 0; i < out->o.nsamples && rc == 0; i++)
        for (int p = 0; p < out->nparts && rc == 0; p++)
            if (out->part[p].format == DNN_OUTPUT_BP5)
                rc = put_array(w, p, i, var[i * out->nparts + p], err);
    dnn_free(var);
    return rc < 0 ? rc : dnn_comm_agree(out->comm, w->rc, err);
}

/* On rank 0: replace a directory; the old one goes into the temporary directory. */
static int replace(const struct dnn_output *out, const char *temp, const char *final,
                   struct dnn_err *err)
{
    char *old = dnn_output_work(out, "old.bp");
    int rc = rename(temp, final);

    if (rc != 0 && (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR)) {
        rc = renameat2(AT_FDCWD, temp, AT_FDCWD, final, RENAME_EXCHANGE);
        if (rc != 0 && (errno == EINVAL || errno == ENOSYS)) {
            rc = dnn_file_remove_tree(old, err);
            if (rc == 0) rc = rename(final, old);
            if (rc == 0) rc = rename(temp, final);
        }
    }
    if (rc != 0)
        rc = dnn_fail(err, DNN_EIO, "%s: cannot be replaced: %s", final,
                      strerror(errno));
    dnn_free(old);
    return rc;
}

static int write_file(struct dnn_output *out, const char *temp, struct dnn_err *err)
{
    struct writing w = {.out = out};
    int rc = out->rank == 0 ? dnn_file_remove_tree(temp, err) : 0;

    DNN_TRY(dnn_comm_agree(out->comm, rc, err));
    DNN_TRY(dnn_bp_create(out->comm, temp, NULL, &w.bp, err));
    rc = put_all(&w, err);
    dnn_free(w.memory);
    if (rc == 0) return dnn_bp_finish(w.bp, err);
    dnn_bp_close(w.bp);
    return rc;
}

int dnn_output_complete_bp(struct dnn_output *out, struct dnn_err *err)
{
    char *temp = dnn_output_work(out, "outputs.bp");
    char *final = dnn_output_shared(out, -1, ".bp");
    int rc = write_file(out, temp, err);

    if (rc == 0) {
        if (out->rank == 0) rc = replace(out, temp, final, err);
        rc = dnn_comm_agree(out->comm, rc, err);
    }
    dnn_free(temp);
    dnn_free(final);
    return rc;
}
