/* step.c - time a training step and inference of a network.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/bench_impl.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/progress.h"
#include "base/text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <omp.h>
#include <string.h>
#include <unistd.h>

/* ---- memory of this process, as reported by the system ---- */

/* The value of "VmRSS:" or "VmHWM:" in bytes; 0 if the system does not report it. */
static double resident(const char *which)
{
    char *text = NULL;
    uint64_t kib = 0;

    if (dnn_file_read_text("/proc/self/status", 1 << 20, &text, NULL) < 0) return 0;
    const char *at = strstr(text, which);
    if (at != NULL && sscanf(at + strlen(which), " %" SCNu64, &kib) != 1) kib = 0;
    dnn_free(text);
    return (double)kib * 1024;
}

/* Reset the peak (VmHWM) of the resident memory, if the system allows it. */
static void reset_peak(void)
{
    malloc_trim(0);
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

    if (fd < 0) return;
    /* If this is refused, the old peak remains. */
    if (write(fd, "5", 1) != 1) dnn_clock_sleep(0);
    close(fd);
}

/* ---- one phase: training or inference ---- */

struct work {
    const struct dnn_bench_step *cfg;
    struct dnn_net net;    /* owned */
    struct dnn_loss *loss; /* owned */
    const struct dnn_backend *backend;
    int threads;
    size_t limit;
    double sgemm;
    struct dnn_bench_phase phase[DNN_BENCH_PHASES];
    /* PyTorch: a process per memory format; owned; NULL: not started. */
    struct dnn_proc *torch[DNN_TORCH_FORMATS];
    double torch_memory[DNN_TORCH_FORMATS];
    int compiled; /* the memory format of torch.compile */
    struct dnn_torch_info info;
};

static const char *const phase_word[DNN_BENCH_PHASES] = {"train", "infer"};
static const char *const formats[DNN_TORCH_FORMATS] = {"contiguous", "channels_last"};

static int make(struct work *w, int which, struct dnn_err *err)
{
    const struct dnn_bench_step *cfg = w->cfg;
    struct dnn_bench_phase *phase = &w->phase[which];
    const struct dnn_model_opts opts = {
        .batch = cfg->batch,
        .role = which == DNN_BENCH_TRAIN ? DNN_MODEL_TRAIN : DNN_MODEL_INFER,
        .loss = w->loss,
        .optim = dnn_optim_defaults((enum dnn_update)cfg->optimizer),
        .recompute = (enum dnn_recompute)cfg->recompute,
        .limit = w->limit,
        .no_fusion = !cfg->fuse,
        .backend = w->backend,
        .device = {.threads = w->threads,
                   .kernels = (enum dnn_kernel_selection)cfg->kernels,
                   .cache = cfg->cache},
    };

    DNN_TRY(dnn_model_make(w->net.graph, &opts, &phase->model, err));
    phase->predicted = (double)dnn_model_bytes(phase->model).all;
    phase->flops = dnn_measure_flops(
        phase->model->original != NULL ? phase->model->original : phase->model->prog);
    reset_peak();
    phase->measured = -resident("VmRSS:");
    DNN_TRY(dnn_model_start(phase->model, err));
    DNN_TRY(dnn_model_fill(phase->model, 1, err));
    /* Exclude the temporary memory of dnn_model_fill(). */
    reset_peak();
    return 0;
}

static int run_ours(struct dnn_bench_phase *phase, double *op_seconds, double *seconds,
                    struct dnn_err *err)
{
    double start = dnn_clock_now();

    DNN_TRY(
        dnn_model_run(phase->model, phase->model->opts.optim.rate, op_seconds, err));
    *seconds = dnn_clock_now() - start;
    return 0;
}

/* Run one step of dnn-toolkit (v NULL) or of PyTorch. */
static int run_once(struct work *w, int which, const struct dnn_torch_variant *v,
                    double *seconds, struct dnn_err *err)
{
    struct dnn_json *reply;
    char request[48];

    if (v == NULL) return run_ours(&w->phase[which], NULL, seconds, err);
    snprintf(request, sizeof request, "run %s %s\n", phase_word[which],
             v->compiled ? "compile" : "eager");
    DNN_TRY(dnn_proc_ask(w->torch[v->process], request, &reply, err));
    *seconds = dnn_proc_number(reply, "seconds");
    dnn_json_free(reply);
    return 0;
}

/* Add the variants of PyTorch: eager in each memory format, and compiled. */
static int add_variants(struct work *w, int which, struct dnn_err *err)
{
    struct dnn_bench_phase *phase = &w->phase[which];
    struct dnn_json *reply;
    char request[48];
    double seconds;

    for (int f = 0; f < DNN_TORCH_FORMATS && w->torch[f] != NULL; f++)
        phase->variant[phase->nvariants++] =
            (struct dnn_torch_variant){.format = formats[f], .process = f};
    if (phase->nvariants > 0 && w->cfg->compile > 0) {
        snprintf(request, sizeof request, "compile %s %ld\n", phase_word[which],
                 w->cfg->compile);
        DNN_TRY(dnn_proc_ask(w->torch[w->compiled], request, &reply, err));
        const char *reason = dnn_proc_text(reply, "reason");
        if (reason[0] != '\0')
            dnn_log(DNN_WARN, "bench", "torch.compile is not measured: %s", reason);
        else
            phase->variant[phase->nvariants++] =
                (struct dnn_torch_variant){.format = formats[w->compiled],
                                           .compiled = true,
                                           .process = w->compiled};
        dnn_json_free(reply);
    }
    for (int i = 0; i < phase->nvariants; i++)
        DNN_TRY(run_once(w, which, &phase->variant[i], &seconds, err));
    return 0;
}

/* Time one step, ours or of a variant of PyTorch, for dnn_bench_turns(). */
struct step {
    struct work *work;
    int which;
    const struct dnn_torch_variant *variant; /* NULL: ours */
};

static int run_step(void *arg, double *seconds, struct dnn_err *err)
{
    const struct step *s = arg;

    return run_once(s->work, s->which, s->variant, seconds, err);
}

static int repeat(struct work *w, int which, struct dnn_progress *progress,
                  struct dnn_err *err)
{
    struct dnn_bench_phase *phase = &w->phase[which];
    struct dnn_bench_runner runner[1 + DNN_TORCH_VARIANTS] = {{0}};
    struct step step[1 + DNN_TORCH_VARIANTS];

    DNN_TRY(add_variants(w, which, err));
    for (int k = 0; k <= phase->nvariants; k++) {
        step[k] = (struct step){w, which, k == 0 ? NULL : &phase->variant[k - 1]};
        runner[k] = (struct dnn_bench_runner){.run = run_step, .arg = &step[k]};
    }
    int rc = dnn_bench_turns(runner, 1 + phase->nvariants, w->cfg->reps, progress,
                             which * w->cfg->reps, err);
    phase->seconds = dnn_values_median(&runner[0].times);
    for (int k = 0; k < phase->nvariants; k++) {
        struct dnn_torch_variant *v = &phase->variant[k];

        v->seconds = dnn_values_median(&runner[1 + k].times);
        if (phase->best == NULL || v->seconds < phase->best->seconds) phase->best = v;
    }
    for (int k = 0; k <= phase->nvariants; k++)
        dnn_values_free(&runner[k].times);
    if (phase->best != NULL && which == DNN_BENCH_TRAIN)
        phase->torch_memory = w->torch_memory[phase->best->process];
    return rc;
}

/* Time the ops.  A step takes a little longer op by op, so the times are scaled to the
 * median. */
static int profile(struct dnn_bench_phase *phase, struct dnn_err *err)
{
    int n = phase->model->prog->nops, runs = phase->seconds < 0.5 ? 5 : 1;
    double sum = 0, seconds;

    phase->op_seconds = dnn_alloc(((size_t)n + 1) * sizeof(double));
    for (int i = 0; i < runs; i++)
        DNN_TRY(run_ours(phase, phase->op_seconds, &seconds, err));
    for (int o = 0; o < n; o++)
        sum += phase->op_seconds[o];
    for (int o = 0; o < n; o++)
        phase->op_seconds[o] *= sum > 0 ? phase->seconds / sum : 0;
    return 0;
}

static int measure(struct work *w, int which, struct dnn_progress *progress,
                   struct dnn_err *err)
{
    struct dnn_bench_phase *phase = &w->phase[which];

    DNN_TRY(make(w, which, err));
    DNN_TRY(repeat(w, which, progress, err));
    double peak = resident("VmHWM:");
    phase->measured = peak == 0 ? 0 : phase->measured + peak;
    return w->cfg->json ? 0 : profile(phase, err);
}

/* ---- both ---- */

int dnn_bench_net(const struct dnn_zoo_opts *zoo, const char *layers,
                  const struct dnn_net_size *size, struct dnn_net *out,
                  struct dnn_err *err)
{
    if ((layers == NULL) == (zoo->zoo == NULL))
        return dnn_fail(err, DNN_EUSAGE,
                        "no network: give either --model NAME or --layers FILE");
    if (layers != NULL) return dnn_net_file(layers, size, out, err);
    return dnn_net_zoo(zoo, size, out, err);
}

static int open_net(struct work *w, struct dnn_err *err)
{
    const struct dnn_bench_step *cfg = w->cfg;
    const struct dnn_net_size size = {cfg->size, cfg->channels};
    unsigned long long bytes = 0;

    if (cfg->limit != NULL && (!dnn_text_size(cfg->limit, &bytes) || bytes == 0))
        return dnn_fail(err, DNN_EUSAGE,
                        "--memory-limit: must be a size such as 16GiB, not \"%.40s\"",
                        cfg->limit);
    w->limit = (size_t)bytes;
    return dnn_bench_net(&cfg->zoo, cfg->layers, &size, &w->net, err);
}

/* Start PyTorch in each memory format.  This is done while this process is small,
 * because the peak memory of a child that the system reports starts with the memory of
 * its parent. */
static int start_processes(struct work *w, const char *layers, struct dnn_err *err)
{
    char batch[24], threads[24];
    double best = 0;

    snprintf(batch, sizeof batch, "%ld", w->cfg->batch);
    snprintf(threads, sizeof threads, "%d", w->threads);
    for (int f = 0; f < DNN_TORCH_FORMATS; f++) {
        const char *const args[] = {"--layers", layers,      "--batch",
                                    batch,      "--threads", threads,
                                    "--format", formats[f],  NULL};
        struct dnn_json *first;

        DNN_TRY(dnn_torch_start("torch_step.py", args, &w->info, &first, &w->torch[f],
                                err));
        double seconds = dnn_proc_number(first, "seconds");
        w->torch_memory[f] = dnn_proc_number(first, "memory");
        dnn_json_free(first);
        if (f == 0 || seconds < best) w->compiled = f;
        if (f == 0 || seconds < best) best = seconds;
    }
    return 0;
}

static int start_torch(struct work *w, struct dnn_err *err)
{
    const struct dnn_bench_step *cfg = w->cfg;
    char *dir = NULL;

    if (cfg->against == DNN_AGAINST_NONE) return 0;
    if (cfg->loss != 0 || cfg->optimizer != DNN_UPDATE_ADAM)
        return dnn_fail(
            err, DNN_EUSAGE,
            "--against torch supports --loss mse and --optimizer adam only");
    if (w->net.text == NULL) {
        if (cfg->size != NULL || cfg->channels > 0)
            return dnn_fail(
                err, DNN_EUSAGE,
                "--against torch uses the size in the file; change it there "
                "instead of --size and --channels");
        return start_processes(w, cfg->layers, err);
    }
    DNN_TRY(dnn_bench_make_dir(NULL, &dir, err));
    char *path = dnn_format("%s/net.json", dir);
    int rc = dnn_file_write(path, w->net.text, strlen(w->net.text), err);
    if (rc == 0) rc = start_processes(w, path, err);
    rc = dnn_bench_remove_dir(dir, rc, err);
    dnn_free(path);
    dnn_free(dir);
    return rc;
}

static int run(struct work *w, FILE *where, struct dnn_err *err)
{
    const struct dnn_bench_step *cfg = w->cfg;
    struct dnn_progress *progress = dnn_progress_start(
        "bench", "measuring", DNN_BENCH_PHASES * cfg->reps, "steps", NULL);
    int rc = start_torch(w, err);

    w->sgemm = rc < 0 ? 0 : dnn_bench_sgemm(w->threads);
    for (int i = 0; i < DNN_BENCH_PHASES && rc == 0; i++) {
        rc = measure(w, i, progress, err);
        dnn_progress_hide(progress);
        double again = rc < 0 ? 0 : dnn_bench_sgemm(w->threads);
        if (again > w->sgemm) w->sgemm = again;
        if (rc == 0 && !cfg->json)
            dnn_bench_print_phase(cfg, i, &w->phase[i], &w->info, w->sgemm, where);
        dnn_model_free(w->phase[i].model);
        w->phase[i].model = NULL;
    }
    dnn_progress_stop(progress, rc == 0);
    return rc;
}

int dnn_bench_step(const struct dnn_bench_step *cfg, FILE *where, struct dnn_err *err)
{
    struct work w = {.cfg = cfg,
                     .threads =
                         cfg->threads > 0 ? (int)cfg->threads : omp_get_max_threads()};

    int rc = dnn_model_backend(cfg->backend, &w.backend, err);
    if (rc == 0) rc = open_net(&w, err);
    if (rc == 0)
        rc = dnn_loss_make(dnn_choice_name(dnn_loss_names, cfg->loss), &w.loss, err);
    if (rc == 0) rc = run(&w, where, err);
    if (rc == 0 && cfg->json) dnn_bench_print_json(w.phase, &w.info, w.sgemm, where);
    for (int i = 0; i < DNN_BENCH_PHASES; i++) {
        dnn_model_free(w.phase[i].model);
        dnn_free(w.phase[i].op_seconds);
    }
    for (int f = 0; f < DNN_TORCH_FORMATS; f++)
        dnn_proc_stop(w.torch[f]);
    dnn_loss_free(w.loss);
    dnn_net_free(&w.net);
    return rc;
}
