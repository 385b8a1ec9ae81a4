/* train.c - measure how fast networks are trained: complete runs of dnn-train, on one
 * rank and on several, and of PyTorch, alternately.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/train_impl.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct dnn_choice dnn_bench_parts[] = {
    {"all",  DNN_BENCH_ALL },
    {"unet", DNN_BENCH_UNET},
    {"cnn",  DNN_BENCH_CNN },
    {NULL,   0             }
};

enum { ARGS = 48, PERIOD = 8 };

/* ---- commands ---- */

struct command {
    char *arg[ARGS]; /* owned */
    int n;
};

DNN_PRINTF(2, 3) static void add(struct command *c, const char *fmt, ...)
{
    char text[DNN_BENCH_PATH + 64];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (c->n < ARGS - 1) c->arg[c->n++] = dnn_strdup(text);
}

static void add_launcher(const struct dnn_train *t, int ranks, struct command *c)
{
    const char *text = t->cfg.launch;

    while (*(text += strspn(text, " ")) != '\0' && c->n < 16) {
        int len = (int)strcspn(text, " ");

        add(c, "%.*s", len, text);
        text += len;
    }
    add(c, "-n");
    add(c, "%d", ranks);
}

static int add_torch(const struct dnn_train_net *net, const struct dnn_train_setup *s,
                     struct command *c, struct dnn_err *err)
{
    char *python = dnn_torch_python(err);
    char *script = python == NULL ? NULL : dnn_torch_script("torch_train.py", err);

    if (script != NULL) {
        add(c, "%s", python);
        add(c, "%s", script);
        add(c, "--layers=%s/net.json", net->dir);
        add(c, "--data=%s", net->data);
        add(c, "--batch=%" PRId64, net->batch);
        add(c, "--test-batch=%" PRId64, net->test_batch);
        add(c, "--threads=%d", s->threads);
        add(c, "--ranks=%d", s->ranks);
    }
    dnn_free(python);
    dnn_free(script);
    return script == NULL ? DNN_EIO : 0;
}

static void add_ours(const struct dnn_train *t, const struct dnn_train_net *net,
                     const struct dnn_train_setup *s, const char *dir,
                     struct command *c)
{
    if (s->ranks > 1) add_launcher(t, s->ranks, c);
    add(c, "%s", t->train);
    add(c, "--json");
    add(c, "--set=dir=%s", dir);
    if (s->deterministic) add(c, "--set=deterministic=true");
    if (s->checkpoints) add(c, "--set=checkpoints.steps=%d", net->period);
    add(c, "%s/config.json", net->dir);
}

/* ---- runs ---- */

/* The values that a run has reported so far. */
struct run_values {
    struct dnn_train *t;
    const struct dnn_train_net *net;
    struct dnn_train_setup *setup;
    int epochs;                  /* number of completed epochs                  */
    double began, step;          /* time in s: end of the previous epoch, step  */
    double previous;             /* time in s of the previous line              */
    double comm, straggler, all; /* sums over the steps of an epoch */
    double best;                 /* samples per second of the best probe */
    double half[2];
    int in_period;
};

/* Measure how much longer the steps in the half period after a checkpoint take than
 * those of the other half; without checkpoints, in the same steps. */
static void add_period(struct run_values *f, int64_t step, double seconds)
{
    int period = f->net->period, at = period == 0 ? 0 : (int)((step - 1) % period);

    if (period == 0) return;
    if (at == 0) f->half[0] = f->half[1] = f->in_period = 0;
    f->half[at >= period / 2] += seconds;
    if (++f->in_period == period)
        dnn_values_add(&f->setup->excess, f->half[0] - f->half[1]);
}

static void add_step(struct run_values *f, const struct dnn_json *json, double seconds)
{
    double rate = dnn_proc_number(json, "samples_per_second");

    f->step = seconds;
    if (f->epochs == 0) return;
    add_period(f, (int64_t)dnn_proc_number(json, "step"), seconds - f->previous);
    if (!(rate > 0)) return;
    f->comm += dnn_proc_number(json, "comm") / rate;
    f->straggler += dnn_proc_number(json, "straggler") / rate;
    f->all += 1 / rate;
}

/* Add the speed of an epoch, except the first one. */
static void add_epoch(struct run_values *f, double seconds)
{
    struct dnn_train_setup *s = f->setup;
    double samples = (double)f->net->samples;

    if (f->epochs++ > 0 && f->step > f->began) {
        dnn_values_add(&s->rate, samples / (f->step - f->began));
        dnn_values_add(&s->total, samples / (seconds - f->began));
        if (f->all > 0 && s->ranks > 1) {
            dnn_values_add(&s->comm, f->comm / f->all);
            dnn_values_add(&s->straggler, f->straggler / f->all);
            dnn_values_add(&s->bare, (f->comm - f->straggler) / f->all);
        }
    }
    f->began = seconds;
    f->comm = f->straggler = f->all = 0;
}

/* Store the variant of PyTorch if it is the fastest so far. */
static void add_probe(struct run_values *f, const struct dnn_json *json)
{
    struct dnn_train_setup *s = f->setup;
    double rate = dnn_proc_number(json, "samples_per_second");

    if (dnn_proc_text(json, "reason")[0] != '\0')
        dnn_log(DNN_WARN, "bench", "torch.compile is not measured: %s",
                dnn_proc_text(json, "reason"));
    if (!(rate > f->best)) return;
    f->best = rate;
    snprintf(s->format, sizeof s->format, "%s", dnn_proc_text(json, "format"));
    snprintf(s->reader, sizeof s->reader, "%s", dnn_proc_text(json, "reader"));
    snprintf(s->mode, sizeof s->mode, "%s", dnn_proc_text(json, "mode"));
}

static void add_line(struct run_values *f, const struct dnn_json *json, double at)
{
    const char *event = dnn_proc_text(json, "event");
    double seconds = dnn_proc_number(json, "seconds");

    if (strcmp(event, "step") == 0) {
        if (f->previous == 0) dnn_values_add(&f->setup->start, at);
        add_step(f, json, seconds);
    } else if (strcmp(event, "epoch") == 0) {
        add_epoch(f, seconds);
    } else if (strcmp(event, "probe") == 0) {
        add_probe(f, json);
    } else if (strcmp(event, "about") == 0) {
        dnn_torch_read_info(json, &f->t->info);
    }
    if (seconds > 0) f->previous = seconds;
}

static void free_command(struct command *c)
{
    for (int i = 0; i < c->n; i++)
        dnn_free(c->arg[i]);
}

/* Run a command to its end. */
static int run(struct dnn_train *t, struct command *c, int threads,
               struct run_values *f, struct dnn_err *err)
{
    char *omp = dnn_format("OMP_NUM_THREADS=%d", threads);
    char *cache = dnn_format("XDG_CACHE_HOME=%s", t->cache);
    const char *const env[] = {omp, cache, NULL};
    struct dnn_json *json = NULL;
    struct dnn_proc *p = NULL;
    double at;
    int rc = dnn_proc_start((const char *const *)c->arg, env, &p, err);

    if (rc == 0) rc = dnn_proc_next(p, &json, &at, err);
    while (rc == 0 && json != NULL) {
        if (f != NULL) add_line(f, json, at);
        dnn_json_free(json);
        rc = dnn_proc_next(p, &json, &at, err);
    }
    if (rc == 0) rc = dnn_proc_finish(p, err);
    dnn_proc_stop(p);
    dnn_free(omp);
    dnn_free(cache);
    return rc;
}

/* Run a setup once. */
static int run_setup(struct dnn_train *t, const struct dnn_train_net *net,
                     struct dnn_train_setup *s, struct dnn_err *err)
{
    struct run_values f = {.t = t, .net = net, .setup = s};
    struct command c = {{0}, 0};
    char *dir = dnn_format("%s/run-%s", net->dir, s->key);
    int rc = dnn_file_remove_tree(dir, err);

    if (rc == 0 && s->torch)
        rc = add_torch(net, s, &c, err);
    else if (rc == 0)
        add_ours(t, net, s, dir, &c);
    if (s->torch) {
        add(&c, "--epochs=%ld", t->cfg.epochs + 1);
        add(&c, "--format=%s", s->format);
        add(&c, "--reader=%s", s->reader);
        add(&c, "--mode=%s", s->mode);
    }
    if (rc == 0) rc = run(t, &c, s->threads, &f, err);
    if (rc == 0 && f.epochs < 2)
        rc = dnn_fail(err, DNN_EDATA, "fewer than two epochs were reported");
    if (rc < 0) dnn_prefix(err, "%s, %s: ", net->name, s->name);
    free_command(&c);
    dnn_free(dir);
    return rc;
}

/* Find the fastest format, reader and mode of PyTorch. */
static int probe(struct dnn_train *t, const struct dnn_train_net *net,
                 struct dnn_train_setup *s, struct dnn_err *err)
{
    struct run_values f = {.t = t, .net = net, .setup = s};
    struct command c = {{0}, 0};

    DNN_TRY(add_torch(net, s, &c, err));
    add(&c, "--probe=%d", net->batch < 32 || t->cfg.quick ? 2 : 50);
    add(&c, "--compile=%ld", t->cfg.compile);
    int rc = run(t, &c, s->threads, &f, err);
    if (rc == 0 && !(f.best > 0))
        rc = dnn_fail(err, DNN_EDATA, "PyTorch reported no step");
    free_command(&c);
    return rc;
}

/* ---- setups ---- */

static struct dnn_train_setup *add_setup(struct dnn_train_net *net, const char *key,
                                         const char *name, int ranks, int threads)
{
    struct dnn_train_setup *s = &net->setup[net->nsetups++];

    *s = (struct dnn_train_setup){
        .key = key, .name = name, .ranks = ranks, .threads = threads};
    return s;
}

/* Add a setup with PyTorch; if it does not run, log why and skip it. */
static void add_torch_setup(struct dnn_train *t, struct dnn_train_net *net,
                            const char *key, const char *name, int ranks, int threads)
{
    if (t->cfg.against != DNN_AGAINST_TORCH || t->torch_error.code != 0) return;
    struct dnn_train_setup *s = add_setup(net, key, name, ranks, threads);
    s->torch = true;
    if (t->cfg.quick && s > net->setup &&
        s[-1].torch) { /* copy the variant of the previous setup */
        memcpy(s->format, s[-1].format, sizeof s->format);
        memcpy(s->reader, s[-1].reader, sizeof s->reader);
        memcpy(s->mode, s[-1].mode, sizeof s->mode);
        return;
    }
    if (probe(t, net, s, &t->torch_error) == 0) return;
    net->nsetups--;
    dnn_log(DNN_WARN, "bench", "PyTorch is not measured: %s", t->torch_error.text);
}

static void add_setups(struct dnn_train *t, struct dnn_train_net *net, bool unet)
{
    int n = (int)t->cfg.ranks;
    bool ranks = t->rank_error.code == 0;

    add_setup(net, "one", "dnn-train", 1, n);
    if (ranks) add_setup(net, "ranks", "dnn-train", n, 1);
    add_setup(net, "one_deterministic", "dnn-train, deterministic", 1, n)
        ->deterministic = true;
    if (unet && ranks)
        add_setup(net, "ranks_deterministic", "dnn-train, deterministic", n, 1)
            ->deterministic = true;
    if (unet)
        add_setup(net, "checkpoints", "dnn-train, checkpoints", ranks ? n : 1,
                  ranks ? 1 : n)
            ->checkpoints = true;
    if (unet) add_torch_setup(t, net, "torch_ranks", "PyTorch DDP, gloo", n, 1);
    add_torch_setup(t, net, "torch_one", "PyTorch", 1, n);
}

/* ---- all ---- */

static void read_options(struct dnn_train *t, const struct dnn_bench_train *cfg)
{
    const char *mpiexec = getenv("MPIEXEC");

    t->cfg = *cfg;
    if (cfg->launch == NULL) t->cfg.launch = mpiexec != NULL ? mpiexec : "mpiexec";
    if (!cfg->quick) return;
    t->cfg.size = 16;
    t->cfg.base = 4;
    t->cfg.depth = 1;
    t->cfg.volumes = 8;
    t->cfg.batch = 2;
    t->cfg.count = 256;
    t->cfg.image_batch = 64;
    t->cfg.epochs = 2;
    t->cfg.reps = 1;
}

static int find_tools(struct dnn_train *t, struct dnn_err *err)
{
    char dir[DNN_BENCH_PATH];

    if (t->cfg.keep == NULL) {
        DNN_TRY(dnn_bench_make_dir(NULL, &t->dir, err));
    } else {
        DNN_TRY(dnn_file_make_dirs(t->cfg.keep, err));
        t->dir = realpath(t->cfg.keep, NULL);
        if (t->dir == NULL)
            return dnn_fail(err, DNN_EIO, "%s: %s", t->cfg.keep, strerror(errno));
    }
    t->cache = dnn_format("%s/cache", t->dir);
    DNN_TRY(dnn_file_remove_tree(t->cache, err));
    dnn_bench_dir(dir);
    t->train = dnn_format("%s/dnn-train", dir);
    t->prepare = dnn_format("%s/dnn-prepare", dir);
    if (access(t->train, X_OK) != 0)
        return dnn_fail(err, DNN_EIO, "%s: %s; it must be beside dnn-bench", t->train,
                        strerror(errno));
    /* Check whether ranks can be started. */
    struct command c = {{0}, 0};
    add_launcher(t, (int)t->cfg.ranks, &c);
    add(&c, "%s", t->train);
    add(&c, "--version");
    if (run(t, &c, 1, NULL, &t->rank_error) < 0)
        dnn_log(DNN_WARN, "bench", "several ranks are not measured: %s",
                t->rank_error.text);
    free_command(&c);
    return 0;
}

static int make_net(struct dnn_train *t, bool unet, struct dnn_err *err)
{
    struct dnn_train_net *net = &t->net[t->nnets++];

    net->key = unet ? "unet" : "cnn";
    net->name = unet ? "3D U-Net" : "CNN";
    net->dir = dnn_format("%s/%s", t->dir, net->key);
    DNN_TRY(dnn_file_make_dirs(net->dir, err));
    DNN_TRY(unet ? dnn_train_make_unet(t, net, err) : dnn_train_make_cnn(t, net, err));
    if (unet) net->period = net->samples >= PERIOD * net->batch ? PERIOD : 2;
    add_setups(t, net, unet);
    return 0;
}

static int measure(struct dnn_train *t, struct dnn_err *err)
{
    int total = 0, done = 0, rc = 0;

    DNN_TRY(find_tools(t, err));
    if (t->cfg.part != DNN_BENCH_CNN) DNN_TRY(make_net(t, true, err));
    if (t->cfg.part != DNN_BENCH_UNET) DNN_TRY(make_net(t, false, err));
    for (int i = 0; i < t->nnets; i++)
        total += t->net[i].nsetups * (int)t->cfg.reps;
    struct dnn_progress *progress =
        dnn_progress_start("bench", "training", total, "runs", NULL);
    for (long r = 0; r < t->cfg.reps; r++)
        for (int i = 0; i < t->nnets; i++)
            for (int k = 0; k < t->net[i].nsetups && rc == 0; k++) {
                rc = run_setup(t, &t->net[i], &t->net[i].setup[k], err);
                dnn_progress_at(progress, ++done);
            }
    dnn_progress_stop(progress, rc == 0);
    return rc;
}

static void free_all(struct dnn_train *t)
{
    for (int i = 0; i < t->nnets; i++) {
        struct dnn_train_net *net = &t->net[i];

        for (int k = 0; k < net->nsetups; k++) {
            struct dnn_train_setup *s = &net->setup[k];

            dnn_values_free(&s->rate);
            dnn_values_free(&s->total);
            dnn_values_free(&s->comm);
            dnn_values_free(&s->straggler);
            dnn_values_free(&s->bare);
            dnn_values_free(&s->start);
            dnn_values_free(&s->excess);
        }
        dnn_free(net->dir);
        dnn_free(net->data);
    }
    dnn_free(t->dir);
    dnn_free(t->cache);
    dnn_free(t->train);
    dnn_free(t->prepare);
    dnn_free(t);
}

int dnn_bench_train(const struct dnn_bench_train *cfg, FILE *where, struct dnn_err *err)
{
    struct dnn_train *t = dnn_alloc(sizeof *t);

    read_options(t, cfg);
    int rc = measure(t, err);
    if (rc == 0) dnn_train_print(t, where);
    if (cfg->keep == NULL) rc = dnn_bench_remove_dir(t->dir, rc, err);
    free_all(t);
    return rc;
}
