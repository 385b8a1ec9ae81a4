/* weights_broken.c - truncated, damaged or malicious files: refused with a message,
 * without a crash and without allocating sizes from the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "tap.h"

#if DNN_HAVE_HDF5
#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "weights/weights.h"

#include <hdf5.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* HDF5 allocates sizes of a damaged file; a failed allocation is handled. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static char dir[] = "/tmp/weights_broken.XXXXXX";
static char *path; /* the file under test */

static int open_it(struct dnn_err *err)
{
    struct dnn_weights *w = NULL;
    int rc = dnn_weights_open(path, &w, err);

    dnn_weights_close(w);
    return rc;
}

/* The message, without the path. */
static void is_refused(int code, const char *want, const char *what)
{
    struct dnn_err err = {0};
    size_t len = strlen(path);

    ok(open_it(&err) == code, "%s is refused", what);
    is_text(strncmp(err.text, path, len) == 0 ? err.text + len : err.text, want,
            "and why");
}

/* ---- other files ---- */

static void strangers(void)
{
    is_refused(DNN_EIO, ": No such file or directory", "a file that does not exist");
    dnn_file_write(path, "", 0, NULL);
    is_refused(DNN_EDATA, ": cannot be read as an HDF5 file: file signature not found",
               "an empty file");
    dnn_file_write(path, "{\"class_name\": \"Sequential\"}", 28, NULL);
    is_refused(DNN_EDATA, ": cannot be read as an HDF5 file: file signature not found",
               "a JSON file");
    dnn_file_write(path, "PK\3\4 and no more", 16, NULL);
#if DNN_HAVE_ZIP
    struct dnn_err err = {0};
    size_t len = strlen(path);
    static const char *const why = ": cannot be read as a zip archive: ";
    ok(open_it(&err) == DNN_EDATA, "a truncated archive is refused");
    ok(strncmp(err.text + len, why, strlen(why)) == 0, "and why: %s", err.text + len);
#else
    is_refused(DNN_ECONFIG, ": zip archives need libzip, which this was built without",
               "an archive");
#endif
    unlink(path);
}

/* ---- malicious files ---- */

static hid_t made(void)
{
    return H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
}

static hid_t group(hid_t at, const char *name)
{
    hid_t links = H5Pcreate(H5P_LINK_CREATE);

    H5Pset_create_intermediate_group(links, 1);
    hid_t g = H5Gcreate2(at, name, links, H5P_DEFAULT, H5P_DEFAULT);
    H5Pclose(links);
    return g;
}

static void attribute(hid_t at, const char *name, const char *value)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    hsize_t one = 1;

    H5Tset_size(type, strlen(value));
    hid_t space = H5Screate_simple(1, &one, NULL);
    hid_t attr = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attr, type, value);
    H5Aclose(attr);
    H5Sclose(space);
    H5Tclose(type);
}

/* A dataset of this shape; plist may be H5P_DEFAULT. */
static void array(hid_t at, const char *name, hid_t type, int ndim, const hsize_t *dims,
                  hid_t plist)
{
    hid_t space = H5Screate_simple(ndim, dims, NULL);
    hid_t data = H5Dcreate2(at, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);

    H5Dclose(data);
    H5Sclose(space);
}

static void harmful_arrays(void)
{
    hsize_t huge[] = {1u << 30, 1u << 30}, small[] = {2, 2},
            nine[] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, chunk[] = {20000, 20000};
    hid_t file = made(), g = group(file, "layers/dense/vars");

    array(g, "0", H5T_IEEE_F32LE, 2, huge, H5P_DEFAULT);
    H5Gclose(g);
    H5Fclose(file);
    is_refused(DNN_EDATA, ": the array layers/dense/vars/0 has no values",
               "an array of 4 EiB in a small file");

    file = made();
    g = group(file, "layers/dense/vars");
    array(g, "0", H5T_IEEE_F32LE, 9, nine, H5P_DEFAULT);
    H5Gclose(g);
    H5Fclose(file);
    is_refused(DNN_EDATA,
               ": the array layers/dense/vars/0 is not an array of at most 8 axes",
               "an array of nine axes");

    file = made();
    g = group(file, "layers/dense/vars");
    array(g, "0", H5T_C_S1, 2, small, H5P_DEFAULT);
    H5Gclose(g);
    H5Fclose(file);
    is_refused(
        DNN_EDATA,
        ": the array layers/dense/vars/0 has an element type that is not supported",
        "an array of letters");

    file = made();
    g = group(file, "layers/dense/vars");
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(plist, "/etc/passwd", 0, 16);
    array(g, "0", H5T_IEEE_F32LE, 2, small, plist);
    H5Pclose(plist);
    H5Gclose(g);
    H5Fclose(file);
    is_refused(DNN_EDATA,
               ": the array layers/dense/vars/0 stores its values in another file",
               "an array with external storage");

    file = made();
    g = group(file, "layers/dense/vars");
    plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 2, chunk);
    hsize_t start[] = {2, 2}, most[] = {H5S_UNLIMITED, H5S_UNLIMITED};
    hid_t space = H5Screate_simple(2, start, most);
    hid_t data =
        H5Dcreate2(g, "0", H5T_IEEE_F32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    H5Dclose(data);
    H5Sclose(space);
    H5Pclose(plist);
    H5Gclose(g);
    H5Fclose(file);
    is_refused(DNN_EDATA,
               ": the array layers/dense/vars/0 has chunks larger than itself",
               "a small array in one huge chunk");
}

static void harmful_links(void)
{
    static const char *const none = ": holds no weights: neither \"layer_names\" as of "
                                    "Keras 2 nor \"layers\" as of "
                                    "Keras 3 with arrays in them";
    hid_t file = made(), g = group(file, "layers");

    H5Lcreate_external("/etc/passwd", "/", g, "dense", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/layers", g, "again", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(g);
    H5Fclose(file);
    is_refused(DNN_EDATA, none, "a file with external links");

    file = made();
    g = group(file, "layers");
    H5Lcreate_hard(file, "/layers", g, "layers", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "/layers", g, "more", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(g);
    H5Fclose(file);
    is_refused(DNN_EDATA,
               ": groups are nested more than 64 deep, or there are more than 262144",
               "a group that is in itself");
}

static void harmful_names(void)
{
    hid_t file = made();

    attribute(file, "layer_names", "dense");
    H5Fclose(file);
    is_refused(DNN_EDATA, ": \"layer_names\" names 'dense', which is not there",
               "a layer that does not exist");

    file = made();
    attribute(file, "layer_names", "dense");
    hid_t g = group(file, "dense");
    attribute(g, "weight_names", "\033[2J/kernel:0");
    H5Gclose(g);
    H5Fclose(file);
    is_refused(DNN_EDATA,
               ": \"weight_names\" of the layer 'dense' names the array "
               "\"?[2J/kernel:0\", which is not there",
               "an array that does not exist, with control characters in its name,");

    file = made();
    hsize_t one = 1;
    hid_t space = H5Screate_simple(1, &one, NULL);
    hid_t attr = H5Acreate2(file, "layer_names", H5T_NATIVE_INT, space, H5P_DEFAULT,
                            H5P_DEFAULT);
    H5Aclose(attr);
    H5Sclose(space);
    H5Fclose(file);
    is_refused(DNN_EDATA, ": the attribute \"layer_names\" is not a list of names",
               "a list of numbers for names");
    unlink(path);
}

/* A layer "dense" with an array "k" of n ones. */
static void layer_of(hid_t at, hsize_t n)
{
    float *one = dnn_alloc((size_t)n * sizeof *one);
    hid_t g = group(at, "dense");

    for (hsize_t i = 0; i < n; i++)
        one[i] = 1;
    attribute(at, "layer_names", "dense");
    attribute(g, "weight_names", "k");
    array(g, "k", H5T_NATIVE_FLOAT, 1, &n, H5P_DEFAULT);
    hid_t data = H5Dopen2(g, "k", H5P_DEFAULT);
    H5Dwrite(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, one);
    H5Dclose(data);
    H5Gclose(g);
    dnn_free(one);
}

/* A file may have names in the root and in "model_weights": what is read is what was
 * checked. */
static void other_arrays(void)
{
    float to[100] = {0};
    struct dnn_weights *w = NULL;
    struct dnn_err err = {0};
    hid_t file = made(), g = group(file, "model_weights");

    layer_of(g, 2);
    layer_of(file, 100);
    H5Gclose(g);
    H5Fclose(file);
    ok(dnn_weights_open(path, &w, &err) == 0 &&
           dnn_weights_get(w, 0, DNN_F32, to, &err) == 0 && to[1] == 1 && to[2] == 0,
       "the array below \"model_weights\" is read, not that of the root %s", err.text);
    dnn_weights_close(w);
}

/* A path of many groups, and a long name. */
static void long_names(void)
{
    static char name[1 << 16];
    hid_t file = made(), g = group(file, "dense");

    for (size_t i = 0; i < 600; i++)
        memcpy(name + 2 * i, "a/", 3);
    H5Lcreate_hard(file, "/dense", g, "a", H5P_DEFAULT, H5P_DEFAULT);
    attribute(file, "layer_names", "dense");
    attribute(g, "weight_names", name);
    H5Gclose(g);
    H5Fclose(file);
    is_refused(DNN_EDATA,
               ": a name or path has more than 1024 bytes, or all of them have more "
               "than 67108864",
               "a name of 1200 bytes");

    name[1000] = '\0';
    file = made();
    g = group(file, "dense");
    H5Lcreate_hard(file, "/dense", g, "a", H5P_DEFAULT, H5P_DEFAULT);
    attribute(g, "weight_names", "a");
    attribute(file, "layer_names", name);
    H5Gclose(g);
    H5Lcreate_hard(file, "/dense", file, "a", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    char *want =
        dnn_format(": \"layer_names\" names '%.80s', which is not there", name);
    is_refused(DNN_EDATA, want, "a path of 500 groups");
    dnn_free(want);
}

/* ---- damage ---- */

/* Without fsync. */
static void put(const char *bytes, size_t len)
{
    FILE *f = fopen(path, "wb");

    if (f == NULL) return;
    fwrite(bytes, 1, len, f);
    fclose(f);
}

/* Read all arrays; it must return. */
static void read_all(void)
{
    struct dnn_err err = {0};
    struct dnn_weights *w = NULL;
    const struct dnn_weights_array *a;

    if (dnn_weights_open(path, &w, &err) < 0) return;
    for (int i = 0; (a = dnn_weights_at(w, i)) != NULL; i++) {
        int64_t n = 0;

        if (dnn_shape_count(&a->is.shape, &n, NULL) < 0 || n > 1 << 20) continue;
        float *data = dnn_alloc((size_t)n * sizeof *data + 1);
        dnn_weights_get(w, i, DNN_F32, data, &err);
        dnn_free(data);
    }
    dnn_weights_close(w);
}

/* Wrong sizes in the heap of strings: HDF5 would loop without end. */
static void circles(void)
{
    const char *srcdir = getenv("srcdir");
    char *from =
        dnn_format("%s/tests/data/keras/k2_merges.h5", srcdir == NULL ? "." : srcdir);
    char *bytes = NULL, *heap = NULL;
    size_t len = 0;

    if (dnn_file_read(from, 1 << 24, &bytes, &len, NULL) == 0)
        heap = memmem(bytes, len, "GCOL", 4);
    if (ok(heap != NULL, "a file with variable-length strings")) {
        char *want =
            dnn_format(": is damaged: the global heap at byte %td", heap - bytes);

        alarm(300); /* if it hangs */
        memset(heap + 16, 0, 16);
        put(bytes, len);
        is_refused(DNN_EDATA, want, "an object without a size");
        heap[16] = 1;
        memset(heap + 24, -1, 8);
        put(bytes, len);
        is_refused(DNN_EDATA, want, "an object larger than all");
        alarm(0);
        dnn_free(want);
    }
    dnn_free(bytes);
    dnn_free(from);
    unlink(path);
}

enum { FLIPS = 400, CUTS = 60, SECONDS = 300 };

/* In a child process, so that a crash or an endless loop is detected. */
static void damaged(const char *name)
{
    const char *srcdir = getenv("srcdir");
    char *from =
        dnn_format("%s/tests/data/keras/%s", srcdir == NULL ? "." : srcdir, name);
    char *bytes = NULL;
    size_t len = 0;
    int status = -1;

    if (ok(dnn_file_read(from, 1 << 24, &bytes, &len, NULL) == 0, "%s is there",
           name)) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            struct dnn_rng rng = dnn_rng_make(len, 0);

            alarm(SECONDS);
            for (uint64_t i = 0; i < CUTS; i++) {
                put(bytes, len * i / CUTS);
                read_all();
            }
            for (uint64_t i = 0; i < FLIPS; i++) {
                uint32_t r[4];

                dnn_rng_words(&rng, (struct dnn_rng_at){.index = i}, r);
                size_t at = r[0] % len;
                char was = bytes[at];

                bytes[at] = (char)(was ^ (1 << r[1] % 8));
                if (i % 4 == 0) bytes[at] = (char)-1;
                put(bytes, len);
                read_all();
                bytes[at] = was;
            }
            _exit(0);
        }
        waitpid(pid, &status, 0);
    }
    ok(status == 0, "%s: %d truncations and %d damaged bytes, no crash (status %d)",
       name, CUTS, FLIPS, status);
    dnn_free(bytes);
    dnn_free(from);
    unlink(path);
}

int main(void)
{
    if (!ok(mkdtemp(dir) != NULL, "a directory to write to")) return done();
    path = dnn_format("%s/x.h5", dir);
    strangers();
    harmful_arrays();
    harmful_links();
    harmful_names();
    other_arrays();
    long_names();
    circles();
    damaged("k2_merges.h5");
    damaged("k3_shared.weights.h5");
#if DNN_HAVE_ZIP
    damaged("k3_nested.keras");
#endif
    rmdir(dir);
    dnn_free(path);
    return done();
}
#else
int main(void)
{
    skip("broken files of weights", "built without HDF5");
    return done();
}
#endif
