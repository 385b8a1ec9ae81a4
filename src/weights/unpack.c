/* unpack.c - the weights in a .keras archive.
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
    PORTION = 1 << 20,
    PLAIN = 64 << 20, /* bytes that may come out of anything            */
    RATIO = 100       /* beyond that, how much a byte may become: noise, which is
                         what weights look like, hardly shrinks          */
};

/* Fill memory with the member, which says it has size bytes. */
static int fill(const char *archive, zip_file_t *member, char *to, uint64_t size,
                struct dnn_err *err)
{
    uint64_t done = 0;
    char more;

    while (done < size) {
        uint64_t left = size - done;
        int64_t n = zip_fread(member, to + done, left < PORTION ? left : PORTION);

        if (n < 0)
            return dnn_fail(err, DNN_EDATA, "%s: " MEMBER " in it: %s", archive,
                            zip_error_strerror(zip_file_get_error(member)));
        if (n == 0)
            return dnn_fail(err, DNN_EDATA, "%s: " MEMBER " in it is truncated",
                            archive);
        done += (uint64_t)n;
    }
    /* Its checksum is looked at behind the last byte. */
    int64_t n = zip_fread(member, &more, 1);
    if (n > 0)
        return dnn_fail(err, DNN_EDATA, "%s: " MEMBER " in it is longer than it says",
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
    if (stat.size > PLAIN && stat.size / RATIO > stat.comp_size)
        return dnn_fail(err, DNN_EDATA,
                        "%s: " MEMBER " in it would grow from %" PRIu64 " to %" PRIu64
                        " bytes, which no weights do",
                        archive, (uint64_t)stat.comp_size, (uint64_t)stat.size);
    zip_file_t *member = zip_fopen_index(zip, stat.index, 0);
    if (member == NULL)
        return dnn_fail(err, DNN_EDATA, "%s: " MEMBER " in it: %s", archive,
                        zip_strerror(zip));
    void *memory = malloc(stat.size + 1);
    int rc = memory == NULL ? dnn_fail(err, DNN_ENOMEM,
                                       "%s: %" PRIu64 " bytes of memory for " MEMBER,
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
        int rc = dnn_fail(err, DNN_EDATA, "%s: is no archive that can be read: %s",
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
