/* bp_impl.h - internals of this component.
 *
 * capture.c captures ADIOS2's messages on stderr;
 * op.c      its version and operators;
 * file.c    common functions for writing and reading;
 * write.c   writing, finish.c the end of writing;
 * read.c    reading; attr.c attributes;
 * check.c   checks a directory before ADIOS2 opens it, probe.c in another process;
 * index.c   the file dnn.idx: marks a complete file, and has the offsets of its blocks;
 * direct.c  reads blocks without ADIOS2, at the offsets in dnn.idx.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BP_BP_IMPL_H
#define DNN_BP_BP_IMPL_H

#include "bp/bp.h"

#include <adios2_c.h>
#include <sys/types.h>

/* Rows [first, first + rows) of a variable, and their position in the data files: in
 * flush number `flush` (the bytes written to the disk at once) of a writer, at this
 * offset. */
struct bp_block {
    int64_t first, rows;
    uint64_t writer, flush, offset;
};

/* A block put by this rank, with the checksum of its bytes. */
struct bp_put {
    struct bp_block b;
    uint64_t sum;
};

struct bp_var {
    struct dnn_bp_var pub;
    adios2_variable *handle;
    int64_t row_bytes;  /* of one row of axis 0                                 */
    struct bp_put *put; /* owned; writing: blocks of this rank                  */
    size_t nputs, cap;
    const struct bp_block *block; /* reading: all, sorted, in bp->index; NULL: not
                                   * known                                          */
    size_t nblocks;
};

struct bp_direct; /* direct.c */

struct dnn_bp {
    struct dnn_comm *comm; /* or NULL */
    int rank, size;
    char *path;
    bool writing;
    bool failed; /* a call of the engine failed: it is then never released, because
                  * that might terminate the process                               */
    adios2_adios *adios;
    adios2_io *io;
    adios2_engine *engine;
    adios2_operator *op;
    char *op_name, *op_params; /* owned; NULL: none */
    struct bp_var *var;        /* owned */
    int nvars;
    size_t cap;
    uint64_t flush, offset; /* writing: position of the next block of this rank    */
    bool complete;          /* reading: there is an index                          */
    size_t md_bytes;        /* reading: maximum length of a string attribute       */
    char *index; /* owned; reading: the content of dnn.idx, or NULL           */
    int threads;
    bool deferred;            /* rows were requested from ADIOS2                     */
    struct bp_direct *direct; /* NULL: everything is read through ADIOS2             */
};

/* ---- capture.c ---- */

/* Between start and end (on the same thread) messages of ADIOS2 are captured. */
struct bp_capture {
    off_t from;
};
void dnn_bp_capture_start(struct bp_capture *capture);
/* 0 if good, else DNN_EIO with "path: doing: " and ADIOS2's message. */
int dnn_bp_capture_end(struct bp_capture *capture, bool good, const char *path,
                       const char *doing, struct dnn_err *err);

/* ---- op.c ---- */

/* DNN_ECONFIG if this ADIOS2 does not have the operator; the message lists those it
 * has. */
int dnn_bp_operator_check(const char *name, struct dnn_err *err);

/* ---- file.c, finish.c ---- */

/* The type of ADIOS2 for a dtype, and the reverse; false for types without a dtype
 * (strings, complex numbers). */
adios2_type dnn_bp_adios_type(enum dnn_dtype type);
bool dnn_bp_dtype(adios2_type type, enum dnn_dtype *out);
/* Start ADIOS2 for the ranks of bp->comm and declare an IO of engine BP5. */
int dnn_bp_start(struct dnn_bp *bp, struct dnn_err *err);
struct dnn_bp *dnn_bp_make(struct dnn_comm *comm, const char *path);

/* ---- read.c, probe.c ---- */

/* Open the engine and list the variables; bp->md_bytes must be set. */
int dnn_bp_open_engine(struct dnn_bp *bp, struct dnn_err *err);
/* Local.  Test in another process whether ADIOS2 can read a file of another program. */
int dnn_bp_probe(const char *path, size_t md_bytes, struct dnn_err *err);

/* ---- check.c ---- */

/* The table of a BP5 file: the positions of the data of each writer. */
struct bp_map {
    char *text; /* owned: md.idx */
    size_t len;
    uint64_t nwriters, nfiles; /* nfiles: data files                               */
    uint64_t steps, nflushes;  /* flushes of the last step, without its last one   */
    uint64_t md_at;            /* offset of that step in md.0                      */
    const char *file_of;       /* in text: the data file of each writer            */
    const char *flushes;       /* in text: the flushes of each writer              */
};
/* Local.  Check that the files of a directory are consistent; DNN_EDATA if not.  The
 * caller owns *out: dnn_bp_map_free(). */
int dnn_bp_check(const char *path, struct bp_map *out, size_t *md_bytes,
                 struct dnn_err *err);
void dnn_bp_map_free(struct bp_map *map);
/* Local.  The same table from the content of md.idx, which is copied; the other files
 * are not checked. */
int dnn_bp_map_read(const char *path, const char *text, size_t len, struct bp_map *out,
                    struct dnn_err *err);
uint64_t dnn_bp_map_file(const struct bp_map *map, uint64_t writer);
/* Offset in the data file and size of a flush; the size of the last one is not known:
 * UINT64_MAX. */
void dnn_bp_map_flush(const struct bp_map *map, uint64_t writer, uint64_t flush,
                      uint64_t *start, uint64_t *bytes);
char *dnn_bp_file_name(const char *path, const char *name); /* dnn_free() */

/* ---- index.c ---- */

#define DNN_BP_INDEX "dnn.idx"

/* Collective.  Write dnn.idx, after all other files are closed and on the disk. */
int dnn_bp_index_write(struct dnn_bp *bp, struct dnn_err *err);
/* Local.  Read and check it, and check sizes and checksums of the other files; *out is
 * its content (dnn_free()), or NULL if it does not exist. */
int dnn_bp_index_read(const char *path, char **out, size_t *len, struct dnn_err *err);
/* Local.  Set the blocks of bp's variables from bp->index, which has len bytes. */
void dnn_bp_index_use(struct dnn_bp *bp, size_t len);

/* ---- direct.c ---- */

/* Local.  map: the content of md.idx; index_len: bytes of bp->index. */
void dnn_bp_direct_open(struct dnn_bp *bp, const char *map, size_t map_len,
                        size_t index_len);
void dnn_bp_direct_close(struct dnn_bp *bp);
/* Request a box, if it can be read directly; else false. */
bool dnn_bp_direct_request(struct dnn_bp *bp, struct bp_var *var, const int64_t *start,
                           const int64_t *extent, void *to);
int dnn_bp_direct_fetch(struct dnn_bp *bp, struct dnn_err *err);

#endif
