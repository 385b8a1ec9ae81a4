/* archive.h - zip archives, such as .keras files: made in memory; members read and
 * checked.
 *
 * Built without libzip, all functions fail with DNN_ECONFIG.  All functions are Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_ARCHIVE_ARCHIVE_H
#define DNN_ARCHIVE_ARCHIVE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct dnn_archive_member {
    const char *name;
    const void *bytes;
    size_t len;
};

/* Make an archive: members are not compressed and dated 1980, so that equal content
 * gives equal bytes.  comment: the last bytes of the archive; NULL: none.  path: for
 * messages.  The caller owns *out: free(). */
int dnn_archive_make(const char *path, int n, const struct dnn_archive_member *member,
                     const char *comment, char **out, size_t *len, struct dnn_err *err);

/* Read a member, at most limit bytes, and check its CRC-32.  *out is NULL if there is
 * no member of this name; else it ends with a NUL that *len does not count.  Two
 * members of one name are DNN_EDATA.  The caller owns *out: free(). */
int dnn_archive_read(const char *path, const char *name, size_t limit, char **out,
                     size_t *len, struct dnn_err *err);

/* Check the CRC-32 of all members, which are not compressed; the error names the first
 * that is damaged. */
int dnn_archive_check(const char *path, struct dnn_err *err);

#endif
