/* prepare_describe.c - the description of a dataset, and its verification.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/file.h"
#include "prepare/describe_impl.h"
#include "prepare/prepare.h"
#include "prepare_made.h"

#include <unistd.h>

/* ---- describing ---- */

static char *described(const char *path)
{
    struct dnn_err err = {0};
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    if (dnn_prepare_describe(path, f, &err) < 0) fprintf(f, "%s", err.text);
    fclose(f);
    return text;
}

/* Two texts that differ are printed from the first different line. */
static void is_lines(const char *got, const char *want, const char *what)
{
    size_t same = 0, line = 0;

    while (got[same] != '\0' && got[same] == want[same]) {
        if (got[same] == '\n') line = same + 1;
        same++;
    }
    is_text(got + line, want + line, what);
}

#define ROW "    |##################################################"
#define END "##############|\n"
#define BARS "##############################"

static void whole(void)
{
    char *text = described("a.bp"), *at = strstr(text, "\ntrain:");

    ok(strncmp(text, "a.bp\n  hash          ", 21) == 0, "path and hash come first");
    ok(strstr(text, "\n  splits        train 10, test 3\n") != NULL, "the splits");
    is_lines(
        at == NULL ? text : at,
        "\ntrain: 10 samples in chunks of 4\n  column  role    kind    stored  shape   "
        "range             mean        std\n  input   input   image   u8      8x8x1   "
        "-1 to 125.5      62.25     36.947\n  target  target  mask    u8      8x8x1   "
        "3 classes            -          -\n  animal  target  label   i32     scalar  "
        "2 classes            -          -\n  size    extra   values  f32     3       "
        "-2 to 9              -          -\n\n  input, value = stored * 0.5 - 1, "
        "spacing 2 x 2\n" ROW END ROW END ROW END ROW END
        "     -1                                                         125.5\n"
        "     bar height: square root of the count; 90 % of all values lie in 5 to "
        "119.5\n"
        "\n  target\n"
        "       0  air    240   37.5 %  " BARS "\n"
        "       1  grey   240   37.5 %  " BARS "\n"
        "       2  white  160   25.0 %  ####################\n"
        "\n  animal\n"
        "       0  cat  6   60.0 %  " BARS
        "\n       1  dog  4   40.0 %  ####################\n\ntest: 3 samples in "
        "chunks of 4\n  column  role    kind    stored  shape   range           mean   "
        "     std\n  input   input   image   u8      8x8x1   -                  -      "
        "    -\n  target  target  mask    u8      8x8x1   3 classes          -         "
        " -\n  animal  target  label   i32     scalar  2 classes          -          "
        "-\n  size    extra   values  f32     3       -                  -          "
        "-\n\n  input, value = stored * 0.5 - 1, spacing 2 x 2\n\nhistory\n  command   "
        "    dnn-prepare run a.json\n  seed          7\n  steps         resize, crop\n "
        " files         1 entries\n",
        "tables, bars and the record");
    free(text);
    text = described("none.bp");
    ok(strstr(text, "none.bp: ") == text, "no dataset: %s", text);
    free(text);
}

/* A histogram by itself: heights are roots, and blocks are eighths. */
static void histograms(void)
{
    struct dnn_stats *s = dnn_alloc(sizeof(*s));
    char *text = NULL;
    size_t len;

    s->nchannels = 1;
    s->count = s->good[0] = 100 + 25;
    s->low = 0;
    s->high = DNN_STATS_BINS;
    s->min[0] = 0;
    s->max[0] = 63;
    s->bin[0] = 100;
    s->bin[63] = 25;
    setenv("LC_ALL", "C.UTF-8", 1);
    FILE *f = open_memstream(&text, &len);
    dnn_describe_histogram(s, f);
    fclose(f);
    ok(strncmp(text, "    |\u2588   ", 11) == 0, "the top row has the first column");
    int full = 0;
    for (char *at = text; (at = strstr(at, "\u2588")) != NULL; at++)
        full++;
    is_int(full, 4 + 2, "a quarter as many, half as high");
    free(text);
    setenv("LC_ALL", "C", 1);
    f = open_memstream(&text, &len);
    s->nchannels = 2;
    s->good[1] = 4;
    s->m2[1] = 36;
    s->mean[1] = 0.5;
    s->max[1] = 7;
    dnn_describe_channels(s, f);
    fclose(f);
    is_text(text,
            "    channel 0     0 to 63, mean 0, std 0\n"
            "    channel 1     0 to 7, mean 0.5, std 3\n",
            "channels");
    free(text);
    f = open_memstream(&text, &len);
    s->bin[63] = 0;
    dnn_describe_histogram(s, f);
    fclose(f);
    is_text(text, "", "no histogram of a single number");
    free(text);
    dnn_free(s);
}

/* ---- verifying ---- */

static const char *verified(const char *path)
{
    static char out[2048];
    struct dnn_err err = {0};
    FILE *f = fmemopen(out, sizeof(out), "w");

    out[0] = '\0';
    int rc = dnn_prepare_verify(path, NULL, f, &err);
    fclose(f);
    if (rc < 0) snprintf(out + strlen(out), sizeof(out) - strlen(out), "%s", err.text);
    return out;
}

static void verify(void)
{
    is_text(verified("a.bp"),
            "train: 10 samples, all checksums match\ntest: 3 samples, all checksums "
            "match\n",
            "all checksums match");
    if (!ok(made_change("a.bp"), "a byte of the sixth sample is changed")) return;
    is_text(verified("a.bp"),
            "a.bp: train: sample 5 (a/5.png): checksum mismatch in input; the file is "
            "damaged",
            "the message has split, number, name and column");
}

int main(void)
{
    char dir[] = "/tmp/dnn-describe-XXXXXX";
    struct dnn_err err = {0};

    if (mkdtemp(dir) == NULL || chdir(dir) != 0) return 1;
    setenv("LC_ALL", "C", 1);
    if (!ok(made_dataset("a.bp", &err) == 0, "a dataset")) printf("# %s\n", err.text);
    whole();
    histograms();
    verify();
    if (chdir("/") == 0) dnn_file_remove_tree(dir, NULL);
    return done();
}
