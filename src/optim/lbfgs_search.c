/* lbfgs_search.c - line search: first larger steps until a minimum is bracketed, then
 * smaller brackets by cubic interpolation.
 *
 * A step is accepted if the value has decreased enough and the slope is flatter than at
 * the start (the strong Wolfe conditions).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/lbfgs_impl.h"

#include <math.h>

#define MIN_DECREASE 1e-4 /* of the decrease that the initial slope predicts */
#define MAX_SLOPE 0.9     /* of the initial slope is the limit               */

enum { BRACKET, ZOOM, RETURN_TO_LOW };
enum { MAX_TRIES = 40 }; /* the step is then about 1e-12 of the first */

/* The minimum of the cubic through two points, limited to min ... max; the middle of
 * these if there is none. */
static double cubic(const struct dnn_lbfgs_trial *a, const struct dnn_lbfgs_trial *b,
                    double min, double max)
{
    double d1 = a->slope + b->slope - 3 * (a->f - b->f) / (a->at - b->at);
    double root = d1 * d1 - a->slope * b->slope;
    double d2 = copysign(sqrt(root), b->at - a->at);
    double at =
        b->at - (b->at - a->at) * (b->slope + d2 - d1) / (b->slope - a->slope + 2 * d2);

    if (!isfinite(at)) return (min + max) / 2;
    return at < min ? min : at > max ? max : at;
}

void dnn_lbfgs_search(struct dnn_lbfgs_state *s, double f, double slope, double step)
{
    s->from = s->low = (struct dnn_lbfgs_trial){0, f, slope};
    s->phase = BRACKET;
    s->tries = 0;
    s->step = step;
}

static bool flat(const struct dnn_lbfgs_state *s, double slope)
{
    return fabs(slope) <= -MAX_SLOPE * s->from.slope;
}

/* Whether the value is too large (first Wolfe condition). */
static bool too_large(const struct dnn_lbfgs_state *s, const struct dnn_lbfgs_trial *at)
{
    return !isfinite(at->f) || !isfinite(at->slope) ||
           at->f > s->from.f + MIN_DECREASE * at->at * s->from.slope;
}

/* Request a point between low and high, not too close to either. */
static enum lbfgs_search between(struct dnn_lbfgs_state *s)
{
    double from = fmin(s->low.at, s->high.at), to = fmax(s->low.at, s->high.at);
    double margin = 0.1 * (to - from);

    if (s->tries < MAX_TRIES && to - from > 1e-15 * to) {
        s->phase = ZOOM;
        if (isfinite(s->high.f) && isfinite(s->high.slope))
            s->step = cubic(&s->low, &s->high, from + margin, to - margin);
        else /* high is not finite: closer to low */
            s->step = s->low.at + 0.2 * (s->high.at - s->low.at);
        return LBFGS_CONTINUE;
    }
    /* The value has decreased, but the slope is not flat: accept the lowest point. */
    if (s->low.at == 0) return LBFGS_FAILED;
    s->phase = RETURN_TO_LOW;
    s->step = s->low.at;
    return LBFGS_CONTINUE;
}

static enum lbfgs_search bracket(struct dnn_lbfgs_state *s,
                                 const struct dnn_lbfgs_trial *at)
{
    if (too_large(s, at) || (s->tries > 1 && at->f >= s->low.f)) {
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
    if (s->tries < MAX_TRIES) return LBFGS_CONTINUE;
    return LBFGS_ACCEPTED; /* it still decreases */
}

static enum lbfgs_search zoom(struct dnn_lbfgs_state *s,
                              const struct dnn_lbfgs_trial *at)
{
    if (too_large(s, at) || at->f >= s->low.f) {
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
    const struct dnn_lbfgs_trial at = {s->step, f, slope};

    s->tries++;
    if (s->phase == RETURN_TO_LOW) return LBFGS_ACCEPTED;
    return s->phase == BRACKET ? bracket(s, &at) : zoom(s, &at);
}
