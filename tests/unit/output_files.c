/* output_files.c - files of outputs, read back by the importers: values, classes, boxes
 * of several threads, memory, calls that are refused, records of other nodes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "unit/import_tools.h"

#include "base/crc.h"
#include "comm/comm.h"
#include "output/output.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { D = 7, H = 5, W = 6, C = 3, POINTS = D * H * W };

static struct dnn_comm *comm;
static struct dnn_shape shape = {
    4, {D, H, W, C}
};
static int64_t units = D;

static int described(void *arg, int64_t sample, struct dnn_output_sample *out,
                     struct dnn_err *err)
{
    (void)arg, (void)err;
    snprintf(out->name, sizeof out->name, "s%" PRId64 ".nii", sample);
    out->shape[0] = shape;
    out->units = units;
    out->position.spacing[0] = 2;
    return 0;
}

static const char *settings; /* NULL: it cannot be continued */

static struct dnn_output *opened(unsigned formats, int64_t nsamples,
                                 struct dnn_err *err)
{
    struct dnn_output *out = NULL;
    const struct dnn_output_options options = {
        .dir = "out",
        .formats = formats,
        .contents = DNN_OUTPUT_VALUES | DNN_OUTPUT_CLASSES,
        .gzip = true,
        .noutputs = 1,
        .output_name = (const char *const[]){"y"},
        .nsamples = nsamples,
        .describe = described,
        .settings = settings};

    if (dnn_output_open(comm, &options, &out, err) < 0) printf("# %s\n", err->text);
    return out;
}

/* ---- values ---- */

static float value_at(int64_t sample, int64_t index)
{
    return (float)((index * 31 + sample * 17) % 101) - 50;
}

/* Points [first, first + n) of planes. */
static int put_planes(struct dnn_output *out, int64_t sample, int64_t first, int64_t n,
                      struct dnn_err *err)
{
    float value[POINTS * C];
    const int64_t start[] = {first, 0, 0}, extent[] = {n, H, W};

    for (int64_t i = 0; i < n * H * W * C; i++)
        value[i] = value_at(sample, first * H * W * C + i);
    return dnn_output_put(out, sample, 0, start, extent, value, err);
}

static int64_t class_at(int64_t sample, int64_t point)
{
    int64_t best = 0;

    for (int64_t c = 1; c < C; c++)
        if (value_at(sample, point * C + c) > value_at(sample, point * C + best))
            best = c;
    return best;
}

/* The first column of sample 0 of a file is sample 1. */
static void read_back(const char *options, bool classes)
{
    struct dnn_sample sample = {0};
    struct opened o;
    int64_t wrong = 0, n = classes ? POINTS : POINTS * C;

    open_with(&o, options);
    if (o.source == NULL || dnn_source_read(o.source, 0, &sample, &o.err) < 0 ||
        dnn_array_convert(&sample.col[0], DNN_F64, true, &o.err) < 0)
        printf("# %s\n", o.err.text);
    else if (dnn_array_count(&sample.col[0]) == n)
        for (int64_t i = 0; i < n; i++)
            wrong += ((double *)sample.col[0].data)[i] !=
                     (classes ? (double)class_at(1, i) : (double)value_at(1, i));
    ok(sample.ncols > 0 && sample.col[0].shape.dim[0] == D &&
           sample.col[0].shape.dim[2] == W && dnn_array_count(&sample.col[0]) == n &&
           wrong == 0,
       "%s", options);
    dnn_sample_free(&sample);
    close_it(&o);
}

struct work {
    struct dnn_output *out;
    int64_t sample;
    int rc;
};

/* All planes of a sample, the last first. */
static void *put_sample(void *arg)
{
    struct work *w = arg;

    for (int64_t i = D - 1; i >= 0 && w->rc == 0; i--) {
        w->rc = put_planes(w->out, w->sample, i, 1, NULL);
        if (w->rc == 0) w->rc = dnn_output_unit(w->out, w->sample, i, NULL);
    }
    return NULL;
}

static void formats(void)
{
    struct dnn_err err = {0};
    struct dnn_output *out = opened(DNN_OUTPUT_HDF5 | DNN_OUTPUT_NPY | DNN_OUTPUT_BP5 |
                                        DNN_OUTPUT_NIFTI | DNN_OUTPUT_TIFF,
                                    8, &err);
    pthread_t thread[8];
    struct work work[8];
    int failed = 0;

    if (!ok(out != NULL, "open")) return;
    for (int i = 0; i < 8; i++) {
        work[i] = (struct work){out, i, 0};
        pthread_create(&thread[i], NULL, put_sample, &work[i]);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(thread[i], NULL);
        failed += work[i].rc != 0;
    }
    is_int(failed, 0, "eight threads put a sample each");
    is_text(dnn_output_path(out, 0), "out/outputs.h5", "the path of the HDF5 file");
    is_text(dnn_output_path(out, 2), "out", "that of files per sample");
    is_text(dnn_output_path(out, 5), NULL, "the end of the paths");
    is_int(access("out/s1.npy", F_OK), -1, "no file before the commit");
    is_int(dnn_output_commit(out, &err), 0, "commit");
    is_int(access("out/.outputs.tmp", F_OK), 0, "temporary files remain");
    dnn_output_close(out);
    is_int(access("out/.outputs.tmp", F_OK), -1, "until it is closed");
    read_back("{\"input_path\": \"out/s1.npy\", \"whole\": true}", false);
    read_back("{\"input_path\": \"out/s1_classes.npy\", \"whole\": true, "
              "\"input_layout\": \"none\"}",
              true);
    read_back("{\"input_path\": \"out/s1.nii.gz\"}", false);
    read_back("{\"input_path\": \"out/s1_classes.nii.gz\"}", true);
    read_back("{\"input_path\": \"out/s1.tif\"}", false);
    read_back("{\"input_path\": \"out/s1_classes.tif\"}", true);
    read_back("{\"input_path\": \"out/outputs.h5\", \"input_name\": \"s1.nii\", "
              "\"whole\": true, \"input_layout\": \"first\"}",
              false);
    read_back(
        "{\"input_path\": \"out/outputs.h5\", \"input_name\": \"s1.nii_classes\", "
        "\"whole\": true, \"input_layout\": \"none\"}",
        true);
    read_back("{\"input_path\": \"out/outputs.bp\", \"input_name\": \"s1.nii\", "
              "\"whole\": true, \"input_layout\": \"last\"}",
              false);
}

/* ---- memory and large files ---- */

static long peak_kb(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

/* A sample of 2.2 GB, of which the first and the last planes are put. */
static void large(void)
{
    enum { N = 384, CHANNELS = 10 };
    struct dnn_err err = {0};
    const int64_t first[] = {0, 0, 0}, last[] = {N - 2, 0, 0}, extent[] = {2, N, N};
    float *value = calloc(2 * N * N * CHANNELS, sizeof *value);
    struct stat st;

    shape = (struct dnn_shape){
        4, {N, N, N, CHANNELS}
    };
    for (int64_t i = 0; i < 2 * N * N * CHANNELS; i++)
        value[i] = (float)(i % 7);
    struct dnn_output *out =
        opened(DNN_OUTPUT_HDF5 | DNN_OUTPUT_NPY | DNN_OUTPUT_TIFF, 1, &err);
    if (ok(out != NULL, "a sample of 384x384x384x10")) {
        long before = peak_kb();

        is_int(dnn_output_put(out, 0, 0, first, extent, value, &err), 0, "its start");
        is_int(dnn_output_put(out, 0, 0, last, extent, value, &err), 0, "its end");
        ok(peak_kb() - before < 16 << 10, "two boxes of 11 MB need %ld KB of memory",
           peak_kb() - before);
        is_int(stat("out/.outputs.tmp/0/0.2", &st), 0, "its NPY file");
        is_int(st.st_size, 128 + (int64_t)N * N * N * CHANNELS * 4, "has its length");
    }
    dnn_output_abandon(out);
    free(value);
    is_int(access("out/.outputs.tmp", F_OK), -1, "nothing remains");
    shape = (struct dnn_shape){
        4, {D, H, W, C}
    };
}

/* ---- what is refused ---- */

static void refusals(void)
{
    struct dnn_err err = {0};
    float value[POINTS * C] = {0};
    const int64_t start[] = {0, 0, 2}, extent[] = {1, H, W};
    struct dnn_output *out = opened(DNN_OUTPUT_NPY, 2, &err), *other;

    other = opened(DNN_OUTPUT_NPY, 2, &err);
    ok(other == NULL, "a second run in the same directory");
    is_text(err.text,
            "out: another run is writing its outputs there; every run needs its own "
            "directory",
            "its message");
    dnn_output_put(out, 0, 0, start, extent, value, &err);
    is_text(err.text, "out: sample 0: points 2 to 7 along axis 2 of 6 points",
            "a box beyond the end");
    dnn_output_put(out, 2, 0, start, extent, value, &err);
    is_text(err.text, "out: sample 2 of 2", "an unknown sample");
    for (int i = 0; i < D; i++) {
        put_planes(out, 0, i, 1, &err);
        dnn_output_unit(out, 0, i, &err);
    }
    is_int(dnn_output_commit(out, &err), DNN_EDATA, "a commit without all units");
    is_text(err.text, "out: part 1 of 7 of sample 1 (s1.nii) is missing",
            "its message");
    is_int(access("out/s0.npy", F_OK), -1, "has no files");
    dnn_output_abandon(out);
    shape.dim[3] = 70000;
    ok(opened(DNN_OUTPUT_TIFF, 1, &err) == NULL, "too many channels");
    is_text(err.text,
            "sample 0 (s0.nii): output y of 7x5x6x70000 cannot be written as tiff: at "
            "most 65535 channels are possible",
            "its message");
    shape.dim[3] = C;
}

/* ---- records ---- */

struct record {
    int64_t unit;
    uint32_t key, sum;
};
enum { UNITS = 3 };

/* The journal has these records; how many units are then complete, before and after
 * they are replaced by one file. */
static void complete(const struct record *record, int n, int expected, const char *what)
{
    struct dnn_err err = {0};
    int found[2] = {0};

    bool good = dnn_file_write("out/.outputs.tmp/journal.0", record,
                               (size_t)n * sizeof *record, &err) == 0;
    for (int again = 0; again < 2; again++) {
        struct dnn_output *out = opened(DNN_OUTPUT_NPY, 1, &err);

        for (int64_t u = 0; out != NULL && u < D; u++)
            found[again] += dnn_output_done(out, 0, u);
        dnn_output_abandon(out);
    }
    ok(good && found[0] == expected && found[1] == expected,
       "%s: %d and %d units, expected %d", what, found[0], found[1], expected);
}

/* Values that may not be on the disk of another node do not count. */
static void records(void)
{
    struct record record[UNITS], flushed[UNITS];
    struct dnn_err err = {0};
    size_t len[2] = {0};
    char *text;

    settings = "same";
    struct dnn_output *out = opened(DNN_OUTPUT_NPY, 1, &err);
    int rc = out == NULL ? -1 : 0;
    for (int64_t u = 0; u < UNITS && rc == 0; u++) {
        rc = put_planes(out, 0, u, 1, &err);
        if (rc == 0) rc = dnn_output_unit(out, 0, u, &err);
    }
    for (int end = 0; end < 2 && rc == 0; end++) {
        rc = dnn_file_read("out/.outputs.tmp/journal.0", sizeof record, &text,
                           &len[end], &err);
        if (rc == 0) memcpy(end == 0 ? record : flushed, text, len[end]);
        if (rc == 0) dnn_free(text);
        if (end == 0) dnn_output_abandon(out);
    }
    ok(rc == 0 && len[0] == UNITS * sizeof *record && len[1] == len[0],
       "records before and after the values are flushed: %s", err.text);
    complete(record, UNITS, UNITS, "not flushed, of this node");
    for (int u = 0; u < UNITS; u++) {
        record[u].key ^= 4;
        record[u].sum = dnn_crc_record(&record[u], offsetof(struct record, sum));
    }
    remove("out/.outputs.tmp/journal");
    complete(record, UNITS, 0, "not flushed, of another node");
    remove("out/.outputs.tmp/journal");
    complete(flushed, UNITS, UNITS, "flushed, of another node");
    settings = NULL;
}

int main(void)
{
    struct dnn_comm_cfg cfg = {.kind = DNN_COMM_SELF};
    struct dnn_err err = {0};

    tools_start();
    if (dnn_comm_open(&cfg, &comm, &err) < 0) return 99;
    formats();
    dnn_file_remove_tree("out", NULL);
    large();
    dnn_file_remove_tree("out", NULL);
    refusals();
    dnn_file_remove_tree("out", NULL);
    records();
    dnn_file_remove_tree("out", NULL);
    dnn_comm_close(comm);
    return tools_end();
}
