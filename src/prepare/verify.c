/* verify.c - checks all samples of a dataset against their checksums, on all ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/progress.h"
#include "prepare/prepare.h"

#include <inttypes.h>

enum { BLOCK = 32 << 20 }; /* bytes checked at once */

/* Number of samples that a rank checks at once: complete chunks, which are blocks of
 * the file, of about BLOCK bytes; fewer if ranks would be idle. */
static int block_samples(const struct dnn_split *s, int size, int64_t *out,
                         struct dnn_err *err)
{
    int64_t chunk = s->chunk > 0 ? s->chunk : 1, bytes = 1;

    for (int k = 0; k < s->ncols; k++) {
        const struct dnn_column *c = &s->col[k].column;
        const struct dnn_tensor t = {c->name, c->type, c->shape};
        size_t one;

        DNN_TRY(dnn_tensor_bytes(&t, &one, err));
        bytes += (int64_t)(one < BLOCK ? one : BLOCK);
    }
    int64_t chunks = BLOCK / bytes / chunk, each = s->count / size / chunk;
    if (chunks > each) chunks = each;
    *out = (chunks < 1 ? 1 : chunks) * chunk;
    return 0;
}

static int verify_split(struct dnn_dataset *dataset, int split, int rank, int size,
                        int64_t before, struct dnn_progress *meter, struct dnn_err *err)
{
    const struct dnn_split *s = &dnn_dataset_info(dataset)->split[split];
    int64_t block;

    DNN_TRY(block_samples(s, size, &block, err));
    for (int64_t first = rank * block; first < s->count; first += size * block) {
        int64_t n = s->count - first < block ? s->count - first : block;

        DNN_TRY(dnn_dataset_verify(dataset, split, first, n, err));
        if (meter != NULL) { /* the other ranks are about as far */
            int64_t done = first - rank * block + size * block;

            dnn_progress_at(meter, before + (done < s->count ? done : s->count));
        }
    }
    return 0;
}

static int verify_all(struct dnn_dataset *dataset, struct dnn_comm *comm, FILE *where,
                      struct dnn_progress *meter, struct dnn_err *err)
{
    const struct dnn_dataset_info *info = dnn_dataset_info(dataset);
    int rank = comm == NULL ? 0 : dnn_comm_rank(comm);
    int size = comm == NULL ? 1 : dnn_comm_size(comm);
    int64_t before = 0;

    for (int i = 0; i < info->nsplits; i++) {
        const struct dnn_split *s = &info->split[i];
        int rc = verify_split(dataset, i, rank, size, before, meter, err);

        if (comm != NULL) rc = dnn_comm_agree(comm, rc, err);
        if (rc < 0) {
            err->everywhere = true;
            return rc;
        }
        before += s->count;
        if (rank != 0) continue;
        if (meter != NULL) dnn_progress_hide(meter);
        fprintf(where, "%s: %" PRId64 " sample%s, all checksums match\n", s->name,
                s->count, s->count == 1 ? "" : "s");
    }
    return 0;
}

int dnn_prepare_verify(const char *path, struct dnn_comm *comm, FILE *where,
                       struct dnn_err *err)
{
    struct dnn_dataset *dataset = NULL;
    struct dnn_progress *meter = NULL;
    int64_t total = 0;

    DNN_TRY(dnn_dataset_open(comm, path, 1, &dataset, err));
    const struct dnn_dataset_info *info = dnn_dataset_info(dataset);
    for (int i = 0; i < info->nsplits; i++)
        total += info->split[i].count;
    if (comm == NULL || dnn_comm_rank(comm) == 0)
        meter = dnn_progress_start("prepare", "verifying", total, "samples", NULL);
    int rc = verify_all(dataset, comm, where, meter, err);
    dnn_progress_stop(meter, rc == 0);
    dnn_dataset_close(dataset);
    return rc;
}
