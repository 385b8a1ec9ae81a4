/* sum.c - XXH3 of texts and files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* As xxhsum -H2 prints it. */
static void print(XXH128_hash_t hash, char out[33])
{
    snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64,
             (uint64_t)hash.low64);
}

void dnn_sum_text(const void *bytes, size_t len, char out[33])
{
    print(XXH3_128bits(bytes, len), out);
}

int dnn_sum_file(const char *path, char out[33], int64_t *size, struct dnn_err *err)
{
    enum { BLOCK = 1 << 20 };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = 0;

    *size = 0;
    if (fd < 0)
        return dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", path, strerror(errno));
    XXH3_state_t *state = XXH3_createState();
    char *block = dnn_alloc(BLOCK);
    if (state == NULL) {
        rc = dnn_fail(err, DNN_ENOMEM, "%s: not enough memory for its checksum", path);
        goto out;
    }
    XXH3_128bits_reset(state);
    for (;;) {
        ssize_t n = read(fd, block, BLOCK);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            rc =
                dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", path, strerror(errno));
        if (n <= 0) break;
        XXH3_128bits_update(state, block, (size_t)n);
        *size += n;
    }
    print(XXH3_128bits_digest(state), out);
out:
    XXH3_freeState(state);
    dnn_free(block);
    close(fd);
    return rc;
}
