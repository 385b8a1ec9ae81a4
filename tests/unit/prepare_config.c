/* prepare_config.c - error messages of configurations; the tables of keys; the manual.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/file.h"
#include "prepare/prepare_impl.h"
#include "prepare/cli_config.h"

#include <stdlib.h>

#define GIVEN "{\"from\": \"a\", \"to\": \"a.bp\", "

/* The message of a configuration, or "". */
static void gives(const char *text, const char *want)
{
    struct dnn_prepare *prepare = NULL;
    struct dnn_err err = {0};

    dnn_prepare_text("c", text, &prepare, &err);
    is_text(err.text, want, *want == '\0' ? text : want);
    dnn_prepare_free(prepare);
}

static void test_top(void)
{
    gives("{\"from\": \"a\", \"to\": \"a.bp\"}", "");
    gives(
        "{\"from\": {\"input_path\": \"a\", \"target_path\": \"b\"}, \"to\": \"a.bp\"}",
        "");
    gives("[]", "c:1: must be an object, not []");
    gives("{\"from\": \"a\"}", "c:1: the key \"to\" is missing");
    gives("{\"to\": \"a.bp\"}", "c:1: \"from\" or \"generate\" is missing");
    gives("{\"from\": \"a\", \"to\": \"a\"}",
          "c:1: to: must be a name that ends in .bp, not \"a\"");
    gives("{\"from\": \"a\", \"to\": \"d/.bp\"}",
          "c:1: to: must be a name that ends in .bp, not \"d/.bp\"");
    gives(GIVEN "\"sede\": 1}", "c:1: sede: unknown key; did you mean \"seed\"?");
    gives(GIVEN "\"chunk\": \"lots\"}",
          "c:1: chunk: must be a size such as \"4MiB\", not \"lots\"");
    gives(GIVEN "\"piece\": 0}", "c:1: piece: must be a size such as \"4MiB\", not 0");
    gives(GIVEN "\"generate\": {}}",
          "c:1: generate: give either \"from\" or \"generate\", not both");
    gives("{\"generate\": {}, \"target\": \"t\", \"to\": \"a.bp\"}",
          "c:1: target: needs a path under \"from\"; an object there has "
          "\"target_path\"");
    gives("{\"from\": {\"input_pth\": \"a\"}, \"to\": \"a.bp\"}",
          "c:1: from.input_pth: unknown key; did you mean \"input_path\"?");
    gives(GIVEN "\"compress\": \"nozip\"}",
          "c:1: compress: the installed ADIOS2 has no operator \"nozip\"");
}

static void test_sources(void)
{
    gives(
        "{\"sources\": [{\"split\": \"train\", \"from\": \"a\"}, {\"split\": \"test\", "
        "\"generate\": {}}], \"to\": \"a.bp\"}",
        "");
    gives("{\"sources\": [], \"to\": \"a.bp\"}",
          "c:1: sources: must be a list of objects, not []");
    gives("{\"sources\": [{\"split\": \"a b\", \"from\": \"a\"}], \"to\": \"a.bp\"}",
          "c:1: sources[0]: split must be a name of 1 to 31 letters, digits, _ and -, "
          "not "
          "\"a b\"");
    gives("{\"sources\": [{\"split\": \"train\"}], \"to\": \"a.bp\"}",
          "c:1: sources[0]: \"from\" or \"generate\" is missing");
    gives(GIVEN "\"sources\": [{\"from\": \"b\"}]}",
          "c:1: sources: give either \"sources\", or \"from\" or \"generate\"");
}

#define STEP(s) GIVEN "\"steps\": [" s "]}"

static void test_split(void)
{
    gives(STEP("{\"split\": {\"train\": 0.8, \"validation\": 0.1, \"test\": 0.1}}"),
          "");
    gives(STEP("{\"split\": {\"train\": \"a.txt\", \"test\": 1}}"), "");
    gives(STEP("{\"split\": {\"train\": 0.8, \"test\": 0.1}}"),
          "c:1: steps[0].split: the fractions add up to 0.9, not 1; set \"partial\": "
          "true to leave the remaining samples out");
    gives(STEP("{\"split\": {\"train\": 0.8, \"test\": 0.3}}"),
          "c:1: steps[0].split: the fractions add up to 1.1, more than 1");
    gives(STEP("{\"split\": {\"train\": 1.5}}"),
          "c:1: steps[0].split.train: must be a fraction between 0 and 1, or a file "
          "name, not 1.5");
    gives(STEP("{\"split\": {\"train\": true}}"),
          "c:1: steps[0].split.train: must be a fraction between 0 and 1, or a file "
          "name, not true");
    gives(STEP("{\"split\": {}}"),
          "c:1: steps[0].split: needs fractions, lists or folds");
    gives(STEP("{\"split\": {\"folds\": 1}}"),
          "c:1: steps[0].split: needs at least 2 folds");
    gives(STEP("{\"split\": 0.8}"), "c:1: steps[0].split: must be an object such as "
                                    "{\"train\": 0.9, \"test\": 0.1}, not 0.8");
    gives(STEP("{\"split\": {\"trian\": 1}}"),
          "c:1: steps[0].split.trian: unknown key; did you mean \"train\"?");
    gives(STEP("{\"split\": {\"train\": 1}}, {\"split\": {\"train\": 1}}"),
          "c:1: steps[1]: the step \"split\" may appear only once");
}

static void test_steps(void)
{
    gives(STEP("{\"resize\": [64, 64]}, {\"crop\": [32, 32]}, {\"pad\": [40, 40]}, "
               "{\"normalise\": \"volume\"}, {\"type\": \"i16\"}, {\"one_hot\": true}, "
               "{\"slice\": {\"sizes\": [8, 8]}}, {\"balance\": true}, {\"remap\": [1, "
               "0]}, "
               "{\"resample\": [1, 1]}, {\"clip\": [0, 1]}"),
          "");
    gives(GIVEN "\"steps\": {}}", "c:1: steps: must be a list of steps, not {}");
    gives(
        STEP("\"resize\""),
        "c:1: steps[0]: must be an object with one key, the name of the step, such as "
        "{\"resize\": [64, 64]}, not \"resize\"");
    gives(
        STEP("{}"),
        "c:1: steps[0]: must be an object with one key, the name of the step, such as "
        "{\"resize\": [64, 64]}, not an object with another number of keys");
    gives(STEP("{\"rezise\": [1]}"),
          "c:1: steps[0].rezise: unknown step \"rezise\"; did you mean \"resize\"?");
    gives(STEP("{\"resize\": [0, 1]}"),
          "c:1: steps[0].resize[0]: must be between 1 and 1048576, not 0");
    gives(STEP("{\"resize\": {}}"),
          "c:1: steps[0].resize: size is missing: one number per spatial axis");
    gives(STEP("{\"crop\": {\"size\": [1, 2], \"start\": [1]}}"),
          "c:1: steps[0].crop: start and size must have the same length");
    gives(STEP("{\"pad\": {\"size\": [1], \"before\": [1]}}"),
          "c:1: steps[0].pad: give either size, or before and after");
    gives(STEP("{\"normalise\": \"chanel\"}"),
          "c:1: steps[0].normalise: must be one of channel, dataset, volume, minmax, "
          "percentiles, given, not \"chanel\"; did you mean \"channel\"?");
    gives(
        STEP("{\"normalise\": \"given\"}"),
        "c:1: steps[0].normalise: needs mean and std, with the same number of values");
    gives(STEP("{\"normalise\": {\"mean\": 1, \"std\": 0}}"),
          "c:1: steps[0].normalise: std must be above 0");
    gives(
        STEP("{\"normalise\": {\"mode\": \"percentiles\", \"low\": 99, \"high\": 1}}"),
        "c:1: steps[0].normalise: low must be below high");
    gives(STEP("{\"type\": \"u7\"}"),
          "c:1: steps[0].type: dtype must be one of f32, f64, f16, bf16, i8, u8, i16, "
          "u16, i32, u32, i64, u64, bool, not \"u7\"; did you mean \"u8\"?");
    gives(STEP("{\"type\": {\"as\": \"u8\", \"range\": [2, 1]}}"),
          "c:1: steps[0].type: range must be two numbers, the lower one first");
    gives(STEP("{\"clip\": [2, 1]}"),
          "c:1: steps[0].clip: must be two numbers, the lower one first");
    gives(STEP("{\"remap\": {\"table\": [1], \"map\": {\"1\": 2}}}"),
          "c:1: steps[0].remap: give either a table or a map");
    gives(STEP("{\"remap\": {\"map\": {\"1\": -2}}}"),
          "c:1: steps[0].remap.map.1: must be between 0 and 4095, not -2");
    gives(STEP("{\"one_hot\": false}"),
          "c:1: steps[0].one_hot: must be true or a number of classes from 1 to 4096");
    gives(STEP("{\"balance\": false}"),
          "c:1: steps[0].balance: must be true; remove the step instead");
    gives(STEP("{\"slice\": {\"size\": [8]}}"),
          "c:1: steps[0].slice.size: unknown key; did you mean \"sizes\"?");
}

/* ---- tables ---- */

static void test_tables(void)
{
    struct dnn_err err = {0};

    ok(dnn_field_check(dnn_prepare_fields, &err) == 0, "the keys are valid %s",
       err.text);
    ok(dnn_field_check(dnn_prepare_source_fields, &err) == 0, "those of sources %s",
       err.text);
    for (int i = 0; dnn_prepare_steps[i] != NULL; i++) {
        if (dnn_prepare_steps[i]->fields != NULL)
            ok(dnn_field_check(dnn_prepare_steps[i]->fields, &err) == 0,
               "those of %s %s", dnn_prepare_steps[i]->name, err.text);
        ok(dnn_field_check(dnn_prepare_steps[i]->brief, &err) == 0,
           "%s's short form %s", dnn_prepare_steps[i]->name, err.text);
    }
}

/* The tables of docs/prepare.md are those that the program prints. */
static void test_docs(void)
{
    const char *srcdir = getenv("srcdir");
    char *path = dnn_format("%s/docs/prepare.md", srcdir == NULL ? "." : srcdir);
    char *text = NULL, *file = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    struct dnn_err err = {0};

    dnn_prepare_docs(f);
    fclose(f);
    if (dnn_file_read_text(path, 1 << 20, &file, &err) < 0)
        is_text(err.text, "", "docs/prepare.md can be read");
    else
        ok(strstr(file, text) != NULL,
           "docs/prepare.md has the keys as dnn-prepare --keys prints them");
    dnn_free(file);
    dnn_free(path);
    free(text);
}

/* ---- options ---- */

static void spells(struct dnn_cli_config words, const char *want)
{
    char *text = NULL;
    struct dnn_err err = {0};

    dnn_prepare_cli_json(&words, &text, &err);
    is_text(text == NULL ? err.text : text, want, want);
    dnn_free(text);
}

static void test_words(void)
{
    const char *set[] = {"samples=8", "name=a b", "size=1,2"}, *bad[] = {"samples"};

    spells((struct dnn_cli_config){.from = "a", .to = "a.bp"},
           "{\"from\": {\"input_path\": \"a\"}, \"to\": \"a.bp\", \"steps\": []}");
    spells(
        (struct dnn_cli_config){.from = "a\"b",
                                .target = "t",
                                .to = "a.bp",
                                .split = "0.8,list.txt,0.2",
                                .folds = "5",
                                .stratify = true,
                                .resize = "64x32",
                                .slice = "8,8:4x4",
                                .seed = "3",
                                .one_hot = true,
                                .type = "u8"},
        "{\"from\": {\"input_path\": \"a\\\"b\", \"target_path\": \"t\"}, \"to\": "
        "\"a.bp\", \"seed\": 3, \"steps\": [{\"split\": {\"stratify\": true, "
        "\"partial\": false, \"train\": 0.8, \"validation\": \"list.txt\", \"test\": "
        "0.2, \"folds\": 5}}, {\"resize\": [64, 32]}, {\"slice\": {\"sizes\": [8, 8], "
        "\"strides\": [4, 4]}}, {\"one_hot\": true}, {\"type\": \"u8\"}]}");
    spells(
        (struct dnn_cli_config){
            .generate = "blobs3d", .to = "a.bp", .set = {3, set}
    },
        "{\"generate\": {\"type\": \"blobs3d\", \"samples\": 8, \"name\": \"a b\", "
        "\"size\": [1, 2]}, \"to\": \"a.bp\", \"steps\": []}");
    spells((struct dnn_cli_config){.to = "a.bp"},
           "give a configuration file, --from=PATH or --generate=NAME");
    spells((struct dnn_cli_config){.from = "a"}, "--to=DATASET.bp is missing");
    spells((struct dnn_cli_config){.from = "a", .generate = "b", .to = "a.bp"},
           "give either --from or --generate, not both");
    spells(
        (struct dnn_cli_config){
            .generate = "g", .to = "a.bp", .set = {1, bad}
    },
        "--set: must be KEY=VALUE, not \"samples\"");
    spells((struct dnn_cli_config){.from = "a", .to = "a.bp", .resize = "64xx"},
           "--resize: must be numbers such as 64x64 or 0.5,0.5, not \"64xx\"");
    spells((struct dnn_cli_config){.from = "a", .to = "a.bp", .split = "1,0,0,0"},
           "--split: must be up to three fractions (train, validation, test), not "
           "\"1,0,0,0\"");
    spells((struct dnn_cli_config){.from = "a", .to = "a.bp", .stratify = true},
           "--stratify needs --split or --folds");
}

int main(void)
{
    test_top();
    test_sources();
    test_split();
    test_steps();
    test_tables();
    test_words();
    test_docs();
    return done();
}
