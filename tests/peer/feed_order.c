/* feed_order.c - print the samples of each batch, for torch_curve.py.
 *
 * feed_order DATASET SPLIT BATCH_SIZE SEED SHUFFLE BATCHES: a line per batch with the
 * numbers of its samples, as dnn-train reads them with these settings.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "data/feed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int list(struct dnn_feed *feed, int64_t batches, struct dnn_err *err)
{
    DNN_TRY(dnn_feed_start(feed, 0, 0, err));
    for (int64_t b = 0; b < batches; b++) {
        const struct dnn_batch *batch;

        DNN_TRY(dnn_feed_next(feed, &batch, NULL, err));
        for (int64_t i = 0; i < batch->n; i++)
            printf("%s%" PRId64, i == 0 ? "" : " ", batch->sample[i]);
        printf("\n");
    }
    dnn_feed_stop(feed);
    return 0;
}

int main(int argc, char **argv)
{
    const struct dnn_comm_cfg alone = {.kind = DNN_COMM_SELF};
    struct dnn_comm *comm = NULL;
    struct dnn_feed *feed = NULL;
    struct dnn_err err = {0};

    if (argc != 7) return 2;
    const struct dnn_feed_cfg cfg = {.path = argv[1],
                                     .split = argv[2],
                                     .batch_size = atoll(argv[3]),
                                     .seed = strtoull(argv[4], NULL, 10),
                                     .shuffle = strcmp(argv[5], "true") == 0,
                                     .threads = 1,
                                     .stored = true};
    int rc = dnn_comm_open(&alone, &comm, &err);
    if (rc == 0) rc = dnn_feed_open(comm, &cfg, &feed, &err);
    if (rc == 0) rc = list(feed, atoll(argv[6]), &err);
    if (rc < 0) fprintf(stderr, "%s\n", err.text);
    dnn_feed_close(feed);
    dnn_comm_close(comm);
    return rc < 0 ? 3 : 0;
}
