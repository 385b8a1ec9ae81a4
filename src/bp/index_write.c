/* index_write.c - write the file dnn.idx of a new BP file; see index.c for its format.
 *
 * ADIOS2 does not report the offset of a block; it is computed by counting bytes, and
 * then verified by reading the blocks.  If an offset is wrong, dnn.idx has no blocks,
 * and they are read through ADIOS2.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "bp/bp_impl.h"
#include "comm/collect.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* A block of any rank. */
struct entry {
    int64_t var;
    struct bp_block b;
};

static void put_number(struct dnn_buf *buf, uint64_t x)
{
    dnn_buf_bytes(buf, &x, sizeof x);
}

static int add_file(struct dnn_buf *buf, const char *path, const char *name,
                    struct dnn_err *err)
{
    char fixed[24] = "", *full = dnn_bp_file_name(path, name), *text = NULL;
    size_t len = 0;
    uint64_t sum = 0;
    int rc = 0;

    snprintf(fixed, sizeof fixed, "%s", name);
    if (strncmp(name, "data.", 5) == 0) {
        int fd = open(full, O_RDONLY | O_CLOEXEC);
        off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);

        if (end < 0) rc = dnn_fail(err, DNN_EIO, "%s: cannot be read back", full);
        len = (size_t)end;
        if (fd >= 0) close(fd);
    } else {
        rc = dnn_file_read(full, 1 << 30, &text, &len, err);
        if (rc == 0) sum = XXH3_64bits(text, len);
        dnn_free(text);
    }
    dnn_buf_bytes(buf, fixed, sizeof fixed);
    put_number(buf, len);
    put_number(buf, sum);
    dnn_free(full);
    return rc;
}

static int add_files(struct dnn_buf *buf, const char *path, const struct bp_map *map,
                     struct dnn_err *err)
{
    static const char *const tables[] = {"md.idx", "md.0", "mmd.0"};

    put_number(buf, 3 + map->nfiles);
    for (int i = 0; i < 3; i++)
        DNN_TRY(add_file(buf, path, tables[i], err));
    for (uint64_t i = 0; i < map->nfiles; i++) {
        char name[32];

        snprintf(name, sizeof name, "data.%llu", (unsigned long long)i);
        DNN_TRY(add_file(buf, path, name, err));
    }
    return 0;
}

static int by_row(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->var != y->var) return x->var < y->var ? -1 : 1;
    return x->b.first < y->b.first ? -1 : x->b.first > y->b.first;
}

/* Whether the block's bytes are at the computed offset. */
static bool is_at_offset(const struct bp_map *map, const struct bp_put *put,
                         uint64_t nbytes, int fd, char *buffer)
{
    const struct bp_block *b = &put->b;
    uint64_t start, bytes, at = 0;

    if (b->writer >= map->nwriters || b->flush > map->nflushes) return false;
    dnn_bp_map_flush(map, b->writer, b->flush, &start, &bytes);
    if (nbytes > bytes || b->offset > bytes - nbytes) return false;
    for (ssize_t k = 1; at < nbytes && k > 0; at += k > 0 ? (uint64_t)k : 0)
        k = pread(fd, buffer + at, nbytes - at, (off_t)(start + b->offset + at));
    return at == nbytes && XXH3_64bits(buffer, nbytes) == put->sum;
}

/* Local.  Verify the offsets of all blocks of this rank by reading them again. */
static bool verify_offsets(const struct dnn_bp *bp)
{
    struct bp_map map;
    size_t md_bytes;
    uint64_t most = 0;
    char name[32];

    if (dnn_bp_check(bp->path, &map, &md_bytes, NULL) < 0) return false;
    for (int v = 0; v < bp->nvars; v++)
        for (size_t i = 0; i < bp->var[v].nputs; i++) {
            uint64_t bytes =
                (uint64_t)(bp->var[v].put[i].b.rows * bp->var[v].row_bytes);
            if (bytes > most) most = bytes;
        }
    bool good = map.steps == 1 && (most == 0 || (uint64_t)bp->rank < map.nwriters);
    snprintf(name, sizeof name, "data.%llu",
             good && most > 0
                 ? (unsigned long long)dnn_bp_map_file(&map, (uint64_t)bp->rank)
                 : 0ULL);
    char *full = dnn_bp_file_name(bp->path, name), *buffer = malloc(most + 1);
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    for (int v = 0; v < bp->nvars && most > 0 && good; v++)
        for (size_t i = 0; i < bp->var[v].nputs && good; i++) {
            const struct bp_put *put = &bp->var[v].put[i];

            good =
                buffer != NULL && fd >= 0 &&
                is_at_offset(&map, put, (uint64_t)(put->b.rows * bp->var[v].row_bytes),
                             fd, buffer);
        }
    if (fd >= 0) close(fd);
    free(buffer);
    dnn_free(full);
    dnn_bp_map_free(&map);
    return good;
}

static void add_blocks(struct dnn_buf *buf, const struct dnn_bp *bp,
                       const struct entry *e, size_t n)
{
    static const char zeros[8];

    put_number(buf, n > 0 ? (uint64_t)bp->nvars : 0);
    for (int v = 0; n > 0 && v < bp->nvars; v++) {
        const char *name = bp->var[v].pub.name;
        size_t len = strlen(name), begin = 0, end;

        while (begin < n && e[begin].var < v)
            begin++;
        for (end = begin; end < n && e[end].var == v;)
            end++;
        put_number(buf, len);
        dnn_buf_bytes(buf, name, len);
        dnn_buf_bytes(buf, zeros, (8 - len % 8) % 8);
        put_number(buf, end - begin);
        for (size_t i = begin; i < end; i++) {
            uint64_t x[5] = {(uint64_t)e[i].b.first, (uint64_t)e[i].b.rows,
                             e[i].b.writer, e[i].b.flush, e[i].b.offset};
            dnn_buf_bytes(buf, x, sizeof x);
        }
    }
}

static int write_index(struct dnn_bp *bp, struct entry *e, size_t n,
                       struct dnn_err *err)
{
    struct dnn_buf buf = {0};
    struct bp_map map;
    size_t md_bytes;

    DNN_TRY(dnn_bp_check(bp->path, &map, &md_bytes, err));
    qsort(e, n, sizeof *e, by_row);
    dnn_buf_bytes(&buf, "DNNIDX1\n", 8);
    int rc = add_files(&buf, bp->path, &map, err);
    add_blocks(&buf, bp, e, n);
    put_number(&buf, XXH3_64bits(buf.text, buf.len));
    char *full = dnn_bp_file_name(bp->path, DNN_BP_INDEX);
    if (rc == 0) rc = dnn_file_write(full, buf.text, buf.len, err);
    dnn_free(full);
    dnn_buf_free(&buf);
    dnn_bp_map_free(&map);
    return rc;
}

int dnn_bp_index_write(struct dnn_bp *bp, struct dnn_err *err)
{
    struct entry *mine = NULL;
    size_t n = 0, cap = 0, bytes = 0;
    void *all = NULL;
    int64_t good = verify_offsets(bp);

    if (bp->size > 1)
        DNN_TRY(dnn_comm_allreduce(bp->comm, "block offsets", &good, 1, DNN_COMM_I64,
                                   DNN_COMM_MIN, err));
    if (!good && bp->rank == 0)
        dnn_log(DNN_WARN, "bp",
                "%s: unknown block layout of ADIOS2 %s; reading will be slower",
                bp->path, dnn_bp_version());
    for (int v = 0; v < bp->nvars && good; v++)
        for (size_t i = 0; i < bp->var[v].nputs; i++) {
            mine = dnn_grow(mine, &cap, n + 1, sizeof *mine);
            mine[n].var = v;
            mine[n++].b = bp->var[v].put[i].b;
        }
    int rc = dnn_comm_collect(bp->comm, "block offsets", mine, n * sizeof *mine, &all,
                              &bytes, err);
    dnn_free(mine);
    if (rc == 0 && bp->rank == 0) rc = write_index(bp, all, bytes / sizeof *mine, err);
    dnn_free(all);
    return bp->size > 1 ? dnn_comm_agree(bp->comm, rc, err) : rc;
}
