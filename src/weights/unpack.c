/* unpack.c - reads the weights file in a .keras archive.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#if DNN_HAVE_HDF5
#include "weights/h5_impl.h"

#if DNN_HAVE_ZIP
#include <inttypes.h>
#include <stdlib.h>
#include <zip.h>

#define MEMBER "model.weights.h5"
enum {
    BLOCK = 1 << 20,
    UNCHECKED = 64 << 20, /* bytes of a member whose ratio is not checked      */
    MAX_RATIO = 100       /* maximum compression ratio of larger ones: weights
                         hardly compress                                       */
};

/* Read the member, whose declared size is size, into to. */
static int fill(const char *archive, zip_file_t *member, char *to, uint64_t size,
                struct dnn_err *err)
{
    uint64_t done = 0;
    char more;

    while (done < size) {
        uint64_t left = size - done;
        int64_t n = zip_fread(member, to + done, left < BLOCK ? left : BLOCK);

        if (n < 0)
            return dnn_fail(err, DNN_EDATA, "%s: " MEMBER " in it: %s", archive,
                            zip_error_strerror(zip_file_get_error(member)));
        if (n == 0)
            return dnn_fail(err, DNN_EDATA, "%s: " MEMBER " in it is truncated",
                            archive);
        done += (uint64_t)n;
    }
    /* libzip checks the checksum when it reads past the last byte. */
    int64_t n = zip_fread(member, &more, 1);
    if (n > 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: " MEMBER " in it is longer than its declared size",
                        archive);
    if (n < 0)
        return dnn_fail(err, DNN_EDATA, "%s: " MEMBER " in it: %s", archive,
                        zip_error_strerror(zip_file_get_error(member)));
    return 0;
}

static int unpack(const char *archive, zip_t *zip, void **out, size_t *len,
                  struct dnn_err *err)
{
    zip_stat_t stat;

    zip_stat_init(&stat);
    if (zip_stat(zip, MEMBER, 0, &stat) < 0)
        return dnn_fail(err, DNN_EDATA, "%s: there is no " MEMBER " in it: %s", archive,
                        zip_strerror(zip));
    if ((stat.valid & ZIP_STAT_SIZE) == 0 || (stat.valid & ZIP_STAT_COMP_SIZE) == 0)
        return dnn_fail(err, DNN_EDATA, "%s: " MEMBER " in it has no size", archive);
    if (stat.size > UNCHECKED && stat.size / MAX_RATIO > stat.comp_size)
        return dnn_fail(err, DNN_EDATA,
                        "%s: " MEMBER " in it would grow from %" PRIu64 " to %" PRIu64
                        " bytes, which is not possible for weights",
                        archive, (uint64_t)stat.comp_size, (uint64_t)stat.size);
    zip_file_t *member = zip_fopen_index(zip, stat.index, 0);
    if (member == NULL)
        return dnn_fail(err, DNN_EDATA, "%s: " MEMBER " in it: %s", archive,
                        zip_strerror(zip));
    void *memory = malloc(stat.size + 1);
    int rc = memory == NULL ? dnn_fail(err, DNN_ENOMEM,
                                       "%s: no memory for %" PRIu64 " bytes of " MEMBER,
                                       archive, (uint64_t)stat.size)
                            : fill(archive, member, memory, stat.size, err);
    zip_fclose(member);
    if (rc < 0) {
        free(memory);
        return rc;
    }
    *out = memory;
    *len = stat.size;
    return 0;
}

int dnn_h5_unpack(const char *archive, void **out, size_t *len, struct dnn_err *err)
{
    int code = 0;
    zip_t *zip = zip_open(archive, ZIP_RDONLY, &code);

    if (zip == NULL) {
        zip_error_t why;

        zip_error_init_with_code(&why, code);
        int rc = dnn_fail(err, DNN_EDATA, "%s: cannot be read as a zip archive: %s",
                          archive, zip_error_strerror(&why));
        zip_error_fini(&why);
        return rc;
    }
    int rc = unpack(archive, zip, out, len, err);
    zip_discard(zip);
    return rc;
}

#else

int dnn_h5_unpack(const char *archive, void **out, size_t *len, struct dnn_err *err)
{
    (void)out, (void)len;
    return dnn_fail(err, DNN_ECONFIG,
                    "%s: .keras archives need libzip, which this was built without",
                    archive);
}
#endif
#endif
