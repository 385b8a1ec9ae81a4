/* feed_select.c - which samples of a split are selected, and their checksums.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "data/feed_impl.h"

#include "base/mem.h"
#include "data/dataset_impl.h"

#include <inttypes.h>
#include <stdlib.h>

int64_t dnn_feed_number(const struct dnn_feed *feed, int64_t index)
{
    return feed->selected == NULL ? index : feed->selected[index];
}

static int check_fold(const struct dnn_feed *feed, int64_t fold, int64_t *which,
                      struct dnn_err *err)
{
    int64_t folds = feed->split == NULL ? 0 : feed->split->folds;

    if (folds == 0)
        return dnn_fail(
            err, DNN_ECONFIG,
            "%s: fold %" PRId64
            " requested, but the dataset has no folds; prepare it with \"folds\"",
            feed->about, fold);
    *which = (fold < 0 ? -(fold + 1) : fold - 1);
    if (*which < folds) return 0;
    return dnn_fail(err, DNN_ECONFIG,
                    "%s: the dataset has %" PRId64 " folds: give 1 to %" PRId64
                    " (all but that one) or -1 to -%" PRId64
                    " (only that one), not %" PRId64,
                    feed->about, folds, folds, folds, fold);
}

/* Local: every rank reads the folds of all samples, 4 bytes each. */
static int select_fold(struct dnn_feed *feed, struct dnn_err *err)
{
    int64_t which = 0, all = feed->split == NULL ? 0 : feed->split->count, n = 0;

    DNN_TRY(check_fold(feed, feed->cfg.fold, &which, err));
    int32_t *fold = dnn_alloc(((size_t)all + 1) * sizeof *fold);
    int rc = dnn_dataset_metadata(feed->dataset, feed->split_number, 0, all, NULL, fold,
                                  NULL, err);
    feed->selected = dnn_alloc(((size_t)all + 1) * sizeof *feed->selected);
    for (int64_t i = 0; i < all && rc == 0; i++)
        if ((fold[i] == which) == (feed->cfg.fold < 0)) feed->selected[n++] = i;
    dnn_free(fold);
    feed->count = n;
    return rc;
}

int dnn_feed_select(struct dnn_feed *feed, struct dnn_err *err)
{
    feed->count = feed->split != NULL ? feed->split->count : feed->cfg.source->count;
    if (feed->cfg.fold != 0) DNN_TRY(select_fold(feed, err));
    if (feed->count > 0) return 0;
    return dnn_fail(err, DNN_EDATA, "%s: no samples%s", feed->about,
                    feed->cfg.fold != 0 ? " left by this choice of fold" : "");
}

int dnn_feed_sums(struct dnn_feed *feed, struct dnn_err *err)
{
    struct dnn_dataset *set = feed->dataset;

    if (!feed->cfg.verify) return 0;
    if (set == NULL)
        return dnn_fail(err, DNN_ECONFIG, "%s: only prepared datasets have checksums",
                        feed->about);
    for (int k = 0; k < feed->ncols; k++) {
        int var = set->sum[feed->split_number][k];
        struct dnn_feed_col *col = &feed->col[k];

        if (var < 0)
            return dnn_fail(err, DNN_EDATA, "%s: %s has no checksums", feed->about,
                            feed->in[k].name);
        col->sum = dnn_alloc((size_t)feed->split->count * sizeof *col->sum);
        DNN_TRY(dnn_bp_request(set->bp, var, 0, feed->split->count, col->sum, err));
    }
    return dnn_bp_fetch(set->bp, err);
}
