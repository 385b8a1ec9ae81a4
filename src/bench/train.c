/* train.c - how fast networks are trained: dnn-train on one rank and on several, and
 * PyTorch, whole runs in turns.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/train_impl.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct dnn_choice dnn_bench_parts[] = {
    {"all",  DNN_BENCH_ALL },
    {"unet", DNN_BENCH_UNET},
    {"cnn",  DNN_BENCH_CNN },
    {NULL,   0             }
};

enum { WORDS = 48, PERIOD = 8 };

/* ---- runs ---- */

/* The words of a command; texts that were made for it are freed with it. */
struct command {
    const char *word[WORDS];
    char *made[WORDS];
    int n, nmade;
};

static void say(struct command *c, const char *word)
{
    if (c->n < WORDS - 1) c->word[c->n++] = word;
}

static void say_made(struct command *c, char *word)
{
    c->made[c->nmade++] = word;
    say(c, word);
}

static void say_number(struct command *c, const char *option, int64_t number)
{
    say(c, option);
    say_made(c, dnn_format("%" PRId64, number));
}

static void unsay(struct command *c)
{
    for (int i = 0; i < c->nmade; i++)
        dnn_free(c->made[i]);
}

static void say_launch(const struct dnn_train_all *all, int ranks, struct command *c)
{
    const char *text = all->use.launch;

    while (*(text += strspn(text, " ")) != '\0' && c->n < 16) {
        size_t len = strcspn(text, " ");

        say_made(c, dnn_strndup(text, len));
        text += len;
    }
    say_number(c, "-n", ranks);
}

static int run(const struct dnn_train_all *all, const struct command *c, int threads,
               struct dnn_train_lines *out, struct dnn_err *err)
{
    const struct dnn_train_child child = {c->word, threads, all->cache};

    return dnn_train_child(&child, out, err);
}

static void say_rival(const struct dnn_train_work *w, const struct dnn_train_way *way,
                      char *script, struct command *c)
{
    say(c, "python3");
    say_made(c, script);
    say(c, "--layers");
    say_made(c, dnn_format("%s/net.json", w->dir));
    say(c, "--data");
    say(c, w->data);
    say_number(c, "--batch", w->batch);
    say_number(c, "--test-batch", w->test_batch);
    say_number(c, "--threads", way->threads);
    say_number(c, "--ranks", way->ranks);
}

static void say_ours(const struct dnn_train_all *all, const struct dnn_train_work *w,
                     const struct dnn_train_way *way, const char *dir,
                     struct command *c)
{
    if (way->ranks > 1) say_launch(all, way->ranks, c);
    say(c, all->train);
    say(c, "--json");
    say(c, "--set");
    say_made(c, dnn_format("dir=%s", dir));
    for (int i = 0; way->set[i] != NULL; i++) {
        say(c, "--set");
        say(c, way->set[i]);
    }
    if (way->saves) {
        say(c, "--set");
        say_made(c, dnn_format("checkpoints.steps=%d", w->period));
    }
    say_made(c, dnn_format("%s/job.json", w->dir));
}

/* One run of one way. */
static int turn(const struct dnn_train_all *all, const struct dnn_train_work *w,
                struct dnn_train_way *way, struct dnn_err *err)
{
    struct dnn_train_lines lines = {0};
    struct command c = {{0}, {0}, 0, 0};
    char *dir = dnn_format("%s/run-%s", w->dir, way->key);
    int rc = dnn_file_remove_tree(dir, err);

    if (rc == 0 && way->rival) {
        char *script = dnn_rival_script("torch_train.py", err);

        if (script == NULL) rc = DNN_EIO;
        say_rival(w, way, script, &c);
        say_number(&c, "--epochs", all->use.epochs + 1);
        say(&c, "--format");
        say(&c, way->format);
        say(&c, "--reader");
        say(&c, way->reader);
    } else if (rc == 0) {
        say_ours(all, w, way, dir, &c);
    }
    if (rc == 0) rc = run(all, &c, way->threads, &lines, err);
    if (rc < 0) dnn_prefix(err, "%s, %s: ", w->name, way->name);
    if (rc == 0) rc = dnn_train_look(&lines, w, way, err);
    unsay(&c);
    dnn_train_forget(&lines);
    dnn_free(dir);
    return rc;
}

/* The rival's best way of its own. */
static int probe(const struct dnn_train_all *all, const struct dnn_train_work *w,
                 struct dnn_train_way *way, struct dnn_err *err)
{
    char *script = dnn_rival_script("torch_train.py", err);
    struct dnn_train_lines lines = {0};
    struct command c = {{0}, {0}, 0, 0};
    double best = 0;

    if (script == NULL) return DNN_EIO;
    say_rival(w, way, script, &c);
    say_number(&c, "--probe", w->batch < 32 ? 2 : all->use.quick ? 2 : 50);
    int rc = run(all, &c, way->threads, &lines, err);
    for (int i = 0; i < lines.n && rc == 0; i++) {
        const struct dnn_train_line *at = &lines.line[i];

        if (at->moment != DNN_TRAIN_PROBE || !(at->rate > best)) continue;
        best = at->rate;
        memcpy(way->format, at->format, sizeof way->format);
        memcpy(way->reader, at->reader, sizeof way->reader);
    }
    if (rc == 0 && best <= 0) rc = dnn_fail(err, DNN_EDATA, "it trained nothing");
    unsay(&c);
    dnn_train_forget(&lines);
    return rc;
}

/* ---- which ways there are ---- */

static struct dnn_train_way *add_way(struct dnn_train_work *w, const char *key,
                                     const char *name, int ranks, int threads)
{
    struct dnn_train_way *way = &w->way[w->nways++];

    *way = (struct dnn_train_way){
        .key = key, .name = name, .ranks = ranks, .threads = threads};
    return way;
}

static const char same[] = "deterministic=true";

static void add_ways(struct dnn_train_all *all, struct dnn_train_work *w, bool unet)
{
    int n = (int)all->use.ranks;

    add_way(w, "one", "dnn-train", 1, n);
    if (all->no_ranks == NULL) add_way(w, "ranks", "dnn-train", n, 1);
    add_way(w, "one_same", "dnn-train, deterministic", 1, n)->set[0] = same;
    if (unet) {
        bool ranks = all->no_ranks == NULL;

        if (ranks)
            add_way(w, "ranks_same", "dnn-train, deterministic", n, 1)->set[0] = same;
        add_way(w, "saves", "dnn-train, checkpoints", ranks ? n : 1, ranks ? 1 : n)
            ->saves = true;
    }
    if (all->use.against != DNN_AGAINST_TORCH) return;
    if (unet) add_way(w, "torch_ranks", "PyTorch DDP, gloo", n, 1)->rival = true;
    add_way(w, "torch_one", "PyTorch", 1, n)->rival = true;
}

/* Without PyTorch its ways go, and the reason is kept. */
static void probe_all(struct dnn_train_all *all, struct dnn_train_work *w)
{
    const struct dnn_train_way *before = NULL;
    int kept = 0;

    for (int i = 0; i < w->nways; i++) {
        struct dnn_train_way *way = &w->way[i];

        if (way->rival && before != NULL && all->use.quick) {
            memcpy(way->format, before->format, sizeof way->format);
            memcpy(way->reader, before->reader, sizeof way->reader);
        } else if (way->rival && all->no_torch == NULL &&
                   probe(all, w, way, &all->why_torch) < 0) {
            all->no_torch = all->why_torch.text;
        }
        if (way->rival && all->no_torch != NULL) continue;
        w->way[kept++] = *way;
        if (way->rival) before = &w->way[kept - 1];
    }
    w->nways = kept;
}

/* Whether ranks can be started at all. */
static void try_ranks(struct dnn_train_all *all)
{
    struct dnn_train_lines none = {0};
    struct command c = {{0}, {0}, 0, 0};

    say_launch(all, (int)all->use.ranks, &c);
    say(&c, all->train);
    say(&c, "--version");
    if (run(all, &c, 1, &none, &all->why_ranks) < 0)
        all->no_ranks = all->why_ranks.text;
    unsay(&c);
    dnn_train_forget(&none);
}

/* ---- the whole ---- */

static void choose(struct dnn_train_all *all)
{
    struct dnn_bench_train *use = &all->use;
    const char *mpiexec = getenv("MPIEXEC");

    *use = *all->cfg;
    if (use->launch == NULL) use->launch = mpiexec != NULL ? mpiexec : "mpiexec";
    if (!use->quick) return;
    use->size = 16;
    use->base = 4;
    use->depth = 1;
    use->volumes = 8;
    use->batch = 2;
    use->count = 256;
    use->image_batch = 64;
    use->epochs = 2;
    use->reps = 1;
}

static int make_dir(struct dnn_train_all *all, struct dnn_err *err)
{
    const char *tmp = getenv("TMPDIR");
    char here[DNN_BENCH_PATH];

    if (all->use.keep != NULL) {
        DNN_TRY(dnn_file_make_dirs(all->use.keep, err));
        all->dir = realpath(all->use.keep, NULL);
        if (all->dir == NULL)
            return dnn_fail(err, DNN_EIO, "%s: %s", all->use.keep, strerror(errno));
    } else {
        all->dir = dnn_format("%s/dnn-bench-train-XXXXXX", tmp != NULL ? tmp : "/tmp");
        if (mkdtemp(all->dir) == NULL)
            return dnn_fail(err, DNN_EIO, "%s: %s", all->dir, strerror(errno));
        all->own = true;
    }
    all->cache = dnn_format("%s/cache", all->dir);
    DNN_TRY(dnn_file_remove_tree(all->cache, err));
    dnn_bench_here(here);
    all->train = dnn_format("%s/dnn-train", here);
    all->prepare = dnn_format("%s/dnn-prepare", here);
    for (int i = 0; i < 2; i++) {
        const char *tool = i == 0 ? all->train : all->prepare;

        if (access(tool, X_OK) != 0)
            return dnn_fail(err, DNN_EIO, "%s: %s; it must be beside dnn-bench", tool,
                            strerror(errno));
    }
    return 0;
}

static int make_work(struct dnn_train_all *all, bool unet, struct dnn_err *err)
{
    struct dnn_train_work *w = &all->work[all->nworks++];

    w->key = unet ? "unet" : "cnn";
    w->name = unet ? "3D U-Net" : "CNN";
    w->dir = dnn_format("%s/%s", all->dir, w->key);
    DNN_TRY(unet ? dnn_train_make_unet(all, w, err) : dnn_train_make_cnn(all, w, err));
    w->steps = (w->samples + w->batch - 1) / w->batch;
    if (unet) w->period = w->steps >= PERIOD ? PERIOD : 2;
    add_ways(all, w, unet);
    probe_all(all, w);
    return 0;
}

static int measure(struct dnn_train_all *all, struct dnn_err *err)
{
    int total = 0, done = 0, rc = 0;

    for (int i = 0; i < all->nworks; i++)
        total += all->work[i].nways * (int)all->use.reps;
    struct dnn_progress *progress =
        dnn_progress_start("bench", "training", total, "runs", NULL);
    for (long r = 0; r < all->use.reps && rc == 0; r++)
        for (int i = 0; i < all->nworks && rc == 0; i++)
            for (int k = 0; k < all->work[i].nways && rc == 0; k++) {
                rc = turn(all, &all->work[i], &all->work[i].way[k], err);
                dnn_progress_at(progress, ++done);
            }
    dnn_progress_stop(progress, rc == 0);
    return rc;
}

static int go(struct dnn_train_all *all, struct dnn_err *err)
{
    int part = all->use.part;

    DNN_TRY(make_dir(all, err));
    try_ranks(all);
    if (all->no_ranks != NULL)
        dnn_log(DNN_WARN, "bench", "without several ranks: %s", all->no_ranks);
    if (part != DNN_BENCH_CNN) DNN_TRY(make_work(all, true, err));
    if (part != DNN_BENCH_UNET) DNN_TRY(make_work(all, false, err));
    if (all->no_torch != NULL)
        dnn_log(DNN_WARN, "bench", "without PyTorch: %s", all->no_torch);
    return measure(all, err);
}

static void free_all(struct dnn_train_all *all)
{
    for (int i = 0; i < all->nworks; i++) {
        struct dnn_train_work *w = &all->work[i];

        for (int k = 0; k < w->nways; k++) {
            struct dnn_train_way *y = &w->way[k];

            dnn_free(y->rate.value);
            dnn_free(y->whole.value);
            dnn_free(y->comm.value);
            dnn_free(y->late.value);
            dnn_free(y->bare.value);
            dnn_free(y->start.value);
            dnn_free(y->extra.value);
        }
        dnn_free(w->dir);
        dnn_free(w->data);
    }
    dnn_free(all->dir);
    dnn_free(all->cache);
    dnn_free(all->train);
    dnn_free(all->prepare);
}

int dnn_bench_train(const struct dnn_bench_train *cfg, FILE *where, struct dnn_err *err)
{
    struct dnn_train_all *all = dnn_alloc(sizeof *all);
    struct dnn_err second = {0};

    all->cfg = cfg;
    choose(all);
    int rc = go(all, err);
    if (rc == 0) dnn_train_print(all, where);
    if (all->own) {
        int gone = dnn_file_remove_tree(all->dir, &second);

        if (rc == 0 && gone < 0) {
            rc = gone;
            if (err != NULL) *err = second;
        }
    }
    free_all(all);
    dnn_free(all);
    return rc;
}
