/* volume.c - samples of other extents than the network's input, in tiles.
 *
 * The units of all samples that are not written yet are distributed over the ranks,
 * each gets consecutive ones, which overlap with about as many tiles as those of the
 * others.  Tiles that two ranks need are computed by both, so there is no
 * communication, except that all ranks agree between batches of tiles on errors and on
 * stopping.
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
    double began, longest;     /* time of the last row, seconds of the slowest       */
    struct dnn_comm_req *req;  /* a running question; or NULL                        */
    int64_t any[3];            /* what it asks, and its answer                       */
    bool working, others_work; /* units are left on this rank, on any                */
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
    out->units = v->plan.sample[sample].units;
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
    return dnn_infer_resume_open(&v->r, v->plan.units, err);
}

/* For overlays: the rank that has the first point gives the plane, unless that unit was
 * written before. */
static int give_input(struct volumes *v, const struct infer_about *about,
                      int64_t sample, const struct dnn_window *w,
                      const unsigned char *wanted, struct dnn_err *err)
{
    struct infer_plane plane;
    float *value = NULL;

    if (v->r.files == NULL || !dnn_output_wants_input(v->r.files)) return 0;
    dnn_infer_plane_of(about, &plane);
    int64_t unit = dnn_window_unit_at(w, plane.start);
    if (wanted[unit] == 0 || dnn_output_done(v->r.files, sample, unit)) return 0;
    int rc = dnn_infer_plane_input(&plane, v->input, sample,
                                   about->shape.dim[v->plan.ndim], &value, err);
    if (rc == 0)
        rc = dnn_output_input(v->r.files, sample, &about->shape,
                              v->plan.ndim == 3 ? plane.start[0] : -1, value, err);
    free(value);
    return rc;
}

/* ---- agreement while tiles are computed ---- */

/* Collective: all ranks ask again and again until no rank has units left, or all have
 * to stop.  Nobody waits while it has work: an answer is seen after a later batch. */
static void ask(struct volumes *v)
{
    bool answered = !v->working;

    if (v->stopped || !v->others_work) return;
    if (v->req == NULL) {
        v->any[0] = v->working;
        v->any[1] = v->failed != 0;
        v->any[2] = dnn_infer_stops(v->session, v->longest);
        dnn_comm_start(v->session->comm, "batches of tiles", v->any, 3, DNN_COMM_I64,
                       DNN_COMM_MAX, &v->req, &v->lost);
    }
    if (v->lost.code == 0 && v->working) dnn_comm_test(v->req, &answered, &v->lost);
    if (v->lost.code == 0 && !answered) return;
    dnn_comm_wait(v->req, v->lost.code == 0 ? &v->lost : NULL);
    v->req = NULL;
    v->others_work = v->any[0] != 0;
    v->stopped = v->lost.code < 0 || v->any[1] != 0 || v->any[2] != 0;
}

/* Called before each row of tiles. */
static bool stop(void *arg)
{
    struct volumes *v = arg;
    double now = dnn_clock_now();

    if (now - v->began > v->longest) v->longest = now - v->began;
    v->began = now;
    ask(v);
    return v->stopped;
}

static void count_tiles(void *arg, int64_t n)
{
    struct volumes *v = arg;

    v->tiles += n;
    if (v->progress != NULL) dnn_progress_at(v->progress, v->tiles);
    ask(v);
}

/* ---- units ---- */

/* keep: as in struct infer_volume. */
static int run_units(struct volumes *v, int64_t sample, const struct dnn_window *window,
                     const unsigned char *wanted, struct infer_plane *keep,
                     struct dnn_err *err)
{
    struct infer_about about;
    struct infer_net *net = v->net;

    DNN_TRY(dnn_infer_input_about(v->input, sample, &about, err));
    if (keep == NULL) DNN_TRY(give_input(v, &about, sample, window, wanted, err));
    if (v->plan.tile[0] == 0) {
        dnn_infer_net_close(v->whole);
        v->whole = NULL;
        DNN_TRY(dnn_infer_net_open(&v->stage, v->plan.sample[sample].extent, 1, v->net,
                                   &v->whole, err));
        net = v->whole;
    }
    const struct infer_volume volume = {.net = net,
                                        .input = v->input,
                                        .window = window,
                                        .r = &v->r,
                                        .sample = sample,
                                        .about = &about,
                                        .wanted = wanted,
                                        .unit = v->plan.sample[sample].first,
                                        .stop = stop,
                                        .tiles = count_tiles,
                                        .arg = v,
                                        .keep = keep};
    return dnn_infer_volume_run(&volume, err);
}

static bool is_missing(const struct volumes *v, int64_t sample, int64_t unit)
{
    return v->r.files == NULL || !dnn_output_done(v->r.files, sample, unit) ||
           (v->r.evaluation != NULL &&
            !dnn_infer_resume_has(&v->r, v->plan.sample[sample].first + unit));
}

/* The missing units of all samples, weighted by the tiles that overlap them: `all`, of
 * which `before` have been passed. */
struct share {
    int64_t all, before;
    int64_t mine; /* tiles that this rank has to compute */
};

/* Find the units of a sample that this rank computes; returns whether there are any. */
static bool find_mine(const struct volumes *v, struct share *s, int64_t sample,
                      const struct dnn_window *w, unsigned char *wanted)
{
    const int64_t rank = dnn_comm_rank(v->session->comm);
    const int64_t size = dnn_comm_size(v->session->comm);
    bool any = false;

    for (int64_t u = 0; u < v->plan.sample[sample].units; u++) {
        int64_t n = is_missing(v, sample, u) ? dnn_window_unit_tiles(w, u) : 0;

        /* The rank that has its middle. */
        wanted[u] = n > 0 && s->all > 0 &&
                    (int64_t)(((double)s->before + (double)n / 2) / (double)s->all *
                              (double)size) == rank;
        any = any || wanted[u];
        s->before += n;
    }
    return any;
}

/* Call each() for the samples of which this rank has units. */
static int for_mine(struct volumes *v, struct share *s,
                    int (*each)(struct volumes *, struct share *, int64_t,
                                const struct dnn_window *, const unsigned char *,
                                struct dnn_err *),
                    struct dnn_err *err)
{
    int rc = 0;

    s->before = 0;
    for (int64_t i = 0; i < v->plan.count && rc == 0; i++) {
        unsigned char *wanted = dnn_alloc((size_t)v->plan.sample[i].units);
        struct dnn_window *w = NULL;

        rc = dnn_infer_plan_window(&v->plan, i, &w, err);
        if (rc == 0 && find_mine(v, s, i, w, wanted))
            rc = each(v, s, i, w, wanted, err);
        dnn_window_free(w);
        dnn_free(wanted);
    }
    return rc;
}

static int count_mine(struct volumes *v, struct share *s, int64_t sample,
                      const struct dnn_window *w, const unsigned char *wanted,
                      struct dnn_err *err)
{
    (void)v, (void)sample, (void)err;
    for (int64_t t = 0; t < dnn_window_tiles(w); t++)
        s->mine += dnn_window_wants(w, wanted, t);
    return 0;
}

static int run_sample(struct volumes *v, struct share *s, int64_t sample,
                      const struct dnn_window *w, const unsigned char *wanted,
                      struct dnn_err *err)
{
    (void)s;
    return run_units(v, sample, w, wanted, NULL, err);
}

static int run_mine(struct volumes *v, void *arg, struct dnn_err *err)
{
    int rc = for_mine(v, arg, run_sample, err);

    if (rc == 0 || rc == DNN_ESTOP) DNN_TRY(dnn_infer_resume_save(&v->r, true, err));
    return rc;
}

/* Collective.  All ranks work, and stop together. */
static int run_together(struct volumes *v,
                        int (*work)(struct volumes *v, void *arg, struct dnn_err *err),
                        void *arg, struct dnn_err *err)
{
    v->began = dnn_clock_now();
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
    struct dnn_comm *comm = v->session->comm;
    struct share mine = {0};

    /* The sum of the weights first; no rank has units yet. */
    DNN_TRY(for_mine(v, &mine, NULL, err));
    mine.all = mine.before;
    DNN_TRY(for_mine(v, &mine, count_mine, err));
    int64_t sum = mine.mine, most = mine.mine;
    DNN_TRY(
        dnn_comm_allreduce(comm, "tiles", &sum, 1, DNN_COMM_I64, DNN_COMM_SUM, err));
    DNN_TRY(
        dnn_comm_allreduce(comm, "tiles", &most, 1, DNN_COMM_I64, DNN_COMM_MAX, err));
    if (dnn_comm_rank(comm) == 0 && dnn_comm_size(comm) > 1)
        dnn_log(DNN_INFO, "infer",
                "tiles: %" PRId64 " in all, %" PRId64
                " with those that several ranks compute; at most %" PRId64 " on a rank",
                v->plan.tiles, sum, most);
    if (dnn_comm_rank(comm) == 0 && v->opts->progress)
        v->progress =
            dnn_progress_start("infer", "inference", mine.mine, "tiles", NULL);
    return run_together(v, run_mine, &mine, err);
}

/* ---- the worst samples ---- */

/* Compute the units again that have the plane to be drawn. */
static int draw_one(struct volumes *v, struct infer_worst *worst, int i,
                    struct dnn_err *err)
{
    const int64_t sample = worst->list[i].sample, units = v->plan.sample[sample].units;
    struct dnn_window *window;
    struct infer_about about;
    struct infer_plane plane;

    DNN_TRY(dnn_infer_input_about(v->input, sample, &about, err));
    DNN_TRY(dnn_infer_plan_window(&v->plan, sample, &window, err));
    dnn_infer_plane_of(&about, &plane);
    unsigned char *wanted = dnn_alloc((size_t)units);
    for (int64_t u = 0; u < units; u++) {
        int64_t start[DNN_WINDOW_DIMS], extent[DNN_WINDOW_DIMS];

        dnn_window_unit(window, u, start, extent);
        wanted[u] = dnn_infer_plane_in(&plane, start, extent);
    }
    plane.channels = v->net->channels[0];
    int rc = 0;
    if (dnn_infer_plane_alloc(&plane, &about)) {
        rc = run_units(v, sample, window, wanted, &plane, err);
        if (rc == 0) rc = dnn_infer_plane_draw(&plane, v->input, &about, worst, i, err);
    }
    free(plane.output);
    dnn_free(wanted);
    dnn_window_free(window);
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

static void log_header(const struct volumes *v, size_t sums)
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
    dnn_log(DNN_INFO, "infer",
            "memory per rank: network %s, overlapping tiles at most %s",
            dnn_text_bytes(a, sizeof a, (double)dnn_model_bytes(v->net->model).all),
            dnn_text_bytes(b, sizeof b, (double)sums));
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
        rc = dnn_infer_net_open(&v->stage, v->plan.tile, v->plan.batch, NULL, &v->net,
                                err);
    DNN_TRY(dnn_comm_agree(v->session->comm, rc, err));
    DNN_TRY(dnn_infer_load(v->config, v->session, v->net->model, err));
    if (whole) DNN_TRY(try_whole(v, err));
    size_t sums = 0;
    rc = dnn_infer_plan_units(&v->plan, err);
    if (rc == 0)
        rc = dnn_infer_result_make(&v->r, v->config, v->session, v->net->model, err);
    if (rc == 0 && dnn_comm_rank(v->session->comm) == 0)
        rc = dnn_infer_plan_sums(&v->plan, &v->r, v->net, &sums, err);
    DNN_TRY(dnn_comm_agree(v->session->comm, rc, err));
    log_header(v, sums);
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
