/* resume.c - evaluations that continue after an interruption.
 *
 * Each rank saves what it has added to the evaluation, and which units of work this is,
 * in the temporary directory of the outputs.  Rank 0 of the next run loads the files of
 * all ranks and replaces them by one.  A file with a unit that has been loaded already
 * was replaced before the run was interrupted: it is skipped.
 *
 * Batches are computed in their order by all ranks together.  So rank 0 saves, in one
 * file, how many are complete, sums of loss and metrics, and the states of all ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/infer_impl.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "comm/collect.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { LOADED = 1, OWN = 2, PIECE = 1 << 24 };
static const double every = 30; /* seconds between saves, at least */
static const char prefix[] = "evaluation.";
static const char of_tiles[] = "dnn-infer 1\n", of_batches[] = "dnn-infer b 1\n";

struct infer_resume {
    int rank;
    int64_t units;
    unsigned char *has; /* owned: [units]; LOADED, or OWN: of this rank and run      */
    bool changed;
    double saved, took; /* when, and the seconds it took                             */
};

/* Of tiles: followed by the numbers of the units, the state, and the checksum of all.
 * Of batches: units: of the sums; count: complete batches.  The sums, the size and the
 * state of each rank, and the checksum follow. */
struct head {
    char magic[16], settings[32];
    int64_t units, count;
};

static struct head head_of(const struct infer_result *r, const char *magic,
                           int64_t units)
{
    struct head head = {.units = units};

    snprintf(head.magic, sizeof head.magic, "%s", magic);
    memcpy(head.settings, r->evaluated, sizeof head.settings);
    return head;
}

/* The path of a rank's file; dnn_free(). */
static char *path_of(const struct infer_result *r, int rank)
{
    char name[32];

    snprintf(name, sizeof name, "%s%d", prefix, rank);
    return dnn_output_keep(r->files, name);
}

/* ---- saving ---- */

/* Whether a unit is in the file of this rank; the loaded ones are in that of rank 0. */
static bool is_mine(const struct infer_resume *s, int64_t unit)
{
    return s->has[unit] == OWN || (s->has[unit] == LOADED && s->rank == 0);
}

static int save(struct infer_result *r, struct dnn_err *err)
{
    struct infer_resume *s = r->resume;
    struct dnn_buf all = {0};
    struct head head = head_of(r, of_tiles, s->units);

    for (int64_t u = 0; u < s->units; u++)
        head.count += is_mine(s, u);
    dnn_buf_bytes(&all, &head, sizeof head);
    for (int64_t u = 0; u < s->units; u++)
        if (is_mine(s, u)) dnn_buf_bytes(&all, &u, sizeof u);
    dnn_evaluate_save(r->evaluation, &all);
    uint64_t sum = XXH3_64bits(all.text, all.len);
    dnn_buf_bytes(&all, &sum, sizeof sum);
    char *path = path_of(r, s->rank);
    int rc = dnn_file_write(path, all.text, all.len, err);
    dnn_free(path);
    dnn_buf_free(&all);
    s->changed = false;
    return rc;
}

int dnn_infer_resume_save(struct infer_result *r, bool now, struct dnn_err *err)
{
    struct infer_resume *s = r->resume;
    double began = dnn_clock_now();

    if (s == NULL || !s->changed) return 0;
    if (!now && began - s->saved < every + 20 * s->took) return 0;
    DNN_TRY(save(r, err));
    s->saved = dnn_clock_now();
    s->took = s->saved - began;
    return 0;
}

void dnn_infer_resume_add(struct infer_result *r, int64_t unit)
{
    if (r->resume == NULL || r->resume->has[unit] != 0) return;
    r->resume->has[unit] = OWN;
    r->resume->changed = true;
}

bool dnn_infer_resume_has(const struct infer_result *r, int64_t unit)
{
    return r->resume != NULL && r->resume->has[unit] == LOADED;
}

/* ---- loading ---- */

/* Set the units of a file that is complete and of this run; else false. */
static bool take_units(const struct infer_result *r, const char *bytes, size_t len,
                       size_t *state)
{
    struct infer_resume *s = r->resume;
    struct head head, want = head_of(r, of_tiles, s->units);
    uint64_t sum;
    int64_t unit;

    if (len < sizeof head + sizeof sum) return false;
    len -= sizeof sum;
    memcpy(&sum, bytes + len, sizeof sum);
    memcpy(&head, bytes, sizeof head);
    want.count = head.count;
    if (sum != XXH3_64bits(bytes, len) || memcmp(&head, &want, sizeof head) != 0 ||
        head.count < 0 || head.count > s->units ||
        (size_t)head.count > (len - sizeof head) / sizeof unit)
        return false;
    const char *at = bytes + sizeof head;
    for (int64_t i = 0; i < head.count; i++) {
        memcpy(&unit, at + (size_t)i * sizeof unit, sizeof unit);
        if (unit < 0 || unit >= s->units || s->has[unit] != 0) return false;
    }
    for (int64_t i = 0; i < head.count; i++) {
        memcpy(&unit, at + (size_t)i * sizeof unit, sizeof unit);
        s->has[unit] = LOADED;
    }
    *state = sizeof head + (size_t)head.count * sizeof unit;
    return true;
}

static int load_file(struct infer_result *r, const char *path, struct dnn_err *err)
{
    char *bytes;
    size_t len, at;
    int rc = 0;

    if (dnn_file_read(path, SIZE_MAX / 4, &bytes, &len, NULL) < 0) return 0;
    if (take_units(r, bytes, len, &at))
        rc = dnn_evaluate_load(r->evaluation, bytes + at, len - at - sizeof(uint64_t),
                               err);
    dnn_free(bytes);
    return rc < 0 ? dnn_prefix(err, "%s: ", path) : 0;
}

/* Load the files of ranks after 0 (load), or remove them. */
static int each_other(struct infer_result *r, bool load, int *n, struct dnn_err *err)
{
    char *dir = dnn_output_keep(r->files, "");
    DIR *list = opendir(dir);
    const struct dirent *entry;
    int rc = 0;

    while (list != NULL && rc == 0 && (entry = readdir(list)) != NULL) {
        const char *name = entry->d_name;

        if (strncmp(name, prefix, strlen(prefix)) != 0 ||
            atoi(name + strlen(prefix)) == 0)
            continue;
        char *path = dnn_output_keep(r->files, name);
        ++*n;
        if (load)
            rc = load_file(r, path, err);
        else
            unlink(path); /* if this fails, it is skipped the next time */
        dnn_free(path);
    }
    if (list != NULL) closedir(list);
    dnn_free(dir);
    return rc;
}

/* On rank 0. */
static int load_all(struct infer_result *r, struct dnn_err *err)
{
    char *path = path_of(r, 0);
    int others = 0, rc = load_file(r, path, err);

    dnn_free(path);
    DNN_TRY(rc);
    DNN_TRY(each_other(r, true, &others, err));
    if (others == 0) return 0;
    DNN_TRY(save(r, err));
    return each_other(r, false, &others, err);
}

int dnn_infer_resume_open(struct infer_result *r, int64_t units, struct dnn_err *err)
{
    struct dnn_comm *comm = r->session->comm;
    int rc = 0;

    if (r->evaluation == NULL || r->files == NULL) return 0;
    struct infer_resume *s = r->resume = dnn_alloc(sizeof *s);
    s->rank = dnn_comm_rank(comm);
    s->units = units;
    s->has = dnn_alloc((size_t)units + 1);
    s->saved = dnn_clock_now();
    if (s->rank == 0) rc = load_all(r, err);
    DNN_TRY(dnn_comm_agree(comm, rc, err));
    for (int64_t at = 0; at < units; at += PIECE)
        DNN_TRY(dnn_comm_bcast(comm, "state of the evaluation", s->has + at,
                               (size_t)(units - at < PIECE ? units - at : PIECE), 0,
                               err));
    return 0;
}

/* ---- batches ---- */

int dnn_infer_resume_store(struct infer_result *r, int64_t done, const double *sums,
                           int64_t n, struct dnn_err *err)
{
    struct dnn_comm *comm = r->session->comm;
    struct head head = head_of(r, of_batches, n);
    struct dnn_buf mine = {0}, all = {0};
    void *states = NULL;
    size_t total;
    int64_t len = 0;

    dnn_buf_bytes(&mine, &len, sizeof len);
    dnn_evaluate_save(r->evaluation, &mine);
    len = (int64_t)(mine.len - sizeof len);
    memcpy(mine.text, &len, sizeof len);
    int rc = dnn_comm_collect(comm, "state of the evaluation", mine.text, mine.len,
                              &states, &total, err);
    if (rc == 0 && dnn_comm_rank(comm) == 0) {
        char *path = path_of(r, 0);

        head.count = done;
        dnn_buf_bytes(&all, &head, sizeof head);
        dnn_buf_bytes(&all, sums, (size_t)n * sizeof *sums);
        dnn_buf_bytes(&all, states, total);
        uint64_t sum = XXH3_64bits(all.text, all.len);
        dnn_buf_bytes(&all, &sum, sizeof sum);
        rc = dnn_file_write(path, all.text, all.len, err);
        dnn_free(path);
    }
    dnn_buf_free(&mine);
    dnn_buf_free(&all);
    dnn_free(states);
    return dnn_comm_agree(comm, rc, err);
}

/* On rank 0: the content of a file that is complete and of this run. */
static int take_batches(struct infer_result *r, const char *bytes, size_t len,
                        int64_t most, int64_t *done, double *sums, int64_t n,
                        struct dnn_err *err)
{
    struct head head, want = head_of(r, of_batches, n);
    size_t at = sizeof head + (size_t)n * sizeof *sums;
    uint64_t sum;
    int64_t state;

    if (len < at + sizeof sum) return 0;
    len -= sizeof sum;
    memcpy(&sum, bytes + len, sizeof sum);
    memcpy(&head, bytes, sizeof head);
    want.count = head.count;
    if (sum != XXH3_64bits(bytes, len) || memcmp(&head, &want, sizeof head) != 0 ||
        head.count > most)
        return 0;
    memcpy(sums, bytes + sizeof head, (size_t)n * sizeof *sums);
    for (; at < len; at += sizeof state + (size_t)state) {
        memcpy(&state, bytes + at, sizeof state);
        DNN_TRY(dnn_evaluate_load(r->evaluation, bytes + at + sizeof state,
                                  (size_t)state, err));
    }
    *done = head.count;
    return 0;
}

int dnn_infer_resume_fetch(struct infer_result *r, int64_t most, int64_t *done,
                           double *sums, int64_t n, struct dnn_err *err)
{
    struct dnn_comm *comm = r->session->comm;
    char *path = path_of(r, 0), *bytes;
    size_t len;
    int rc = 0;

    *done = 0;
    if (dnn_comm_rank(comm) == 0 &&
        dnn_file_read(path, SIZE_MAX / 4, &bytes, &len, NULL) == 0) {
        rc = take_batches(r, bytes, len, most, done, sums, n, err);
        if (rc < 0) dnn_prefix(err, "%s: ", path);
        dnn_free(bytes);
    }
    dnn_free(path);
    DNN_TRY(dnn_comm_agree(comm, rc, err));
    DNN_TRY(
        dnn_comm_bcast(comm, "state of the evaluation", done, sizeof *done, 0, err));
    return dnn_comm_bcast(comm, "state of the evaluation", sums,
                          (size_t)n * sizeof *sums, 0, err);
}

void dnn_infer_resume_free(struct infer_resume *s)
{
    if (s == NULL) return;
    dnn_free(s->has);
    dnn_free(s);
}
