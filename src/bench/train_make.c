/* train_make.c - samples, datasets and jobs for dnn-bench train.
 *
 * Samples are written as NumPy's files, which dnn-prepare and the rival both read.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/io_impl.h"
#include "bench/train_impl.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "data/dataset.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { CLASSES = 4, PIXELS = 28, DIGITS = 10, TEST_IMAGES = 500 };

static const char fashion[] = "/usr/share/datasets/fashion-mnist";

/* ---- samples ---- */

/* One sample: inputs and targets. */
typedef void fill_fn(int64_t i, int64_t extent, void *x, unsigned char *y);

static uint32_t mix(uint32_t s)
{
    s ^= s << 13;
    s ^= s >> 17;
    return s ^ s << 5;
}

/* Boxes of four classes, each a grey level with noise. */
static void fill_volume(int64_t i, int64_t extent, void *x, unsigned char *y)
{
    float *to = x;
    uint32_t s = (uint32_t)i * 2654435761u + 12345u;

    for (int64_t k = 0; k < extent * extent * extent; k++) {
        int64_t a = k / (extent * extent), b = k / extent % extent, c = k % extent;
        int64_t box = (a * 3 / extent) + 2 * (b * 3 / extent) + (c * 3 / extent) + i;

        s = mix(s);
        y[k] = (unsigned char)(box % CLASSES);
        to[k] = (float)y[k] / CLASSES + (float)(s >> 8) * 0x1p-26f;
    }
}

/* Stripes whose width is the class. */
static void fill_image(int64_t i, int64_t extent, void *x, unsigned char *y)
{
    unsigned char *to = x;
    uint32_t s = (uint32_t)i * 2654435761u + 12345u;

    *y = (unsigned char)(i % DIGITS);
    for (int64_t k = 0; k < extent * extent; k++) {
        s = mix(s);
        to[k] = (unsigned char)((k / (*y + 1) % 2) * 128 + (s >> 26));
    }
}

/* What the files of a split are like. */
struct files {
    struct dnn_shape x, y; /* the samples come first */
    const char *type;      /* of x                   */
    size_t each;           /* bytes of a number of x */
    int64_t extent;
    fill_fn *fill;
};

static int64_t numbers(const struct dnn_shape *shape)
{
    int64_t n = 1;

    for (int i = 1; i < shape->ndim; i++)
        n *= shape->dim[i];
    return n;
}

static int add_samples(const struct files *f, struct dnn_file *x, struct dnn_file *y,
                       int64_t first, struct dnn_err *err)
{
    size_t nx = (size_t)numbers(&f->x) * f->each, ny = (size_t)numbers(&f->y);
    char *bytes = dnn_alloc(nx + ny);
    int rc = dnn_io_begin_npy(x, f->type, &f->x, err);

    if (rc == 0) rc = dnn_io_begin_npy(y, "|u1", &f->y, err);
    for (int64_t i = 0; i < f->x.dim[0] && rc == 0; i++) {
        f->fill(first + i, f->extent, bytes, (unsigned char *)bytes + nx);
        rc = dnn_file_add(x, bytes, nx, err);
        if (rc == 0) rc = dnn_file_add(y, bytes + nx, ny, err);
    }
    dnn_free(bytes);
    return rc;
}

static int write_split(const struct files *f, const char *dir, const char *split,
                       int64_t first, struct dnn_err *err)
{
    char *px = dnn_format("%s/%s_x.npy", dir, split);
    char *py = dnn_format("%s/%s_y.npy", dir, split);
    struct dnn_file *x = NULL, *y = NULL;
    int rc = dnn_file_open(px, &x, err);

    if (rc == 0) rc = dnn_file_open(py, &y, err);
    if (rc == 0) rc = add_samples(f, x, y, first, err);
    if (rc == 0) {
        rc = dnn_file_commit(x, err);
        x = NULL;
    }
    if (rc == 0) {
        rc = dnn_file_commit(y, err);
        y = NULL;
    }
    dnn_file_abandon(x);
    dnn_file_abandon(y);
    dnn_free(px);
    dnn_free(py);
    return rc;
}

static int write_samples(struct files *f, const struct dnn_train_work *w,
                         struct dnn_err *err)
{
    f->x.dim[0] = f->y.dim[0] = w->samples;
    DNN_TRY(write_split(f, w->dir, "train", 0, err));
    f->x.dim[0] = f->y.dim[0] = w->tests;
    return write_split(f, w->dir, "test", w->samples, err);
}

/* ---- other files ---- */

static int write_text(const char *dir, const char *name, struct dnn_buf *text,
                      struct dnn_err *err)
{
    char *path = dnn_format("%s/%s", dir, name);
    int rc = dnn_file_write(path, text->text, text->len, err);

    dnn_free(path);
    dnn_buf_free(text);
    return rc;
}

static void quoted(struct dnn_buf *out, const char *dir, const char *name)
{
    char *path = dnn_format("%s%s%s", dir, name[0] == '\0' ? "" : "/", name);

    dnn_json_quoted(out, path);
    dnn_free(path);
}

static void add_source(struct dnn_buf *out, const char *dir, const char *split,
                       const char *kind)
{
    char *x = dnn_format("%s_x.npy", split), *y = dnn_format("%s_y.npy", split);

    dnn_buf_add(out, "  {\"split\": \"%s\", \"from\": {\"input_path\": ", split);
    quoted(out, dir, x);
    dnn_buf_add(out, ", \"input_kind\": \"image\", \"input_layout\": \"last\", "
                     "\"target_path\": ");
    quoted(out, dir, y);
    dnn_buf_add(out, ", \"target_kind\": \"%s\", \"target_layout\": \"none\"}}", kind);
    dnn_free(x);
    dnn_free(y);
}

/* The dataset, by dnn-prepare; kind NULL: of the directory w->data. */
static int prepare(const struct dnn_train_all *all, const struct dnn_train_work *w,
                   const char *kind, struct dnn_err *err)
{
    struct dnn_buf text = {0};

    dnn_buf_add(&text, "{\"to\": ");
    quoted(&text, w->dir, "data.bp");
    if (kind == NULL) {
        dnn_buf_add(&text, ", \"from\": ");
        quoted(&text, w->data, "");
    } else {
        dnn_buf_add(&text, ", \"sources\": [\n");
        add_source(&text, w->dir, "train", kind);
        dnn_buf_add(&text, ",\n");
        add_source(&text, w->dir, "test", kind);
        dnn_buf_add(&text, "]");
    }
    dnn_buf_add(&text, "}\n");
    DNN_TRY(write_text(w->dir, "prepare.json", &text, err));
    char *path = dnn_format("%s/prepare.json", w->dir);
    const char *const argv[] = {all->prepare, "--quiet", "--replace", path, NULL};
    const struct dnn_train_child child = {argv, 1, all->cache};
    struct dnn_train_lines none = {0};
    int rc = dnn_train_child(&child, &none, err);
    dnn_train_forget(&none);
    dnn_free(path);
    return rc;
}

/* How many samples it has. */
static int count(struct dnn_train_work *w, struct dnn_err *err)
{
    char *path = dnn_format("%s/data.bp", w->dir);
    struct dnn_dataset *set;
    int rc = dnn_dataset_open(NULL, path, 1, &set, err);

    dnn_free(path);
    if (rc < 0) return rc;
    int train = dnn_dataset_find(set, "train"), test = dnn_dataset_find(set, "test");
    if (train >= 0) w->samples = dnn_dataset_info(set)->split[train].count;
    if (test >= 0) w->tests = dnn_dataset_info(set)->split[test].count;
    if (train < 0 || test < 0)
        rc = dnn_fail(err, DNN_EDATA, "%s: needs samples to train and to test with",
                      w->data);
    dnn_dataset_close(set);
    return rc;
}

/* The job, and its network as a file for the rival. */
static int write_job(const struct dnn_train_all *all, const struct dnn_train_work *w,
                     const char *layers, const char *rest, struct dnn_err *err)
{
    struct dnn_buf text = {0};

    dnn_buf_add(&text,
                "{\n    \"layers\": %s,\n    \"data\": {\"dataset\": \"data.bp\", "
                "\"batch_size\": %" PRId64 ", \"test_batch_size\": %" PRId64
                "},\n    \"num_epochs\": %ld,\n    \"loss\": \"cross_entropy\",\n"
                "    \"optimizer\": {\"type\": \"Adam\", \"learning_rate\": 0.001},\n"
                "%s    \"telemetry\": {\"steps\": 1}\n}\n",
                layers, w->batch, w->test_batch, all->use.epochs + 1, rest);
    DNN_TRY(write_text(w->dir, "job.json", &text, err));
    char *net = dnn_format("%s/net.json", w->dir);
    char *job = dnn_format("%s/job.json", w->dir);
    const char *const argv[] = {all->train, "--export", net, job, NULL};
    const struct dnn_train_child child = {argv, 1, all->cache};
    struct dnn_train_lines none = {0};
    int rc = dnn_train_child(&child, &none, err);
    dnn_train_forget(&none);
    dnn_free(net);
    dnn_free(job);
    return rc;
}

/* ---- the two ---- */

int dnn_train_make_unet(struct dnn_train_all *all, struct dnn_train_work *work,
                        struct dnn_err *err)
{
    const struct dnn_bench_train *use = &all->use;
    long n = use->size;
    struct files f = {
        .x = {5, {0, n, n, n, 1}},
        .y = {4, {0, n, n, n}   },
        .type = "<f4",
        .each = sizeof(float),
        .extent = n,
        .fill = fill_volume
    };
    char layers[160];

    work->samples = use->volumes;
    work->tests = use->volumes < 4 ? 1 : use->volumes / 4;
    work->batch = work->test_batch = use->batch;
    work->data = dnn_strdup(work->dir);
    DNN_TRY(dnn_file_make_dirs(work->dir, err));
    DNN_TRY(write_samples(&f, work, err));
    DNN_TRY(prepare(all, work, "mask", err));
    snprintf(layers, sizeof layers,
             "{\"zoo\": \"unet3d\", \"base\": %ld, \"depth\": %ld, \"classes\": %d, "
             "\"input\": [%ld, %ld, %ld, 1]}",
             use->base, use->depth, CLASSES, n, n, n);
    /* Checkpoints are a way of their own here. */
    return write_job(all, work, layers, "    \"checkpoints\": {\"interval\": 0},\n",
                     err);
}

int dnn_train_make_cnn(struct dnn_train_all *all, struct dnn_train_work *work,
                       struct dnn_err *err)
{
    const struct dnn_bench_train *use = &all->use;
    struct files f = {
        .x = {4, {0, PIXELS, PIXELS, 1}},
        .y = {1, {0}                   },
        .type = "|u1",
        .each = 1,
        .extent = PIXELS,
        .fill = fill_image
    };
    const char *from = use->images != NULL ? use->images : fashion;
    bool made = use->count > 0 || (use->images == NULL && access(from, R_OK) != 0);

    work->batch = use->image_batch;
    work->test_batch = TEST_IMAGES;
    work->samples = use->count > 0 ? use->count : 60000;
    work->tests = use->count > 0 ? (use->count + 5) / 6 : 10000;
    work->note = made ? "generated" : "Fashion-MNIST";
    work->data = dnn_strdup(made ? work->dir : from);
    DNN_TRY(dnn_file_make_dirs(work->dir, err));
    if (made) DNN_TRY(write_samples(&f, work, err));
    DNN_TRY(prepare(all, work, made ? "label" : NULL, err));
    DNN_TRY(count(work, err));
    return write_job(all, work,
                     "{\"zoo\": \"simplecnn\", \"classes\": 10, \"input\": [28, 28, "
                     "1]}",
                     "", err);
}
