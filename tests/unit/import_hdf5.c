/* import_hdf5.c - HDF5 files: selection of input and target, storage layouts, and
 * damaged files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import_made.h"

#if DNN_HAVE_HDF5
#include "base/rng.h"

#include <hdf5.h>
#include <pthread.h>

#define HDF5 (&dnn_importer_hdf5)

/* HDF5 allocates sizes of a damaged file; a failed allocation is handled. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* ---- files ---- */

static hid_t create(void)
{
    return H5Fcreate(made_path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
}

/* A dataset; data is of type memory, NULL: nothing is written. */
static void array(hid_t at, const char *name, hid_t type, int ndim, const hsize_t *dims,
                  hid_t plist, hid_t memory, const void *numbers)
{
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    hid_t space = H5Screate_simple(ndim, dims, NULL);

    H5Pset_create_intermediate_group(links, 1);
    hid_t data = H5Dcreate2(at, name, type, space, links, plist, H5P_DEFAULT);
    if (numbers != NULL) H5Dwrite(data, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
    H5Dclose(data);
    H5Sclose(space);
    H5Pclose(links);
}

#define DIMS(...)                                                                      \
    (const hsize_t[])                                                                  \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }

static const int numbers[24] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};

/* features 3x2x2 and labels 3, as in NNLO. */
static void make_pair(const char *input, const char *target, hid_t plist)
{
    hid_t file = create();

    array(file, input, H5T_IEEE_F32BE, 3, DIMS(3, 2, 2), plist, H5T_NATIVE_INT,
          numbers);
    array(file, target, H5T_STD_I16BE, 1, DIMS(3), H5P_DEFAULT, H5T_NATIVE_INT,
          numbers + 5);
    H5Fclose(file);
}

/* ---- valid files ---- */

static void pairs(void)
{
    static const char *const usual[][2] = {
        {"features", "labels"},
        {"X",        "Y"     },
        {"X",        "y"     },
        {"x",        "y"     },
        {"data",     "label" },
        {"input",    "target"},
        {"images",   "masks" },
        {"images",   "labels"}
    };
    struct dnn_import how = made_how();
    char what[64];

    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        make_pair(usual[i][0], usual[i][1], H5P_DEFAULT);
        snprintf(what, sizeof what, "%s and %s", usual[i][0], usual[i][1]);
        struct dnn_source *s = made_open(HDF5, &how, false, NULL);
        made_columns(s, "input image f32 2x2x1, target label i16 scalar", what);
        dnn_source_close(s);
    }
    make_pair("a/samples", "b/of/classes", H5P_DEFAULT);
    made_refused(HDF5, &how, false, DNN_EDATA,
                 ": several arrays; set \"name\" to the one with the samples: "
                 "a/samples, b/of/classes",
                 "other names must be given");
    how.input.name = "a/sampels";
    made_refused(HDF5, &how, false, DNN_EDATA,
                 ": there is no array \"a/sampels\"; did you mean \"a/samples\"?; "
                 "available: a/samples, b/of/classes",
                 "an unknown name");
    how.input.name = "a/samples";
    how.target.name = "b/of/classes";
    struct dnn_source *s = made_open(HDF5, &how, false, NULL);
    is_int(s->count, 3, "given names");
    made_sample(s, 2, "2x2x1: 8 9 10 11 | scalar: 7", "the last sample");
    made_sample(s, 0, "2x2x1: 0 1 2 3 | scalar: 5", "the first");
    is_int(s->type->class_of(s, 1), 6, "a class");
    dnn_source_close(s);
}

static void chunks(void)
{
    struct dnn_import how = made_how();
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);

    H5Pset_chunk(plist, 3, DIMS(2, 1, 2));
    H5Pset_shuffle(plist);
    H5Pset_deflate(plist, 9);
    make_pair("x", "y", plist);
    H5Pclose(plist);
    struct dnn_source *s = made_open(HDF5, &how, false, NULL);
    made_sample(s, 1, "2x2x1: 4 5 6 7 | scalar: 6", "chunks that are compressed");
    made_sample(s, 2, "2x2x1: 8 9 10 11 | scalar: 7", "and a partial chunk");
    dnn_source_close(s);
}

static void wholes(void)
{
    struct dnn_import how = made_how();
    hid_t file = create();

    array(file, "volume", H5T_STD_U8LE, 3, DIMS(2, 3, 4), H5P_DEFAULT, H5T_NATIVE_INT,
          numbers);
    H5Fclose(file);
    how.whole = true;
    struct dnn_source *s = made_open(HDF5, &how, false, NULL);
    made_columns(s, "input image u8 2x3x4", "an array is a sample");
    dnn_source_close(s);
    how.input.layout = DNN_LAYOUT_NONE;
    s = made_open(HDF5, &how, false, NULL);
    made_columns(s, "input image u8 2x3x4x1", "a volume");
    made_sample(
        s, 0, "2x3x4x1: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23",
        "and its numbers");
    dnn_source_close(s);
    file = create();
    array(file, "b", H5T_STD_U8LE, 2, DIMS(1, 2), H5P_DEFAULT, H5T_NATIVE_INT, numbers);
    array(file, "a", H5T_STD_U8LE, 2, DIMS(2, 2), H5P_DEFAULT, H5T_NATIVE_INT, numbers);
    H5Fclose(file);
    s = made_open(HDF5, &how, false, NULL);
    made_columns(s, "input image u8 ?x2x1", "several arrays are several samples");
    made_sample(s, 1, "1x2x1: 0 1", "in the order of their names");
    dnn_source_close(s);
}

/* ---- several threads ---- */

static void *reader(void *arg)
{
    struct dnn_source *s = arg;
    struct dnn_sample sample = {0};
    long bad = 0;

    for (int i = 0; i < 300; i++) {
        float want = (float)(i % 3 * 4);

        if (dnn_source_read(s, i % 3, &sample, NULL) < 0 ||
            *(float *)sample.col[0].data != want)
            bad++;
    }
    dnn_sample_free(&sample);
    return (void *)bad;
}

static void threads(void)
{
    struct dnn_import how = made_how();
    pthread_t id[4];
    long bad = 0;

    make_pair("x", "y", H5P_DEFAULT);
    struct dnn_source *s = made_open(HDF5, &how, false, NULL);
    for (int i = 0; i < 4; i++)
        pthread_create(&id[i], NULL, reader, s);
    for (int i = 0; i < 4; i++) {
        void *one;

        pthread_join(id[i], &one);
        bad += (long)one;
    }
    is_int(bad, 0, "threads read at once");
    dnn_source_close(s);
}

/* ---- errors ---- */

static void wrong_data(void)
{
    struct dnn_import how = made_how();
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE), file = create();
    hid_t text = H5Tcopy(H5T_C_S1);

    H5Tset_size(text, 8);
    array(file, "text", text, 1, DIMS(1), H5P_DEFAULT, text, "abcdefg");
    H5Tclose(text);
    array(file, "never", H5T_STD_U8LE, 1, DIMS(4), H5P_DEFAULT, 0, NULL);
    H5Pset_chunk(plist, 1, DIMS(1 << 20));
    array(file, "huge", H5T_IEEE_F64LE, 1, DIMS(1ull << 60), plist, 0, NULL);
    H5Pclose(plist);
    plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(plist, "/etc/hostname", 0, 4);
    array(file, "other", H5T_STD_U8LE, 1, DIMS(4), plist, 0, NULL);
    H5Pclose(plist);
    array(file, "none", H5T_STD_U8LE, 2, DIMS(0, 4), H5P_DEFAULT, 0, NULL);
    H5Fclose(file);
    how.input.name = "text";
    made_refused(HDF5, &how, false, DNN_EDATA,
                 ": text: has an unsupported element type", "texts");
    how.input.name = "never";
    made_refused(HDF5, &how, false, DNN_EDATA, ": never: is empty",
                 "a dataset that was never written");
    how.input.name = "huge";
    made_refused(HDF5, &how, false, DNN_EDATA, ": huge: is too large",
                 "a dataset of 2^60 numbers");
    how.input.name = "other";
    made_refused(HDF5, &how, false, DNN_EDATA,
                 ": other: stores its data in another file (external storage)",
                 "external storage");
    how.input.name = "none";
    made_refused(HDF5, &how, false, DNN_EDATA, ": contains no samples", "no rows");
    make_pair("x", "y", H5P_DEFAULT);
    how = made_how();
    how.limit = 3;
    made_refused(HDF5, &how, false, DNN_EDATA,
                 ": x: f32 2x2 needs 16 B, which exceeds the limit of 3 B",
                 "more than the limit");
}

static void wrong_files(void)
{
    struct dnn_import how = made_how();

    made_file("", 0);
    made_refused(HDF5, &how, false, DNN_EDATA,
                 ": HDF5 cannot read it: file signature not found", "an empty file");
    H5Fclose(create());
    made_refused(HDF5, &how, false, DNN_EDATA, ": contains no arrays",
                 "a file without datasets");
    unlink(made_path);
    made_refused(HDF5, &how, false, DNN_EIO, ": No such file or directory", "no file");
}

/* Truncated or changed, it is an error or readable: no crash, no hang. */
static void damage(void)
{
    struct dnn_import how = made_how();
    struct dnn_rng rng = dnn_rng_make(7, 0);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    int refused = 0, silent = 0;
    char *bytes;
    size_t n;

    H5Pset_chunk(plist, 3, DIMS(2, 1, 2));
    H5Pset_deflate(plist, 9);
    make_pair("x", "y", plist);
    H5Pclose(plist);
    dnn_file_read(made_path, 1 << 20, &bytes, &n, NULL);
    for (int i = 0; i < 400; i++) {
        struct dnn_err err = {0};
        struct dnn_sample sample = {0};
        struct dnn_rng_at draw = {.step = (uint32_t)i};
        size_t at = dnn_rng_below(&rng, draw, n), cut = i % 4 == 0 ? at : n;
        char was = bytes[at];

        if (cut == n) bytes[at] ^= (char)(1 << i % 8);
        made_file(bytes, cut);
        bytes[at] = was;
        struct dnn_source *s = made_open(HDF5, &how, false, &err);
        if (s != NULL) dnn_source_read(s, 0, &sample, &err);
        if (err.code < 0) refused++;
        if (s == NULL && err.text[0] == '\0') silent++;
        dnn_sample_free(&sample);
        dnn_source_close(s);
    }
    ok(refused > 100, "damage is refused (%d of 400)", refused);
    is_int(silent, 0, "and always with a message");
    dnn_free(bytes);
}

int main(void)
{
    made_start("a.h5");
    pairs();
    chunks();
    wholes();
    threads();
    wrong_data();
    wrong_files();
    damage();
    return made_end();
}
#else
int main(void)
{
    skip("datasets of HDF5", "built without HDF5");
    return done();
}
#endif
