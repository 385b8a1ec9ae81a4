/* dnn-train.c - train a network as a configuration file describes, or explain the run.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"
#include "base/opt_rows.h"
#include "base/stop.h"
#include "base/text.h"
#include "config/run_config.h"
#include "ckpt/ckpt.h"
#include "stage/stage.h"
#include "train/train.h"
#include "package/package.h"

#include <string.h>

struct options {
    bool explain, inference, keys, json, where;
    const char *config, *verify, *early, *target;
    struct dnn_opt_list set;
    const char *export, *weights, *backend;
    int kernels, app;
    long ranks;
};

/* rmldnn's applications; here the loss alone decides. */
static const struct dnn_choice apps[] = {
    {"dnn", 0},
    {"pde", 1},
    {"gan", 2},
    {"obj", 3},
    {NULL,  0}
};
static const struct dnn_option options[] = {
    FLAG("explain", 'e', explain,
         "print configuration, network, kernels, memory and work without training"),
    FLAG("inference", 'i', inference, "with --explain: inference instead of training"),
    INT("ranks", 'n', ranks, "1", 1, 4096,
        "with --explain: for so many ranks on this machine"),
    TEXT("export", 'x', export, "FILE", "write the network as Keras 3 JSON"),
    TEXT("weights", 'w', weights, "FILE",
         "with --explain: list which weights of this file (.dnn, .weights.h5, .h5, "
         ".keras) match the network"),
    TEXT("backend", 0, backend, "NAME",
         "backend, overrides the configuration: cpu or ref"),
    TEXT("config", 'c', config, "FILE", "the configuration file, as in rmldnn"),
    ENUM("app", 0, app, "WHICH", "dnn", apps,
         "accepted for rmldnn's command lines, ignored: the loss decides"),
    FLAG("json", 'j', json, "print progress and results as JSON, one object per line"),
    TEXT("verify", 0, verify, "DIR",
         "print the contents of a checkpoint and check its checksums"),
    FLAG("where", 0, where, "print the run directory"),
    LIST("set", 's', set, "KEY=VALUE",
         "change a key of the configuration, such as data.batch_size=32; the value "
         "is JSON, or else taken as a string"),
    TEXT("early", 0, early, "RULE",
         "early stopping, such as \"val_loss,~<,4\": the same as --set "
         "early_stopping=RULE"),
    TEXT("target-metric", 0, target, "RULE",
         "stop when a metric is reached, such as \"val_acc,>,0.97\": the same as --set "
         "target_metric=RULE"),
    FLAG("keys", 0, keys, "print all configuration keys, as Markdown"),
    ENUM("kernels", 0, kernels, "HOW", "autotune", dnn_kernel_selections,
         "kernel selection: autotune measures them first, heuristic does not"),
    {.name = NULL},
};

static char *command; /* owned: as it was typed, for run.json */

/* The configuration with the changes of --set, --early and --target-metric. */
static int read_config(const struct options *o, const char *path,
                       struct dnn_config *config, struct dnn_err *err)
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
    int rc = dnn_config_read_set(path, n, all, config, err);
    dnn_free(made[0]);
    dnn_free(made[1]);
    dnn_free(all);
    return rc;
}

static int export_net(const struct dnn_config *config, const char *path,
                      struct dnn_err *err)
{
    struct dnn_buf text = {0};
    int rc = dnn_graph_write(config->net.graph, &text, err);

    if (rc == 0) rc = dnn_file_write(path, text.text, text.len, err);
    dnn_buf_free(&text);
    return rc < 0 ? dnn_prefix(err, "--export: ") : rc;
}

/* Which weights of the network are in a file. */
static int explain_weights(const void *arg, const struct dnn_model *model, FILE *where,
                           struct dnn_err *err)
{
    const struct options *o = arg;
    const struct dnn_graph *graph = model->graph;
    const struct dnn_weights_order order = {graph->nlayers, graph->layer_name,
                                            graph->layer_class, graph->layer_model};
    struct dnn_weights *file = NULL;
    struct dnn_weights_match *match = NULL;

    if (o->weights == NULL) return 0;
    DNN_TRY(dnn_package_open_weights(o->weights, &file, err));
    int rc = dnn_weights_match(file, model->prog, &order, &match, err);
    if (rc == 0) {
        fprintf(where, "\n");
        dnn_weights_print(match, where);
    }
    dnn_weights_match_free(match);
    dnn_weights_close(file);
    return rc;
}

/* Allocates nothing: networks too large for this machine can be explained. */
static int explain(const struct options *o, const struct dnn_config *config,
                   struct dnn_err *err)
{
    const struct dnn_stage_explain what = {
        .stage = {.config = config,
                  .backend = o->backend,
                  .kernels = o->kernels,
                  .inference = o->inference},
        .ranks = (int)o->ranks,
        .where = stdout,
        .also = explain_weights,
        .arg = o
    };

    printf("configuration\n");
    dnn_config_print(config, stdout);
    printf("\n");
    dnn_graph_print(config->net.graph, stdout);
    printf("\n");
    if (!o->inference && config->schedule != NULL) {
        printf("learning rate schedule\n");
        dnn_schedule_print(config->schedule, stdout);
        printf("\n");
    }
    return dnn_stage_explain(&what, err);
}

/* All ranks read the configuration first, because it sets the number of threads;
 * whether all could read it is agreed on as soon as there is a communicator. */
static int train(const struct options *o, const char *path, struct dnn_err *err)
{
    struct dnn_session session;
    struct dnn_config config = {0};
    struct dnn_err later = {0};
    const struct dnn_train_opts opts = {.progress = !o->json,
                                        .json = o->json,
                                        .kernels = o->kernels,
                                        .backend = o->backend,
                                        .command = command};

    /* From start to end: a signal during start stops the run after its first step, and
     * a late signal does not end a finished run. */
    dnn_stop_watch(false);
    int first = read_config(o, path, &config, err);
    int threads = first == 0 ? (int)config.threads : 0;
    int rc =
        dnn_session_open(threads, DNN_BIND_AUTO, &session, first < 0 ? &later : err);
    if (rc == 0) {
        rc = dnn_comm_agree(session.comm, first, err);
        if (rc == 0)
            rc = dnn_config_set_ranks(&config, dnn_comm_size(session.comm), err);
        if (rc == 0) rc = dnn_train_run(&config, &session, &opts, err);
        dnn_session_close(&session);
    } else if (first < 0) {
        rc = first;
    }
    dnn_config_free(&config);
    return rc;
}

static int run(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    const struct options *o = opt;
    struct dnn_config config;

    if (o->verify != NULL) return dnn_ckpt_verify(o->verify, stdout, err);
    if (o->keys) {
        dnn_config_docs(stdout);
        return 0;
    }
    const char *path = o->config;
    if (nargs == 1) path = args[0];
    if (path == NULL || (nargs == 1 && o->config != NULL))
        return dnn_fail(err, DNN_EUSAGE, "give one configuration file");
    if (!o->explain && !o->where && o->export == NULL) return train(o, path, err);
    DNN_TRY(read_config(o, path, &config, err));
    int rc = dnn_config_set_ranks(&config, (int)o->ranks, err);
    if (rc == 0 && o->export != NULL) rc = export_net(&config, o->export, err);
    if (rc == 0 && o->where) printf("%s\n", dnn_config_dir(&config));
    if (rc == 0 && o->explain) rc = explain(o, &config, err);
    dnn_config_free(&config);
    return rc;
}

static const struct dnn_command commands[] = {
    {.operands = "[CONFIG.json]",
     .min = 0,
     .max = 1,
     .help = "train as a configuration file describes, or explain it",
     .options = options,
     .run = run},
    {.run = NULL},
};

static const struct dnn_tool tool = {
    .name = "dnn-train",
    .help = "train a network on any number of ranks, or explain the run",
    .about =
        "A configuration file is JSON.  Its key \"layers\" gives the network: a "
        "Keras JSON file, the layers themselves, or a network of the zoo, such as "
        "{\"zoo\": \"unet3d\", \"base\": 16}.  Only this key is required.  The others "
        "set the data (data), the training (num_epochs, loss, optimizer, "
        "early_stopping, ...), the output (dir, checkpoints, telemetry) and the "
        "resources (backend, threads, memory_limit, parallel, ...).  --keys prints "
        "all keys with their defaults.\n\n"
        "The same file runs on one core, under mpirun and under srun.  Each rank "
        "computes its share of every batch; batch sizes are global.  The number of "
        "threads per rank is the key threads, else OMP_NUM_THREADS, else srun's "
        "--cpus-per-task, else the number of cores of the rank.  Ranks of a node "
        "share its cores evenly and do not cross NUMA domains if possible; one "
        "rank per NUMA domain is a good choice.  The placement of all ranks is "
        "printed first.\n\n"
        "On SIGUSR1, SIGUSR2, SIGTERM or SIGINT on any rank, and shortly before "
        "the Slurm allocation ends (SLURM_JOB_END_TIME), all ranks write a "
        "checkpoint after the current step and end with status 75.  The same "
        "command then resumes from there, also in the middle of an epoch and on "
        "another number of ranks.  After a crash it resumes from the last "
        "checkpoint.  A finished run is not repeated; --set dir=OTHER starts a new "
        "one.\n\n"
        "--explain prints the configuration with all defaults, the network as a "
        "table of layers, output shapes and parameters, the kernel of every step, "
        "the memory and the floating-point operations.  It plans as the run does, for "
        "--ranks ranks, and prints how batches are cut into micro-batches, the memory "
        "of each rank, and each distinct plan once.  It allocates nothing, so it also "
        "works for networks that do not fit this machine, and before the data exist.  "
        "If the network needs more than memory_limit, it fails and prints what would "
        "make it fit.",
    .size = sizeof(struct options),
    .commands = commands,
    .environment =
        "OMP_NUM_THREADS\tthreads per rank, if the configuration does not set them\n"
        "SLURM_JOB_END_TIME\tend of the allocation, set by Slurm; the run stops two "
        "steps, two checkpoints and 15 s before it\n"
        "DNN_DEADLINE\tseconds a rank waits for the others before it gives up\n"
        "XDG_CACHE_HOME\tautotuned kernels are stored in dnn-toolkit below it; "
        "~/.cache by default\n"
        "DNN_LOG\tlog levels, as --log\n",
    .files =
        "run-NAME\tnext to NAME.json: the run directory, unless the key dir sets "
        "another; it contains the files below\n"
        "model.dnn\tthe trained network in one file, for dnn-infer\n"
        "checkpoints/ckpt-STEP.bp\tcheckpoints; checkpoints/best.bp is the best one\n"
        "metrics.csv\tone row per epoch\n"
        "events\tevent files for TensorBoard, if telemetry.tensorboard is true\n"
        "report.html\tcurves, metrics and images in one file\n"
        "model.keras, model.json, model.weights.h5\tthe network and its weights, for "
        "Keras\n",
    .examples =
        "dnn-train config.json\ttrain, or resume\n"
        "mpirun -n 4 dnn-train config.json\tthe same on four ranks\n"
        "srun --mpi=pmix -n 16 dnn-train config.json\tthe same in a Slurm job\n"
        "dnn-train --set num_epochs=40 --early \"val_loss,~<,4\" config.json\tlonger, "
        "but stop when the mean of four epochs is not better than that of the four "
        "before\n"
        "dnn-train --explain --set batch_size=8 config.json\texplain a run\n"
        "dnn-train --explain --ranks 4 config.json\tthe same on four ranks\n"
        "dnn-train --verify run-config/checkpoints/best.bp\tprint and check a "
        "checkpoint\n"
        "dnn-train --export=net.json config.json\twrite a network of the zoo as Keras "
        "JSON\n",
    .see_also = "dnn-infer(1), dnn-prepare(1), dnn-bench(1), dnn-cluster(1), "
                "mpirun(1), srun(1)",
};

int main(int argc, char **argv)
{
    command = dnn_text_command(argc, argv);
    int status = dnn_opt_main(&tool, argc, argv);
    dnn_free(command);
    return status;
}
