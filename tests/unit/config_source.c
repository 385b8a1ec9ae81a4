/* config_source.c - masks stored as images, and transforms, in a configuration.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config_made.h"

#include "base/text.h"
#include "source/source.h"

/* ---- masks stored as images ---- */

static void put16(unsigned char *to, unsigned x)
{
    to[0] = (unsigned char)x;
    to[1] = (unsigned char)(x >> 8);
}

/* A grey TIFF of one row of four pixels. */
static void put_tiff(const char *name, const unsigned char pixel[4])
{
    static const unsigned tag[][3] = {
        {256, 4, 4 },
        {257, 4, 1 },
        {258, 3, 8 },
        {259, 3, 1 },
        {262, 3, 1 },
        {273, 4, 12},
        {277, 3, 1 },
        {278, 4, 1 },
        {279, 4, 4 }
    };
    enum { N = sizeof tag / sizeof tag[0], START = 16 };
    unsigned char file[START + 2 + N * 12 + 4] = {'I', 'I', 42, 0, START, 0, 0, 0};
    char *to = below(name);

    memcpy(file + 12, pixel, 4);
    put16(file + START, N);
    for (int i = 0; i < N; i++) {
        unsigned char *at = file + START + 2 + i * 12;

        put16(at, tag[i][0]);
        put16(at + 2, tag[i][1]);
        put16(at + 4, 1);
        put16(at + 8, tag[i][2]);
    }
    is_int(dnn_file_write(to, file, sizeof file, &err), 0, name);
    dnn_free(to);
}

static bool tiff_is_built(void)
{
    struct dnn_importer_info info;

    for (int i = 0; dnn_import_info(i, &info); i++)
        if (strcmp(info.name, "tiff") == 0) return info.built;
    return false;
}

/* The classes that levels 0, 255, 0, 255 or 0, 1, 2, 1 become, as a text. */
static void classes(const char *data, const char *want, const char *what)
{
    struct dnn_config_origin at;
    struct dnn_source *source = NULL;
    struct dnn_sample sample = {0};
    struct dnn_buf got = {0};

    if (!reads(data)) return;
    dnn_config_origin(&config, DNN_PART_TRAIN, &at);
    int rc = dnn_source_open(&config, &at, &source, &err);
    if (rc == 0) rc = dnn_source_read(source, 0, &sample, &err);
    for (int c = 0; rc == 0 && c < source->ncols; c++)
        if (source->col[c].role == DNN_ROLE_TARGET) {
            rc = dnn_array_convert(&sample.col[c], DNN_I32, true, &err);
            for (int k = 0; rc == 0 && k < 4; k++)
                dnn_buf_add(&got, "%d ", (int)((int32_t *)sample.col[c].data)[k]);
        }
    is_text(rc < 0 ? err.text : got.text, want, what);
    dnn_buf_free(&got);
    dnn_sample_free(&sample);
    dnn_source_close(source);
    dnn_config_free(&config);
}

#define PICTURES                                                                       \
    "\"type\": \"images\", \"target_is_mask\": true, \"input_path\": \"in.tif\", "     \
    "\"target_path\": "

static void masks(void)
{
    if (!tiff_is_built()) {
        skip("masks stored as images", "built without TIFF");
        return;
    }
    put_tiff("in.tif", (unsigned char[]){1, 2, 3, 4});
    put_tiff("white.tif", (unsigned char[]){0, 255, 0, 255});
    put_tiff("level.tif", (unsigned char[]){0, 1, 2, 1});
    classes(PICTURES "\"white.tif\"", "0 1 0 1 ", "black and white are 0 and 1");
    classes(PICTURES "\"level.tif\", \"transforms\": [{\"normalize\": {\"std\": "
                     "0.003921568}}]",
            "0 1 2 1 ", "a normalisation turns levels into classes");
    classes(PICTURES
            "\"level.tif\", \"target_transforms\": [{\"normalize\": {\"mean\": "
            "-0.003921569, \"std\": 0.003921569}}]",
            "1 2 3 2 ", "with a mean, of targets alone");
    classes(PICTURES "\"level.tif\", \"target_type\": \"masks\"", "0 1 2 1 ",
            "masks are not changed");
    char *want =
        dnn_format("the mask of %s/in.tif: grey level 0 becomes class -2, which is out "
                   "of range; masks are divided by 255 and then normalised",
                   dir);
    classes(PICTURES "\"level.tif\", \"transforms\": [{\"normalize\": {\"mean\": 1, "
                     "\"std\": 0.5}}]",
            want, "a value that is not a class is an error");
    dnn_free(want);
}

/* ---- transforms ---- */

/* Whether the transforms of a configuration are random; -1: there are none.
 */
static int randomness(bool test)
{
    struct dnn_augment *augment = NULL;
    int is = -1;

    is_int(dnn_config_augment(&config, test, &augment, &err), 0, "read");
    if (augment != NULL) is = dnn_augment_random(augment) ? 1 : 0;
    dnn_augment_free(augment);
    return is;
}

static void transforms(void)
{
    static const struct dnn_column volume = {
        .name = "input",
        .role = DNN_ROLE_INPUT,
        .kind = DNN_KIND_IMAGE,
        .type = DNN_F32,
        .shape = {.ndim = 4, .dim = {8, 8, 8, 1}}
    };
    struct dnn_augment *augment = NULL;
    struct dnn_column out;

    if (reads("\"input_path\": \"x\"")) {
        is_int(randomness(false), -1, "none to train with");
        is_int(randomness(true), -1, "none to test with");
        dnn_config_free(&config);
    }
    if (reads(
            "\"transforms\": [{\"noise\": 1}], \"test_input_transforms\": [{\"noise\": "
            "2}]")) {
        is_int(randomness(true), 1, "test transforms are used");
        dnn_config_free(&config);
    }
    if (!reads("\"transforms\": [{\"random_rotate\": 5},\n\n{\"resize\": [4, 4]}],\n"
               "\"input_transforms\": [{\"noise\": 1}]"))
        return;
    is_int(randomness(false), 1, "training's are random");
    is_int(randomness(true), 0, "tests' are not");
    is_int(dnn_config_augment(&config, true, &augment, &err), 0, "tests'");
    ok(dnn_augment_columns(augment, 1, &volume, &out, &err) < 0,
       "do not work with volumes");
    char *want = dnn_format("%s:4: data.transforms[1].resize: 'input' has 3", path);
    err.text[strlen(want)] = '\0';
    is_text(err.text, want, "with its line and its place in the list");
    dnn_free(want);
    dnn_augment_free(augment);
    dnn_config_free(&config);
}

int main(void)
{
    made_start();
    masks();
    transforms();
    return made_end();
}
