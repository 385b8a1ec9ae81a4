/* dnn-train.c - train the network a job describes, or say what that would do.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/stop.h"
#include "base/text.h"
#include "config/job.h"
#include "ckpt/ckpt.h"
#include "run/model.h"
#include "run/train.h"
#include "weights/weights.h"

#include <string.h>

struct options {
    bool explain, inference, keys, json, where;
    const char *config, *verify, *early, *target;
    struct dnn_opt_list set;
    const char *export, *weights, *backend;
    int kernels, app;
};

#define AT(f) offsetof(struct options, f)
static const struct dnn_choice choosing[] = {
    {"autotune",  DNN_KERNELS_AUTOTUNE },
    {"heuristic", DNN_KERNELS_HEURISTIC},
    {NULL,        0                    }
};
/* rmldnn's modules; here the loss alone says which of them it is. */
static const struct dnn_choice apps[] = {
    {"dnn", 0},
    {"pde", 1},
    {"gan", 2},
    {"obj", 3},
    {NULL,  0}
};
static const struct dnn_option options[] = {
    {.name = "explain",
     .letter = 'e',
     .type = DNN_O_FLAG,
     .offset = AT(explain),
     .help = "print job, network, steps with their kernels, memory and work, and stop"},
    {.name = "inference",
     .letter = 'i',
     .type = DNN_O_FLAG,
     .offset = AT(inference),
     .help = "explain inference instead of training"},
    {.name = "export",
     .letter = 'x',
     .type = DNN_O_TEXT,
     .offset = AT(export),
     .arg = "FILE",
     .help = "write the network as Keras 3 JSON"},
    {.name = "weights",
     .letter = 'w',
     .type = DNN_O_TEXT,
     .offset = AT(weights),
     .arg = "FILE",
     .help = "say what of this Keras file (.weights.h5, .h5, .keras) the network would "
             "take, and what not"},
    {.name = "backend",
     .type = DNN_O_TEXT,
     .offset = AT(backend),
     .arg = "NAME",
     .help = "what computes, instead of what the job says: cpu or ref"},
    {.name = "config",
     .letter = 'c',
     .type = DNN_O_TEXT,
     .offset = AT(config),
     .arg = "FILE",
     .help = "the job, for those who are used to name it so"},
    {.name = "app",
     .type = DNN_O_ENUM,
     .offset = AT(app),
     .arg = "WHICH",
     .def = "dnn",
     .choices = apps,
     .help = "as rmldnn has it; of no effect, for the job's loss says which it is"},
    {.name = "json",
     .letter = 'j',
     .type = DNN_O_FLAG,
     .offset = AT(json),
     .help = "print what happens as JSON, an object a line"},
    {.name = "verify",
     .type = DNN_O_TEXT,
     .offset = AT(verify),
     .arg = "DIR",
     .help = "say what this checkpoint holds and compare its checksums, and stop"},
    {.name = "where",
     .type = DNN_O_FLAG,
     .offset = AT(where),
     .help = "print the directory the run writes to, and stop"},
    {.name = "set",
     .letter = 's',
     .type = DNN_O_LIST,
     .offset = AT(set),
     .arg = "KEY=VALUE",
     .help =
         "change a key of the job, as data.batch_size=32; the value is JSON or else "
         "a text"},
    {.name = "early",
     .type = DNN_O_TEXT,
     .offset = AT(early),
     .arg = "RULE",
     .help = "stop early, as \"val_loss,~<,4\": the same as --set early_stopping=RULE"},
    {.name = "target-metric",
     .type = DNN_O_TEXT,
     .offset = AT(target),
     .arg = "RULE",
     .help = "stop when it is reached, as \"val_acc,>,0.97\": the same as --set "
             "target_metric=RULE"},
    {.name = "keys",
     .type = DNN_O_FLAG,
     .offset = AT(keys),
     .help = "print the keys of a job, as Markdown, and stop"},
    {.name = "kernels",
     .type = DNN_O_ENUM,
     .offset = AT(kernels),
     .arg = "HOW",
     .def = "autotune",
     .choices = choosing,
     .help = "kernels by measuring them first, or by rule"},
    {.name = NULL},
};

static char *command; /* owned: as it was typed, for the record */

/* The job with what the command line changes; --early and --target-metric are two
 * more changes. */
static int read_job(const struct options *o, const char *path, struct dnn_job *job,
                    struct dnn_err *err)
{
    const char *key[] = {"early_stopping", "target_metric"};
    const char *rule[] = {o->early, o->target};
    size_t count = (size_t)o->set.count;
    const char **all = dnn_alloc((count + 2) * sizeof *all);
    char *made[2] = {NULL, NULL};
    int n = o->set.count;

    if (count > 0) memcpy(all, o->set.text, count * sizeof *all);
    for (int i = 0; i < 2; i++)
        if (rule[i] != NULL) all[n++] = made[i] = dnn_format("%s=%s", key[i], rule[i]);
    int rc = dnn_job_read_set(path, n, all, job, err);
    dnn_free(made[0]);
    dnn_free(made[1]);
    dnn_free(all);
    return rc;
}

static int export_net(const struct dnn_job *job, const char *path, struct dnn_err *err)
{
    struct dnn_buf text = {0};
    int rc = dnn_graph_write(job->net.graph, &text, err);

    if (rc == 0) rc = dnn_file_write(path, text.text, text.len, err);
    dnn_buf_free(&text);
    return rc < 0 ? dnn_prefix(err, "--export: ") : rc;
}

/* Which weights of the network a file has. */
static int explain_weights(const char *path, const struct dnn_model *model,
                           struct dnn_err *err)
{
    const struct dnn_graph *graph = model->graph;
    const struct dnn_weights_order order = {graph->nlayers, graph->layer_name,
                                            graph->layer_class, graph->layer_model};
    struct dnn_weights *file = NULL;
    struct dnn_weights_match *match = NULL;

    DNN_TRY(dnn_weights_open(path, &file, err));
    int rc = dnn_weights_match(file, model->prog, &order, &match, err);
    if (rc == 0) {
        printf("\n");
        dnn_weights_print(match, stdout);
    }
    dnn_weights_match_free(match);
    dnn_weights_close(file);
    return rc;
}

/* Nothing is allocated: a network too large for this machine is explained, too. */
static int explain(const struct options *o, const struct dnn_job *job,
                   struct dnn_err *err)
{
    struct dnn_model_opts opts = {
        .batch = job->batch_size,
        .training = !o->inference,
        .loss = job->loss,
        .optim = job->optimizer,
        .dry = true,
        .limit = (size_t)job->memory_limit,
        .recompute = (enum dnn_recompute)job->recompute,
        .device = {.threads = (int)job->threads,
                   .kernels = (enum dnn_kernel_selection)o->kernels},
    };
    const char *backend = o->backend != NULL ? o->backend : job->backend;
    struct dnn_model *model = NULL;
    char *cache = dnn_model_cache((int)job->threads);

    opts.device.cache = cache;
    printf("job\n");
    dnn_job_print(job, stdout);
    printf("\n");
    dnn_graph_print(job->net.graph, stdout);
    printf("\n");
    int rc = dnn_model_backend(backend, &opts.backend, err);
    if (rc == 0) rc = dnn_model_make(job->net.graph, &opts, &model, err);
    if (rc == 0) rc = dnn_model_start(model, err);
    if (rc == 0) dnn_model_print(model, stdout);
    if (rc == 0 && o->weights != NULL) rc = explain_weights(o->weights, model, err);
    dnn_model_free(model);
    dnn_free(cache);
    return rc;
}

/* All ranks read the job, before anything else because it says how many threads they
 * have; that they agree on it is agreed on as soon as they can talk. */
static int train(const struct options *o, const char *path, struct dnn_err *err)
{
    struct dnn_session session;
    struct dnn_job job = {0};
    struct dnn_err later = {0};
    const struct dnn_train_opts opts = {.progress = !o->json,
                                        .json = o->json,
                                        .kernels = o->kernels,
                                        .backend = o->backend,
                                        .command = command};

    /* From the first moment to the last: who is asked to stop while starting stops
     * after the first step, and who has finished is not ended by a late signal. */
    dnn_stop_watch(false);
    int first = read_job(o, path, &job, err);
    int threads = first == 0 ? (int)job.threads : 0;
    int rc =
        dnn_session_open(threads, DNN_BIND_AUTO, &session, first < 0 ? &later : err);
    if (rc == 0) {
        rc = dnn_comm_agree(session.comm, first, err);
        if (rc == 0) rc = dnn_train_run(&job, &session, &opts, err);
        dnn_session_close(&session);
    } else if (first < 0) {
        rc = first;
    }
    dnn_job_free(&job);
    return rc;
}

static int run(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    const struct options *o = opt;
    struct dnn_job job;

    if (o->verify != NULL) return dnn_ckpt_verify(o->verify, stdout, err);
    if (o->keys) {
        dnn_job_docs(stdout);
        return 0;
    }
    const char *path = o->config;
    if (nargs == 1) path = args[0];
    if (path == NULL || (nargs == 1 && o->config != NULL))
        return dnn_fail(err, DNN_EUSAGE, "give the job's file, once");
    if (!o->explain && !o->where && o->export == NULL) return train(o, path, err);
    DNN_TRY(read_job(o, path, &job, err));
    int rc = o->export == NULL ? 0 : export_net(&job, o->export, err);
    if (rc == 0 && o->where) printf("%s\n", dnn_job_dir(&job));
    if (rc == 0 && o->explain) rc = explain(o, &job, err);
    dnn_job_free(&job);
    return rc;
}

static const struct dnn_command commands[] = {
    {.operands = "[JOB]",
     .min = 0,
     .max = 1,
     .help = "train as a job says, or explain it",
     .options = options,
     .run = run},
    {.run = NULL},
};

static const struct dnn_tool tool = {
    .name = "dnn-train",
    .help = "train a network as a job says, or say what that would do",
    .about =
        "A job is a JSON file.  It names a network under \"layers\": a Keras JSON file "
        "(from the job's own directory), the layers themselves, or a network of the "
        "zoo, as {\"zoo\": \"unet3d\", \"base\": 16}.  That is enough.  The other keys "
        "say what to "
        "train with (data), how (num_epochs, loss, optimizer, early_stopping...), what "
        "to keep (checkpoints, telemetry) and what to compute with (backend, threads, "
        "memory_limit, parallel...); --keys prints all of them, with their defaults.  "
        "The keys may stand in an object under \"neural_network\".\n\n"
        "The same job runs on one core, under mpirun and under srun: each rank "
        "computes "
        "its share of every batch, and batch sizes are those of all ranks together.  A "
        "rank has as many threads as the job's key threads says, else OMP_NUM_THREADS, "
        "else srun's --cpus-per-task, else one for each of its cores: the ranks of a "
        "node share its cores evenly, without crossing NUMA domains where that is "
        "possible, so the natural number of ranks is one for each NUMA domain.  Who "
        "got "
        "what is printed first.\n\n"
        "SIGUSR1, SIGUSR2, SIGTERM and SIGINT, on any rank, and the nearing end of the "
        "Slurm allocation (SLURM_JOB_END_TIME) make all ranks write a checkpoint after "
        "the step they are in and end with status 75.  The same command then goes on "
        "from there, in the middle of an epoch and on any number of ranks, to the same "
        "result; so it does after a crash, from the last checkpoint.  A run that is "
        "finished is left as it is; --set dir=OTHER begins another.\n\n"
        "--explain prints the job with its defaults, the network as a table of layers, "
        "output shapes and parameters, every step of a training step with the kernel "
        "that does it, the memory it will take and the floating-point operations.  "
        "Nothing is allocated, so networks that do not fit this machine can be looked "
        "at, too; one that exceeds the job's own memory_limit is refused with what "
        "would make it fit.",
    .size = sizeof(struct options),
    .commands = commands,
    .environment =
        "OMP_NUM_THREADS\tthreads of a rank, unless the job says how many\n"
        "SLURM_JOB_END_TIME\twhen the allocation ends, set by Slurm; the run stops "
        "before that, by two steps, two checkpoints and 15 s\n"
        "DNN_DEADLINE\tseconds a rank waits for the others before it gives up\n"
        "XDG_CACHE_HOME\twhere measured choices of kernels are kept, below "
        "dnn-toolkit; ~/.cache by default\n"
        "DNN_LOG\thow much to say, as --log\n",
    .files = "run-JOB\tbeside JOB.json: where a run writes, unless the key dir says "
             "otherwise; the files below are in it\n"
             "checkpoints/ckpt-STEP.bp\tcheckpoints; checkpoints/best.bp is the best\n"
             "metrics.csv\ta row for each epoch\n"
             "events\tfor TensorBoard, if the job asks for it\n"
             "report.html\tcurves, metrics and pictures, in one file\n"
             "model.json, model.weights.h5\tthe network and its weights, as Keras "
             "has them\n",
    .examples =
        "dnn-train job.json\ttrain, or go on\n"
        "mpirun -n 4 dnn-train job.json\tthe same with four ranks\n"
        "srun --mpi=pmix -n 16 dnn-train job.json\tthe same in a job of Slurm's\n"
        "dnn-train --set num_epochs=40 --early \"val_loss,~<,4\" job.json\tlonger, "
        "but not if the mean of four epochs is no better than that of the four before\n"
        "dnn-train --explain --set batch_size=8 job.json\twhat a job would do\n"
        "dnn-train --verify run-job/checkpoints/best.bp\twhat a checkpoint holds, and "
        "whether it is whole\n"
        "dnn-train --export=net.json job.json\tits network as Keras JSON\n",
    .see_also = "dnn-prepare(1), dnn-bench(1), dnn-cluster(1), mpirun(1), srun(1)",
};

/* The words in quotes where a shell would need them. */
static char *join(int argc, char **argv)
{
    struct dnn_buf out = {0};

    for (int i = 0; i < argc; i++) {
        bool plain =
            argv[i][0] != '\0' &&
            strspn(argv[i], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                            "0123456789_-+=.,:/@%") == strlen(argv[i]);

        dnn_buf_add(&out, i == 0 ? "" : " ");
        if (!plain) dnn_buf_add(&out, "'");
        for (const char *c = argv[i]; *c != '\0'; c++)
            dnn_buf_add(&out, *c == '\'' ? "'\\''" : "%c", *c);
        if (!plain) dnn_buf_add(&out, "'");
    }
    return out.text;
}

int main(int argc, char **argv)
{
    command = join(argc, argv);
    int status = dnn_opt_main(&tool, argc, argv);
    dnn_free(command);
    return status;
}
