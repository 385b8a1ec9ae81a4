/* import_boxes.c - boxes of samples in files of every format that can read parts, and
 * of some that cannot.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import_tools.h"

#include "boxes.h"
#include "dataset_made.h"

#include <pthread.h>
#include <zlib.h>
#if DNN_HAVE_HDF5
#include <hdf5.h>
#endif

static void boxes_of(const char *options, bool parts)
{
    struct opened o;

    open_with(&o, options);
    if (ok(o.source != NULL, "%s", options))
        boxes_equal(o.source, parts, options);
    else
        printf("# %s\n", o.err.text);
    close_it(&o);
}

/* Bytes that all differ from their neighbours; none has the exponent of a NaN. */
static void add_values(struct dnn_buf *out, size_t n, int from)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char x = (unsigned char)((i * 31 + i / 251 + (size_t)from) % 113);

        dnn_buf_bytes(out, &x, 1);
    }
}

/* ---- NPY and raw ---- */

static void put_npy(const char *path, const char *type, bool fortran, const char *shape,
                    size_t bytes, bool gzip)
{
    struct dnn_buf out = {0};
    char *header = dnn_format("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }\n",
                              type, fortran ? "True" : "False", shape);
    unsigned char head[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 0, 0};

    head[8] = (unsigned char)strlen(header);
    dnn_buf_bytes(&out, head, sizeof head);
    dnn_buf_add(&out, "%s", header);
    add_values(&out, bytes, 3);
    if (gzip) {
        gzFile file = gzopen(path, "wb");

        gzwrite(file, out.text, (unsigned)out.len);
        gzclose(file);
    } else {
        put(path, out.text, out.len);
    }
    dnn_free(header);
    dnn_buf_free(&out);
}

static void npy(void)
{
    put_npy("c.npy", "|u1", false, "3, 7, 6, 5, 3", 3 * 7 * 6 * 5 * 3, false);
    boxes_of("{\"input_path\": \"c.npy\"}", true);
    put_npy("f.npy", "<i2", true, "4, 7, 6, 5", 4 * 7 * 6 * 5 * 2, false);
    boxes_of("{\"input_path\": \"f.npy\", \"input_layout\": \"none\"}", true);
    put_npy("first.npy", ">f4", false, "3, 2, 9, 8, 7", 3 * 2 * 9 * 8 * 7 * 4, false);
    boxes_of("{\"input_path\": \"first.npy\", \"input_layout\": \"first\"}", true);
    put_npy("large.npy", "<f8", false, "40, 51, 60, 1", 40 * 51 * 60 * 8, false);
    boxes_of("{\"input_path\": \"large.npy\", \"whole\": true}", true);
    put_npy("fl.npy", "<f8", true, "40, 51, 60, 1", 40 * 51 * 60 * 8, false);
    boxes_of("{\"input_path\": \"fl.npy\", \"whole\": true}", true);
    put_npy("grey.npy", "|u1", false, "2, 8, 9, 3", 2 * 8 * 9 * 3, false);
    boxes_of("{\"input_path\": \"grey.npy\", \"input_gray\": true}", true);
    put_npy("values.npy", "<f4", false, "5, 9", 5 * 9 * 4, false);
    boxes_of("{\"input_path\": \"values.npy\"}", true);
    put_npy("z.npy.gz", "<i2", false, "2, 7, 6, 1", 2 * 7 * 6 * 2, true);
    boxes_of("{\"input_path\": \"z.npy.gz\"}", false);
}

static void raw(void)
{
    struct dnn_buf out = {0};

    add_values(&out, 12 + 3 * 2 * 7 * 6 * 5 * 2, 0);
    put("a.raw", out.text, out.len);
    boxes_of("{\"input_path\": \"a.raw\", \"input_shape\": [2, 7, 6, 5], "
             "\"input_dtype\": \"i16\", \"input_layout\": \"first\", "
             "\"input_big_endian\": true, \"input_offset\": 12}",
             true);
    dnn_buf_free(&out);
}

/* ---- directories ---- */

/* Volumes of different extents, and their masks in another directory. */
static void directories(void)
{
    put_npy("in/1.npy", "<f4", false, "9, 8, 7, 2", 9 * 8 * 7 * 2 * 4, false);
    put_npy("in/2.npy", "<f4", true, "5, 6, 11, 2", 5 * 6 * 11 * 2 * 4, false);
    put_npy("out/1.npy", "|u1", false, "9, 8, 7", 9 * 8 * 7, false);
    put_npy("out/2.npy", "|u1", false, "5, 6, 11", 5 * 6 * 11, false);
    boxes_of("{\"input_path\": \"in\", \"target_path\": \"out\", \"whole\": true}",
             true);
    put_npy("rows/1.npy", "<f4", false, "3, 8, 7, 2", 3 * 8 * 7 * 2 * 4, false);
    put_npy("rows/2.npy", "<f4", false, "2, 8, 7, 2", 2 * 8 * 7 * 2 * 4, false);
    boxes_of("{\"input_path\": \"rows\"}", true);
}

/* Threads that read boxes of two files in turn. */
struct reader {
    const struct dnn_source *source;
    const struct dnn_sample *sample; /* two */
    bool same;
};

static void *read_boxes(void *arg)
{
    struct reader *r = arg;

    r->same = true;
    for (int k = 0; r->same && k < 20; k++)
        for (int c = 0; r->same && c < r->source->ncols; c++)
            r->same = same_boxes(r->source, k % 2, c, &r->sample[k % 2].col[c], 3);
    return NULL;
}

static void threads(void)
{
    enum { THREADS = 4 };
    struct dnn_sample sample[2] = {0};
    struct reader reader[THREADS];
    pthread_t thread[THREADS];
    struct opened o;
    bool same = true;

    open_with(&o,
              "{\"input_path\": \"in\", \"target_path\": \"out\", \"whole\": true}");
    if (!ok(o.source != NULL && dnn_source_read(o.source, 0, &sample[0], &o.err) == 0 &&
                dnn_source_read(o.source, 1, &sample[1], &o.err) == 0,
            "two samples"))
        return;
    for (int i = 0; i < THREADS; i++) {
        reader[i] = (struct reader){.source = o.source, .sample = sample};
        pthread_create(&thread[i], NULL, read_boxes, &reader[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        same = same && reader[i].same;
    }
    ok(same, "several threads read boxes of both");
    dnn_sample_free(&sample[0]);
    dnn_sample_free(&sample[1]);
    close_it(&o);
}

/* ---- HDF5 ---- */

#if DNN_HAVE_HDF5
static void put_hdf5(const char *path, bool chunked)
{
    hsize_t dims[] = {4, 9, 8, 7, 2}, chunk[] = {1, 4, 5, 7, 2}, labels[] = {4};
    static const int label[] = {2, 0, 1, 5};
    hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(5, dims, NULL),
          one = H5Screate_simple(1, labels, NULL);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    struct dnn_buf values = {0};

    add_values(&values, 4 * 9 * 8 * 7 * 2 * 2, 9);
    if (chunked) {
        H5Pset_chunk(how, 5, chunk);
        H5Pset_deflate(how, 1);
    }
    hid_t data = H5Dcreate2(file, "features", H5T_STD_I16BE, space, H5P_DEFAULT, how,
                            H5P_DEFAULT);
    H5Dwrite(data, H5T_NATIVE_INT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.text);
    H5Dclose(data);
    data = H5Dcreate2(file, "labels", H5T_STD_I32LE, one, H5P_DEFAULT, H5P_DEFAULT,
                      H5P_DEFAULT);
    H5Dwrite(data, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, label);
    H5Dclose(data);
    H5Sclose(space);
    H5Sclose(one);
    H5Pclose(how);
    H5Fclose(file);
    dnn_buf_free(&values);
}
#endif

static void hdf5(void)
{
#if DNN_HAVE_HDF5
    put_hdf5("a.h5", false);
    boxes_of("{\"input_path\": \"a.h5\"}", true);
    put_hdf5("b.h5", true);
    boxes_of("{\"input_path\": \"b.h5\"}", true);
#else
    skip("boxes of HDF5 files", "no HDF5 in this build");
#endif
}

/* ---- NIfTI ---- */

#if DNN_HAVE_NIFTI
static void set(unsigned char *to, const void *value, size_t size, bool swap)
{
    for (size_t i = 0; i < size; i++)
        to[i] = ((const unsigned char *)value)[swap ? size - 1 - i : i];
}

/* i, j, k, channels: the extents; type: of the standard, of so many bits. */
static void put_nifti(const char *path, const int16_t dim[5], int16_t type,
                      int16_t bits, float slope, bool swap, bool gzip)
{
    unsigned char head[352] = {0};
    int32_t size = 348;
    int16_t ndim = dim[4] > 1 ? 5 : dim[3] > 1 ? 4 : 3, one = 1;
    float offset = 352, inter = -3, spacing[] = {1, 1.5F, 2, 3};
    struct dnn_buf out = {0};
    size_t count = 1;

    set(head, &size, 4, swap);
    set(head + 40, &ndim, 2, swap);
    for (size_t i = 0; i < 5; i++) {
        set(head + 42 + 2 * i, &dim[i], 2, swap);
        count *= (size_t)dim[i];
    }
    set(head + 52, &one, 2, swap);
    set(head + 54, &one, 2, swap);
    for (size_t i = 0; i < 4; i++)
        set(head + 76 + 4 * i, &spacing[i], 4, swap);
    set(head + 70, &type, 2, swap);
    set(head + 72, &bits, 2, swap);
    set(head + 108, &offset, 4, swap);
    set(head + 112, &slope, 4, swap);
    set(head + 116, &inter, 4, swap);
    head[123] = 2;
    memcpy(head + 344, "n+1", 4);
    dnn_buf_bytes(&out, head, sizeof head);
    add_values(&out, count * (size_t)bits / 8, 1);
    if (gzip) {
        gzFile file = gzopen(path, "wb");

        gzwrite(file, out.text, (unsigned)out.len);
        gzclose(file);
    } else {
        put(path, out.text, out.len);
    }
    dnn_buf_free(&out);
}
#endif

static void nifti(void)
{
#if DNN_HAVE_NIFTI
    const int16_t volume[] = {11, 9, 8, 1, 1}, times[] = {7, 6, 5, 3, 1},
                  vectors[] = {6, 7, 5, 1, 3}, other[] = {5, 12, 8, 1, 1},
                  large[] = {70, 60, 50, 1, 1};

    put_nifti("a.nii", volume, 4, 16, 1, false, false);
    boxes_of("{\"input_path\": \"a.nii\"}", true);
    boxes_of("{\"input_path\": \"a.nii\", \"input_gray\": true}", true);
    put_nifti("swapped.nii", volume, 16, 32, 1, true, false);
    boxes_of("{\"input_path\": \"swapped.nii\"}", true);
    put_nifti("times.nii", times, 4, 16, 1, true, false);
    boxes_of("{\"input_path\": \"times.nii\"}", true);
    put_nifti("vectors.nii", vectors, 16, 32, 1, false, false);
    boxes_of("{\"input_path\": \"vectors.nii\"}", true);
    put_nifti("scaled.nii", volume, 4, 16, 0.5F, false, false);
    boxes_of("{\"input_path\": \"scaled.nii\"}", true);
    put_nifti("colours.nii", volume, 128, 24, 0, false, false);
    boxes_of("{\"input_path\": \"colours.nii\"}", true);
    put_nifti("large.nii", large, 16, 32, 0, false, false);
    boxes_of("{\"input_path\": \"large.nii\"}", true);
    put_nifti("z.nii.gz", volume, 4, 16, 1, false, true);
    boxes_of("{\"input_path\": \"z.nii.gz\"}", false);
    put_nifti("scans/1.nii", volume, 4, 16, 1, false, false);
    put_nifti("scans/2.nii", other, 4, 16, 1, false, false);
    put_nifti("scans/3.nii.gz", other, 4, 16, 1, false, true); /* among others */
    put_nifti("masks/1.nii", volume, 2, 8, 1, false, false);
    put_nifti("masks/2.nii", other, 2, 8, 1, false, false);
    put_nifti("masks/3.nii", other, 2, 8, 1, false, false);
    boxes_of("{\"input_path\": \"scans\", \"target_path\": \"masks\"}", true);
#else
    skip("boxes of NIfTI files", "no libnifti2 in this build");
#endif
}

/* ---- TIFF ---- */

/* Pages of 16-bit grey, each one strip; a page before the last is a reduced copy. */
static void put_tiff(const char *path, uint32_t pages, uint32_t width, uint32_t height)
{
    struct dnn_buf out = {0};
    uint32_t bytes = width * height * 2, page = 2 + 10 * 12 + 4 + bytes;

    dnn_buf_bytes(&out, "II*\0\10\0\0\0", 8);
    for (uint32_t p = 0; p < pages; p++) {
        uint32_t data = 8 + p * page + 2 + 10 * 12 + 4;
        uint32_t next = p + 1 < pages ? 8 + (p + 1) * page : 0;
        const uint32_t tag[][2] = {
            {254, p + 2 == pages ? 1 : 0},
            {256, width                 },
            {257, height                },
            {258, 16                    },
            {259, 1                     },
            {262, 1                     },
            {273, data                  },
            {277, 1                     },
            {278, height                },
            {279, bytes                 },
        };

        dnn_buf_bytes(&out, "\12\0", 2);
        for (int i = 0; i < 10; i++) {
            uint16_t entry[] = {(uint16_t)tag[i][0], 4};
            uint32_t value[] = {1, tag[i][1]};

            dnn_buf_bytes(&out, entry, sizeof entry);
            dnn_buf_bytes(&out, value, sizeof value);
        }
        dnn_buf_bytes(&out, &next, 4);
        add_values(&out, bytes, (int)p);
    }
    put(path, out.text, out.len);
    dnn_buf_free(&out);
}

static void tiff(void)
{
#if DNN_HAVE_TIFF
    put_tiff("stack.tif", 6, 7, 9);
    boxes_of("{\"input_path\": \"stack.tif\"}", true);
    put_tiff("one.tif", 1, 7, 9);
    boxes_of("{\"input_path\": \"one.tif\"}", true);
    put_tiff("stacks/a.tif", 3, 5, 6);
    put_tiff("stacks/b.tif", 5, 8, 4);
    boxes_of("{\"input_path\": \"stacks\"}", true);
#else
    skip("boxes of TIFF files", "no libtiff in this build");
#endif
}

/* ---- BP ---- */

/* Rows in three blocks, of different size. */
static void put_bp(const char *path, bool with_index)
{
    static const int64_t first[] = {0, 1, 4, 5};
    struct dnn_shape shape = {
        .ndim = 5, .dim = {5, 6, 7, 8, 2}
    };
    struct dnn_buf values = {0};
    struct dnn_bp *bp = NULL;
    struct dnn_err err = {0};
    size_t row = 6 * 7 * 8 * 2 * 4;
    int var;

    add_values(&values, 5 * row, 4);
    dnn_bp_create(NULL, path, NULL, &bp, &err);
    dnn_bp_define(bp, "image", DNN_F32, &shape, false, &var, &err);
    for (int i = 0; i < 3; i++) {
        dnn_bp_put(bp, var, first[i], first[i + 1] - first[i],
                   values.text + (size_t)first[i] * row, &err);
        dnn_bp_flush(bp, &err);
    }
    is_int(dnn_bp_finish(bp, &err), 0, "a BP file");
    char *index = dnn_format("%s/dnn.idx", path);
    if (!with_index) unlink(index);
    dnn_free(index);
    dnn_buf_free(&values);
}

static void bp(void)
{
    put_bp("a.bp", true);
    boxes_of("{\"input_path\": \"a.bp\"}", true);
    boxes_of("{\"input_path\": \"a.bp\", \"input_layout\": \"first\"}", true);
    put_bp("other.bp", false);
    boxes_of("{\"input_path\": \"other.bp\"}", true);
}

/* ---- datasets ---- */

static void datasets(void)
{
    static const char *const ops[] = {NULL, "bzip2", "blosc"};
    struct dnn_source *source;
    struct dnn_err err = {0};

    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        struct dnn_bp_how how = {.compress = ops[i]};

        if (ops[i] != NULL && !dnn_bp_operator(ops[i])) continue;
        is_int(made_write(NULL, "set.bp", &how, NULL, &err), 0,
               ops[i] == NULL ? "a dataset" : "a compressed dataset");
        for (int k = 0; k < MADE_SPLITS; k++) {
            const char *split = k == 0 ? "train" : "test";

            if (!ok(dnn_dataset_source_open("set.bp", split, &source, &err) == 0,
                    "split %s is a source", split)) {
                printf("# %s\n", err.text);
                continue;
            }
            boxes_equal(source, true, split);
            is_text(source->split, split, "with its name");
            dnn_source_close(source);
        }
        dnn_file_remove_tree("set.bp", NULL);
    }
    is_int(dnn_dataset_source_open("a.bp", "train", &source, &err), DNN_EDATA,
           "another BP file is not a dataset");
}

/* ---- errors ---- */

static void wrong(void)
{
    static const int64_t zero[4], start[] = {0, 3, 0, 0}, one[] = {1, 1, 1, 1},
                                  extent[] = {1, 4, 1, 1};
    struct dnn_array box = {0};
    struct opened o;

    open_with(&o, "{\"input_path\": \"c.npy\"}");
    if (o.source == NULL) return;
    is_int(dnn_source_read_box(o.source, 1, 0, start, extent, &box, &o.err), DNN_EDATA,
           "a box that is not within the sample");
    is_text(o.err.text,
            "c.npy[1]: input: a box of 4 points from 3 along axis 1 is not within the "
            "shape 7x6x5x3",
            "is an error");
    is_int(dnn_source_read_box(o.source, 1, 0, start, zero, &box, &o.err), DNN_EDATA,
           "an empty box");
    is_int(dnn_source_read_box(o.source, 3, 0, zero, one, &box, &o.err), DNN_EDATA,
           "a sample that does not exist");
    is_int(dnn_source_read_box(o.source, 0, 1, zero, one, &box, &o.err), DNN_EDATA,
           "a column that does not exist");
    dnn_array_free(&box);
    close_it(&o);
}

/* A file that becomes shorter after it was opened. */
static void truncated(void)
{
    static const int64_t zero[4], one[] = {1, 1, 1, 1};
    struct dnn_array box = {0};
    struct opened o;

    put_npy("cut.npy", "|u1", false, "3, 7, 6, 5, 3", 3 * 7 * 6 * 5 * 3, false);
    open_with(&o, "{\"input_path\": \"cut.npy\"}");
    if (o.source == NULL) return;
    ok(truncate("cut.npy", 700) == 0 &&
           dnn_source_read_box(o.source, 0, 0, zero, one, &box, &o.err) == 0,
       "what is still there");
    is_int(dnn_source_read_box(o.source, 2, 0, zero, one, &box, &o.err), DNN_EDATA,
           "what is not there any more");
    dnn_array_free(&box);
    close_it(&o);
}

int main(void)
{
    tools_start();
    npy();
    raw();
    directories();
    threads();
    hdf5();
    nifti();
    tiff();
    bp();
    datasets();
    wrong();
    truncated();
    return tools_end();
}
