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
#include "base/mem.h"
#include "base/progress.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct sample_plan {
    int64_t extent[DNN_WINDOW_DIMS];
    int64_t slabs, first; /* number, and that of the first among all samples */
};

struct volumes {
    const struct dnn_config *config;
    struct dnn_session *session;
    const struct dnn_infer_opts *opts;
    struct dnn_stage_cfg stage;
    struct infer_result r;
    struct infer_input *input; /* owned                                             */
    struct infer_net *net;     /* owned: with the weights                           */
    struct infer_net *whole;   /* owned: at the extents of a sample; or NULL        */
    int ndim;
    int64_t tile[DNN_WINDOW_DIMS]; /* 0: the extents of the sample                   */
    int64_t count, slabs;     /* of samples, of all of them                         */
    struct sample_plan *plan; /* owned */
    struct dnn_progress *progress;
    int64_t tiles;             /* computed by this rank                              */
    double asked, longest;     /* time of the last row, seconds of the slowest       */
    bool working, others_work; /* slabs are left on this rank, on any                */
    int failed;                /* of this rank                                       */
    struct dnn_err lost;       /* of the communication                               */
};

/* ---- windows ---- */

static int make_window(const struct volumes *v, int64_t sample, struct dnn_window **out,
                       struct dnn_err *err)
{
    const struct dnn_config_infer *how = v->config->infer;
    struct dnn_window_cfg cfg = {.ndim = v->ndim,
                                 .blend = (enum dnn_window_blend)how->blend,
                                 .sigma = how->sigma};

    for (int d = 0; d < v->ndim; d++) {
        cfg.full[d] = v->plan[sample].extent[d];
        cfg.tile[d] = v->tile[d] == 0 ? cfg.full[d] : v->tile[d];
        cfg.overlap[d] = how->overlap.reals[how->overlap.count > d ? d : 0];
    }
    return dnn_window_make(&cfg, out, err);
}

static int check_axes(const char *key, const struct dnn_list *list, int ndim,
                      struct dnn_err *err)
{
    if (list->count <= 1 || list->count == ndim) return 0;
    return dnn_fail(err, DNN_ECONFIG,
                    "inference.%s: has %" PRId64 " numbers, but the network has %d "
                    "spatial axes; give one number, or one for each axis",
                    key, list->count, ndim);
}

/* The extents of a tile. */
static int set_tile(struct volumes *v, struct dnn_err *err)
{
    const struct dnn_config_infer *how = v->config->infer;
    const struct dnn_graph *graph = v->config->net.graph;

    v->ndim = graph->node[graph->input[0]].out.ndim - 2;
    DNN_TRY(check_axes("tile", &how->tile, v->ndim, err));
    DNN_TRY(check_axes("overlap", &how->overlap, v->ndim, err));
    for (int64_t i = 0; i < how->flips.count; i++)
        if (how->flips.ints[i] >= v->ndim)
            return dnn_fail(err, DNN_ECONFIG,
                            "inference.flips: axis %" PRId64 " does not exist; the "
                            "network has the spatial axes 0 to %d",
                            how->flips.ints[i], v->ndim - 1);
    for (int d = 0; d < v->ndim; d++)
        v->tile[d] = how->tile.count > 0 ? how->tile.ints[how->tile.count > d ? d : 0]
                                         : graph->node[graph->input[0]].out.dim[d + 1];
    return 0;
}

/* ---- the plan ---- */

static int64_t points(const struct sample_plan *p, int ndim)
{
    int64_t n = 1;

    for (int d = 0; d < ndim; d++)
        n *= p->extent[d];
    return n;
}

static bool is_evaluated(const struct volumes *v)
{
    return dnn_infer_target_column(v->input) != NULL &&
           dnn_config_test_mode(v->config) == DNN_CONFIG_EVAL;
}

/* The extents of each sample. */
static int read_extents(struct volumes *v, struct dnn_err *err)
{
    const struct dnn_graph *graph = v->config->net.graph;
    const struct dnn_shape *net = &graph->node[graph->input[0]].out;
    char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT];
    struct infer_about about;

    v->count = dnn_infer_input_count(v->input);
    v->plan = dnn_alloc((size_t)(v->count + 1) * sizeof *v->plan);
    for (int64_t i = 0; i < v->count; i++) {
        DNN_TRY(dnn_infer_input_about(v->input, i, &about, err));
        if (about.shape.ndim != v->ndim + 1 ||
            about.shape.dim[v->ndim] != net->dim[v->ndim + 1])
            return dnn_fail(
                err, DNN_EDATA,
                "%s: the input has shape %s, but the network expects %s (the "
                "first extent is the batch, the last one the channels)",
                about.name, dnn_shape_text(a, sizeof a, &about.shape),
                dnn_shape_text(b, sizeof b, net));
        memcpy(v->plan[i].extent, about.shape.dim, (size_t)v->ndim * sizeof(int64_t));
        if (is_evaluated(v)) DNN_TRY(dnn_infer_target_check(v->input, i, err));
    }
    return 0;
}

static int count_slabs(struct volumes *v, struct dnn_err *err)
{
    for (int64_t i = 0; i < v->count; i++) {
        struct dnn_window *w;

        DNN_TRY(make_window(v, i, &w, err));
        v->plan[i].first = v->slabs;
        v->plan[i].slabs = dnn_window_slabs(w);
        v->slabs += v->plan[i].slabs;
        dnn_window_free(w);
    }
    return 0;
}

/* Collective.  "whole": whether the largest sample fits; else tiles are used. */
static int try_whole(struct volumes *v, struct dnn_err *err)
{
    struct dnn_stage_cfg cfg = v->stage;
    struct infer_net *net = NULL;
    struct dnn_err why = {0};
    int64_t largest = 0, fits;

    for (int64_t i = 1; i < v->count; i++)
        if (points(&v->plan[i], v->ndim) > points(&v->plan[largest], v->ndim))
            largest = i;
    int rc = dnn_infer_net_open(&cfg, v->plan[largest].extent, 1, v->net, &net, &why);
    dnn_infer_net_close(net);
    fits = rc == 0;
    DNN_TRY(dnn_comm_agree(v->session->comm, rc == DNN_ENOMEM ? 0 : rc,
                           rc == 0 || rc == DNN_ENOMEM ? err : (*err = why, err)));
    DNN_TRY(dnn_comm_allreduce(v->session->comm, "memory", &fits, 1, DNN_COMM_I64,
                               DNN_COMM_MIN, err));
    if (fits)
        memset(v->tile, 0, sizeof v->tile);
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
    memcpy(out->spacing, about.spacing, sizeof out->spacing);
    out->input = about.file;
    out->units = v->plan[sample].slabs;
    for (int k = 0; k < v->r.noutputs; k++) {
        out->shape[k] = about.shape;
        out->shape[k].dim[v->ndim] = v->net->channels[k];
    }
    return 0;
}

static int open_result(struct volumes *v, struct dnn_err *err)
{
    const struct dnn_column *target = dnn_infer_target_column(v->input);
    int rc = is_evaluated(v)
                 ? dnn_infer_result_evaluate(&v->r, v->opts, target,
                                             v->net->channels[0], v->ndim, err)
                 : 0;

    DNN_TRY(dnn_comm_agree(v->session->comm, rc, err));
    const struct infer_samples samples = {.count = v->count,
                                          .number = 1,
                                          .describe = describe,
                                          .arg = v,
                                          .from = dnn_infer_input_from(v->input),
                                          .resume = true};
    DNN_TRY(dnn_infer_result_open(&v->r, v->opts, &samples, err));
    return dnn_infer_resume_open(&v->r, v->slabs, err);
}

/* The middle plane of a volume, or all of a picture, for overlays. */
static int give_input(struct volumes *v, const struct infer_about *about,
                      int64_t sample, int64_t from, int64_t to,
                      const struct dnn_window *w, struct dnn_err *err)
{
    int64_t start[DNN_WINDOW_DIMS] = {0}, extent[DNN_WINDOW_DIMS] = {0};
    int64_t plane = v->ndim == 3 ? about->shape.dim[0] / 2 : 0, first, n, last, m;
    int64_t count = about->shape.dim[v->ndim];

    if (v->r.files == NULL || !dnn_output_wants_input(v->r.files)) return 0;
    dnn_window_slab(w, from, &first, &n);
    dnn_window_slab(w, to - 1, &last, &m);
    if (plane < first || plane >= last + m) return 0;
    for (int64_t s = from; s < to; s++) {
        dnn_window_slab(w, s, &first, &n);
        if (plane >= first && plane < first + n &&
            dnn_output_done(v->r.files, sample, s))
            return 0;
    }
    for (int d = 0; d < v->ndim; d++)
        extent[d] = about->shape.dim[d];
    if (v->ndim == 3) {
        start[0] = plane;
        extent[0] = 1;
    }
    for (int d = 0; d < v->ndim; d++)
        count *= extent[d];
    float *value = dnn_alloc((size_t)count * sizeof *value);
    int rc = dnn_infer_input_box(v->input, sample, start, extent, value, err);
    if (rc == 0)
        rc = dnn_output_input(v->r.files, sample, &about->shape,
                              v->ndim == 3 ? plane : -1, value, err);
    dnn_free(value);
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
    return v->lost.code < 0 || any[1] != 0 || any[2] != 0;
}

static void count_tiles(void *arg, int64_t n)
{
    struct volumes *v = arg;

    v->tiles += n;
    if (v->progress != NULL) dnn_progress_at(v->progress, v->tiles);
}

static int run_slabs(struct volumes *v, int64_t sample, int64_t from, int64_t to,
                     struct dnn_err *err)
{
    struct infer_about about;
    struct dnn_window *window = NULL;
    struct infer_net *net = v->net;

    DNN_TRY(dnn_infer_input_about(v->input, sample, &about, err));
    DNN_TRY(make_window(v, sample, &window, err));
    int rc = give_input(v, &about, sample, from, to, window, err);
    if (rc == 0 && v->tile[0] == 0) {
        dnn_infer_net_close(v->whole);
        v->whole = NULL;
        rc = dnn_infer_net_open(&v->stage, v->plan[sample].extent, 1, v->net, &v->whole,
                                err);
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
                                        .unit = v->plan[sample].first,
                                        .stop = ask,
                                        .tiles = count_tiles,
                                        .arg = v};
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
            !dnn_infer_resume_has(&v->r, v->plan[sample].first + slab));
}

static int64_t count_missing(const struct volumes *v)
{
    int64_t n = 0;

    for (int64_t i = 0; i < v->count; i++)
        for (int64_t s = 0; s < v->plan[i].slabs; s++)
            n += is_missing(v, i, s);
    return n;
}

/* The next missing slabs of one sample, at most n; returns how many. */
static int64_t next_slabs(struct cursor *c, int64_t n, int64_t *sample, int64_t *from)
{
    const struct volumes *v = c->v;
    int64_t found = 0;

    for (; c->sample < v->count && found < n; c->sample++, c->slab = 0) {
        for (; c->slab < v->plan[c->sample].slabs && found < n; c->slab++) {
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

static int run_mine(struct volumes *v, int64_t first, int64_t n, struct dnn_err *err)
{
    struct cursor c = {.v = v};
    int64_t sample = 0, from = 0;

    for (int64_t skip = first; skip > 0;)
        skip -= next_slabs(&c, skip, &sample, &from);
    while (n > 0) {
        int64_t found = next_slabs(&c, n, &sample, &from);

        DNN_TRY(run_slabs(v, sample, from, from + found, err));
        n -= found;
    }
    return 0;
}

static int64_t tiles_of_rank(const struct volumes *v, int64_t slabs)
{
    struct dnn_window *w;
    int64_t tiles = 0, all = 0;

    for (int64_t i = 0; i < v->count; i++) {
        if (make_window(v, i, &w, NULL) < 0) return 0;
        tiles += dnn_window_tiles(w);
        all += v->plan[i].slabs;
        dnn_window_free(w);
    }
    return all == 0 ? 0 : (int64_t)((double)tiles * (double)slabs / (double)all);
}

/* Collective.  All ranks stop together. */
static int run_all(struct volumes *v, struct dnn_err *err)
{
    int rank = dnn_comm_rank(v->session->comm), size = dnn_comm_size(v->session->comm);
    int64_t missing = count_missing(v);
    int64_t first = missing * rank / size, last = missing * (rank + 1) / size;
    bool stopped = false;

    if (rank == 0 && v->opts->progress)
        v->progress = dnn_progress_start("infer", "inference",
                                         tiles_of_rank(v, last - first), "tiles", NULL);
    v->asked = dnn_clock_now();
    v->working = true;
    int rc = run_mine(v, first, last - first, err);
    v->working = false;
    if (rc == DNN_ESTOP && v->lost.code == 0) {
        stopped = true;
        rc = 0;
    }
    if (rc == 0) rc = dnn_infer_resume_save(&v->r, true, err);
    v->failed = rc;
    v->others_work = !stopped;
    while (v->others_work && v->lost.code == 0 && !stopped)
        stopped = ask(v);
    dnn_progress_stop(v->progress, rc == 0 && !stopped);
    if (v->lost.code < 0) {
        if (rc == 0) *err = v->lost;
        return err->code;
    }
    DNN_TRY(dnn_comm_agree(v->session->comm, rc, err));
    if (!stopped) return 0;
    dnn_fail(
        err, DNN_ESTOP,
        "stopped before all samples were computed; the same command computes what is "
        "missing");
    err->everywhere = true;
    return DNN_ESTOP;
}

/* ---- the run ---- */

/* The most memory that sums of tiles need, of any sample. */
static size_t sums_bytes(const struct volumes *v)
{
    size_t most = 0;

    for (int64_t i = 0; i < v->count; i++) {
        struct dnn_window *w;
        size_t bytes = 0;

        if (make_window(v, i, &w, NULL) < 0) return 0;
        for (int k = 0; k < v->r.noutputs; k++)
            bytes += dnn_blend_estimate(w, v->net->channels[k], v->r.bounded[k]);
        dnn_window_free(w);
        if (bytes > most) most = bytes;
    }
    return most;
}

static void log_header(const struct volumes *v)
{
    const struct dnn_config *config = v->config;
    const struct dnn_shape tile = {
        .ndim = v->ndim, .dim = {v->tile[0], v->tile[1], v->tile[2]}
    };
    char text[DNN_SHAPE_TEXT], a[32], b[32];

    if (dnn_comm_rank(v->session->comm) != 0) return;
    dnn_session_report(v->session);
    dnn_log(DNN_INFO, "infer", "%s: parameters: %" PRId64, config->net.graph->name,
            config->net.graph->params);
    dnn_log(DNN_INFO, "infer", "test samples: %" PRId64 ", %s%s", v->count,
            v->tile[0] == 0 ? "as a whole" : "in tiles of ",
            v->tile[0] == 0 ? "" : dnn_shape_text(text, sizeof text, &tile));
    dnn_log(DNN_INFO, "infer", "memory per rank: network %s, sums of tiles at most %s",
            dnn_text_bytes(a, sizeof a, (double)dnn_model_bytes(v->net->model).all),
            dnn_text_bytes(b, sizeof b, (double)sums_bytes(v)));
    dnn_log(DNN_INFO, "infer", "run directory: %s", dnn_config_dir(config));
}

static int run(struct volumes *v, struct dnn_err *err)
{
    const struct dnn_graph *graph = v->config->net.graph;
    double began = dnn_clock_now();
    const int64_t *own = &graph->node[graph->input[0]].out.dim[1];
    bool whole = v->config->infer->tiles == DNN_TILES_WHOLE;
    int rc = set_tile(v, err);

    if (rc == 0) rc = dnn_infer_input_open(v->config, &v->input, err);
    if (rc == 0) rc = read_extents(v, err);
    if (rc == 0)
        rc =
            dnn_infer_net_open(&v->stage, whole ? own : v->tile,
                               whole ? 1 : v->config->infer->batch, NULL, &v->net, err);
    DNN_TRY(dnn_comm_agree(v->session->comm, rc, err));
    DNN_TRY(dnn_infer_load(v->config, v->session, v->net->model, err));
    if (whole) DNN_TRY(try_whole(v, err));
    rc = count_slabs(v, err);
    if (rc == 0)
        rc = dnn_infer_result_make(&v->r, v->config, v->session, v->net->graph, err);
    DNN_TRY(dnn_comm_agree(v->session->comm, rc, err));
    log_header(v);
    DNN_TRY(open_result(v, err));
    DNN_TRY(run_all(v, err));
    const struct infer_found found = {
        .samples = v->count, .seconds = dnn_clock_now() - began, .loss = NAN};
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
    dnn_free(v.plan);
    return rc;
}
