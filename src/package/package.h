/* package.h - the model file, model.dnn: a trained network with all that is needed to
 * use it, in one file that Keras 3 opens, too.
 *
 * It is a .keras archive with two more members, network.json and dnn.json, and a
 * checksum of the whole file at its end; docs/model-file.md describes the format.  All
 * functions are Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PACKAGE_PACKAGE_H
#define DNN_PACKAGE_PACKAGE_H

#include "base/field.h"
#include "graph/graph.h"
#include "weights/weights.h"

enum { DNN_PACKAGE_VERSION = 1 }; /* the newest that is read, and the one written */

/* ---- dnn.json ---- */

struct dnn_package_input {
    const char *name; /* of the network's input                              */
    const char *column, *stored; /* the dataset's column and its type; NULL: unknown */
    const char *kind;      /* "image", "values"...; NULL: unknown                 */
    struct dnn_list shape; /* without the batch                                   */
    struct dnn_list scale, offset; /* value = stored * scale + offset: one number, or
                                    * one per channel; empty: as stored */
};

struct dnn_package_target {
    const char *name; /* of the network's output */
    const char *column, *kind;
    int64_t classes; /* 0: not of classes, or unknown */
    struct dnn_list class_names;
};

struct dnn_package_info {
    const char *format, *program; /* of the program: its version; both set by write */
    int64_t version;
    struct dnn_list inputs, targets; /* of the structs above */
    const char *preparation; /* JSON: how the dataset was made; or NULL         */
    const char *inference;   /* JSON: keys of a configuration that inference needs; or
                              * NULL                                                    */
    const char *training; /* JSON: how the network was trained; or NULL              */
};
extern const struct dnn_field dnn_package_fields[];

/* ---- writing ---- */

struct dnn_package_parts {
    struct dnn_package_info info;
    const char *network; /* JSON that graph.h reads */
    const char *keras; /* the network as Keras 3 writes it; NULL: it cannot           */
    const char *scaling; /* "dnn_toolkit" of metadata.json, JSON; or NULL */
    const void *weights; /* a .weights.h5 file (dnn_weights_image()) */
    size_t weights_len;
};

/* Write a model file, atomically (base/file.h).  A path that ends in ".keras" becomes
 * an archive of Keras alone; this needs parts->keras and ignores info and network. */
int dnn_package_write(const char *path, const struct dnn_package_parts *parts,
                      struct dnn_err *err);

/* ---- reading ---- */

struct dnn_package;

/* Whether a file is a model file, perhaps a damaged one: it ends in ".dnn", or begins
 * or ends like one.  A file that cannot be read is none. */
bool dnn_package_is(const char *path);

/* Open a model file and check all of it: the checksum of its bytes, its version, its
 * members, and that the weights are those of the network.  Invalid JSON in a member is
 * DNN_ECONFIG, all other damage is DNN_EDATA.  The caller owns *out:
 * dnn_package_close(). */
int dnn_package_open(const char *path, struct dnn_package **out, struct dnn_err *err);
/* The same without weights, for processes that need only the network: reads only
 * dnn.json and network.json, and checks only these. */
int dnn_package_open_network(const char *path, struct dnn_package **out,
                             struct dnn_err *err);
void dnn_package_close(struct dnn_package *package); /* NULL is fine */

/* What is returned below lives as long as the package. */
const struct dnn_package_info *dnn_package_info(const struct dnn_package *package);
/* The text of a member: "network.json", "dnn.json", "config.json", "metadata.json";
 * NULL if it has none.  The latter two need dnn_package_open(). */
const char *dnn_package_text(const struct dnn_package *package, const char *member);
/* The keys of the section "data" of a configuration that a model file has; NULL-ended.
 */
extern const char *const dnn_package_data_keys[];
/* The keys of a configuration that inference needs: a JSON object, "{}" if none are
 * known. */
const char *dnn_package_config(const struct dnn_package *package);
/* NULL after dnn_package_open_network(). */
struct dnn_weights *dnn_package_weights(const struct dnn_package *package);

/* Make the network.  opts: NULL, or no inputs: the shapes of dnn.json.  The caller owns
 * *out: dnn_graph_free(). */
int dnn_package_graph(const struct dnn_package *package,
                      const struct dnn_graph_opts *opts, struct dnn_graph **out,
                      struct dnn_err *err);

/* Open the weights of a model file, which is checked as above, or any other file of
 * weights.  The caller owns *out: dnn_weights_close(). */
int dnn_package_open_weights(const char *path, struct dnn_weights **out,
                             struct dnn_err *err);

/* Print network, inputs, targets, preparation, training and checksum, as text or as one
 * JSON object.  Needs dnn_package_open(). */
int dnn_package_describe(const struct dnn_package *package, FILE *where, bool json,
                         struct dnn_err *err);

/* Write a part for other programs, atomically: a path that ends in ".keras",
 * ".weights.h5" (both Keras 3) or ".json" (the network).  DNN_EUSAGE: another ending;
 * DNN_ECONFIG: .keras, but Keras has not all layers.  Needs dnn_package_open(). */
int dnn_package_export(const struct dnn_package *package, const char *path,
                       struct dnn_err *err);

#endif
