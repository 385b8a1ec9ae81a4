/* package_impl.h - declarations shared by the files of this component.
 *
 * info.c      dnn.json;
 * seal.c      the checksum at the end of the file;
 * write.c     makes the archive;
 * open.c      reads and checks it;
 * describe.c  prints it.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PACKAGE_PACKAGE_IMPL_H
#define DNN_PACKAGE_PACKAGE_IMPL_H

#include "package/package.h"

/* Members. */
#define PACKAGE_INFO "dnn.json" /* the first one: the file begins with its name */
#define PACKAGE_NETWORK "network.json"
#define PACKAGE_METADATA "metadata.json"
#define PACKAGE_KERAS "config.json"

enum { PACKAGE_TEXTS = 4, PACKAGE_SUM = 32 }; /* hexadecimal digits of the checksum */

struct dnn_package {
    char *path;
    char *text[PACKAGE_TEXTS]; /* owned; in the order of package_text_names */
    struct dnn_json *file; /* owned: dnn.json, holds the strings of info           */
    struct dnn_package_info info;
    struct dnn_weights *weights; /* owned; NULL: not read */
    char sum[PACKAGE_SUM + 1];
};

/* ---- info.c ---- */

/* dnn.json of these parts; the caller frees it: dnn_free(). */
char *package_info_text(const struct dnn_package_info *info);
/* Read dnn.json, which text[0] has; checks format and version first. */
int package_info_read(struct dnn_package *p, struct dnn_err *err);

/* ---- seal.c: the last bytes of the file, which are the comment of the archive ---- */

/* A comment of the final length, without numbers, for the archive; then fill in its
 * numbers at the end of the archive's bytes. */
const char *package_seal_blank(void);
void package_seal(char *bytes, size_t len);
/* Check that the file ends with a seal with its size; whole: and with the checksum of
 * its bytes.  sum gets the checksum. */
int package_seal_check(const char *path, bool whole, char sum[PACKAGE_SUM + 1],
                       struct dnn_err *err);
/* The part of a message behind the path that it begins with; all of a message that is
 * cut off before. */
const char *package_after_path(const char *path, const char *text);

#endif
