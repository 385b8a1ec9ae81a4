/* dnn-train.c - train the network a job describes, or say what that would do.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"
#include "base/opt.h"
#include "config/job.h"
#include "ckpt/ckpt.h"
#include "run/model.h"
#include "run/train.h"
#include "weights/weights.h"

#include <string.h>

struct options {
    bool explain, inference, keys, json;
    const char *config, *verify;
    struct dnn_opt_list set;
    const char *export, *weights, *backend;
    int choose;
};

#define AT(f) offsetof(struct options, f)
static const struct dnn_choice choosing[] = {
    {"measure", DNN_CHOOSE_MEASURED},
    {"rule",    DNN_CHOOSE_RULED   },
    {NULL,      0                  }
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
     .help = "write the job's network, if it is of the zoo, as Keras JSON"},
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
    {.name = "set",
     .letter = 's',
     .type = DNN_O_LIST,
     .offset = AT(set),
     .arg = "KEY=VALUE",
     .help =
         "change a key of the job, as data.batch_size=32; the value is JSON or else "
         "a text"},
    {.name = "keys",
     .type = DNN_O_FLAG,
     .offset = AT(keys),
     .help = "print the keys of a job, as Markdown, and stop"},
    {.name = "choose",
     .type = DNN_O_ENUM,
     .offset = AT(choose),
     .arg = "HOW",
     .def = "measure",
     .choices = choosing,
     .help = "kernels by measuring them first, or by rule"},
    {.name = NULL},
};

static int export_net(const struct dnn_job *job, const char *path, struct dnn_err *err)
{
    if (job->net.text == NULL)
        return dnn_fail(err, DNN_EUSAGE,
                        "--export: the job's network is not of the zoo; it is written "
                        "down already");
    return dnn_file_write(path, job->net.text, strlen(job->net.text), err);
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
        .device = {.threads = (int)job->threads, .choose = (enum dnn_choose)o->choose},
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

/* All ranks read the job; that they agree on it is agreed on. */
static int train(const struct options *o, const char *path, struct dnn_err *err)
{
    struct dnn_seat seat;
    struct dnn_job job = {0};
    const struct dnn_train_opts opts = {.progress = !o->json,
                                        .json = o->json,
                                        .choose = o->choose,
                                        .backend = o->backend};

    DNN_TRY(dnn_seat_open(0, DNN_BIND_AUTO, &seat, err));
    int rc = dnn_job_read_set(path, o->set.count, o->set.text, &job, err);
    rc = dnn_comm_agree(seat.comm, rc, err);
    if (rc == 0) rc = dnn_train_run(&job, &seat, &opts, err);
    dnn_job_free(&job);
    dnn_seat_close(&seat);
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
    if (!o->explain && o->export == NULL) return train(o, path, err);
    DNN_TRY(dnn_job_read_set(path, o->set.count, o->set.text, &job, err));
    int rc = o->export == NULL ? 0 : export_net(&job, o->export, err);
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
        "--explain prints the job with its defaults, the network as a table of layers, "
        "output shapes and parameters, every step of a training step with the kernel "
        "that does it, the memory it will take and the floating-point operations.  "
        "Nothing is allocated, so networks that do not fit this machine can be looked "
        "at, too; one that exceeds the job's own memory_limit is refused with what "
        "would make it fit.",
    .size = sizeof(struct options),
    .commands = commands,
    .environment = "OMP_NUM_THREADS\tthreads, unless the job says how many\n"
                   "XDG_CACHE_HOME\twhere measured choices of kernels are kept, below "
                   "dnn-toolkit; ~/.cache by default\n"
                   "DNN_LOG\thow much to say, as --log\n",
    .examples =
        "dnn-train --explain job.json\twhat the job would do\n"
        "dnn-train --explain --set batch_size=8 job.json\tthe same with a larger "
        "batch\n"
        "dnn-train --export=net.json job.json\tits network as Keras JSON\n",
    .see_also = "dnn-bench(1), dnn-cluster(1)",
};

int main(int argc, char **argv)
{
    return dnn_opt_main(&tool, argc, argv);
}
