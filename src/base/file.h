/* file.h - read complete files, and replace files atomically.
 *
 * Messages contain the path as it was given and the error of the system.  Errors of the
 * system are DNN_EIO.  All of this is Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_FILE_H
#define DNN_BASE_FILE_H

#include "base/err.h"

#include <stddef.h>

/* The complete content, followed by a NUL that *len does not count.  The caller
 * owns *out: dnn_free().  More than limit bytes are an error (DNN_EDATA), and so is
 * a directory (DNN_EIO); pipes and devices are read to their end. */
int dnn_file_read(const char *path, size_t limit, char **out, size_t *len,
                  struct dnn_err *err);

/* The same for a text file: a NUL byte in it is an error (DNN_EDATA). */
int dnn_file_read_text(const char *path, size_t limit, char **out, struct dnn_err *err);

/* Replace the content of path by these bytes, and return when they are on the disk.
 * They are written to a temporary file in the same directory, which is renamed: at any
 * time path is the old file (or absent) or the new one.  On failure path is unchanged
 * (except if only the directory could not be flushed to disk; the message then says so)
 * and the temporary file is removed.  The mode of an existing file is kept, symbolic
 * links are followed, and anything but a regular file is an error.  Only a process that
 * is killed leaves a temporary file: ".NAME.PID-N.part". */
int dnn_file_write(const char *path, const void *bytes, size_t len,
                   struct dnn_err *err);

/* The same for content written in several calls. */
struct dnn_file;
int dnn_file_open(const char *path, struct dnn_file **out, struct dnn_err *err);
/* After a failure only dnn_file_abandon() is allowed. */
int dnn_file_add(struct dnn_file *file, const void *bytes, size_t len,
                 struct dnn_err *err);
/* The content is complete: rename it to path.  Frees file, also on failure. */
int dnn_file_commit(struct dnn_file *file, struct dnn_err *err);
/* Discard the content; path is unchanged.  Frees file; NULL is fine. */
void dnn_file_abandon(struct dnn_file *file);

/* Make a directory and its parents; existing ones are fine. */
int dnn_file_make_dirs(const char *path, struct dnn_err *err);

/* Remove a file, a symbolic link, or a directory with its content.  Links are not
 * followed.  Another file system mounted below is not touched and is an error; so are
 * more than DNN_TREE_DEPTH levels.  A path that does not exist is fine. */
enum { DNN_TREE_DEPTH = 100 };
int dnn_file_remove_tree(const char *path, struct dnn_err *err);

#endif
