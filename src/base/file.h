/* file.h - files that are read whole, and that appear whole or not at all.
 *
 * Messages begin with the path as it was given and carry the system's words.
 * The system's refusals are DNN_EIO.  All of this is Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_FILE_H
#define DNN_BASE_FILE_H

#include "base/err.h"

#include <stddef.h>

/* The whole content, followed by a NUL that *len does not count.  The caller
 * owns *out: dnn_free().  More than limit bytes are refused (DNN_EDATA), as is
 * a directory (DNN_EIO); pipes and devices are read to their end. */
int dnn_file_read(const char *path, size_t limit, char **out, size_t *len,
                  struct dnn_err *err);

/* The same for a text: a NUL in it is refused (DNN_EDATA), for C would take it
 * for the end. */
int dnn_file_read_text(const char *path, size_t limit, char **out, struct dnn_err *err);

/* Make path hold exactly these bytes, and return when they are on the disk.  They
 * are written beside path and renamed, so that at every moment path is the old
 * file, or absent if there was none, or the new one; on failure it is not the
 * new one (except when only the directory could not be made durable, as the
 * message then says) and nothing is left beside it.  The mode of an existing
 * file is kept, a link is followed, and what is no ordinary file is refused.
 * Only a process that is killed in between leaves something:
 * ".NAME.PID-N.part" in the same directory. */
int dnn_file_write(const char *path, const void *bytes, size_t len,
                   struct dnn_err *err);

/* The same for content that comes in portions. */
struct dnn_file;
int dnn_file_open(const char *path, struct dnn_file **out, struct dnn_err *err);
/* After a failure only dnn_file_abandon() makes sense. */
int dnn_file_add(struct dnn_file *file, const void *bytes, size_t len,
                 struct dnn_err *err);
/* The content is complete: put it in place.  Ends file, also on failure. */
int dnn_file_commit(struct dnn_file *file, struct dnn_err *err);
/* Forget it; path stays as it was.  Ends file; NULL is fine. */
void dnn_file_abandon(struct dnn_file *file);

/* Make a directory and those above it; those that exist are fine. */
int dnn_file_make_dirs(const char *path, struct dnn_err *err);

/* Remove a file, a link, or a directory and all below it.  Links are removed,
 * not followed; another file system mounted below is left alone and an error,
 * and so are more than DNN_TREE_DEPTH levels.  Nothing there is fine. */
enum { DNN_TREE_DEPTH = 100 };
int dnn_file_remove_tree(const char *path, struct dnn_err *err);

#endif
