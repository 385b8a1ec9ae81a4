/* telemetry_events.c - bytes of protocol buffers and records, and event files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "telemetry/telemetry_impl.h"
#include "telemetry_made.h"

#include <dirent.h>

static void is_bytes(struct dnn_buf *got, const char *want, const char *what)
{
    struct dnn_buf hex = {0};

    for (size_t i = 0; i < got->len; i++)
        dnn_buf_add(&hex, "%02x", (unsigned char)got->text[i]);
    is_text(hex.text, want, what);
    dnn_buf_free(&hex);
    dnn_buf_free(got);
    *got = (struct dnn_buf){0};
}

static void test_wire(void)
{
    static const double two[] = {1, -2};
    struct dnn_buf b = {0};

    dnn_wire_int(&b, 2, 0);
    is_bytes(&b, "1000", "zero");
    dnn_wire_int(&b, 2, 300);
    is_bytes(&b, "10ac02", "300");
    dnn_wire_int(&b, 2, -1);
    is_bytes(&b, "10ffffffffffffffffff01", "-1 has ten bytes");
    dnn_wire_float(&b, 2, 1.5f);
    is_bytes(&b, "150000c03f", "a float");
    dnn_wire_double(&b, 1, 1.5);
    is_bytes(&b, "09000000000000f83f", "a double");
    dnn_wire_bytes(&b, 16, "hi", 2);
    is_bytes(&b, "8201026869", "bytes of a high field");
    dnn_wire_doubles(&b, 6, two, 2);
    is_bytes(&b, "3210000000000000f03f00000000000000c0", "packed doubles");
    /* CRC-32C of "123456789" is e3069283. */
    dnn_wire_frame(&b, "123456789", 9);
    is_text(b.len == 25 && memcmp(b.text + 12, "123456789", 9) == 0 ? "yes" : "no",
            "yes", "a record has the bytes");
    struct dnn_buf sum = {0};
    dnn_buf_bytes(&sum, b.text + 21, 4);
    is_bytes(&sum, "e5b08ac7", "and their masked sum");
    dnn_buf_free(&b);
}

static int files_in(const char *name)
{
    DIR *dir = opendir(made_path(name));
    int n = 0;

    if (dir == NULL) return 0;
    for (struct dirent *d; (d = readdir(dir)) != NULL;)
        n += strstr(d->d_name, "tfevents") != NULL;
    closedir(dir);
    return n;
}

static void test_files(void)
{
    struct dnn_telemetry_cfg cfg = {.dir = made_dir, .tensorboard = true};
    struct dnn_telemetry *t = NULL;
    struct dnn_err err = {0};
    static const float nothing[] = {NAN, INFINITY};
    static const unsigned char rgb[12] = {0};

    is_int(dnn_telemetry_open(&cfg, &t, &err), 0, "a run");
    struct dnn_record r = made_record(DNN_EVENT_EPOCH, 2);
    is_int(dnn_telemetry_write(t, &r, &err), 0, "an epoch without validation");
    is_int(files_in("events/train"), 1, "has one file");
    is_int(files_in("events/val"), 0, "and none of validation");
    made_add(&r, "val_loss", 1);
    is_int(dnn_telemetry_write(t, &r, &err), 0, "one with validation");
    is_int(files_in("events/val"), 1, "has one");
    is_int(dnn_telemetry_histogram(t, "w", 2, nothing, 2, &err), 0,
           "no histogram without finite values");
#if DNN_HAVE_PNG
    is_int(dnn_telemetry_image(t, "p", 2, 2, 2, rgb, &err), 0, "a picture");
    dnn_telemetry_image(t, "p", 2, 0, 2, rgb, &err);
    is_text(err.text, "p: invalid image size 0 x 2", "an empty one");
#else
    dnn_telemetry_image(t, "p", 2, 2, 2, rgb, &err);
    is_text(err.text,
            "p: pictures are PNG images and need libpng, which this was built without",
            "no pictures here");
#endif
    dnn_telemetry_close(t);
    cfg.resumed_step = 2;
    is_int(dnn_telemetry_open(&cfg, &t, &err), 0, "resumed");
    dnn_telemetry_close(t);
    is_int(files_in("events/train"), 2, "starts a second file");
}

int main(void)
{
    made_begin();
    test_wire();
    test_files();
    made_end();
    return done();
}
