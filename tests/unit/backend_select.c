/* backend_select.c - which kernel the cpu backend selects, and its cache file.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/select_impl.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "tap.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct dnn_backend dnn_backend_cpu;

static char dir[] = "/tmp/dnn-choose-XXXXXX";
static char *path;

/* A 1x1 convolution: several kernels support it. */
struct sample {
    struct dnn_op op;
    struct dnn_tensor x, w, y;
    const struct dnn_tensor *in[2], *out[1];
    int64_t pitch[2];
    struct dnn_step step;
};

static void sample_make(struct sample *s, int64_t size, int64_t c, int64_t m)
{
    static const int none[2] = {DNN_NONE, DNN_NONE};

    *s = (struct sample){
        .op = {.kind = DNN_OP_CONV, .nin = 2, .nout = 1, .in = none}
    };
    s->op.attr.window = (struct dnn_op_window){
        .nspatial = 2,
        .kernel = {1, 1},
        .stride = {1, 1},
        .dilation = {1, 1},
        .groups = 1
    };
    s->x.shape = (struct dnn_shape){
        4, {1, size, size, c}
    };
    s->w.shape = (struct dnn_shape){
        4, {1, 1, c, m}
    };
    s->y.shape = (struct dnn_shape){
        4, {1, size, size, m}
    };
    s->in[0] = &s->x;
    s->in[1] = &s->w;
    s->out[0] = &s->y;
    s->step = (struct dnn_step){.op = &s->op, .in = s->in, .out = s->out};
}

static struct dnn_dev *open_cpu(enum dnn_kernel_selection kernels, const char *cache)
{
    struct dnn_device device = {.threads = 2, .kernels = kernels, .cache = cache};
    struct dnn_err err = {0};
    struct dnn_dev *dev = NULL;

    if (dnn_backend_cpu.open(&device, &dev, &err) < 0) ok(false, "%s", err.text);
    return dev;
}

static const char *chosen(struct dnn_dev *dev, const struct sample *s)
{
    const struct cpu_algo *algo = NULL;
    struct dnn_err err = {0};

    if (dnn_cpu_select(dev, &s->step, &algo, &err) < 0) ok(false, "%s", err.text);
    return algo->name;
}

/* Open, choose, close. */
static const char *chosen_alone(const struct sample *s)
{
    struct dnn_dev *dev = open_cpu(DNN_KERNELS_AUTOTUNE, path);
    const char *algo = chosen(dev, s);

    dnn_backend_cpu.close(dev);
    return algo;
}

static char *content(void)
{
    char *text = NULL;

    if (dnn_file_read_text(path, 1 << 20, &text, NULL) < 0) return dnn_strdup("");
    return text;
}

static void write_file(const char *text)
{
    struct dnn_err err;

    if (dnn_file_write(path, text, strlen(text), &err) < 0) ok(false, "%s", err.text);
}

static void test_rule(void)
{
    struct sample s;
    struct dnn_dev *dev = open_cpu(DNN_KERNELS_HEURISTIC, path);

    sample_make(&s, 40, 64, 64);
    const struct cpu_algo *const *algos = dnn_cpu_algos(DNN_OP_CONV, DNN_FWD);
    int first = 0;
    while (!dnn_cpu_can(algos[first], &s.step))
        first++;
    is_text(chosen(dev, &s), algos[first]->name,
            "heuristic: the first kernel that supports it");
    is_int((long long)dev->tuned->count, 0, "nothing is timed");
    dnn_backend_cpu.close(dev);
    ok(access(path, F_OK) != 0, "and no file is written");

    dev = open_cpu(DNN_KERNELS_AUTOTUNE, path);
    sample_make(&s, 2, 16, 16);
    chosen(dev, &s);
    is_int((long long)dev->tuned->count, 0, "small ops are not timed");
    dnn_backend_cpu.close(dev);
}

static void test_can(void)
{
    struct sample s;
    struct dnn_dev *dev = open_cpu(DNN_KERNELS_HEURISTIC, NULL);

    sample_make(&s, 8, 16, 16);
    s.x.dtype = s.w.dtype = s.y.dtype = DNN_F64;
    is_text(chosen(dev, &s), "plain loops", "f64 uses the loops");

    sample_make(&s, 8, 16, 16);
    s.pitch[0] = 24;
    s.step.in_pitch = s.pitch;
    is_text(chosen(dev, &s), "tiles", "rows with a pitch: a kernel that supports it");
    s.op.attr.window.groups = 16;
    s.w.shape = (struct dnn_shape){
        4, {1, 1, 16, 1}
    };
    is_text(chosen(dev, &s), "plain loops", "or the loops");
    dnn_backend_cpu.close(dev);
}

/* Algorithms by name. */
static void test_asked(void)
{
    static const struct {
        const char *conv, *name;
    } choices[] = {
        {"winograd", "wino"  },
        {"onednn",   "oneDNN"},
        {"direct",   "oneDNN"},
        {"i2c",      "oneDNN"},
    };
    struct dnn_err err = {0};
    struct dnn_dev *dev = NULL;
    struct sample s;

    sample_make(&s, 40, 64, 64);
    for (int i = 0; i < 2; i++)
        s.op.attr.window.kernel[i] = 3, s.op.attr.window.before[i] = 1,
        s.op.attr.window.after[i] = 1;
    s.w.shape = (struct dnn_shape){
        4, {3, 3, 64, 64}
    };
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        struct dnn_device device = {
            .threads = 2, .kernels = DNN_KERNELS_HEURISTIC, .conv = choices[i].conv};
        struct dnn_need need = {0};

        is_int(dnn_backend_cpu.open(&device, &dev, &err), 0, choices[i].conv);
        const char *name = chosen(dev, &s);
        ok(strncmp(name, choices[i].name, strlen(choices[i].name)) == 0, "%s: %s",
           choices[i].conv, name);
        is_int(dnn_backend_cpu.need(dev, &s.step, &need, &err), 0, "its memory");
        if (strcmp(choices[i].conv, "i2c") == 0)
            ok(need.work > 9u * 64 * 40 * 4, "includes im2col patches");
        dnn_backend_cpu.close(dev);
    }
    sample_make(&s, 40, 64, 64);
    struct dnn_device device = {.threads = 2, .conv = "winograd"};
    is_int(dnn_backend_cpu.open(&device, &dev, &err), 0, "1x1");
    ok(strncmp(chosen(dev, &s), "wino", 4) != 0, "uses another algorithm");
    dnn_backend_cpu.close(dev);
    device.conv = "fft";
    is_int(dnn_backend_cpu.open(&device, &dev, &err), DNN_ECONFIG, "an unknown one");
    is_text(err.text,
            "kernels.conv: must be one of gemm, winograd, direct, onednn, i2c, im2col, "
            "not \"fft\"",
            "is refused");
}

/* Replace the kernel in one line of the file by another. */
static void swap_algo(const char *from, const char *to)
{
    char *text = content(), *line = strchr(text, '\n') + 1;
    struct dnn_buf out = {0};

    ok(strncmp(line, from, strlen(from)) == 0 && line[strlen(from)] == '\t',
       "the file names the kernel");
    dnn_buf_add(&out, "%.*s%s%s", (int)(line - text), text, to, line + strlen(from));
    write_file(out.text);
    dnn_buf_free(&out);
    dnn_free(text);
}

static void test_file(void)
{
    struct sample s;

    sample_make(&s, 40, 64, 64);
    const char *algo = chosen_alone(&s);
    char *text = content();
    ok(strncmp(text, "dnn kernels 3: ", 15) == 0, "the file has its format version");
    ok(strstr(text, "; 2 threads; oneDNN ") != NULL, "and CPU, threads and libraries");
    ok(strstr(text, "\n1 kernels\n") != NULL, "and the number of entries");
    ok(strstr(text, "\tconv 0 1x40x40x64 1x1x64x64 -> 1x40x40x64 k1s1d1b0a0 k1s1d1b0a0 "
                    "g1\n") != NULL,
       "an entry has the whole key of the op");
    const char *other = strcmp(algo, "tiles") == 0 ? "oneDNN" : "tiles";
    swap_algo(algo, other);
    is_text(chosen_alone(&s), other, "the kernel in the file is used");
    swap_algo(other, "magic");
    ok(strcmp(chosen_alone(&s), "magic") != 0, "but not an unknown kernel");
    dnn_free(text);
    text = content();
    ok(strstr(text, "magic") == NULL, "which is removed from the file");
    dnn_free(text);
}

/* An invalid file is ignored and written again. */
static void test_damage(void)
{
    struct sample s;
    char *good;

    sample_make(&s, 40, 64, 64);
    chosen_alone(&s);
    good = content();
    char *bad[5];
    bad[0] = dnn_strndup(good, strlen(good) - 3);
    bad[1] = dnn_format("another machine\n%s", strchr(good, '\n') + 1);
    bad[2] = dnn_strdup("");
    bad[3] = dnn_strdup("\xff\xfe\n\n\t\n");
    bad[4] = dnn_strndup(good, (size_t)(strchr(good, '\n') - good) + 1);
    for (int i = 0; i < 5; i++) {
        struct dnn_dev *dev;

        write_file(bad[i]);
        dev = open_cpu(DNN_KERNELS_AUTOTUNE, path);
        ok(dev->tuned->count == 0, "damaged file %d: not used", i);
        chosen(dev, &s);
        dnn_backend_cpu.close(dev);
        char *now = content();
        ok(strncmp(now, good, strcspn(good, "\n")) == 0 &&
               strstr(now, "\n1 kernels\n") != NULL,
           "damaged file %d: written again", i);
        dnn_free(now);
        dnn_free(bad[i]);
    }
    dnn_free(good);
}

static void test_together(void)
{
    struct sample a, b;

    remove(path);
    sample_make(&a, 40, 64, 64);
    sample_make(&b, 41, 64, 64);
    struct dnn_dev *one = open_cpu(DNN_KERNELS_AUTOTUNE, path);
    struct dnn_dev *two = open_cpu(DNN_KERNELS_AUTOTUNE, path);
    chosen(one, &a);
    chosen(two, &b);
    dnn_backend_cpu.close(one);
    dnn_backend_cpu.close(two);
    char *text = content();
    ok(strstr(text, " 1x40x40x64 ") != NULL && strstr(text, " 1x41x41x64 ") != NULL &&
           strstr(text, "\n2 kernels\n") != NULL,
       "two processes that write one file keep each other's entries");
    dnn_free(text);
}

/* Processes that write different entries, many times. */
static void write_often(int id)
{
    struct cpu_tuned c = {.header = dnn_strdup("header")};
    char key[40];

    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof key, "key %d of %d", i, id);
        dnn_cpu_tuned_set(&c, key, "kernel");
        if (dnn_cpu_tuned_write(&c, path, NULL) < 0) _exit(1);
    }
    _exit(0);
}

static void test_race(void)
{
    pid_t writer[4];
    int bad = 0, left = 4, status;

    remove(path);
    for (int i = 0; i < 4; i++)
        if ((writer[i] = fork()) == 0) write_often(i);
    while (left > 0) {
        char *text = content();
        size_t len = strlen(text);

        if (len > 0 && (strncmp(text, "header\n", 7) != 0 ||
                        strcmp(text + len - 9, " kernels\n") != 0))
            bad++;
        dnn_free(text);
        for (int i = 0; i < 4; i++)
            if (writer[i] > 0 && waitpid(writer[i], &status, WNOHANG) == writer[i]) {
                if (status != 0) bad++;
                writer[i] = 0;
                left--;
            }
    }
    is_int(bad, 0, "four writers: the file is always complete");
    struct cpu_tuned c = {.header = dnn_strdup("header")};
    dnn_cpu_tuned_read(&c, path);
    ok(c.count >= 40, "and all entries of the last writer are in it");
    for (size_t i = 0; i < c.count; i++) {
        dnn_free(c.at[i].key);
        dnn_free(c.at[i].algo);
    }
    dnn_free(c.at);
    dnn_free(c.header);
}

static void test_nowhere(void)
{
    struct sample s;
    char *nowhere = dnn_format("%s/no/such/place", dir);

    dnn_log_levels("error", NULL);
    sample_make(&s, 40, 64, 64);
    struct dnn_dev *dev = open_cpu(DNN_KERNELS_AUTOTUNE, nowhere);
    const char *algo = chosen(dev, &s);
    is_text(chosen(dev, &s), algo, "measured once per device");
    is_int((long long)dev->tuned->count, 1, "remembered without a file");
    dnn_backend_cpu.close(dev);
    ok(access(nowhere, F_OK) != 0, "a file that cannot be written is no error");
    dnn_free(nowhere);
}

int main(void)
{
    if (mkdtemp(dir) == NULL) return 1;
    path = dnn_format("%s/kernels", dir);
    test_rule();
    test_can();
    test_asked();
    test_file();
    test_damage();
    test_together();
    test_race();
    test_nowhere();
    dnn_file_remove_tree(dir, NULL);
    dnn_free(path);
    return done();
}
