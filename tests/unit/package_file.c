/* package_file.c - model files: what is written is read again, described and exported;
 * files of other versions, of other programs, and with parts that do not belong
 * together are refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "tap.h"

#if DNN_HAVE_HDF5 && DNN_HAVE_ZIP
#include "package_made.h"

#include "infer/infer.h"

#include <unistd.h>

static char dir[] = "/tmp/package_file.XXXXXX";
static char *path; /* of the model file */

static bool same_bytes(const char *a, const char *b)
{
    char *x = NULL, *y = NULL;
    size_t n = 0, k = 0;
    bool same = dnn_file_read(a, 1 << 26, &x, &n, NULL) == 0 &&
                dnn_file_read(b, 1 << 26, &y, &k, NULL) == 0 && n == k &&
                memcmp(x, y, n) == 0;

    dnn_free(x);
    dnn_free(y);
    return same;
}

/* Opening fails with this message after the path. */
static void is_refused(int code, const char *want, const char *what)
{
    struct dnn_package *p = NULL;
    struct dnn_err err = {0};
    size_t len = strlen(path);

    is_int(dnn_package_open(path, &p, &err), code, what);
    is_text(strncmp(err.text, path, len) == 0 ? err.text + len : err.text, want,
            "and why");
    dnn_package_close(p);
}

/* ---- reading again ---- */

static void is_info(const struct dnn_package *p)
{
    const struct dnn_package_info *info = dnn_package_info(p);
    const struct dnn_package_input *in = info->inputs.objects;
    const struct dnn_package_target *out = info->targets.objects;

    is_text(info->program, PACKAGE_NAME " " PACKAGE_VERSION, "the program");
    is_int(info->version, 1, "the version");
    is_int(info->inputs.count, 1, "one input");
    ok(strcmp(in->name, "conv_input") == 0 && strcmp(in->column, "picture") == 0 &&
           strcmp(in->stored, "u8") == 0 && strcmp(in->kind, "image") == 0,
       "its name, column, type and kind");
    ok(in->shape.count == 3 && in->shape.ints[0] == 8 && in->shape.ints[2] == 1 &&
           in->scale.count == 1 && in->scale.reals[0] == 0.125 &&
           in->offset.reals[0] == -1,
       "its shape and scaling");
    ok(info->targets.count == 1 && strcmp(out->name, "out") == 0 &&
           out->column == NULL && out->classes == 3 && out->class_names.count == 3 &&
           strcmp(out->class_names.texts[2], "\"bird\"") == 0,
       "its target with the names of classes");
    is_text(info->preparation,
            "{\"steps\": [{\"type\": \"u8\"}, {\"normalise\": \"channel\"}]}",
            "the preparation");
    is_text(dnn_package_config(p), "{\"loss\": \"cross_entropy\"}",
            "the configuration of inference");
}

static void is_weights(const struct dnn_package *p)
{
    struct dnn_weights *w = dnn_package_weights(p);
    float bias[3] = {0};
    int n = 0;

    while (dnn_weights_at(w, n) != NULL)
        n++;
    is_int(n, 4, "four arrays of weights");
    ok(dnn_weights_get(w, 3, DNN_F32, bias, NULL) == 0 && bias[2] - bias[0] == 0.5F,
       "with their values");
}

static void round_trip(const struct made *m)
{
    struct dnn_err err = {0};
    struct dnn_package *p = NULL;
    char *again = dnn_format("%s/again.dnn", dir);

    is_int(dnn_package_write(path, &m->parts, &err), 0, "a model file is written");
    ok(dnn_package_is(path), "it is one");
    if (!ok(dnn_package_open(path, &p, &err) == 0, "and is opened %s", err.text))
        return;
    is_info(p);
    is_weights(p);
    is_text(dnn_package_text(p, "network.json"), m->parts.network, "the network");
    is_text(dnn_package_text(p, "config.json"), m->parts.keras, "that of Keras");
    is_text(dnn_package_text(p, "metadata.json"),
            "{\"keras_version\": \"3.0.0\", \"dnn_toolkit\": {\"inputs\": {}}}",
            "the metadata");
    ok(dnn_package_text(p, "x.json") == NULL, "no other text");
    dnn_package_close(p);
    sleep(2); /* time stamps of archives have a resolution of 2 s */
    dnn_package_write(again, &m->parts, &err);
    ok(same_bytes(path, again), "the same parts give the same bytes");
    unlink(again);
    dnn_free(again);
}

static void network_only(void)
{
    struct dnn_err err = {0};
    struct dnn_package *p = NULL;
    struct dnn_graph *g = NULL;

    ok(dnn_package_open_network(path, &p, &err) == 0 &&
           dnn_package_weights(p) == NULL &&
           dnn_package_graph(p, NULL, &g, &err) == 0 && g->params == 239,
       "the network alone %s", err.text);
    dnn_graph_free(g);
    dnn_package_close(p);
}

static void weights_only(void)
{
    static const char *const keras = "/tests/data/keras/k3_nested.keras";
    const char *top = getenv("srcdir");
    char *other = dnn_format("%s%s", top == NULL ? "." : top, keras);
    struct dnn_weights *w = NULL;
    struct dnn_err err = {0};

    ok(dnn_package_open_weights(path, &w, &err) == 0 && dnn_weights_at(w, 3) != NULL,
       "weights of a model file %s", err.text);
    dnn_weights_close(w);
    w = NULL;
    ok(!dnn_package_is(other) && dnn_package_open_weights(other, &w, &err) == 0 &&
           dnn_weights_at(w, 0) != NULL,
       "and of a file of Keras %s", err.text);
    dnn_weights_close(w);
    dnn_free(other);
}

/* ---- description and export ---- */

static char *described(bool json)
{
    struct dnn_err err = {0};
    struct dnn_package *p = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (dnn_package_open(path, &p, &err) < 0 ||
        dnn_package_describe(p, f, json, &err) < 0)
        printf("# %s\n", err.text);
    fclose(f);
    dnn_package_close(p);
    return text;
}

static void description(void)
{
    char *text = described(false), *json = described(true);
    struct dnn_json *file = NULL;
    struct dnn_err err = {0};
    char *want = dnn_format(
        "%s: model file, format version 1, written by " PACKAGE_NAME " " PACKAGE_VERSION
        "\n"
        "network: model, 4 layers, 239 parameters (239 trainable)\n"
        "input 'conv_input': 8x8x1, image, column 'picture', scaled from u8\n"
        "output 'out': label, 3 classes: cat, dog, \"bird\"\n"
        "preparation:\n"
        "  {\"type\": \"u8\"}\n"
        "  {\"normalise\": \"channel\"}\n"
        "training:\n"
        "  epochs: 2\n"
        "checksum: ",
        path);

    char *sum = strstr(text, "checksum: ");
    if (sum != NULL) sum[strlen("checksum: ")] = '\0';
    is_text(text, want, "a description");
    ok(dnn_json_text("description", json, strlen(json), &file, &err) == 0, "as JSON %s",
       err.text);
    struct dnn_jobj top = dnn_json_top(file), model = dnn_json_sub(&top, "model");
    struct dnn_jobj network = dnn_json_sub(&top, "network");
    struct dnn_jobj params = dnn_json_sub(&network, "parameters");
    struct dnn_jobj targets = dnn_json_sub(&model, "targets");
    int64_t n = 0;
    ok(dnn_json_int(&params, &n, &err) == 0 && n == 239 &&
           dnn_json_count(&targets) == 1,
       "with the network and its targets");
    dnn_json_free(file);
    free(text);
    free(json);
    dnn_free(want);
}

static int export(const char *to, struct dnn_err *err)
{
    struct dnn_package *p = NULL;

    DNN_TRY(dnn_package_open(path, &p, err));
    int rc = dnn_package_export(p, to, err);
    dnn_package_close(p);
    return rc;
}

static void exports(const struct made *m)
{
    char *keras = dnn_format("%s/a.keras", dir),
         *direct = dnn_format("%s/b.keras", dir);
    char *weights = dnn_format("%s/a.weights.h5", dir);
    char *json = dnn_format("%s/a.json", dir), *bytes = NULL;
    struct dnn_err err = {0};
    size_t len = 0;

    is_int(export(keras, &err), 0, "an export for Keras");
    is_int(dnn_package_write(direct, &m->parts, &err), 0, "an archive of Keras");
    ok(same_bytes(keras, direct), "is the same");
    ok(!dnn_package_is(direct), "and not a model file");
    is_int(export(weights, &err), 0, "an export of the weights");
    ok(dnn_file_read(weights, 1 << 26, &bytes, &len, &err) == 0 &&
           len == m->parts.weights_len && memcmp(bytes, m->parts.weights, len) == 0,
       "has the same bytes");
    dnn_free(bytes);
    bytes = NULL;
    is_int(export(json, &err), 0, "an export of the network");
    dnn_file_read_text(json, 1 << 26, &bytes, &err);
    is_text(bytes, m->parts.network, "has the same text");
    dnn_free(bytes);
    is_int(export("a.h4", &err), DNN_EUSAGE, "other endings are refused");
    is_text(err.text, "a.h4: the name must end in .keras, .weights.h5 or .json",
            "with those that are possible");
    unlink(keras);
    unlink(direct);
    unlink(weights);
    unlink(json);
    dnn_free(keras);
    dnn_free(direct);
    dnn_free(weights);
    dnn_free(json);
}

/* A network without a shape of its inputs, that Keras does not have. */
static void not_for_keras(const struct made *m)
{
    struct dnn_package_parts parts = m->parts;
    struct dnn_package *p = NULL;
    struct dnn_graph *g = NULL;
    struct dnn_err err = {0};
    char *want =
        dnn_format("%s/a.keras: cannot be written: Keras has no equivalent of some "
                   "layers of this network; export .weights.h5 or .json instead",
                   dir);
    char *keras = dnn_format("%s/a.keras", dir);

    parts.keras = NULL;
    parts.network = MADE_NETWORK("", "2");
    dnn_package_write(path, &parts, &err);
    ok(dnn_package_open(path, &p, &err) == 0 &&
           dnn_package_text(p, "config.json") == NULL &&
           dnn_package_graph(p, NULL, &g, &err) == 0 &&
           g->node[g->input[0]].out.dim[1] == 8,
       "a network without shapes has those of dnn.json %s", err.text);
    is_int(dnn_package_export(p, keras, &err), DNN_ECONFIG,
           "it is not exported to Keras");
    is_text(err.text, want, "and why");
    dnn_graph_free(g);
    dnn_package_close(p);
    dnn_free(want);
    dnn_free(keras);
}

/* Control characters are not printed. */
static void names(const struct made *m)
{
    struct dnn_package_parts parts = m->parts;
    struct dnn_package_input in = made_input;

    in.column = "a\033[2Jb\nchecksum: 0";
    parts.info.inputs.objects = &in;
    parts.info.training = "{\"a\\u001b\": \"\xc2\x9b\"}";
    dnn_package_write(path, &parts, NULL);
    char *text = described(false);
    ok(strstr(text, "8x8x1, image, column 'a?[2Jb?checksum: 0', scaled") != NULL &&
           strstr(text, "  a?: \"??\"\n") != NULL,
       "names with control characters");
    free(text);
}

/* ---- refusals ---- */

/* Write the file again with another text of a member (NULL: without it), and with a
 * correct checksum. */
static void rewrite(const char *name, const char *text)
{
    static const char *const names[] = {"dnn.json", "network.json", "metadata.json",
                                        "config.json", "model.weights.h5"};
    struct dnn_archive_member member[5];
    char *kept[5], *bytes = NULL;
    size_t len = 0;
    int n = 0;

    for (int i = 0; i < 5; i++) {
        dnn_archive_read(path, names[i], 1 << 26, &kept[i], &len, NULL);
        if (strcmp(names[i], name) == 0 && text == NULL) continue;
        member[n++] = strcmp(names[i], name) == 0
                          ? (struct dnn_archive_member){name, text, strlen(text)}
                          : (struct dnn_archive_member){names[i], kept[i], len};
    }
    dnn_archive_make(path, n, member, package_seal_blank(), &bytes, &len, NULL);
    package_seal(bytes, len);
    dnn_file_write(path, bytes, len, NULL);
    free(bytes);
    for (int i = 0; i < 5; i++)
        free(kept[i]);
}

static void misfits(const struct made *m)
{
    struct dnn_package_parts parts = m->parts;
    struct dnn_err err = {0};

    parts.network = MADE_NETWORK(MADE_SHAPE, "5");
    dnn_package_write(path, &parts, &err);
    struct dnn_package *p = NULL;
    ok(dnn_package_open(path, &p, &err) == DNN_EDATA &&
           strstr(err.text, "model.weights.h5 in it does not fit the network") !=
               NULL &&
           strstr(err.text, "layer 'conv'") != NULL &&
           strstr(err.text, "is 3x3x1x2 in the file, 3x3x1x5 here") != NULL,
       "weights of another network: %s", err.text + strlen(path));
    dnn_package_close(p);
}

static void versions(const struct made *m)
{
    dnn_package_write(path, &m->parts, NULL);
    rewrite("dnn.json",
            "{\"format\": \"dnn-toolkit model\", \"version\": 7, \"new\": 1}");
    is_refused(DNN_EDATA,
               " has format version 7; this program reads up to 1: upgrade dnn-toolkit",
               "a newer version");
    rewrite("dnn.json",
            "{\"format\": \"dnn-toolkit model\", \"version\": 1, \"new\": 1}");
    is_refused(DNN_ECONFIG, "/dnn.json:1: new: unknown key", "unknown keys");
    rewrite("dnn.json", "{\"format\": \"other\", \"version\": 1}");
    is_refused(DNN_ECONFIG, "/dnn.json:1: format: must be \"dnn-toolkit model\"",
               "another format");
    rewrite("dnn.json", "{\"format\":");
    struct dnn_package *p = NULL;
    struct dnn_err err = {0};
    is_int(dnn_package_open(path, &p, &err), DNN_ECONFIG, "invalid JSON");
}

static void missing_members(const struct made *m)
{
    static const char *const name[] = {"dnn.json", "network.json", "model.weights.h5"};

    for (int i = 0; i < 3; i++) {
        char *want = dnn_format(": not a complete %smodel file: %s is missing",
                                i == 2 ? ".keras or " : "", name[i]);

        dnn_package_write(path, &m->parts, NULL);
        rewrite(name[i], NULL);
        is_refused(DNN_EDATA, want, name[i]);
        dnn_free(want);
    }
}

/* The names of members are not in their checksums. */
static void two_of_a_name(void)
{
    const struct dnn_archive_member member[] = {
        {"dnn.json",     "{}", 2},
        {"network.json", "{}", 2},
        {"NETWORK.json", "[]", 2}
    };
    char *bytes = NULL, *at;
    size_t len = 0;

    dnn_archive_make(path, 3, member, package_seal_blank(), &bytes, &len, NULL);
    while ((at = memmem(bytes, len, "NETWORK", 7)) != NULL)
        memcpy(at, "network", 7);
    package_seal(bytes, len);
    dnn_file_write(path, bytes, len, NULL);
    free(bytes);
    is_refused(DNN_EDATA, ": has two members network.json", "two networks");
}

static void strangers(const struct made *m)
{
    char *keras = dnn_format("%s/b.keras", dir), *bytes = NULL;
    size_t len = 0;

    unlink(path);
    is_refused(DNN_EIO, ": cannot be read: No such file or directory", "no file");
    dnn_file_write(path, "", 0, NULL);
    is_refused(DNN_EDATA, ": the file is empty", "an empty file");
    dnn_file_write(path, "{\"layers\": []}", 14, NULL);
    is_refused(DNN_EDATA, ": not a model file of dnn-toolkit: it is not a zip archive",
               "a JSON file");
    dnn_package_write(keras, &m->parts, NULL);
    dnn_file_read(keras, 1 << 26, &bytes, &len, NULL);
    dnn_file_write(path, bytes, len, NULL);
    dnn_free(bytes);
    is_refused(DNN_EDATA,
               ": not a model file of dnn-toolkit, but another zip archive, such as a "
               ".keras file of Keras: it does not begin with dnn.json and does not end "
               "with the comment of model files; only weights can be read from .keras "
               "files, which must have this ending",
               "a .keras file with the ending .dnn");
    unlink(keras);
    dnn_free(keras);
}

/* A model file of others cannot choose where inference writes. */
static void other_keys(const struct made *m)
{
    struct dnn_package_parts parts = m->parts;
    const char *const input[] = {path};
    char *out = dnn_format("%s/out", dir);
    const struct dnn_infer_model with = {
        .model = path, .ninputs = 1, .input = input, .output = out};
    struct dnn_package *p = NULL;
    struct dnn_config config = {0};
    struct dnn_err err = {0};

    parts.info.inference =
        "{\"loss\": \"mse\", \"dir\": \"/nowhere\", \"inference\": {\"bins\": 7}, "
        "\"data\": {\"hdf5_outfile\": \"/nowhere/x.h5\", \"transforms\": []}}";
    dnn_package_write(path, &parts, &err);
    if (ok(dnn_infer_model_config(&with, &p, &config, &err) == 0,
           "a configuration for inference %s", err.text)) {
        is_int(config.infer->bins, 7, "has keys that training writes");
        ok(config.data->hdf5_outfile == NULL, "and no others");
        dnn_config_free(&config);
        dnn_package_close(p);
    }
    rmdir(out);
    dnn_free(out);
    unlink(path);
}

int main(void)
{
    struct made m;
    struct dnn_err err = {0};

    if (!ok(mkdtemp(dir) != NULL, "a directory to write to")) return done();
    path = dnn_format("%s/model.dnn", dir);
    if (!ok(made_open(&m, MADE_NETWORK(MADE_SHAPE, "2"), &err) == 0, "parts %s",
            err.text))
        return done();
    round_trip(&m);
    network_only();
    weights_only();
    description();
    exports(&m);
    not_for_keras(&m);
    names(&m);
    misfits(&m);
    versions(&m);
    missing_members(&m);
    two_of_a_name();
    strangers(&m);
    other_keys(&m);
    made_close(&m);
    unlink(path);
    rmdir(dir);
    dnn_free(path);
    return done();
}
#else
int main(void)
{
    skip("model files", "built without HDF5 or libzip");
    return done();
}
#endif
