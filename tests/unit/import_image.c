/* import_image.c - PNG and JPEG files: valid, truncated, changed, or with a wrong
 * header.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import_messages.h"

#include "import/image_impl.h"

#include <stdlib.h>
#include <unistd.h>
#if DNN_HAVE_JPEG
#include <jpeglib.h>
#endif

/* ---- PNG ---- */

#if DNN_HAVE_PNG
static uint32_t crc_of(const unsigned char *at, size_t n)
{
    uint32_t crc = ~0U;

    for (size_t i = 0; i < n; i++) {
        crc ^= at[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
    }
    return ~crc;
}

static void chunk(struct dnn_buf *to, const char *name, const struct dnn_buf *data)
{
    word(to, (uint32_t)data->len, 4, true);
    size_t from = to->len;
    dnn_buf_bytes(to, name, 4);
    if (data->len > 0) dnn_buf_bytes(to, data->text, data->len);
    word(to, crc_of((unsigned char *)to->text + from, to->len - from), 4, true);
}

/* 8 bits, of the colour type; the numbers count up from 10 by 5. */
static struct dnn_buf png(uint32_t width, uint32_t height, int type, int rows)
{
    int channels = type == 2 ? 3 : 1;
    struct dnn_buf out = {0}, head = {0}, data = {0}, raw = {0}, none = {0};
    uint32_t a = 1, b = 0;

    dnn_buf_bytes(&out, "\x89PNG\r\n\x1a\n", 8);
    word(&head, width, 4, true);
    word(&head, height, 4, true);
    word(&head, 8, 1, true);
    word(&head, (uint32_t)type, 1, true);
    dnn_buf_bytes(&head, "\0\0\0", 3);
    chunk(&out, "IHDR", &head);
    for (int y = 0; y < rows; y++) {
        word(&raw, 0, 1, true);
        for (int x = 0; x < (int)width * channels; x++)
            word(&raw, 10 + 5 * (uint32_t)(y * (int)width * channels + x), 1, true);
    }
    dnn_buf_bytes(&data, "\x78\x01\x01", 3); /* one stored block */
    word(&data, (uint32_t)raw.len, 2, false);
    word(&data, ~(uint32_t)raw.len, 2, false);
    dnn_buf_bytes(&data, raw.text, raw.len);
    for (size_t i = 0; i < raw.len; i++) {
        a = (a + (unsigned char)raw.text[i]) % 65521;
        b = (b + a) % 65521;
    }
    word(&data, b << 16 | a, 4, true);
    chunk(&out, "IDAT", &data);
    chunk(&out, "IEND", &none);
    dnn_buf_free(&head);
    dnn_buf_free(&data);
    dnn_buf_free(&raw);
    return out;
}

static void cut_png(void)
{
    static const struct {
        size_t at;
        const char *want;
    } cuts[] = {
        {5,  "a.png: damaged PNG: truncated after 5 bytes" },
        {20, "a.png: damaged PNG: truncated after 20 bytes"},
        {50, "a.png: damaged PNG: truncated after 50 bytes"},
        {75, "a.png: damaged PNG: truncated after 75 bytes"},
    };
    struct dnn_buf p = png(4, 3, 0, 3);

    save("a.png", &p, p.len);
    message_is(&dnn_importer_png, "a.png",
               "input image u8 3x4x1: 10 15 20 25 30 35 40 45 50 55 60 65", "a PNG");
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        save("a.png", &p, cuts[i].at);
        message_is(&dnn_importer_png, "a.png", cuts[i].want, "a truncated PNG");
    }
    for (size_t n = 0; n < p.len; n++) {
        struct dnn_import how = usual();

        save("a.png", &p, n);
        const char *message = read_as(&dnn_importer_png, "a.png", &how, false);
        if (strncmp(message, "a.png: ", 7) != 0)
            ok(false, "cut at %zu: %s", n, message);
    }
    ok(true, "a PNG truncated at any byte is refused");
    dnn_buf_free(&p);
}

static void changed_png(void)
{
    struct dnn_buf p = png(4, 3, 0, 3);

    p.text[17] ^= 1;
    save("a.png", &p, p.len);
    message_is(&dnn_importer_png, "a.png", "a.png: damaged PNG: IHDR: CRC error",
               "a changed header");
    p.text[17] ^= 1;
    p.text[55] ^= 1;
    save("a.png", &p, p.len);
    message_is(&dnn_importer_png, "a.png",
               "a.png: damaged PNG: IDAT: incorrect data check", "a changed pixel");
    dnn_buf_free(&p);
    p = png(4, 3, 0, 2);
    save("a.png", &p, p.len);
    message_is(&dnn_importer_png, "a.png", "a.png: damaged PNG: Not enough image data",
               "a row is missing");
    dnn_buf_free(&p);
    p = png(4, 0, 0, 3);
    save("a.png", &p, p.len);
    message_is(&dnn_importer_png, "a.png", "a.png: damaged PNG: Invalid IHDR data",
               "no height");
    dnn_buf_free(&p);
    p = png(4, 1 << 30, 0, 3);
    save("a.png", &p, p.len);
    message_is(
        &dnn_importer_png, "a.png",
        "a.png: the header declares 1073741824x4x1 elements, but the file has only "
        "83 bytes",
        "a header with a wrong size");
    dnn_buf_free(&p);
}

static void kinds_png(void)
{
    struct dnn_buf p = png(2, 2, 2, 2);
    struct dnn_import how = usual();

    save("a.png", &p, p.len);
    message_is(&dnn_importer_png, "a.png",
               "input image u8 2x2x3: 10 15 20 25 30 35 40 45 50 55 60 65", "colours");
    is_text(read_as(&dnn_importer_png, "a.png", &how, true),
            "target image u8 2x2x3: 10 15 20 25 30 35 40 45 50 55 60 65",
            "colours as a target are an image");
    how.target.gray = true;
    is_text(read_as(&dnn_importer_png, "a.png", &how, true),
            "target image u8 2x2x1: 14 29 44 59", "made grey");
    how.target.gray = false;
    how.target.kind = DNN_KIND_MASK;
    is_text(read_as(&dnn_importer_png, "a.png", &how, true),
            "a.png: a mask must have one channel (the class number), not 3",
            "a colour image is not a mask");
    how.target.kind = DNN_KIND_LABEL;
    is_text(read_as(&dnn_importer_png, "a.png", &how, true),
            "a.png: is an image; \"kind\" must be \"image\" or \"mask\", not \"label\"",
            "an image is not a label");
    how.input.kind = DNN_KIND_VALUES;
    is_text(
        read_as(&dnn_importer_png, "a.png", &how, false),
        "a.png: is an image; \"kind\" must be \"image\" or \"mask\", not \"values\"",
        "nor values");
    dnn_buf_free(&p);
    p = png(2, 2, 0, 2);
    save("a.png", &p, p.len);
    how = usual();
    is_text(read_as(&dnn_importer_png, "a.png", &how, true),
            "target mask u8 2x2x1: 10 15 20 25", "grey as a target is a mask");
    dnn_buf_free(&p);
    p = png(11, 10, 0, 10);
    save("a.png", &p, p.len);
    how.limit = 109;
    is_text(read_as(&dnn_importer_png, "a.png", &how, false),
            "a.png: u8 10x11x1 needs 110 B, which exceeds the limit of 109 B",
            "larger than the limit");
    dnn_buf_free(&p);
}

static void in_memory(void)
{
    struct dnn_buf p = png(2, 2, 2, 2);
    struct dnn_import how = usual();
    struct dnn_array a = {0};
    struct dnn_err err = {0};

    is_int(dnn_image_decode(p.text, p.len, "record 7", &how, true, &a, &err), 0,
           "in memory");
    is_int(a.shape.dim[2], 1, "and grey");
    is_int(dnn_image_decode(p.text, p.len - 20, "record 7", &how, true, &a, &err),
           DNN_EDATA, "cut");
    is_text(err.text, "record 7: damaged PNG: truncated after 62 bytes",
            "the record is named");
    is_int(dnn_image_decode("BM1234567890", 12, "record 7", &how, true, &a, &err),
           DNN_EDATA, "something else");
    is_text(err.text, "record 7: not a PNG or JPEG image", "its message");
    dnn_array_free(&a);
    dnn_buf_free(&p);
}
#endif

/* ---- JPEG ---- */

#if DNN_HAVE_JPEG
static struct dnn_buf jpeg(int width, int height)
{
    struct jpeg_compress_struct j = {0};
    struct jpeg_error_mgr errors;
    unsigned char *mem = NULL, row[64];
    unsigned long n = 0;
    struct dnn_buf out = {0};
    JSAMPROW rows = row;

    memset(row, 77, sizeof(row));
    j.err = jpeg_std_error(&errors);
    jpeg_create_compress(&j);
    jpeg_mem_dest(&j, &mem, &n);
    j.image_width = (JDIMENSION)width;
    j.image_height = (JDIMENSION)height;
    j.input_components = 1;
    j.in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(&j);
    jpeg_start_compress(&j, TRUE);
    while (j.next_scanline < j.image_height)
        jpeg_write_scanlines(&j, &rows, 1);
    jpeg_finish_compress(&j);
    jpeg_destroy_compress(&j);
    dnn_buf_bytes(&out, mem, n);
    free(mem);
    return out;
}

static void jpegs(void)
{
    struct dnn_buf p = jpeg(16, 40);
    struct dnn_import how = usual();

    save("a.jpg", &p, p.len);
    message_is(&dnn_importer_jpeg, "a.jpg",
               "input image u8 40x16x1: 77 77 77 77 77 77 77 77 77 77 77 77", "a JPEG");
    is_text(read_as(&dnn_importer_jpeg, "a.jpg", &how, true),
            "target image u8 40x16x1: 77 77 77 77 77 77 77 77 77 77 77 77",
            "a JPEG is not a mask by default");
    size_t bad = 0;
    for (size_t n = 0; n < p.len; n++) {
        save("a.jpg", &p, n);
        const char *message = read_as(&dnn_importer_jpeg, "a.jpg", &how, false);
        if (strncmp(message, "a.jpg: ", 7) != 0 && ++bad < 5)
            printf("# cut at %zu of %zu: %s\n", n, p.len, message);
    }
    is_int((long long)bad, 0, "a JPEG truncated at any byte is refused");
    save("a.jpg", &p, p.len - 2);
    message_is(&dnn_importer_jpeg, "a.jpg",
               "a.jpg: damaged JPEG: Premature end of JPEG file", "its end is missing");
    for (size_t i = 0; i + 9 < p.len; i++)
        if ((unsigned char)p.text[i] == 0xFF && (unsigned char)p.text[i + 1] == 0xC0) {
            memset(p.text + i + 5, 0xFC, 4); /* 64764 x 64764 pixels */
            break;
        }
    save("a.jpg", &p, p.len);
    char want[160];
    snprintf(want, sizeof(want),
             "a.jpg: the header declares 64764x64764x1 elements, but the file has only "
             "%zu bytes",
             p.len);
    message_is(&dnn_importer_jpeg, "a.jpg", want, "a header with a wrong size");
    dnn_buf_free(&p);
}
#endif

int main(void)
{
    char dir[] = "/tmp/dnn-image-XXXXXX";

    if (mkdtemp(dir) == NULL || chdir(dir) != 0) return 1;
#if DNN_HAVE_PNG
    cut_png();
    changed_png();
    kinds_png();
    in_memory();
#else
    skip("PNG", "built without libpng");
#endif
#if DNN_HAVE_JPEG
    jpegs();
#else
    skip("JPEG", "built without libjpeg");
#endif
    if (chdir("/") == 0) dnn_file_remove_tree(dir, NULL);
    return done();
}
