/* lbfgs_search.c - how far to go along a line: first outwards until the lowest place is
 * between two that are known, then inwards by cubics.
 *
 * A place is good where the value has fallen as much as a small part of the first slope
 * promised, and the slope is clearly flatter (the strong Wolfe conditions).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/lbfgs_impl.h"

#include <math.h>

#define FALL 1e-4 /* of what the slope at the start promises    */
#define FLAT 0.9  /* of the slope at the start is still too much */

enum { OUTWARDS, INWARDS, BACK };
enum { TRIES = 40 }; /* a step 1e-12 times the first is no step */

/* The lowest place of the cubic through two places, between least and most; their
 * middle if there is none. */
static double cubic(const struct dnn_lbfgs_place *a, const struct dnn_lbfgs_place *b,
                    double least, double most)
{
    double d1 = a->slope + b->slope - 3 * (a->f - b->f) / (a->at - b->at);
    double root = d1 * d1 - a->slope * b->slope;
    double d2 = copysign(sqrt(root), b->at - a->at);
    double at =
        b->at - (b->at - a->at) * (b->slope + d2 - d1) / (b->slope - a->slope + 2 * d2);

    if (!isfinite(at)) return (least + most) / 2;
    return at < least ? least : at > most ? most : at;
}

void dnn_lbfgs_search(struct dnn_lbfgs_state *s, double f, double slope, double step)
{
    s->from = s->low = (struct dnn_lbfgs_place){0, f, slope};
    s->phase = OUTWARDS;
    s->tries = 0;
    s->step = step;
}

static bool flat(const struct dnn_lbfgs_state *s, double slope)
{
    return fabs(slope) <= -FLAT * s->from.slope;
}

/* Whether a value is too large for a place to be good. */
static bool above(const struct dnn_lbfgs_state *s, const struct dnn_lbfgs_place *at)
{
    return !isfinite(at->f) || !isfinite(at->slope) ||
           at->f > s->from.f + FALL * at->at * s->from.slope;
}

/* The next place between low and high, not too near to either. */
static enum lbfgs_search between(struct dnn_lbfgs_state *s)
{
    double from = fmin(s->low.at, s->high.at), to = fmax(s->low.at, s->high.at);
    double margin = 0.1 * (to - from);

    if (s->tries < TRIES && to - from > 1e-15 * to) {
        s->phase = INWARDS;
        if (isfinite(s->high.f) && isfinite(s->high.slope))
            s->step = cubic(&s->low, &s->high, from + margin, to - margin);
        else /* nearer to where there are numbers */
            s->step = s->low.at + 0.2 * (s->high.at - s->low.at);
        return LBFGS_FURTHER;
    }
    /* It falls, though not flat enough: good as far as it goes. */
    if (s->low.at == 0) return LBFGS_FAILED;
    s->phase = BACK;
    s->step = s->low.at;
    return LBFGS_FURTHER;
}

static enum lbfgs_search outwards(struct dnn_lbfgs_state *s,
                                  const struct dnn_lbfgs_place *at)
{
    if (above(s, at) || (s->tries > 1 && at->f >= s->low.f)) {
        s->high = *at;
        return between(s);
    }
    if (flat(s, at->slope)) return LBFGS_ACCEPTED;
    if (at->slope >= 0) {
        s->high = s->low;
        s->low = *at;
        return between(s);
    }
    s->step = cubic(&s->low, at, at->at + 0.1 * (at->at - s->low.at), 10 * at->at);
    s->low = *at;
    if (s->tries < TRIES) return LBFGS_FURTHER;
    return LBFGS_ACCEPTED; /* it falls without end */
}

static enum lbfgs_search inwards(struct dnn_lbfgs_state *s,
                                 const struct dnn_lbfgs_place *at)
{
    if (above(s, at) || at->f >= s->low.f) {
        s->high = *at;
        return between(s);
    }
    if (flat(s, at->slope)) return LBFGS_ACCEPTED;
    if (at->slope * (s->high.at - s->low.at) >= 0) s->high = s->low;
    s->low = *at;
    return between(s);
}

enum lbfgs_search dnn_lbfgs_search_next(struct dnn_lbfgs_state *s, double f,
                                        double slope)
{
    const struct dnn_lbfgs_place at = {s->step, f, slope};

    s->tries++;
    if (s->phase == BACK) return LBFGS_ACCEPTED;
    return s->phase == OUTWARDS ? outwards(s, &at) : inwards(s, &at);
}
