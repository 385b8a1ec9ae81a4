/* graph_fuzz.c - damaged Keras files: read or refused with a message; networks that are
 * read can be lowered; no crash, limited memory and time.
 *
 * Half of the changes keep valid JSON (another value, another name), because the parser
 * refuses the others.  The same changes in every run; give a number for more.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/text.h"
#include "graph/graph.h"

#include <ctype.h>
#include <stdlib.h>
#include <sys/resource.h>

static uint64_t draw(uint32_t step, uint32_t sample, uint64_t index, uint64_t n)
{
    struct dnn_rng rng = dnn_rng_make(2718, 28);

    return dnn_rng_below(&rng, (struct dnn_rng_at){step, sample, index}, n);
}

/* The end of the value that begins at text[at]: a word, a number or a text. */
static size_t token_end(const char *text, size_t len, size_t at)
{
    size_t end = at + 1;

    if (text[at] == '"') {
        while (end < len && text[end] != '"')
            end++;
        if (end < len) end++;
    } else
        while (end < len && (isalnum((unsigned char)text[end]) || text[end] == '.'))
            end++;
    return end;
}

/* Another value for one token. */
static void another(struct dnn_buf *out, const char *text, size_t len, uint32_t step,
                    uint32_t sample, uint64_t part)
{
    static const char *const values[] = {
        "0",        "-1",      "1",         "2",      "3",         "7",
        "65536",    "1e9",     "1e18",      "1.5",    "null",      "true",
        "false",    "[]",      "{}",        "[2, 3]", "[[1, 2]]",  "\"same\"",
        "\"ReLU\"", "\"Add\"", "\"Model\"", "\"\"",   "[null, 4]", "\"Conv2D\""};
    size_t at = draw(step, sample, part, len), tries = 0;

    while (tries++ < len && text[at] != '"' && !isdigit((unsigned char)text[at]))
        at = (at + 1) % len;
    size_t end = token_end(text, len, at);
    dnn_buf_bytes(out, text, at);
    if (draw(step, sample, part + 1, 3) == 0) { /* another token of the file */
        size_t from = draw(step, sample, part + 2, len), stop;

        while (text[from] != '"' && !isdigit((unsigned char)text[from]))
            from = (from + 1) % len;
        stop = token_end(text, len, from);
        dnn_buf_bytes(out, text + from, stop - from);
    } else
        dnn_buf_add(
            out, "%s",
            values[draw(step, sample, part + 3, sizeof values / sizeof values[0])]);
    dnn_buf_bytes(out, text + end, len - end);
}

/* A part removed or repeated, or a byte changed. */
static void break_it(struct dnn_buf *out, const char *text, size_t len, uint32_t step,
                     uint32_t sample, uint64_t part)
{
    size_t at = draw(step, sample, part, len);
    size_t n = draw(step, sample, part + 1, len - at < 200 ? len - at : 200);

    dnn_buf_bytes(out, text, at);
    switch (draw(step, sample, part + 2, 3)) {
    case 0:
        dnn_buf_bytes(out, text + at + n, len - at - n);
        break;
    case 1:
        dnn_buf_bytes(out, text + at, n);
        dnn_buf_bytes(out, text + at, len - at);
        break;
    default:
        dnn_buf_add(out, "%c", (int)(32 + draw(step, sample, part + 3, 95)));
        dnn_buf_bytes(out, text + at + 1, len - at - 1);
    }
}

/* 1: read, 0: refused with a message, -1: something is wrong. */
static int try(const char *text, size_t len)
{
    struct dnn_graph *graph = NULL;
    struct dnn_json *file = NULL;
    struct dnn_err err = {0};
    int rc = dnn_json_text("net", text, len, &file, &err);

    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        rc = dnn_graph_read_json(&top, NULL, &graph, &err);
    }
    dnn_json_free(file);
    if (rc < 0) return err.text[0] != '\0' && err.code == rc ? 0 : -1;
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, true);
    int *output = dnn_alloc(((size_t)graph->noutputs + 1) * sizeof *output);
    rc = dnn_graph_lower(graph, 2, prog, output, &err);
    dnn_free(output);
    dnn_prog_free(prog);
    dnn_graph_free(graph);
    return rc == 0 ? 1 : err.text[0] != '\0' ? 0 : -1;
}

static void fuzz(const char *name, uint32_t step, int rounds)
{
    const char *srcdir = getenv("srcdir");
    char *path =
        dnn_format("%s/tests/data/keras/%s", srcdir == NULL ? "." : srcdir, name);
    int count[2] = {0, 0}, wrong = 0;
    struct dnn_err err = {0};
    char *text = NULL;
    size_t len = 0;

    if (dnn_file_read(path, DNN_JSON_LIMIT, &text, &len, &err) < 0)
        ok(false, "%s", err.text);
    for (int i = 0; text != NULL && i < rounds; i++) {
        struct dnn_buf now = {0};
        uint64_t times = 1 + draw(step, (uint32_t)i, 0, 3);

        dnn_buf_bytes(&now, text, len);
        for (uint64_t k = 0; k < times && now.len > 1; k++) {
            struct dnn_buf next = {0};

            if (draw(step, (uint32_t)i, 10 * k + 1, 4) > 0)
                another(&next, now.text, now.len, step, (uint32_t)i, 10 * k + 2);
            else
                break_it(&next, now.text, now.len, step, (uint32_t)i, 10 * k + 2);
            dnn_buf_free(&now);
            now = next;
        }
        int rc = try(now.text == NULL ? "" : now.text, now.len);
        if (rc < 0)
            wrong++;
        else
            count[rc]++;
        dnn_buf_free(&now);
    }
    is_int(wrong, 0, name);
    ok(count[0] > 0 && count[1] > 0, "%d were refused, %d were read", count[0],
       count[1]);
    dnn_free(text);
    dnn_free(path);
}

int main(int argc, char **argv)
{
    static const char *const files[] = {
        "keras1_model.json",      "keras1_sequential.json", "keras2_functional.json",
        "keras2_sequential.json", "keras3_functional.json", "keras3_sequential.json"};
    int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    struct rusage used;

    for (uint32_t i = 0; i < sizeof files / sizeof files[0]; i++)
        fuzz(files[i], i, rounds);
    getrusage(RUSAGE_SELF, &used);
    ok(used.ru_maxrss < 1 << 20, "less than 1 GiB: %ld KiB", used.ru_maxrss);
    ok(argc > 1 || used.ru_utime.tv_sec < 60, "in less than a minute of CPU time");
    return done();
}
