/* replica_wide.c - length and clipping of gradients that are f64.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/replica_impl.h"

#include <math.h>

double dnn_replica_wide_norm(const struct dnn_replica *replica)
{
    const double *grad = (const double *)(const void *)replica->grad;
    double sum = 0;

    for (int64_t i = 0; i < replica->count / 2; i++)
        sum += grad[i] * grad[i];
    return sqrt(sum);
}

void dnn_replica_wide_clip(struct dnn_replica *replica, double scale, double most)
{
    double *grad = (double *)(void *)replica->grad;

    for (int64_t i = 0; i < replica->count / 2; i++) {
        double g = grad[i] * scale;

        if (most > 0) g = g > most ? most : g < -most ? -most : g;
        grad[i] = g;
    }
}
