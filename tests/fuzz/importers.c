/* importers.c - fuzz target for the importers: a file with any content is read or gives
 * an error message, and samples have the type and shape of their columns.
 *
 * The first byte selects the importer (low four bits) and the options (high four: also
 * as target, whole, without channels, grey); the rest is the file.
 *
 * make fuzz builds it with clang's libFuzzer; make_import_corpus.py makes the files it
 * starts from.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"
#include "import/import.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

enum { LIMIT = 64 << 20, SAMPLES = 16 };

/* The order of make_import_corpus.py; it must not change, because corpora depend on it.
 */
static const struct {
    const char *name, *suffix;
} formats[] = {
    {"png",      ".png"              },
    {"jpeg",     ".jpg"              },
    {"tiff",     ".tif"              },
    {"nifti",    ".nii"              },
    {"npy",      ".npy"              },
    {"npz",      ".npz"              },
    {"hdf5",     ".h5"               },
    {"tfrecord", ".tfrecord"         },
    {"idx",      ".idx"              },
    {"cifar",    ".bin"              },
    {"csv",      ".csv"              },
    {"raw",      ".raw"              },
    {"nifti",    ".nii.gz"           },
    {"csv",      ".csv.gz"           },
    {"idx",      "-images-idx3-ubyte"},
    {NULL,       ".any"              }, /* format detected from the content */
};

static char dir[64];

static void remove_dir(void)
{
    dnn_file_remove_tree(dir, NULL);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    /* In memory if possible: a file is written for every input. */
    snprintf(dir, sizeof dir, "%s/dnn-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(dir) == NULL) abort();
    atexit(remove_dir);
    return 0;
}

static void write_file(const char *path, const uint8_t *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    while (size > 0) {
        ssize_t n = write(fd, data, size);

        if (n <= 0) abort();
        data += n;
        size -= (size_t)n;
    }
    if (fd < 0 || close(fd) != 0) abort();
}

/* An error must have a message. */
static void expect_text(int rc, const struct dnn_err *err)
{
    if (rc < 0 && (err->text[0] == '\0' || err->code != rc)) abort();
}

/* Read every byte, for the sanitizers. */
static volatile unsigned char looked_at;

static void expect_promise(const struct dnn_source *s, const struct dnn_sample *sample)
{
    if (sample->ncols != s->ncols) abort();
    for (int k = 0; k < s->ncols; k++) {
        const struct dnn_array *a = &sample->col[k];
        const struct dnn_shape *want = &s->col[k].shape;
        size_t bytes = dnn_array_bytes(a);
        unsigned char sum = 0;

        if (a->type != s->col[k].type || a->shape.ndim != want->ndim) abort();
        for (int d = 0; d < want->ndim; d++)
            if (want->dim[d] != DNN_UNKNOWN && want->dim[d] != a->shape.dim[d]) abort();
        if (bytes > a->capacity || bytes > (size_t)8 * LIMIT) abort();
        for (size_t i = 0; i < bytes; i++)
            sum ^= ((const unsigned char *)a->data)[i];
        looked_at = sum;
    }
}

static void read_all(const struct dnn_source *source)
{
    struct dnn_sample sample = {0};
    char name[DNN_SAMPLE_NAME];

    for (int64_t i = 0; i < source->count && i < SAMPLES; i++) {
        struct dnn_err err = {0};
        int rc = dnn_source_read(source, i, &sample, &err);

        expect_text(rc, &err);
        if (rc == 0) expect_promise(source, &sample);
        dnn_source_label(source, i, name);
        if (source->type->class_of != NULL) source->type->class_of(source, i);
        if (source->type->group != NULL) source->type->group(source, i, name);
    }
    dnn_sample_free(&sample);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t extents[] = {2, 3};
    static const char *const target[] = {"y"};
    struct dnn_source *source = NULL;
    struct dnn_err err = {0};

    if (size == 0) return 0;
    const char *name = formats[data[0] & 15].name;
    char *path = dnn_format("%s/x%s", dir, formats[data[0] & 15].suffix);
    struct dnn_import how = {
        .input = {.path = path, .format = name, .kind = -1, .gray = data[0] & 128},
        .target = {.kind = -1},
        .limit = LIMIT,
        .whole = data[0] & 32,
    };
    if (data[0] & 64) how.input.layout = DNN_LAYOUT_NONE;
    if (name != NULL && strcmp(name, "raw") == 0) {
        how.input.shape.count = 2;
        how.input.shape.ints = extents;
    }
    if (name != NULL && strcmp(name, "csv") == 0 && (data[0] & 128)) {
        how.targets.count = 1;
        how.targets.texts = target;
    }
    if (data[0] & 16) {
        how.target = how.input;
        how.target.kind = DNN_KIND_MASK;
    }
    write_file(path, data + 1, size - 1);
    expect_text(dnn_import_open(&how, &source, &err), &err);
    if (source != NULL) read_all(source);
    dnn_source_close(source);
    unlink(path);
    dnn_free(path);
    return 0;
}
