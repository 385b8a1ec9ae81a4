/* volume.c - samples of other extents than the network's input, in tiles.
 *
 * The slabs of all samples that are not written yet are distributed over the ranks,
 * each gets consecutive ones.  Tiles that two ranks need are computed by both, so there
 * is no communication, except that all ranks agree after each row of tiles on errors
 * and on stopping.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/volume_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct volumes {
    const struct dnn_config *config;
    struct dnn_session *session;
    const struct dnn_infer_opts *opts;
    struct dnn_stage_cfg stage;
    struct infer_result r;
    struct infer_input *input; /* owned                                             */
    struct infer_net *net;     /* owned: with the weights                           */
    struct infer_net *whole;   /* owned: at the extents of a sample; or NULL        */
    struct infer_plan plan;    /* owned                                             */
    struct dnn_progress *progress;
    int64_t tiles;             /* computed by this rank                              */
    double asked, longest;     /* time of the last row, seconds of the slowest       */
    bool working, others_work; /* slabs are left on this rank, on any                */
    bool stopped;              /* all ranks are told to stop, or have lost each other */
    int failed;                /* of this rank                                       */
    struct dnn_err lost;       /* of the communication                               */
};

/* ---- the plan ---- */

/* Collective.  "whole": whether the largest sample fits; else tiles are used. */
static int try_whole(struct volumes *v, struct dnn_err *err)
{
    struct dnn_stage_cfg cfg = v->stage;
    struct infer_net *net = NULL;
    struct dnn_err why = {0};
    int64_t largest = dnn_infer_plan_largest(&v->plan), fits;

    int rc =
        dnn_infer_net_open(&cfg, v->plan.sample[largest].extent, 1, v->net, &net, &why);
    dnn_infer_net_close(net);
    fits = rc == 0;
    DNN_TRY(dnn_comm_agree(v->session->comm, rc == DNN_ENOMEM ? 0 : rc,
                           rc == 0 || rc == DNN_ENOMEM ? err : (*err = why, err)));
    DNN_TRY(dnn_comm_allreduce(v->session->comm, "memory", &fits, 1, DNN_COMM_I64,
                               DNN_COMM_MIN, err));
    if (fits)
        memset(v->plan.tile, 0, sizeof v->plan.tile);
    else if (dnn_comm_rank(v->session->comm) == 0)
        dnn_log(DNN_WARN, "infer",
                "the largest sample does not fit as a whole (%s); samples are cut into "
                "tiles",
                why.code < 0 ? why.text : "on another rank");
    return 0;
}

/* ---- files ---- */

static int describe(void *arg, int64_t sample, struct dnn_output_sample *out,
                    struct dnn_err *err)
{
    struct volumes *v = arg;
    struct infer_about about;

    memset(out, 0, sizeof *out);
    DNN_TRY(dnn_infer_input_about(v->input, sample, &about, err));
    memcpy(out->name, about.name, sizeof about.name);
    out->input = about.file;
    out->units = v->plan.sample[sample].slabs;
    for (int k = 0; k < v->r.noutputs; k++) {
        out->shape[k] = about.shape;
        out->shape[k].dim[v->plan.ndim] = v->net->channels[k];
    }
    return dnn_infer_input_position(v->input, sample, &about.shape, &out->position,
                                    err);
}

static int open_result(struct volumes *v, struct dnn_err *err)
{
    const struct dnn_column *target = dnn_infer_target_column(v->input);
    int rc = dnn_infer_plan_evaluated(&v->plan, v->input)
                 ? dnn_infer_result_evaluate(&v->r, v->opts, target,
                                             v->net->channels[0], v->plan.ndim, err)
                 : 0;

    DNN_TRY(dnn_comm_agree(v->session->comm, rc, err));
    const struct infer_samples samples = {.count = v->plan.count,
                                          .number = 1,
                                          .describe = describe,
                                          .arg = v,
                                          .from = dnn_infer_input_from(v->input),
                                          .source = dnn_infer_input_source(v->input),
                                          .dataset = dnn_infer_input_dataset(v->input),
                                          .resume = true};
    DNN_TRY(dnn_infer_result_open(&v->r, v->opts, &samples, err));
    return dnn_infer_resume_open(&v->r, v->plan.slabs, err);
}

/* For overlays. */
static int give_input(struct volumes *v, const struct infer_about *about,
                      int64_t sample, int64_t from, int64_t to,
                      const struct dnn_window *w, struct dnn_err *err)
{
    int64_t first, n, last, m;
    struct infer_plane plane;
    float *value = NULL;

    if (v->r.files == NULL || !dnn_output_wants_input(v->r.files)) return 0;
    dnn_infer_plane_of(about, &plane);
    dnn_window_slab(w, from, &first, &n);
    dnn_window_slab(w, to - 1, &last, &m);
    /* The rank that has the first plane gives it, unless that slab was written before.
     */
    if (plane.start[0] < first || plane.start[0] >= last + m) return 0;
    for (int64_t s = from; s < to; s++) {
        dnn_window_slab(w, s, &first, &n);
        if (plane.start[0] >= first && plane.start[0] < first + n &&
            dnn_output_done(v->r.files, sample, s))
            return 0;
    }
    int rc = dnn_infer_plane_input(&plane, v->input, sample,
                                   about->shape.dim[v->plan.ndim], &value, err);
    if (rc == 0)
        rc = dnn_output_input(v->r.files, sample, &about->shape,
                              v->plan.ndim == 3 ? plane.start[0] : -1, value, err);
    free(value);
    return rc;
}

/* ---- slabs ---- */

/* Collective, called by all ranks after each row of tiles, until no rank has any left:
 * whether to stop. */
static bool ask(void *arg)
{
    struct volumes *v = arg;
    double now = dnn_clock_now();

    if (now - v->asked > v->longest) v->longest = now - v->asked;
    int64_t any[3] = {v->working, v->failed != 0,
                      dnn_infer_stops(v->session, v->longest)};
    if (v->lost.code == 0)
        dnn_comm_allreduce(v->session->comm, "rows of tiles", any, 3, DNN_COMM_I64,
                           DNN_COMM_MAX, &v->lost);
    v->others_work = any[0] != 0;
    v->asked = dnn_clock_now();
    v->stopped = v->lost.code < 0 || any[1] != 0 || any[2] != 0;
    return v->stopped;
}

static void count_tiles(void *arg, int64_t n)
{
    struct volumes *v = arg;

    v->tiles += n;
    if (v->progress != NULL) dnn_progress_at(v->progress, v->tiles);
}

/* keep: as in struct infer_volume. */
static int run_slabs(struct volumes *v, int64_t sample, int64_t from, int64_t to,
                     struct infer_plane *keep, struct dnn_err *err)
{
    struct infer_about about;
    struct dnn_window *window = NULL;
    struct infer_net *net = v->net;

    DNN_TRY(dnn_infer_input_about(v->input, sample, &about, err));
    DNN_TRY(dnn_infer_plan_window(&v->plan, sample, &window, err));
    int rc = keep == NULL ? give_input(v, &about, sample, from, to, window, err) : 0;
    if (rc == 0 && v->plan.tile[0] == 0) {
        dnn_infer_net_close(v->whole);
        v->whole = NULL;
        rc = dnn_infer_net_open(&v->stage, v->plan.sample[sample].extent, 1, v->net,
                                &v->whole, err);
        net = v->whole;
    }
    const struct infer_volume volume = {.net = net,
                                        .input = v->input,
                                        .window = window,
                                        .r = &v->r,
                                        .sample = sample,
                                        .about = &about,
                                        .from = from,
                                        .to = to,
                                        .unit = v->plan.sample[sample].first,
                                        .stop = ask,
                                        .tiles = count_tiles,
                                        .arg = v,
                                        .keep = keep};
    if (rc == 0) rc = dnn_infer_volume_run(&volume, err);
    dnn_window_free(window);
    return rc;
}

/* Slabs that have to be computed, numbered over all samples. */
struct cursor {
    const struct volumes *v;
    int64_t sample, slab;
};

static bool is_missing(const struct volumes *v, int64_t sample, int64_t slab)
{
    return v->r.files == NULL || !dnn_output_done(v->r.files, sample, slab) ||
           (v->r.evaluation != NULL &&
            !dnn_infer_resume_has(&v->r, v->plan.sample[sample].first + slab));
}

static int64_t count_missing(const struct volumes *v)
{
    int64_t n = 0;

    for (int64_t i = 0; i < v->plan.count; i++)
        for (int64_t s = 0; s < v->plan.sample[i].slabs; s++)
            n += is_missing(v, i, s);
    return n;
}

/* The next missing slabs of one sample, at most n; returns how many. */
static int64_t next_slabs(struct cursor *c, int64_t n, int64_t *sample, int64_t *from)
{
    const struct volumes *v = c->v;
    int64_t found = 0;

    for (; c->sample < v->plan.count && found < n; c->sample++, c->slab = 0) {
        for (; c->slab < v->plan.sample[c->sample].slabs && found < n; c->slab++) {
            if (is_missing(v, c->sample, c->slab)) {
                if (found++ == 0) *from = c->slab;
            } else if (found > 0)
                break;
        }
        *sample = c->sample;
        if (found > 0) break;
    }
    return found;
}

/* Of all missing slabs. */
struct share {
    int64_t first, n;
};

static int run_share(struct volumes *v, const struct share *mine, struct dnn_err *err)
{
    struct cursor c = {.v = v};
    int64_t sample = 0, from = 0;

    for (int64_t skip = mine->first; skip > 0;)
        skip -= next_slabs(&c, skip, &sample, &from);
    for (int64_t n = mine->n; n > 0;) {
        int64_t found = next_slabs(&c, n, &sample, &from);

        DNN_TRY(run_slabs(v, sample, from, from + found, NULL, err));
        n -= found;
    }
    return 0;
}

static int run_mine(struct volumes *v, void *arg, struct dnn_err *err)
{
    int rc = run_share(v, arg, err);

    if (rc == 0 || rc == DNN_ESTOP) DNN_TRY(dnn_infer_resume_save(&v->r, true, err));
    return rc;
}

/* Collective.  All ranks work, and stop together. */
static int run_together(struct volumes *v,
                        int (*work)(struct volumes *v, void *arg, struct dnn_err *err),
                        void *arg, struct dnn_err *err)
{
    v->asked = dnn_clock_now();
    v->working = v->others_work = true;
    v->stopped = false;
    int rc = work(v, arg, err);
    v->working = false;
    if (rc == DNN_ESTOP) rc = 0;
    v->failed = rc;
    /* After a stop no rank asks again, also if this one has failed since. */
    while (v->others_work && !v->stopped)
        ask(v);
    dnn_progress_stop(v->progress, rc == 0 && !v->stopped);
    v->progress = NULL;
    if (v->lost.code < 0) {
        if (rc == 0) *err = v->lost;
        return err->code;
    }
    DNN_TRY(dnn_comm_agree(v->session->comm, rc, err));
    if (!v->stopped) return 0;
    dnn_fail(
        err, DNN_ESTOP,
        "stopped before all samples were computed; the same command computes what is "
        "missing");
    err->everywhere = true;
    return DNN_ESTOP;
}

static int run_all(struct volumes *v, struct dnn_err *err)
{
    int rank = dnn_comm_rank(v->session->comm), size = dnn_comm_size(v->session->comm);
    int64_t missing = count_missing(v);
    struct share mine = {.first = missing * rank / size};

    mine.n = missing * (rank + 1) / size - mine.first;
    int64_t tiles =
        (int64_t)((double)v->plan.tiles * (double)mine.n / (double)v->plan.slabs);
    if (rank == 0 && v->opts->progress)
        v->progress = dnn_progress_start("infer", "inference", tiles, "tiles", NULL);
    return run_together(v, run_mine, &mine, err);
}

/* ---- the worst samples ---- */

/* Compute the slabs again that have the plane to be drawn. */
static int draw_one(struct volumes *v, struct infer_worst *worst, int i,
                    struct dnn_err *err)
{
    const int64_t sample = worst->list[i].sample;
    struct dnn_window *window;
    struct infer_about about;
    struct infer_plane plane;
    int64_t from = -1, to = 0;

    DNN_TRY(dnn_infer_input_about(v->input, sample, &about, err));
    DNN_TRY(dnn_infer_plan_window(&v->plan, sample, &window, err));
    dnn_infer_plane_of(&about, &plane);
    for (int64_t s = 0; s < v->plan.sample[sample].slabs; s++) {
        int64_t first, n;

        dnn_window_slab(window, s, &first, &n);
        if (!dnn_infer_plane_in(&plane, first, n)) continue;
        if (from < 0) from = s;
        to = s + 1;
    }
    dnn_window_free(window);
    plane.channels = v->net->channels[0];
    if (!dnn_infer_plane_alloc(&plane, &about)) return 0;
    int rc = run_slabs(v, sample, from, to, &plane, err);
    if (rc == 0) rc = dnn_infer_plane_draw(&plane, v->input, &about, worst, i, err);
    free(plane.output);
    return rc;
}

static int draw_mine(struct volumes *v, void *arg, struct dnn_err *err)
{
    struct infer_worst *worst = arg;

    for (int i = dnn_comm_rank(v->session->comm); i < worst->n;
         i += dnn_comm_size(v->session->comm))
        DNN_TRY(draw_one(v, worst, i, err));
    return 0;
}

/* Collective. */
static int draw_worst(void *arg, struct infer_worst *worst, struct dnn_err *err)
{
    struct volumes *v = arg;

    return v->plan.ndim < 2 ? 0 : run_together(v, draw_mine, worst, err);
}

/* ---- the run ---- */

static void log_header(const struct volumes *v)
{
    const struct dnn_config *config = v->config;
    const struct dnn_shape tile = {
        .ndim = v->plan.ndim,
        .dim = {v->plan.tile[0], v->plan.tile[1], v->plan.tile[2]}
    };
    char text[DNN_SHAPE_TEXT], a[32], b[32];

    if (dnn_comm_rank(v->session->comm) != 0) return;
    dnn_session_report(v->session);
    dnn_log(DNN_INFO, "infer", "%s: parameters: %" PRId64, config->net.graph->name,
            config->net.graph->params);
    dnn_log(DNN_INFO, "infer", "test samples: %" PRId64 ", %s%s", v->plan.count,
            v->plan.tile[0] == 0 ? "as a whole" : "in tiles of ",
            v->plan.tile[0] == 0 ? "" : dnn_shape_text(text, sizeof text, &tile));
    dnn_log(DNN_INFO, "infer", "memory per rank: network %s, sums of tiles at most %s",
            dnn_text_bytes(a, sizeof a, (double)dnn_model_bytes(v->net->model).all),
            dnn_text_bytes(b, sizeof b,
                           (double)dnn_infer_plan_sums(&v->plan, &v->r, v->net)));
    dnn_log(DNN_INFO, "infer", "run directory: %s", dnn_config_dir(config));
}

static int run(struct volumes *v, struct dnn_err *err)
{
    double began = dnn_clock_now();
    bool whole = v->config->infer->tiles == DNN_TILES_WHOLE;
    int rc = dnn_infer_plan_open(&v->plan, v->config, err);

    if (rc == 0) rc = dnn_infer_input_open(v->config, &v->input, err);
    if (rc == 0) rc = dnn_infer_plan_read(&v->plan, v->input, err);
    if (rc == 0)
        rc =
            dnn_infer_net_open(&v->stage, v->plan.tile,
                               whole ? 1 : v->config->infer->batch, NULL, &v->net, err);
    DNN_TRY(dnn_comm_agree(v->session->comm, rc, err));
    DNN_TRY(dnn_infer_load(v->config, v->session, v->net->model, err));
    if (whole) DNN_TRY(try_whole(v, err));
    rc = dnn_infer_plan_slabs(&v->plan, err);
    if (rc == 0)
        rc = dnn_infer_result_make(&v->r, v->config, v->session, v->net->model, err);
    DNN_TRY(dnn_comm_agree(v->session->comm, rc, err));
    log_header(v);
    DNN_TRY(open_result(v, err));
    DNN_TRY(run_all(v, err));
    DNN_TRY(dnn_infer_result_commit(&v->r, err));
    const struct infer_found found = {.samples = v->plan.count,
                                      .seconds = dnn_clock_now() - began,
                                      .loss = NAN,
                                      .draw = draw_worst,
                                      .arg = v};
    return dnn_infer_report(&v->r, v->opts, &found, err);
}

int dnn_infer_volumes(const struct dnn_config *config, struct dnn_session *session,
                      const struct dnn_infer_opts *opts, struct dnn_err *err)
{
    struct volumes v = {
        .config = config,
        .session = session,
        .opts = opts,
        .stage = {.config = config,
                  .session = session,
                  .backend = opts->backend,
                  .kernels = opts->kernels}
    };

    int rc = run(&v, err);
    rc = dnn_infer_result_close(&v.r, rc, err);
    dnn_infer_net_close(v.whole);
    dnn_infer_net_close(v.net);
    dnn_infer_input_close(v.input);
    dnn_infer_plan_close(&v.plan);
    return rc;
}
