/* dnn-infer.c - apply a trained network to samples, evaluate it, describe model files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "base/opt_rows.h"
#include "base/stop.h"
#include "base/text.h"
#include "infer/infer.h"
#include "package/package.h"
#include "stage/stage.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct options {
    bool explain, json, describe;
    const char *config, *output, *format, *content, *target, *export, *backend;
    struct dnn_opt_list set;
    int kernels;
    long ranks;
};

static const struct dnn_option options[] = {
    TEXT("config", 'c', config, "FILE",
         "a configuration file, as for dnn-train and rmldnn; only its test data is "
         "used"),
    TEXT("output", 'o', output, "DIR",
         "output directory; created if it does not exist"),
    TEXT("format", 'f', format, "LIST",
         "files to write, such as nifti,png: hdf5, bp5, npy, nifti, tiff, png, "
         "overlay, csv, json"),
    TEXT("content", 0, content, "LIST",
         "what is written of each output: values, classes or values,classes"),
    TEXT("target", 't', target, "PATH",
         "targets with the same names as the inputs; also evaluate the outputs"),
    FLAG("describe", 'd', describe, "print what a model file contains"),
    TEXT("export", 'x', export, "FILE",
         "write a model file for Keras: .keras, .weights.h5 or .json"),
    FLAG("explain", 'e', explain,
         "print configuration, network, kernels, memory and work without computing"),
    INT("ranks", 'n', ranks, "1", 1, 4096,
        "with --explain: for so many ranks on this machine"),
    LIST("set", 's', set, "KEY=VALUE",
         "change a key of the configuration, such as inference.overlap=0.5; "
         "dnn-train --keys prints all"),
    FLAG("json", 'j', json, "print results as JSON"),
    TEXT("backend", 0, backend, "NAME",
         "backend, overrides the configuration: cpu or ref"),
    ENUM("kernels", 0, kernels, "HOW", "autotune", dnn_kernel_selections,
         "kernel selection: autotune measures them first, heuristic does not"),
    {.name = NULL},
};

static char *command; /* owned: as it was typed */

/* The configuration file, or that of a model file and inputs. */
struct work {
    struct dnn_config config;
    struct dnn_package *package; /* NULL: a configuration file */
};

static int read_work(const struct options *o, int nargs, char **args, struct work *w,
                     struct dnn_err *err)
{
    const struct dnn_infer_model model = {.model = nargs > 0 ? args[0] : NULL,
                                          .ninputs = nargs - 1,
                                          .input = (const char *const *)args + 1,
                                          .target = o->target,
                                          .output = o->output,
                                          .formats = o->format,
                                          .contents = o->content,
                                          .nset = o->set.count,
                                          .set = o->set.text};

    if (o->config != NULL)
        return dnn_config_read_set(o->config, o->set.count, o->set.text, &w->config,
                                   err);
    return dnn_infer_model_config(&model, &w->package, &w->config, err);
}

/* All ranks read the configuration first, because it sets the number of threads;
 * whether all could read it is agreed on as soon as there is a communicator. */
static int infer(const struct options *o, int nargs, char **args, struct dnn_err *err)
{
    struct dnn_session session;
    struct work w = {0};
    struct dnn_err later = {0};
    struct dnn_infer_opts opts = {.progress = !o->json,
                                  .json = o->json,
                                  .kernels = o->kernels,
                                  .backend = o->backend,
                                  .command = command};

    dnn_stop_watch(false);
    int first = read_work(o, nargs, args, &w, err);
    int threads = first == 0 ? (int)w.config.threads : 0;
    if (w.package != NULL && dnn_package_info(w.package)->targets.count > 0) {
        const struct dnn_package_target *t =
            dnn_package_info(w.package)->targets.objects;

        opts.class_name = t->class_names.texts;
        opts.nclasses = t->class_names.count;
    }
    int rc =
        dnn_session_open(threads, DNN_BIND_AUTO, &session, first < 0 ? &later : err);
    if (rc == 0) {
        rc = dnn_comm_agree(session.comm, first, err);
        if (rc == 0)
            rc = dnn_config_set_ranks(&w.config, dnn_comm_size(session.comm), err);
        if (rc == 0) rc = dnn_infer_run(&w.config, &session, &opts, err);
        dnn_session_close(&session);
    } else if (first < 0) {
        rc = first;
    }
    dnn_config_free(&w.config);
    dnn_package_close(w.package);
    return rc;
}

static int explain(const struct options *o, int nargs, char **args, struct dnn_err *err)
{
    const struct dnn_infer_opts opts = {.kernels = o->kernels, .backend = o->backend};
    struct work w = {0};

    int rc = read_work(o, nargs, args, &w, err);
    if (rc == 0) rc = dnn_config_set_ranks(&w.config, (int)o->ranks, err);
    if (rc == 0) {
        printf("configuration\n");
        dnn_config_print(&w.config, stdout);
        printf("\n");
        dnn_graph_print(w.config.net.graph, stdout);
        printf("\n");
        rc = dnn_infer_explain(&w.config, &opts, (int)o->ranks, stdout, err);
    }
    dnn_config_free(&w.config);
    dnn_package_close(w.package);
    return rc;
}

static int describe(const struct options *o, const char *path, struct dnn_err *err)
{
    struct dnn_package *package;

    DNN_TRY(dnn_package_open(path, &package, err));
    int rc = o->describe ? dnn_package_describe(package, stdout, o->json, err) : 0;
    if (rc == 0 && o->export != NULL) rc = dnn_package_export(package, o->export, err);
    dnn_package_close(package);
    return rc;
}

static int run(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    const struct options *o = opt;
    struct options with = *o;

    if (o->describe || o->export != NULL) {
        if (nargs != 1)
            return dnn_fail(err, DNN_EUSAGE,
                            "--describe and --export take one model file");
        return describe(o, args[0], err);
    }
    /* rmldnn's way, and that of dnn-train: a configuration file as the operand. */
    if (nargs == 1 && o->config == NULL && !dnn_package_is(args[0])) {
        with.config = args[0];
        nargs = 0;
    }
    if (with.config != NULL) {
        if (nargs > 0)
            return dnn_fail(err, DNN_EUSAGE,
                            "give a configuration file, or a model file and inputs");
        if (o->output != NULL || o->format != NULL || o->content != NULL ||
            o->target != NULL)
            return dnn_fail(
                err, DNN_EUSAGE,
                "--output, --format, --content and --target are for a model "
                "file; with a configuration file use --set "
                "data.test_output_path=DIR and so on");
    } else if (nargs < 2) {
        return dnn_fail(err, DNN_EUSAGE,
                        nargs == 0
                            ? "give a configuration file, or a model file and "
                              "inputs"
                            : "give the inputs: files, a directory or a dataset");
    } else if (o->output == NULL) {
        return dnn_fail(err, DNN_EUSAGE, "give the output directory: --output DIR");
    }
    return o->explain ? explain(&with, nargs, args, err)
                      : infer(&with, nargs, args, err);
}

static const struct dnn_command commands[] = {
    {.operands = "[CONFIG.json | MODEL INPUT...]",
     .min = 0,
     .max = INT_MAX, /* options may follow */
     .help = "apply a trained network to samples, and evaluate it",
     .options = options,
     .run = run},
    {.run = NULL},
};

static const struct dnn_tool tool = {
    .name = "dnn-infer",
    .help = "apply a trained network to samples on any number of ranks",
    .about =
        "All test data of a configuration file of dnn-train or rmldnn is used "
        "(data.test_dataset, data.test_input_path, data.test_generate...).  The "
        "weights are those of checkpoints.load, else of the newest checkpoint of the "
        "run directory.  Outputs go to data.test_output_path.\n\n"
        "With a model file (model.dnn, which dnn-train writes) only the inputs are "
        "needed: files of any format that dnn-prepare reads, a directory of them, or a "
        "dataset.  The model file has the network, its weights, the preparation of its "
        "training data and the names of the classes.\n\n"
        "Samples larger than the network's input are cut into tiles that overlap; "
        "their outputs are blended.  Memory does not grow with the first axis of a "
        "sample.  "
        "The keys under inference change tiles, overlap, weights, test-time flips, "
        "formats and more.\n\n"
        "If there are targets, the outputs are evaluated: values per class and per "
        "sample, surface distances of masks, calibration, confusion matrix, worst "
        "samples; without tiles also loss and metrics.\n\n"
        "The work is divided over all ranks, and each writes what it has computed.  On "
        "SIGUSR1, SIGUSR2, SIGTERM or SIGINT, and shortly before the Slurm allocation "
        "ends, all ranks stop with status 75.  The same command then computes what is "
        "missing, also after a crash and on another number of ranks.",
    .size = sizeof(struct options),
    .commands = commands,
    .environment =
        "OMP_NUM_THREADS\tthreads per rank, if the configuration does not set them\n"
        "SLURM_JOB_END_TIME\tend of the allocation, set by Slurm\n"
        "DNN_DEADLINE\tseconds a rank waits for the others before it gives up\n"
        "XDG_CACHE_HOME\tautotuned kernels are stored in dnn-toolkit below it; "
        "~/.cache by default\n"
        "DNN_LOG\tlog levels, as --log\n",
    .files =
        "output_1.h5, outputs.csv, NAME.npy...\tin the output directory, by format\n"
        "test.json, test.html\tin the run directory: results of the evaluation\n"
        "evaluation.csv, samples.csv\tthe same per class and per sample\n"
        "pictures/worst-01.png...\tthe worst samples\n",
    .examples =
        "dnn-infer --config=test.json\trun the test data of a configuration\n"
        "dnn-infer model.dnn scans/ --output masks --format nifti --content classes\t"
        "segment all scans of a directory\n"
        "dnn-infer model.dnn scans/ --target labels/ --output masks\talso evaluate\n"
        "mpirun -n 4 dnn-infer model.dnn big.npy --output out\ton four ranks\n"
        "dnn-infer --describe model.dnn\tprint what a model file contains\n"
        "dnn-infer --export model.keras model.dnn\twrite it for Keras\n",
    .see_also = "dnn-train(1), dnn-prepare(1), dnn-bench(1), mpirun(1), srun(1)",
};

int main(int argc, char **argv)
{
    command = dnn_text_command(argc, argv);
    int status = dnn_opt_main(&tool, argc, argv);
    dnn_free(command);
    return status;
}
