/* base_draw.c - sequences of random numbers: which numbers they are.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "tap.h"

#include "base/draw.h"

int main(void)
{
    const struct dnn_rng rng = dnn_rng_make(3, 4);
    struct dnn_draw a = dnn_draw_make(3, 4, 5, 6);
    double x = dnn_draw_real(&a, -2, 2), n = dnn_draw_normal(&a);
    int64_t k = dnn_draw_below(&a, 1000);

    ok(x == 4 * dnn_rng_uniform(&rng, (struct dnn_rng_at){5, 6, 0}) - 2,
       "the first is that of index 0");
    ok(n == dnn_rng_normal(&rng, (struct dnn_rng_at){5, 6, 1}), "then index 1");
    is_int(k, (long long)dnn_rng_below(&rng, (struct dnn_rng_at){5, 6, 2}, 1000),
           "then index 2");
    struct dnn_draw b = dnn_draw_make(3, 4, 5, 6);
    ok(dnn_draw_real(&b, -2, 2) == x, "the same again from the start");

    static const uint64_t other[][4] = {
        {9, 4, 5, 6               },
        {3, 9, 5, 6               },
        {3, 4, 9, 6               },
        {3, 4, 5, 9               },
        {3, 4, 5, 6 + (1ull << 32)}
    };
    for (int i = 0; i < 5; i++) {
        struct dnn_draw c =
            dnn_draw_make(other[i][0], other[i][1], other[i][2], other[i][3]);

        ok(dnn_draw_real(&c, -2, 2) != x, "another %s, other numbers",
           (const char *[]){"seed", "stream", "step", "sample", "far sample"}[i]);
    }
    bool inside = true;
    for (int i = 0; i < 1000; i++) {
        double y = dnn_draw_real(&a, 1, 1.5);
        int64_t j = dnn_draw_below(&a, 3);

        inside = inside && y >= 1 && y < 1.5 && j >= 0 && j < 3;
    }
    ok(inside, "all in their ranges");
    is_int(dnn_draw_below(&a, 1), 0, "below 1: 0");
    return done();
}
