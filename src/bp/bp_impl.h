/* bp_impl.h - what the files of this component share.
 *
 * capture.c catches what ADIOS2 says on stderr;
 * op.c      its version and operators;
 * file.c    what all files begin and end with;
 * write.c   files being written, finish.c how that ends;
 * read.c    files being read; attr.c attributes;
 * check.c   looks at a directory before ADIOS2 does, probe.c lets another process try;
 * index.c   the small file that says that a file is whole, and where its blocks lie;
 * direct.c  reads blocks without ADIOS2 where that file tells the way.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BP_BP_IMPL_H
#define DNN_BP_BP_IMPL_H

#include "bp/bp.h"

#include <adios2_c.h>
#include <sys/types.h>

/* Rows [first, first + rows) of a variable, and where they are: in the portion (what
 * a writer sent to the disk at once) number `portion` of a writer, so many bytes after
 * its start. */
struct bp_block {
    int64_t first, rows;
    uint64_t writer, portion, offset;
};

/* One that this rank has put, with the checksum of its bytes. */
struct bp_put {
    struct bp_block b;
    uint64_t sum;
};

struct bp_var {
    struct dnn_bp_var pub;
    adios2_variable *handle;
    int64_t row_bytes;  /* of one row of axis 0                                 */
    struct bp_put *put; /* owned: writing: by this rank                         */
    size_t nputs, cap;
    const struct bp_block *block; /* reading: all, sorted, in bp->index; NULL: they are
                                   * not known                                      */
    size_t nblocks;
};

struct bp_direct; /* direct.c */

struct dnn_bp {
    struct dnn_comm *comm; /* or NULL */
    int rank, size;
    char *path;
    bool writing;
    bool failed; /* a call of the engine did: what it would do when it is released is
                  * not known (it may end the process), so it never is             */
    adios2_adios *adios;
    adios2_io *io;
    adios2_engine *engine;
    adios2_operator *op;
    char *op_name, *op_params; /* owned; NULL: none */
    struct bp_var *var;        /* owned */
    int nvars;
    size_t cap;
    uint64_t portion, offset; /* writing: where the next block of this rank goes     */
    bool whole;               /* reading: there is an index                          */
    size_t md_bytes;          /* reading: no text attribute is longer                */
    char *index; /* owned: reading: the bytes of dnn.idx; NULL: there is none */
    int threads;
    bool asked;               /* something is to be fetched by ADIOS2                */
    struct bp_direct *direct; /* NULL: all is read through ADIOS2                    */
};

/* ---- words.c ---- */

/* From listen to heard, on the same thread, nothing ADIOS2 prints gets out. */
struct bp_ears {
    off_t from;
};
void dnn_bp_listen(struct bp_ears *ears);
/* 0 if it went well, else DNN_EIO "path: doing: ADIOS2's words". */
int dnn_bp_captured(struct bp_ears *ears, bool good, const char *path,
                    const char *doing, struct dnn_err *err);

/* ---- op.c ---- */

/* Refuse an operator this ADIOS2 does not have, naming those it has. */
int dnn_bp_operator_check(const char *name, struct dnn_err *err);

/* ---- file.c, finish.c ---- */

/* ADIOS2's type that holds such numbers; the reverse is false for what we do not
 * have (texts, complex numbers). */
adios2_type dnn_bp_adios_type(enum dnn_dtype type);
bool dnn_bp_own_type(adios2_type type, enum dnn_dtype *out);
/* Start ADIOS2 for the ranks of bp->comm and declare an IO of engine BP5. */
int dnn_bp_start(struct dnn_bp *bp, struct dnn_err *err);
struct dnn_bp *dnn_bp_make(struct dnn_comm *comm, const char *path);
void dnn_bp_free(struct dnn_bp *bp);
/* Local.  Make the data files of a directory durable, or all there is in it. */
int dnn_bp_sync(const char *path, bool all, struct dnn_err *err);

/* ---- read.c, probe.c ---- */

/* Open the engine and list the variables; bp->md_bytes is known. */
int dnn_bp_begin(struct dnn_bp *bp, struct dnn_err *err);
/* Local.  Whether ADIOS2 gets through a file of somebody else's: tried by another
 * process. */
int dnn_bp_probe(const char *path, size_t md_bytes, struct dnn_err *err);

/* ---- check.c ---- */

/* The table of a BP5 file: who wrote where. */
struct bp_map {
    char *text; /* owned: md.idx */
    size_t len;
    uint64_t nwriters, nfiles; /* nfiles: data files                               */
    uint64_t steps, nbuckets;  /* portions of the last step, its last not counted  */
    uint64_t md_at;            /* where md.0 describes that step                   */
    const char *file_of;       /* in text: the data file of each writer            */
    const char *place;         /* in text: of each writer its portions             */
};
/* Local.  That the directory holds what its own tables say; DNN_EDATA if not.  *out is
 * for dnn_bp_map_free(). */
int dnn_bp_check(const char *path, struct bp_map *out, size_t *md_bytes,
                 struct dnn_err *err);
void dnn_bp_map_free(struct bp_map *map);
/* Local.  The same table from text, which was checked before and is copied. */
int dnn_bp_map_read(const char *path, const char *text, size_t len, struct bp_map *out,
                    struct dnn_err *err);
uint64_t dnn_bp_map_file(const struct bp_map *map, uint64_t writer);
/* Place and size of a portion; the last one's size is not known: UINT64_MAX. */
void dnn_bp_map_portion(const struct bp_map *map, uint64_t writer, uint64_t portion,
                        uint64_t *place, uint64_t *bytes);
char *dnn_bp_file_name(const char *path, const char *name); /* dnn_free() */

/* ---- index.c ---- */

#define DNN_BP_INDEX "dnn.idx"

/* Collective.  When all files are closed and durable: the last one. */
int dnn_bp_index_write(struct dnn_bp *bp, struct dnn_err *err);
/* Local.  Its bytes (dnn_free()), checked, after what it says of the other files was
 * compared with them; *out NULL if there is none. */
int dnn_bp_index_read(const char *path, char **out, size_t *len, struct dnn_err *err);
/* Local.  Find the blocks of bp's variables in bp->index, which has len bytes. */
void dnn_bp_index_use(struct dnn_bp *bp, size_t len);

/* ---- direct.c ---- */

/* Local.  From md.idx and bp->index. */
void dnn_bp_direct_open(struct dnn_bp *bp, const char *map, size_t map_len,
                        size_t index_len);
void dnn_bp_direct_close(struct dnn_bp *bp);
/* Whether these rows can be read so; if they can, they are asked for. */
bool dnn_bp_direct_ask(struct dnn_bp *bp, struct bp_var *var, int64_t first,
                       int64_t rows, void *to);
int dnn_bp_direct_fetch(struct dnn_bp *bp, struct dnn_err *err);

#endif
