/* generate.h - samples that are computed: nothing has to be downloaded.
 *
 * One file per generator, one list in generators.c.  Sample i is a pure function of
 * (seed, i, options): the same bits at any number of ranks and in any order.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_GENERATE_GENERATE_H
#define DNN_GENERATE_GENERATE_H

#include "base/field.h"
#include "sample/source.h"

/* Local.  A source from the object under "generate": {"type": "fractals3d", "samples":
 * 64, "seed": 1, "size": 5, ...}.  The caller owns *out: dnn_source_close(); it does
 * not need obj afterwards.  Unknown keys and types are reported with file and line. */
int dnn_generate_open(const struct dnn_jobj *obj, struct dnn_source **out,
                      struct dnn_err *err);

/* The keys that all of them take: type, samples, seed. */
extern const struct dnn_field dnn_generate_fields[];

/* The generator at a place of the list and the keys it takes besides, for the manual;
 * NULL past the end. */
const char *dnn_generate_info(int index, const char **help,
                              const struct dnn_field **fields);

#endif
