/* config_slices.c - volumes cut into boxes by data.slicers.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config_made.h"
#include "source/source.h"

#include "boxes.h"

#define VOLUMES                                                                        \
    "\"generate\": {\"type\": \"blobs3d\", \"samples\": 3, \"size\": 8}, "             \
    "\"slicers\": "

static int open_slices(const char *data, struct dnn_source **out)
{
    struct dnn_config_origin origin;

    *out = NULL;
    if (!reads(data)) return -1;
    dnn_config_origin(&config, DNN_PART_TRAIN, &origin);
    return dnn_source_open(&config, &origin, out, &err);
}

/* A number of an array of u8, u16, i32 or f32. */
static double number(const struct dnn_array *a, int64_t i)
{
    double out = 0;
    char *at = (char *)a->data + (size_t)i * dnn_dtype_size(a->type);

    dnn_convert(at, a->type, &out, DNN_F64, 1, false, NULL);
    return out;
}

/* Whether a column of a box [4, 4, 8] from (z, y, 0) on is that part of its volume. */
static bool is_slice(const struct dnn_array *box, const struct dnn_array *volume, int z,
                     int y)
{
    int64_t channels = volume->shape.dim[3];

    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < 4; j++)
            for (int64_t k = 0; k < 8 * channels; k++)
                if (number(box, (i * 4 + j) * 8 * channels + k) !=
                    number(volume, ((z + i) * 8 + y + j) * 8 * channels + k))
                    return false;
    return true;
}

static void boxes(void)
{
    struct dnn_source *cut, *whole;
    struct dnn_sample box = {0}, volume = {0};
    char name[DNN_SAMPLE_NAME];
    int64_t v, at;
    int set;

    is_int(open_slices("\"generate\": {\"type\": \"blobs3d\", \"samples\": 3, "
                       "\"size\": 8}",
                       &whole),
           0, "volumes");
    ok(dnn_source_sliced(whole) == NULL && dnn_source_sliced(NULL) == NULL,
       "are not cut");
    is_int(dnn_source_read(whole, 2, &volume, &err), 0, "the last of them");
    dnn_source_close(whole);
    dnn_config_free(&config);
    is_int(open_slices(VOLUMES "[{\"name\": \"a\", \"sizes\": [4, 4, 8]}, {\"name\": "
                               "\"b\", \"sizes\": [4, 4, 8], \"strides\": [2, 4, 8]}]",
                       &cut),
           0, "two sets of boxes");
    if (cut == NULL) return;
    is_int(cut->count, 3 * (4 + 6), "four and six of each");
    const struct dnn_source_slices *how = dnn_source_sliced(cut);
    ok(how != NULL && how->nsets == 2 && how->each == 10, "as the source reports");
    ok(cut->col[0].shape.dim[0] == 4 && cut->col[0].shape.dim[2] == 8, "their shape");
    dnn_source_label(cut, 27, name);
    is_text(name, "2: b[3]", "their names");
    dnn_source_slice_at(how, 27, &v, &set, &at);
    ok(v == 2 && set == 1 && at == 3, "and their origin");
    is_int(dnn_source_read(cut, 27, &box, &err), 0, "one of them");
    for (int c = 0; c < cut->ncols; c++)
        if (volume.col[c].shape.ndim == 4)
            ok(is_slice(&box.col[c], &volume.col[c], 2, 4), "is what it should be: %s",
               cut->col[c].name);
    ok(dnn_source_read(cut, 30, &box, &err) < 0, "there is no further one");
    dnn_sample_free(&box);
    dnn_sample_free(&volume);
    dnn_source_close(cut);
    dnn_config_free(&config);
}

/* Without remainders the assembled volume is smaller. */
static void smaller(void)
{
    struct dnn_source *cut;

    is_int(open_slices(VOLUMES "[{\"sizes\": [3, 8, 8], \"discard_remainders\": true}]",
                       &cut),
           0, "boxes with a remainder");
    const struct dnn_source_slices *how = dnn_source_sliced(cut);
    ok(how != NULL && how->set[0].full[0] == 8 && how->put[0].full[0] == 6,
       "which is dropped");
    dnn_source_close(cut);
    dnn_config_free(&config);
}

/* A fraction of the boxes is held out. */
static void aside(void)
{
    struct dnn_config_origin origin;
    struct dnn_source *cut, *rest = NULL;

    is_int(open_slices(VOLUMES "[{\"sizes\": [4, 4, 8]}], \"validation\": 0.25", &cut),
           0, "boxes, some held out");
    dnn_config_origin(&config, DNN_PART_VALIDATION, &origin);
    is_int(dnn_source_open(&config, &origin, &rest, &err), 0, "those");
    ok(cut != NULL && rest != NULL && cut->count == 9 && rest->count == 3,
       "9 and 3 of 12");
    dnn_source_close(cut);
    dnn_source_close(rest);
    dnn_config_free(&config);
}

/* Boxes of slices, of volumes in a file: those in the padding are cut from slices. */
static void boxes_of_slices(void)
{
    static const char *const slicers[] = {
        "[{\"sizes\": [4, 5, 8]}]",
        "[{\"sizes\": [4, 1, 5], \"strides\": [3, 2, 4]}]",
        "[{\"sizes\": [1, 6, 5], \"transpose\": true}]",
        "[{\"sizes\": [4, 5, 8], \"padding\": [1, 0, 2]}]",
    };
    static const char header[] =
        "\x93NUMPY\1\0\x42\0{'descr': '|u1', 'fortran_order': False, "
        "'shape': (12, 10, 8)}\n";
    char *file = below("v.npy");
    unsigned char bytes[sizeof header - 1 + 12 * 10 * 8];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 256);
    memcpy(bytes, header, sizeof header - 1);
    bytes[8] = sizeof header - 1 - 10;
    dnn_file_write(file, bytes, sizeof bytes, &err);
    for (size_t i = 0; i < sizeof slicers / sizeof slicers[0]; i++) {
        char *data = dnn_format(
            "\"input_path\": \"%s\", \"input_type\": \"numpy\", \"input_layout\": "
            "\"none\", \"slicers\": %s",
            file, slicers[i]);
        struct dnn_source *cut;

        if (ok(open_slices(data, &cut) == 0, "slices of a file"))
            boxes_equal(cut, i < 2, slicers[i]);
        else
            printf("# %s\n", err.text);
        dnn_source_close(cut);
        dnn_config_free(&config);
        dnn_free(data);
    }
    dnn_free(file);
}

static void refused(void)
{
    static const char *const wrong[][2] = {
        {"[{\"sizes\": [4, 4]}]",                            "data.slicers: input of the data is 8x8x8x1, which "
                                  "has 3 spatial axes, but there "
                                  "are 2 sizes"},
        {"[{\"name\": \"a\", \"sizes\": [4, 4, 4]}, {\"name\": \"b\", \"sizes\": [4, "
         "4, 8]}]",                                 "data.slicers[1]: slices are 4x4x8x1, but 4x4x4x1 in the first slicer; they "
         "must be equal"                            },
        {"[{\"sizes\": [4, 4, 4]}, {\"sizes\": [4, 4, 4]}]",
         "data.slicers[1]: the name \"slices\" is used twice"                   },
        {"[{\"sizes\": [4, 4, 4]}], \"memory\": 1000",
         "data.slicers: 3 volumes need 7.5 KiB of memory, more than 1000 B; cut them "
         "with dnn-prepare and its step \"slice\", or raise data.memory"        },
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct dnn_source *cut;
        char *data = dnn_format("%s%s", VOLUMES, wrong[i][0]);

        ok(open_slices(data, &cut) < 0, "refused");
        is_text(err.text, wrong[i][1], "with the reason");
        dnn_free(data);
        dnn_config_free(&config);
    }
}

int main(void)
{
    made_start();
    boxes();
    smaller();
    aside();
    boxes_of_slices();
    refused();
    return made_end();
}
