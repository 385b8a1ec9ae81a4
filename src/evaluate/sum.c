/* sum.c - exact sums of doubles in fixed point.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "evaluate/evaluate_impl.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    LOWEST = -320,   /* exponent of the lowest bit */
    TERMS = 1 << 29, /* of less than 2^33 in a limb: no overflow */
    LAST = EVALUATE_LIMBS - 1
};
#define LOW32 0xffffffffu

/* Bring all limbs but the last into 0 ... 2^32 - 1; the last has the sign.  This form
 * of a number is unique. */
static void carry(struct evaluate_sum *s)
{
    for (int i = 0; i < LAST; i++) {
        int64_t low = s->limb[i] & (int64_t)LOW32;

        s->limb[i + 1] += (s->limb[i] - low) / ((int64_t)1 << 32);
        s->limb[i] = low;
    }
    s->added = 0;
}

void dnn_evaluate_sum_add(struct evaluate_sum *s, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    const int exponent = (int)(bits >> 52 & 2047);
    uint64_t m = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    int at = exponent - 1075 - LOWEST;
    if (exponent == 0 || at <= -53) return; /* less than the lowest bit */
    if (at < 0) {
        m >>= -at;
        at = 0;
    }
    assert(at / 32 + 2 < LAST);
    int64_t *limb = s->limb + at / 32;
    const uint64_t low = (m & LOW32) << at % 32, high = (m >> 32) << at % 32;
    const int64_t part[3] = {(int64_t)(low & LOW32),
                             (int64_t)((low >> 32) + (high & LOW32)),
                             (int64_t)(high >> 32)};
    for (int i = 0; i < 3; i++)
        limb[i] += bits >> 63 != 0 ? -part[i] : part[i];
    if (++s->added == TERMS) carry(s);
}

void dnn_evaluate_sum_merge(struct evaluate_sum *sum, struct evaluate_sum *other)
{
    carry(sum);
    carry(other);
    for (int i = 0; i <= LAST; i++)
        sum->limb[i] += other->limb[i];
    carry(sum);
}

/* Round a positive sum: 64 bits from its highest, of which the last also stands for all
 * bits below. */
static double round_sum(const int64_t *limb)
{
    int k = LAST, shift = 0;
    bool below = false;

    while (k > 0 && limb[k] == 0)
        k--;
    uint64_t m = (uint64_t)limb[k] << 32 | (uint64_t)(k > 0 ? limb[k - 1] : 0);
    uint64_t next = (uint64_t)(k > 1 ? limb[k - 2] : 0);
    if (m == 0) return 0;
    while (m >> 63 == 0) {
        m = m << 1 | (next >> 31 & 1);
        next = next << 1 & LOW32;
        shift++;
    }
    below = next != 0;
    for (int i = 0; i < k - 2; i++)
        below = below || limb[i] != 0;
    return ldexp((double)(m | below), LOWEST + 32 * (k - 1) - shift);
}

double dnn_evaluate_sum_value(const struct evaluate_sum *sum)
{
    struct evaluate_sum s = *sum;

    carry(&s);
    if (s.limb[LAST] >= 0) return round_sum(s.limb);
    for (int i = 0; i <= LAST; i++)
        s.limb[i] = -s.limb[i];
    carry(&s);
    return -round_sum(s.limb);
}
