/* dnn-prepare.c - raw files or a generator into one dataset; look at datasets.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "base/opt.h"
#include "base/text.h"
#include "comm/comm.h"
#include "generate/generate.h"
#include "import/import.h"
#include "prepare/prepare.h"
#include "prepare/words.h"

#include <assert.h>
#include <string.h>

struct options {
    struct dnn_prepare_words words; /* first: offsets of import options are in it */
    bool replace, restart, describe, verify, formats, keys;
    long preview;
    const char *preview_split, *export;
};

static char **command; /* argv, for the record */
static int ncommand;

#define AT(f) offsetof(struct options, f)
#define TEXT(n, field, a, h)                                                           \
    {.name = n, .type = DNN_O_TEXT, .offset = AT(field), .arg = a, .help = h}
#define FLAG(n, field, h)                                                              \
    {.name = n, .type = DNN_O_FLAG, .offset = AT(field), .help = h}
/* Options of the import follow these: see add_imports(). */
static struct dnn_option options[96] = {
    TEXT("from", words.from, "FILE",
         "the raw files: a file, a directory, or a list of files"),
    TEXT("target", words.target, "FILE",
         "the targets, where they have files of their own"),
    TEXT("to", words.to, "DATASET",
         "the dataset to make, NAME.bp; also instead of the configuration's"),
    TEXT("generate", words.generate, "NAME",
         "samples of a generator instead of files: fractals3d, blobs3d..."),
    {.name = "set",
       .type = DNN_O_LIST,
       .offset = AT(words.set),
       .arg = "KEY=VALUE",
       .help = "a key of the generator: --set samples=64"},
    TEXT("split", words.split, "SHARES",
         "shares of train, validation and test, as 0.8,0.1,0.1, or files that list "
         "names"),
    FLAG("stratify", words.stratify, "each split gets its share of each class"),
    TEXT("folds", words.folds, "K", "cut the train split into folds"),
    FLAG("partial", words.partial, "samples in no split are left out"),
    FLAG("balance", words.balance, "repeat samples of rare classes in the train split"),
    TEXT("remap", words.remap, "N,N...", "new numbers of class 0, 1, 2..."),
    TEXT("spacing", words.spacing, "X,X...",
         "resample to this spacing, one number per spatial axis"),
    TEXT("resize", words.resize, "NxN...", "resize to these extents"),
    TEXT("pad", words.pad, "NxN...", "pad up to these extents"),
    TEXT("crop", words.crop, "NxN...", "crop the middle of these extents"),
    TEXT("slice", words.slice, "SIZES[:STRIDES]",
         "cut volumes into boxes, as 64x64x64:32x32x32"),
    TEXT("normalise", words.normalise, "MODE",
         "channel, dataset, volume, minmax or percentiles"),
    FLAG("one-hot", words.one_hot, "class numbers become vectors"),
    TEXT("type", words.type, "TYPE", "store inputs as u8, i16, f16, f32..."),
    FLAG("shuffle", words.shuffle, "samples in random order"),
    FLAG("allow-nan", words.allow_nan, "NaN and infinite values are not an error"),
    TEXT("compress", words.compress, "NAME",
         "compress by an operator of ADIOS2, as bzip2"),
    TEXT("chunk", words.chunk, "SIZE",
         "bytes stored and read together; 4MiB by default"),
    TEXT("piece", words.piece, "SIZE", "bytes a rank makes at once; 64MiB by default"),
    TEXT("seed", words.seed, "N", "for everything random"),
    FLAG("replace", replace, "a dataset of that name may be replaced"),
    FLAG("restart", restart, "begin anew instead of continuing what was interrupted"),
    FLAG("describe", describe, "say what the dataset DATASET holds"),
    FLAG("verify", verify, "compare every checksum of the dataset DATASET"),
    {.name = "preview",
       .type = DNN_O_INT,
       .offset = AT(preview),
       .arg = "N",
       .def = "0",
       .max = 10000,
       .help = "draw N samples of the dataset DATASET into the file OUT.png: --preview N "
             "OUT.png DATASET"},
    TEXT("preview-split", preview_split, "NAME",
         "the split to draw; the first by default"),
    TEXT("export", export, "DIR",
         "write images and masks of the dataset DATASET as NIfTI files: "
         "DIR/COLUMN/SAMPLE.nii"),
    FLAG("list-formats", formats, "what can be read, and what can be generated"),
    FLAG("keys", keys, "the keys of a configuration, as Markdown"),
    {.name = NULL},
};

/* One option for each key of the import, and two by the names of NNLO. */
static void add_imports(void)
{
    static char name[DNN_PREPARE_IMPORTS][64];
    static const char *const other[][2] = {
        {"input-name",  "features-name"},
        {"target-name", "labels-name"  },
    };
    size_t room = sizeof options / sizeof *options, n = 0;
    bool end = false;

    while (options[n].name != NULL)
        n++;
    size_t first = n;
    for (int i = 0; !end; i++) {
        assert(n + 4 < room);
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
    (void)room;
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

/* ---- looking at datasets ---- */

static int verify(const char *path, struct dnn_err *err)
{
    struct dnn_comm *comm = NULL;

    DNN_TRY(dnn_comm_open(NULL, &comm, err));
    int rc = dnn_prepare_verify(path, comm, stdout, err);
    if (rc < 0) err->everywhere = true;
    dnn_comm_close(comm);
    return rc;
}

static int look(const struct options *o, int nargs, char **args, struct dnn_err *err)
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

/* The words after the program's name, those with blanks in quotes. */
static char *command_text(void)
{
    struct dnn_buf buf = {0};

    for (int i = 0; i < ncommand; i++) {
        bool plain =
            command[i][0] != '\0' && strpbrk(command[i], " \t\n'\"\\$") == NULL;

        dnn_buf_add(&buf, plain ? "%s%s" : "%s'%s'", i > 0 ? " " : "", command[i]);
    }
    return buf.text;
}

static int read_config(const struct options *o, int nargs, char **args,
                       struct dnn_prepare **out, struct dnn_err *err)
{
    struct dnn_prepare_words bare;
    char *text = NULL;

    memset(&bare, 0, sizeof bare); /* padding too: it is compared as bytes */
    bare.to = o->words.to;
    if (nargs > 1)
        return dnn_fail(err, DNN_EUSAGE, "\"%s\" is one word too many", args[1]);
    if (nargs == 1) {
        if (memcmp(&bare, &o->words, sizeof bare) != 0)
            return dnn_fail(
                err, DNN_EUSAGE,
                "with a configuration only --to, --replace and --restart are "
                "possible: all else stands in %s",
                args[0]);
        DNN_TRY(dnn_prepare_read(args[0], out, err));
        return o->words.to == NULL ? 0 : dnn_prepare_to(*out, o->words.to, err);
    }
    DNN_TRY(dnn_prepare_spell(&o->words, &text, err));
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
        return look(o, nargs, args, err);
    int rc = read_config(o, nargs, args, &prepare, err);
    if (rc == 0) rc = dnn_comm_open(NULL, &comm, err);
    if (rc == 0) {
        char *text = command_text();
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
     .help = "prepare a dataset, or look at one",
     .options = options,
     .run = run},
    {.run = NULL},
};

static const struct dnn_tool tool = {
    .name = "dnn-prepare",
    .help = "turn raw files into a dataset for training, and look at datasets",
    .about =
        "Reads images, volumes, arrays, tables and records of the common formats, or "
        "generates samples; splits, normalises, resizes, slices and stores them in one "
        "dataset (a BP5 directory) with checksums, statistics and a record of how it "
        "was made.  What is to be done stands in a configuration (docs/prepare.md), or "
        "in options, whose steps are taken in this order: split, balance, remap, "
        "spacing, resize, pad, crop, slice, normalise, one-hot, type.\n\n"
        "Under srun or mpirun all ranks work; the dataset is the same for any number "
        "of "
        "them.  What is finished is kept in .NAME.bp.work beside the dataset: after an "
        "interruption of any kind the same command continues.  SIGTERM, SIGINT and "
        "SIGUSR1 end it after the current piece with status 75.  The dataset appears "
        "whole or not at all.  If it is there already, made by the same configuration "
        "of the same files, nothing is done.",
    .size = sizeof(struct options),
    .commands = commands,
    .environment = "DNN_LOG\thow much to say, as --log\n"
                   "DNN_DEADLINE\tseconds a rank waits for the others\n",
    .files =
        ".NAME.bp.work\tfinished pieces, a manifest and a lock; removed at the end\n",
    .examples =
        "dnn-prepare prepare.json\twhat the configuration says\n"
        "srun -n 16 dnn-prepare prepare.json\tthe same with 16 ranks\n"
        "dnn-prepare --from photos --to photos.bp --resize 224x224 --split 0.8,0.1,0.1 "
        "--stratify\tclass directories of images\n"
        "dnn-prepare --generate fractals3d --set samples=64 --to f.bp\tno files at "
        "all\n"
        "dnn-prepare --describe photos.bp\twhat it holds\n"
        "dnn-prepare --preview 25 sheet.png photos.bp\thow it looks\n",
    .see_also = "dnn-train(1), dnn-bench(1), srun(1)",
};

int main(int argc, char **argv)
{
    command = argv;
    ncommand = argc;
    add_imports();
    return dnn_opt_main(&tool, argc, argv);
}
