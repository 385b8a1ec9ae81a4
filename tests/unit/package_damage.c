/* package_damage.c - damaged and truncated model files are refused: each byte of the
 * archive's directory changed, random bytes elsewhere, and all kinds of lengths.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "tap.h"

#if DNN_HAVE_HDF5 && DNN_HAVE_ZIP
#include "base/rng.h"
#include "package_made.h"

#include <unistd.h>
#include <zip.h>

/* HDF5 and libzip allocate sizes of a damaged file; a failed allocation is handled. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

enum { FLIPS = 1000 };

static char dir[] = "/tmp/package_damage.XXXXXX";
static char *path;
static char *bytes; /* of the intact file */
static size_t len, directory;

/* The file's content is written in place: no fsync. */
static void write_file(const char *from, size_t n)
{
    FILE *f = fopen(path, "wb");

    fwrite(from, 1, n, f);
    fclose(f);
}

/* Whether this content is refused, with a message that begins with the path and says
 * more; and nobody takes it for another file of weights.  Its network may be opened if
 * it is not damaged itself. */
static bool refused(const char *from, size_t n, struct dnn_err *err)
{
    struct dnn_package *p = NULL;
    struct dnn_weights *w = NULL;

    *err = (struct dnn_err){0};
    write_file(from, n);
    if (dnn_package_open_network(path, &p, err) == 0) dnn_package_close(p);
    return dnn_package_open_weights(path, &w, err) < 0 &&
           dnn_package_open(path, &p, err) == DNN_EDATA &&
           strncmp(err->text, path, strlen(path)) == 0 &&
           strlen(err->text) > strlen(path) + 15;
}

/* Change a byte, try, change it back. */
static bool flipped(size_t at, int bits, struct dnn_err *err)
{
    bytes[at] = (char)(bytes[at] ^ bits);
    bool good = refused(bytes, len, err);
    bytes[at] = (char)(bytes[at] ^ bits);
    if (!good) printf("# byte %zu of %zu ^ %d: %s\n", at, len, bits, err->text);
    return good;
}

/* ---- every byte ---- */

static void flip_directory(void)
{
    size_t accepted = 0;
    struct dnn_err err;

    for (size_t i = directory; i < len; i++)
        for (int bits = 1; bits < 256; bits = bits == 1 ? 32 : bits == 32 ? 255 : 256)
            accepted += !flipped(i, bits, &err);
    ok(len - directory > 300, "a directory of %zu bytes", len - directory);
    is_int((long long)accepted, 0, "each byte of it is checked");
}

static void flip_elsewhere(void)
{
    struct dnn_rng rng = dnn_rng_make(5, 1);
    size_t accepted = 0;
    struct dnn_err err;

    for (uint64_t i = 0; i < FLIPS; i++) {
        double where = dnn_rng_uniform(&rng, (struct dnn_rng_at){.index = 2 * i});
        double bits = dnn_rng_uniform(&rng, (struct dnn_rng_at){.index = 2 * i + 1});

        accepted +=
            !flipped((size_t)(where * (double)directory), 1 + (int)(bits * 255), &err);
    }
    is_int((long long)accepted, 0, "1000 other bytes are checked");
}

static void lengths(void)
{
    char *longer = dnn_alloc(len + 1);
    size_t accepted = 0, step = len / 500 + 1;
    struct dnn_err err;

    for (size_t n = 0; n < len; n += n < 100 || n + 200 > len ? 1 : step)
        accepted += !refused(bytes, n, &err);
    is_int((long long)accepted, 0, "truncated files");
    memcpy(longer, bytes, len);
    ok(refused(longer, len + 1, &err), "a file with one more byte");
    memmove(longer + len / 2 + 1, longer + len / 2, len - len / 2);
    ok(refused(longer, len + 1, &err) &&
           strstr(err.text, " bytes, but the comment at its end has \"") != NULL,
       "a byte inserted: %s", err.text + strlen(path));
    dnn_free(longer);
}

/* ---- messages ---- */

static size_t find(const char *text)
{
    for (size_t i = 0; i + strlen(text) <= len; i++)
        if (memcmp(bytes + i, text, strlen(text)) == 0) return i;
    return len - 1;
}

static void says(size_t at, const char *want, const char *what)
{
    struct dnn_err err;

    flipped(at, 4, &err);
    if (!ok(strstr(err.text, want) != NULL, "%s", what))
        printf("#   got: %s\n#  want: %s\n", err.text, want);
}

static void messages(void)
{
    struct dnn_err err;

    says(find("cross_entropy"), "; dnn.json in it: CRC error", "damage in dnn.json");
    says(find("\"Flatten\""), "; network.json in it: CRC error",
         "damage in network.json");
    says(find("\x89HDF") + 500, "; model.weights.h5 in it: CRC error",
         "damage in the weights");
    says(len - 1, "; its members are intact", "damage in the checksum");
    says(len - PACKAGE_SUM - 15, " bytes, but the comment at its end has",
         "damage in the length");
    says(len - strlen(package_seal_blank()) + 2, ": truncated or damaged: it has ",
         "damage in the mark");
    refused(bytes, len - 1, &err);
    ok(strstr(err.text, ": truncated or damaged: it has ") != NULL, "truncated: %s",
       err.text + strlen(path));
}

/* Compressed members of a damaged file are not decompressed to more than its size. */
static void bomb(void)
{
    size_t n = 64 << 20;
    char *zeros = dnn_alloc(n);
    struct dnn_package *p = NULL;
    struct dnn_err err = {0};
    int code = 0;

    unlink(path);
    zip_t *zip = zip_open(path, ZIP_CREATE, &code);
    zip_file_add(zip, PACKAGE_INFO, zip_source_buffer(zip, zeros, n, 0), 0);
    zip_set_archive_comment(zip, package_seal_blank(),
                            (zip_uint16_t)strlen(package_seal_blank()));
    zip_close(zip);
    char *all = NULL;
    size_t size = 0;
    dnn_file_read(path, 1 << 26, &all, &size, &err);
    package_seal(all, size);
    all[size - 1] ^= 1;
    write_file(all, size);
    ok(dnn_package_open(path, &p, &err) == DNN_EDATA &&
           strstr(err.text, "; its members have more bytes than itself") != NULL,
       "compressed members: %s", err.text + strlen(path));
    dnn_free(all);
    dnn_free(zeros);
}

int main(void)
{
    struct made m;
    struct dnn_err err = {0};
    struct dnn_package *p = NULL;

    if (!ok(mkdtemp(dir) != NULL, "a directory to write to")) return done();
    path = dnn_format("%s/model.dnn", dir);
    if (!ok(made_open(&m, MADE_NETWORK(MADE_SHAPE, "2"), &err) == 0 &&
                dnn_package_write(path, &m.parts, &err) == 0 &&
                dnn_file_read(path, 1 << 26, &bytes, &len, &err) == 0 &&
                dnn_package_open(path, &p, &err) == 0,
            "an intact file %s", err.text))
        return done();
    dnn_package_close(p);
    made_close(&m);
    /* The end record has the directory's offset, 6 bytes before the comment. */
    const char *at = bytes + len - strlen(package_seal_blank()) - 6;
    for (int i = 3; i >= 0; i--)
        directory = directory << 8 | (unsigned char)at[i];
    flip_directory();
    flip_elsewhere();
    lengths();
    messages();
    bomb();
    unlink(path);
    /* As another file, too: the content says what it is. */
    dnn_free(path);
    path = dnn_format("%s/model.keras", dir);
    flip_directory();
    unlink(path);
    rmdir(dir);
    dnn_free(path);
    dnn_free(bytes);
    return done();
}
#else
int main(void)
{
    skip("damaged model files", "built without HDF5 or libzip");
    return done();
}
#endif
