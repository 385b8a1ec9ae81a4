/* tensorboard.c - event files: scalars, histograms and pictures.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "telemetry/telemetry_impl.h"

#include "base/file.h"
#include "base/mem.h"
#include "picture/png.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Fields of the messages Event, Summary, Summary.Value, Image and HistogramProto. */
enum { WALL_TIME = 1, STEP = 2, FILE_VERSION = 3, SUMMARY = 5, SESSION_LOG = 7 };
enum { SESSION_STATUS = 1, SESSION_START = 1 };
enum { VALUE = 1 };
enum { TAG = 1, SIMPLE_VALUE = 2, IMAGE = 4, HISTOGRAM = 5 };
enum { HEIGHT = 1, WIDTH = 2, COLORSPACE = 3, ENCODED = 4, RGB = 3 };
enum { MIN = 1, MAX = 2, NUM = 3, SUM = 4, SQUARES = 5, LIMITS = 6, COUNTS = 7 };
enum { BUCKETS = 64 };

struct board {
    const struct dnn_telemetry_cfg *cfg;
    struct dnn_append *train, *val; /* val is NULL until its first value */
};

static double wall_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- events ---- */

/* Add an event with one field in addition to time and step. */
static int add_event(struct dnn_append *file, int64_t step, int field,
                     const struct dnn_buf *what, struct dnn_err *err)
{
    struct dnn_buf event = {0}, frame = {0};

    dnn_wire_double(&event, WALL_TIME, wall_time());
    dnn_wire_int(&event, STEP, step);
    dnn_wire_bytes(&event, field, what->text, what->len);
    dnn_wire_frame(&frame, event.text, event.len);
    int rc = dnn_append_add(file, frame.text, frame.len, err);
    dnn_buf_free(&event);
    dnn_buf_free(&frame);
    return rc;
}

/* Add the first events: file format, and the step from which older files are invalid
 * (resumed). */
static int add_start(struct dnn_append *file, int64_t resumed, struct dnn_err *err)
{
    struct dnn_buf version = {0}, session = {0};

    dnn_buf_add(&version, "brain.Event:2");
    dnn_wire_int(&session, SESSION_STATUS, SESSION_START);
    int rc = add_event(file, 0, FILE_VERSION, &version, err);
    if (rc == 0)
        rc =
            add_event(file, resumed == 0 ? 0 : resumed + 1, SESSION_LOG, &session, err);
    dnn_buf_free(&version);
    dnn_buf_free(&session);
    return rc;
}

/* Number of existing event files that were created in this second. */
static int count_files(const char *dir, int64_t second)
{
    char start[64];
    DIR *d = opendir(dir);
    int n = 0;

    if (d == NULL) return 0;
    snprintf(start, sizeof start, "events.out.tfevents.%010" PRId64 ".", second);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strncmp(e->d_name, start, strlen(start)) == 0;
    closedir(d);
    return n;
}

/* Open a new event file.  The order of names is the order of start times, in which
 * TensorBoard reads the files. */
static int open_events(const struct dnn_telemetry_cfg *cfg, const char *run,
                       struct dnn_append **out, struct dnn_err *err)
{
    const int64_t second = (int64_t)time(NULL);
    char host[256] = "localhost";
    char *dir = dnn_format("%s/events/%s", cfg->dir, run), *path = NULL;

    gethostname(host, sizeof host - 1);
    int rc = dnn_file_make_dirs(dir, err);
    if (rc == 0) {
        path = dnn_format("%s/events.out.tfevents.%010" PRId64 ".%03d.%s.%ld", dir,
                          second, count_files(dir, second), host, (long)getpid());
        rc = dnn_append_open(path, true, out, err);
    }
    if (rc == 0) rc = add_start(*out, cfg->resumed_step, err);
    dnn_free(dir);
    dnn_free(path);
    return rc;
}

/* ---- scalars ---- */

static void add_scalar(struct dnn_buf *summary, const char *group, const char *name,
                       double value)
{
    struct dnn_buf v = {0};
    char *tag = dnn_format("%s/%s", group, name);

    dnn_wire_bytes(&v, TAG, tag, strlen(tag));
    dnn_wire_float(&v, SIMPLE_VALUE, (float)value);
    dnn_wire_bytes(summary, VALUE, v.text, v.len);
    dnn_buf_free(&v);
    dnn_free(tag);
}

/* Whether a name is a counter, which is not written. */
static bool is_counter(const char *name)
{
    static const char *const counter[] = {"epoch", "batch", "step", "seconds"};

    for (size_t k = 0; k < sizeof counter / sizeof counter[0]; k++)
        if (strcmp(counter[k], name) == 0) return true;
    return false;
}

static int write_board(void *self, const struct dnn_record *r, struct dnn_err *err)
{
    struct board *b = self;
    struct dnn_buf train = {0}, val = {0};
    const char *group = r->event == DNN_EVENT_EPOCH ? "epoch" : "step";
    double value;
    int rc = 0;

    if (!dnn_record_kept(r, b->cfg->every)) return 0;
    for (int i = 0; i < dnn_record_count(r); i++) {
        const char *name = dnn_record_number(r, i, &value);

        if (isnan(value) || is_counter(name)) continue;
        if (strncmp(name, "val_", 4) == 0)
            add_scalar(&val, group, name + 4, value);
        else
            add_scalar(&train, group, name, value);
    }
    if (train.len > 0) rc = add_event(b->train, r->step, SUMMARY, &train, err);
    if (rc == 0 && val.len > 0 && b->val == NULL)
        rc = open_events(b->cfg, "val", &b->val, err);
    if (rc == 0 && val.len > 0) rc = add_event(b->val, r->step, SUMMARY, &val, err);
    dnn_buf_free(&train);
    dnn_buf_free(&val);
    return rc;
}

/* ---- histograms and pictures ---- */

static int add_value(struct board *b, const char *name, int64_t step, int field,
                     const struct dnn_buf *what, struct dnn_err *err)
{
    struct dnn_buf v = {0}, summary = {0};

    dnn_wire_bytes(&v, TAG, name, strlen(name));
    dnn_wire_bytes(&v, field, what->text, what->len);
    dnn_wire_bytes(&summary, VALUE, v.text, v.len);
    int rc = add_event(b->train, step, SUMMARY, &summary, err);
    dnn_buf_free(&v);
    dnn_buf_free(&summary);
    return rc;
}

struct spread {
    double min, max, sum, squares, n;
    double limit[BUCKETS], count[BUCKETS];
};

/* Count the values in buckets of equal width from minimum to maximum; false if no value
 * is finite. */
static bool measure(const float *value, int64_t n, struct spread *s)
{
    s->min = INFINITY, s->max = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        double x = value[i];

        if (!isfinite(x)) continue;
        s->min = x < s->min ? x : s->min;
        s->max = x > s->max ? x : s->max;
        s->sum += x;
        s->squares += x * x;
        s->n++;
    }
    if (s->n == 0) return false;
    const double width = (s->max - s->min) / BUCKETS;
    for (int k = 0; k < BUCKETS; k++)
        s->limit[k] = k == BUCKETS - 1 ? s->max : s->min + width * (k + 1);
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(value[i])) continue;
        int k = width > 0 ? (int)((value[i] - s->min) / width) : BUCKETS - 1;
        s->count[k < BUCKETS ? k : BUCKETS - 1]++;
    }
    return true;
}

static int write_histogram(void *self, const char *name, int64_t step,
                           const float *value, int64_t n, struct dnn_err *err)
{
    struct spread s = {0};
    struct dnn_buf h = {0};

    if (!measure(value, n, &s)) return 0;
    /* One bucket if all values are equal. */
    size_t from = s.min < s.max ? 0 : BUCKETS - 1;
    dnn_wire_double(&h, MIN, s.min);
    dnn_wire_double(&h, MAX, s.max);
    dnn_wire_double(&h, NUM, s.n);
    dnn_wire_double(&h, SUM, s.sum);
    dnn_wire_double(&h, SQUARES, s.squares);
    dnn_wire_doubles(&h, LIMITS, s.limit + from, BUCKETS - from);
    dnn_wire_doubles(&h, COUNTS, s.count + from, BUCKETS - from);
    int rc = add_value(self, name, step, HISTOGRAM, &h, err);
    dnn_buf_free(&h);
    return rc;
}

static int write_image(void *self, const char *name, int64_t step, int width,
                       int height, const unsigned char *rgb, struct dnn_err *err)
{
    struct dnn_buf png = {0}, image = {0};
    int rc = dnn_png_encode(name, DNN_PNG_RGB, width, height, rgb, &png, err);

    if (rc == 0) {
        dnn_wire_int(&image, HEIGHT, height);
        dnn_wire_int(&image, WIDTH, width);
        dnn_wire_int(&image, COLORSPACE, RGB);
        dnn_wire_bytes(&image, ENCODED, png.text, png.len);
        rc = add_value(self, name, step, IMAGE, &image, err);
    }
    dnn_buf_free(&png);
    dnn_buf_free(&image);
    return rc;
}

/* ---- the sink ---- */

static bool wanted(const struct dnn_telemetry_cfg *cfg)
{
    return cfg->tensorboard;
}

static void close_board(void *self)
{
    struct board *b = self;

    if (b == NULL) return;
    dnn_append_close(b->train);
    dnn_append_close(b->val);
    dnn_free(b);
}

static int open_board(const struct dnn_telemetry_cfg *cfg, void **self,
                      struct dnn_err *err)
{
    struct board *b = dnn_alloc(sizeof *b);
    int rc = open_events(cfg, "train", &b->train, err);

    b->cfg = cfg;
    if (rc < 0) {
        close_board(b);
        return rc;
    }
    *self = b;
    return 0;
}

static int flush_board(void *self, struct dnn_err *err)
{
    struct board *b = self;

    DNN_TRY(dnn_append_flush(b->train, err));
    return b->val == NULL ? 0 : dnn_append_flush(b->val, err);
}

const struct dnn_sink dnn_sink_tensorboard = {.wanted = wanted,
                                              .open = open_board,
                                              .write = write_board,
                                              .flush = flush_board,
                                              .close = close_board,
                                              .histogram = write_histogram,
                                              .image = write_image};
