/* dnn-prepare.c - prepares and inspects datasets.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "base/opt_rows.h"
#include "base/text.h"
#include "comm/comm.h"
#include "generate/generate.h"
#include "import/import.h"
#include "prepare/prepare.h"
#include "prepare/cli_config.h"

#include <assert.h>
#include <string.h>

struct options {
    struct dnn_cli_config cli; /* first: import options use offsets in it */
    bool replace, restart, describe, verify, formats, keys;
    long preview;
    const char *preview_split, *export;
};

static char **command; /* argv, for the record */
static int ncommand;

/* Options of the import follow these: see add_imports(). */
static struct dnn_option options[96] = {
    TEXT("from", 0, cli.from, "FILE",
         "input files: a file, a directory, or a list of files"),
    TEXT("target", 0, cli.target, "FILE", "target files, if separate from the inputs"),
    TEXT("to", 0, cli.to, "DATASET",
         "output dataset, NAME.bp; overrides the configuration file"),
    TEXT("generate", 0, cli.generate, "NAME",
         "generate samples instead of reading files: fractals3d, blobs3d..."),
    LIST("set", 0, cli.set, "KEY=VALUE",
         "set a key of the generator: --set samples=64"),
    TEXT("split", 0, cli.split, "SHARES",
         "fractions of train, validation and test, such as 0.8,0.1,0.1, or files with "
         "sample names"),
    FLAG("stratify", 0, cli.stratify,
         "stratified split: same class distribution in each split"),
    TEXT("folds", 0, cli.folds, "K",
         "number of cross-validation folds of the train split"),
    FLAG("partial", 0, cli.partial, "leave out samples that are in no split"),
    FLAG("balance", 0, cli.balance, "oversample rare classes of the train split"),
    TEXT("remap", 0, cli.remap, "N,N...", "new class numbers of classes 0, 1, 2, ..."),
    TEXT("spacing", 0, cli.spacing, "X,X...",
         "resample to this voxel spacing, one number per spatial axis"),
    TEXT("resize", 0, cli.resize, "NxN...", "resize to this size"),
    TEXT("pad", 0, cli.pad, "NxN...", "pad to this size"),
    TEXT("crop", 0, cli.crop, "NxN...", "crop the center to this size"),
    TEXT("slice", 0, cli.slice, "SIZES[:STRIDES]",
         "cut volumes into boxes, SIZE:STRIDE, such as 64x64x64:32x32x32"),
    TEXT("normalise", 0, cli.normalise, "MODE",
         "normalise: channel, dataset, volume, minmax or percentiles"),
    FLAG("one-hot", 0, cli.one_hot, "one-hot encode class numbers"),
    TEXT("type", 0, cli.type, "TYPE",
         "dtype of the stored inputs: u8, i16, f16, f32..."),
    FLAG("shuffle", 0, cli.shuffle, "shuffle the samples"),
    FLAG("allow-nan", 0, cli.allow_nan, "accept NaN and infinite values"),
    TEXT("compress", 0, cli.compress, "NAME",
         "compression: an ADIOS2 operator such as bzip2"),
    TEXT("chunk", 0, cli.chunk, "SIZE",
         "chunk size: bytes stored and read together; default 4MiB"),
    TEXT("piece", 0, cli.piece, "SIZE",
         "bytes a rank processes at once; default 64MiB"),
    TEXT("seed", 0, cli.seed, "N", "seed of the random numbers"),
    FLAG("replace", 0, replace, "replace an existing dataset"),
    FLAG("restart", 0, restart,
         "start over instead of continuing an interrupted preparation"),
    FLAG("describe", 0, describe, "print the contents of DATASET"),
    FLAG("verify", 0, verify, "verify all checksums of DATASET"),
    INT("preview", 0, preview, "0", 0, 400,
        "draw N samples of DATASET to OUT.png: --preview N OUT.png DATASET"),
    TEXT("preview-split", 0, preview_split, "NAME",
         "split to draw; default: the first"),
    TEXT("export", 0, export, "DIR",
         "write images and masks of DATASET as NIfTI files: DIR/COLUMN/SAMPLE.nii"),
    FLAG("list-formats", 0, formats, "list the file formats and generators"),
    FLAG("keys", 0, keys, "print the configuration keys as Markdown"),
    {.name = NULL},
};

/* One option for each key of the import, and two aliases as in NNLO. */
static void add_imports(void)
{
    static char name[DNN_PREPARE_IMPORTS][64];
    static const char *const other[][2] = {
        {"input-name",  "features-name"},
        {"target-name", "labels-name"  },
    };
    size_t cap = sizeof options / sizeof *options, n = 0;
    bool end = false;

    while (options[n].name != NULL)
        n++;
    size_t first = n;
    for (int i = 0; !end; i++) {
        assert(n + 4 < cap);
        if (dnn_prepare_import_option(i, &options[n], name[i % DNN_PREPARE_IMPORTS],
                                      &end))
            n++;
    }
    for (size_t k = 0, last = n; k < 2; k++)
        for (size_t i = first; i < last; i++)
            if (strcmp(options[i].name, other[k][0]) == 0) {
                options[n] = options[i];
                options[n].name = other[k][1];
                n++;
            }
    options[n] = (struct dnn_option){.name = NULL};
    (void)cap;
}

static int list_formats(void)
{
    struct dnn_importer_info info;
    const char *name, *help;
    const struct dnn_field *fields;

    printf("files:\n");
    for (int i = 0; dnn_import_info(i, &info); i++)
        printf("  %-14s %-22s %s%s\n", info.name, info.suffixes, info.help,
               info.built ? "" : " (not in this build)");
    printf("generators:\n");
    for (int i = 0; (name = dnn_generate_info(i, &help, &fields)) != NULL; i++)
        printf("  %-37s %s\n", name, help);
    return 0;
}

/* ---- inspecting datasets ---- */

static int verify(const char *path, struct dnn_err *err)
{
    struct dnn_comm *comm = NULL;

    DNN_TRY(dnn_comm_open(NULL, &comm, err));
    int rc = dnn_prepare_verify(path, comm, stdout, err);
    if (rc < 0) err->everywhere = true;
    dnn_comm_close(comm);
    return rc;
}

static int inspect(const struct options *o, int nargs, char **args, struct dnn_err *err)
{
    int want = o->preview > 0 ? 2 : 1;

    if (o->describe + o->verify + (o->preview > 0) + (o->export != NULL) > 1)
        return dnn_fail(err, DNN_EUSAGE,
                        "give one of --describe, --verify, --preview and --export");
    if (nargs != want)
        return dnn_fail(err, DNN_EUSAGE, "%s",
                        o->preview > 0 ? "--preview takes two names: OUT.png DATASET"
                                       : "the name of one dataset is needed");
    if (o->describe) return dnn_prepare_describe(args[0], stdout, err);
    if (o->verify) return verify(args[0], err);
    if (o->export != NULL) return dnn_prepare_export(args[0], o->export, err);
    return dnn_prepare_preview(args[1], o->preview_split, o->preview, args[0], err);
}

/* ---- preparing ---- */

static int read_config(const struct options *o, int nargs, char **args,
                       struct dnn_prepare **out, struct dnn_err *err)
{
    struct dnn_cli_config bare;
    char *text = NULL;

    memset(&bare, 0, sizeof bare); /* also the padding, for memcmp() */
    bare.to = o->cli.to;
    if (nargs > 1)
        return dnn_fail(err, DNN_EUSAGE, "unexpected argument \"%s\"", args[1]);
    if (nargs == 1) {
        if (memcmp(&bare, &o->cli, sizeof bare) != 0)
            return dnn_fail(err, DNN_EUSAGE,
                            "with a configuration file only --to, --replace and "
                            "--restart are allowed; set everything else in %s",
                            args[0]);
        DNN_TRY(dnn_prepare_read(args[0], out, err));
        return o->cli.to == NULL ? 0 : dnn_prepare_to(*out, o->cli.to, err);
    }
    DNN_TRY(dnn_prepare_cli_json(&o->cli, &text, err));
    int rc = dnn_prepare_text("command line", text, out, err);
    dnn_free(text);
    return rc;
}

static int run(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    const struct options *o = opt;
    struct dnn_prepare *prepare = NULL;
    struct dnn_comm *comm = NULL;

    if (o->formats) return list_formats();
    if (o->keys) {
        dnn_prepare_docs(stdout);
        return 0;
    }
    if (o->describe || o->verify || o->preview > 0 || o->export != NULL)
        return inspect(o, nargs, args, err);
    int rc = read_config(o, nargs, args, &prepare, err);
    if (rc == 0) rc = dnn_comm_open(NULL, &comm, err);
    if (rc == 0) {
        char *text = dnn_text_command(ncommand, command);
        struct dnn_prepare_opts opts = {o->replace, o->restart, text};

        rc = dnn_prepare_run(prepare, comm, &opts, err);
        dnn_free(text);
    }
    if (rc < 0) err->everywhere = true; /* errors are collective */
    dnn_comm_close(comm);
    dnn_prepare_free(prepare);
    return rc;
}

static const struct dnn_command commands[] = {
    {.operands = "[CONFIG.json | DATASET | OUT.png DATASET]",
     .min = 0,
     .max = 2,
     .help = "prepare or inspect a dataset",
     .options = options,
     .run = run},
    {.run = NULL},
};

static const struct dnn_tool tool = {
    .name = "dnn-prepare",
    .help = "turn raw files into a dataset for training; inspect datasets",
    .about = "Reads images, volumes, arrays, tables and records of the common formats, "
             "or generates samples; splits, normalises, resizes, slices and stores "
             "them in one dataset (a BP5 directory) with checksums, statistics and its "
             "history.  The steps are set in a configuration file (docs/prepare.md) or "
             "by options; options are applied in this order: split, balance, remap, "
             "spacing, resize, pad, crop, slice, normalise, one-hot, type.\n\nUnder "
             "srun or mpirun all ranks share the work; the dataset does not depend on "
             "the number of ranks.  Finished parts are kept in .NAME.bp.work next to "
             "the dataset: after any interruption the same command continues.  "
             "SIGTERM, SIGINT and SIGUSR1 stop it after the current part with status "
             "75.  The dataset is created atomically.  If it exists already and was "
             "made by the same configuration from the same files, nothing is done.",
    .size = sizeof(struct options),
    .commands = commands,
    .environment = "DNN_LOG\tlog level, as --log\nDNN_DEADLINE\tseconds a rank waits "
                   "for the others\n",
    .files =
        ".NAME.bp.work\tfinished parts, a manifest and a lock; removed at the end\n",
    .examples =
        "dnn-prepare prepare.json\tprepare as configured\nsrun -n 16 dnn-prepare "
        "prepare.json\tthe same with 16 ranks\ndnn-prepare --from photos --to "
        "photos.bp --resize 224x224 --split 0.8,0.1,0.1 --stratify\tclass directories "
        "of images\ndnn-prepare --generate fractals3d --set samples=64 --to "
        "f.bp\tgenerated samples\ndnn-prepare --describe photos.bp\tprint its "
        "contents\ndnn-prepare --preview 25 sheet.png photos.bp\tdraw samples\n",
    .see_also = "dnn-train(1), dnn-infer(1), dnn-bench(1), srun(1)",
};

int main(int argc, char **argv)
{
    command = argv;
    ncommand = argc;
    add_imports();
    return dnn_opt_main(&tool, argc, argv);
}
