/* import_tiff.c - TIFF files: valid, truncated or with a wrong header; and several
 * threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import_messages.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* A page of 8-bit grey: width, height, one strip, pixels count up. */
struct tiff {
    uint32_t width, height, bits, compression, offset, bytes, next, photometric;
};

static struct dnn_buf tiff(const struct tiff *t)
{
    const uint32_t tag[][3] = {
        {256, 4, t->width      },
        {257, 4, t->height     },
        {258, 3, t->bits       },
        {259, 3, t->compression},
        {262, 3, t->photometric},
        {273, 4, t->offset     },
        {277, 3, 1             },
        {278, 4, t->height     },
        {279, 4, t->bytes      },
    };
    uint32_t n = sizeof(tag) / sizeof(tag[0]);
    struct dnn_buf out = {0};

    dnn_buf_bytes(&out, "II*\0", 4);
    word(&out, 8, 4, false);
    word(&out, n, 2, false);
    for (uint32_t i = 0; i < n; i++) {
        word(&out, tag[i][0], 2, false);
        word(&out, tag[i][1], 2, false);
        word(&out, 1, 4, false);
        word(&out, tag[i][2], 4, false);
    }
    word(&out, t->next, 4, false);
    for (uint32_t i = 0; i < 12; i++)
        word(&out, 10 + i, 1, false);
    return out;
}

static const struct tiff whole = {4, 3, 8, 1, 122, 12, 0, 1};

static void is_tiff(struct tiff t, const char *want, const char *what)
{
    struct dnn_buf p = tiff(&t);

    save("a.tif", &p, p.len);
    message_is(&dnn_importer_tiff, "a.tif", want, what);
    dnn_buf_free(&p);
}

static void tiffs(void)
{
    struct tiff t = whole;

    is_tiff(t, "input image u8 3x4x1: 10 11 12 13 14 15 16 17 18 19 20 21", "a TIFF");
    t.width = t.height = 1 << 14;
    is_tiff(t,
            "a.tif: the header declares 16384x16384x1 elements, but the file has only "
            "134 bytes",
            "a header with a wrong size");
    t = whole, t.width = 0;
    is_tiff(t, "a.tif: damaged TIFF: Computed scanline size is zero", "no width");
    t = whole, t.bits = 3;
    is_tiff(t,
            "a.tif: page 1: 1 values of 3 bits per pixel (sample format 1) are not "
            "supported",
            "3 bits");
    t = whole, t.compression = 4711;
    is_tiff(t, "a.tif: page 1: the installed libtiff does not support compression 4711",
            "an unknown compression");
    t = whole, t.photometric = 5;
    is_tiff(t,
            "a.tif: page 1: photometric interpretation 5 is not supported; grayscale, "
            "RGB and palette are",
            "printing colours");
    t = whole, t.offset = 5000;
    is_tiff(t,
            "a.tif: damaged TIFF: page 1: Read error at scanline 4294967295; got 0 "
            "bytes, expected 12",
            "data beyond the end");
    t = whole, t.next = 8;
    is_tiff(t, "a.tif: damaged TIFF: the page list loops back after page 1",
            "pages in a loop");
    t = whole, t.next = 7777;
    is_tiff(t, "a.tif: damaged TIFF: page 2: Can not read TIFF directory count",
            "a page beyond the end");
}

static void cut_tiff(void)
{
    struct dnn_buf p = tiff(&whole);
    struct dnn_import how = usual();
    size_t bad = 0;

    for (size_t n = 0; n < p.len; n++) {
        save("a.tif", &p, n);
        const char *message = read_as(&dnn_importer_tiff, "a.tif", &how, false);
        if (strncmp(message, "a.tif: ", 7) != 0 && ++bad < 5)
            printf("# cut at %zu: %s\n", n, message);
    }
    is_int((long long)bad, 0, "a TIFF truncated at any byte is refused");
    message_is(&dnn_importer_tiff, "none.tif", "none.tif: No such file or directory",
               "no file");
    dnn_buf_free(&p);
}

/* ---- several at once ---- */

static void *again(void *arg)
{
    const struct dnn_source *source = arg;
    struct dnn_sample sample = {0};
    struct dnn_err err = {0};
    intptr_t good = 0;

    for (int i = 0; i < 50; i++)
        if (dnn_source_read(source, 0, &sample, &err) == 0 &&
            ((unsigned char *)sample.col[0].data)[11] == 21)
            good++;
    dnn_sample_free(&sample);
    return (void *)good;
}

static void threads(void)
{
    struct dnn_buf p = tiff(&whole);
    struct dnn_import how = usual();
    struct dnn_source *source = NULL;
    struct dnn_err err = {0};
    pthread_t thread[4];
    intptr_t good = 0;

    save("a.tif", &p, p.len);
    is_int(dnn_importer_tiff.open("a.tif", &how, &how.input, &source, &err), 0, "open");
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, again, source);
    for (int i = 0; i < 4; i++) {
        void *n;

        pthread_join(thread[i], &n);
        good += (intptr_t)n;
    }
    is_int(good, 200, "four threads read it at once");
    dnn_source_close(source);
    dnn_buf_free(&p);
}

int main(void)
{
    char dir[] = "/tmp/dnn-tiff-XXXXXX";

    if (mkdtemp(dir) == NULL || chdir(dir) != 0) return 1;
    if (dnn_importer_tiff.open == NULL) {
        skip("TIFF", "built without libtiff");
        return done();
    }
    tiffs();
    cut_tiff();
    threads();
    if (chdir("/") == 0) dnn_file_remove_tree(dir, NULL);
    return done();
}
