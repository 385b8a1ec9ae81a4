/* generate.h - sources of computed (synthetic) samples.
 *
 * Each generator has a file; generators.c lists them.  Sample i depends only on
 * (seed, i, options), with the same bits for any number of ranks and any order.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_GENERATE_GENERATE_H
#define DNN_GENERATE_GENERATE_H

#include "base/field.h"
#include "sample/source.h"

/* Local.  Make a source from the object "generate": {"type": "fractals3d", "samples":
 * 64, "seed": 1, "size": 5, ...}.  The caller owns *out: dnn_source_close(); obj is not
 * used afterwards.  Errors, such as unknown keys, name file and line. */
int dnn_generate_open(const struct dnn_jobj *obj, struct dnn_source **out,
                      struct dnn_err *err);

/* The keys of all generators: type, samples, seed. */
extern const struct dnn_field dnn_generate_fields[];

/* Name, description and additional keys of generator number index, for the
 * documentation; NULL past the end. */
const char *dnn_generate_info(int index, const char **help,
                              const struct dnn_field **fields);

#endif
