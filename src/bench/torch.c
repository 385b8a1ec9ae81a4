/* torch.c - find and start the PyTorch that is used for comparison.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/bench.h"
#include "bench/proc_impl.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct dnn_choice dnn_bench_peers[] = {
    {"none",  DNN_AGAINST_NONE },
    {"torch", DNN_AGAINST_TORCH},
    {NULL,    0                }
};

const char *dnn_bench_dir(char out[DNN_BENCH_PATH])
{
    ssize_t len = readlink("/proc/self/exe", out, DNN_BENCH_PATH - 1);

    out[len < 0 ? 0 : len] = '\0';
    char *slash = strrchr(out, '/');
    if (slash != NULL) *slash = '\0';
    return out;
}

/* The directory used by --install; the caller owns it: dnn_free(). */
static char *environment_dir(struct dnn_err *err)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

    if (data != NULL && data[0] == '/') return dnn_format("%s/dnn-toolkit/torch", data);
    if (home != NULL && home[0] == '/')
        return dnn_format("%s/.local/share/dnn-toolkit/torch", home);
    dnn_fail(
        err, DNN_EIO,
        "no directory for PyTorch; set HOME, or XDG_DATA_HOME to an absolute path");
    return NULL;
}

char *dnn_torch_python(struct dnn_err *err)
{
    const char *named = getenv("DNN_TORCH");

    if (named != NULL && named[0] != '\0') return dnn_strdup(named);
    char *dir = environment_dir(err);
    if (dir == NULL) return NULL;
    char *ready = dnn_format("%s/ready", dir);
    char *python = access(ready, F_OK) == 0 ? dnn_format("%s/bin/python", dir)
                                            : dnn_strdup("python3");
    dnn_free(ready);
    dnn_free(dir);
    return python;
}

char *dnn_torch_script(const char *name, struct dnn_err *err)
{
    static const char *const dirs[] = {"../share/dnn-toolkit/torch",
                                       "../src/bench/torch", "src/bench/torch", NULL};
    const char *named = getenv("DNN_TORCH_SCRIPTS");
    char exe[DNN_BENCH_PATH], *path;

    if (named != NULL) {
        path = dnn_format("%s/%s", named, name);
        if (access(path, R_OK) == 0) return path;
        dnn_fail(err, DNN_EIO, "%s (DNN_TORCH_SCRIPTS): %s", path, strerror(errno));
        dnn_free(path);
        return NULL;
    }
    dnn_bench_dir(exe);
    for (int i = 0; dirs[i] != NULL; i++) {
        path = dnn_format("%s/%s/%s", exe, dirs[i], name);
        if (access(path, R_OK) == 0) return path;
        dnn_free(path);
    }
    dnn_fail(err, DNN_EIO,
             "%s is not in %s/%s; set DNN_TORCH_SCRIPTS to the directory it is in",
             name, exe, dirs[0]);
    return NULL;
}

void dnn_torch_read_info(const struct dnn_json *json, struct dnn_torch_info *info)
{
    static bool warned;
    struct dnn_jobj top = dnn_json_top(json), mkl = dnn_json_sub(&top, "mkl");
    char text[DNN_TORCH_TEXT];

    snprintf(info->python, sizeof info->python, "%s", dnn_proc_text(json, "python"));
    snprintf(info->version, sizeof info->version, "%s", dnn_proc_text(json, "torch"));
    snprintf(info->onednn, sizeof info->onednn, "%s", dnn_proc_text(json, "onednn"));
    if (dnn_json_bool(&mkl, &info->mkl, NULL) < 0) info->mkl = false;
    info->threads = (int)dnn_proc_number(json, "threads");
    if (info->mkl || warned) return;
    warned = true;
    dnn_log(DNN_WARN, "bench",
            "%s: it is slower than the PyTorch users install, so ratios flatter "
            "dnn-toolkit; get that one with \"dnn-bench torch --install\"",
            dnn_torch_text(text, info));
}

const char *dnn_torch_text(char out[DNN_TORCH_TEXT], const struct dnn_torch_info *info)
{
    snprintf(out, DNN_TORCH_TEXT, "PyTorch %s %s MKL, %s%s, %d thread%s (%s)",
             info->version, info->mkl ? "with" : "without",
             info->onednn[0] == '\0' ? "without oneDNN" : "oneDNN ", info->onednn,
             info->threads, info->threads == 1 ? "" : "s", info->python);
    return out;
}

int dnn_torch_start(const char *script, const char *const *args,
                    struct dnn_torch_info *info, struct dnn_json **first,
                    struct dnn_proc **out, struct dnn_err *err)
{
    const char *argv[32] = {dnn_torch_python(err), NULL};
    int n = 2, rc = DNN_EIO;

    if (argv[0] != NULL) argv[1] = dnn_torch_script(script, err);
    while (*args != NULL && n < 31)
        argv[n++] = *args++;
    *first = NULL;
    if (argv[1] != NULL) rc = dnn_proc_start(argv, NULL, out, err);
    /* An empty request, because a script prints its first object without a request. */
    if (rc == 0 && (rc = dnn_proc_ask(*out, "", first, err)) < 0) {
        dnn_proc_stop(*out);
        *out = NULL;
    }
    if (rc == 0) dnn_torch_read_info(*first, info);
    for (int i = 0; i < 2; i++)
        dnn_free((char *)(uintptr_t)argv[i]);
    return rc;
}

/* Replace this process by the installation script; returns only on failure. */
static int install(const char *dir, struct dnn_err *err)
{
    char *script = dnn_torch_script("torch_install.py", err);
    const char *named = getenv("DNN_TORCH");
    const char *python = named != NULL && named[0] != '\0' ? named : "python3";

    if (script == NULL) return DNN_EIO;
    execlp(python, python, script, dir, (char *)NULL);
    int rc = dnn_fail(err, DNN_EIO, "%s: %s", python, strerror(errno));
    dnn_free(script);
    return rc;
}

static int print_info(bool json, FILE *where, struct dnn_err *err)
{
    const char *const none[] = {NULL};
    struct dnn_torch_info info;
    struct dnn_json *first;
    struct dnn_proc *p = NULL;
    char text[DNN_TORCH_TEXT];

    DNN_TRY(dnn_torch_start("torch_common.py", none, &info, &first, &p, err));
    if (json)
        fprintf(where,
                "{\"python\": \"%s\", \"torch\": \"%s\", \"mkl\": %s, \"onednn\": "
                "\"%s\", \"threads\": %d}\n",
                info.python, info.version, info.mkl ? "true" : "false", info.onednn,
                info.threads);
    else
        fprintf(where, "%s\n", dnn_torch_text(text, &info));
    dnn_json_free(first);
    dnn_proc_stop(p);
    return 0;
}

int dnn_bench_torch(const struct dnn_bench_torch *cfg, FILE *where, struct dnn_err *err)
{
    if (cfg->install && cfg->remove)
        return dnn_fail(err, DNN_EUSAGE, "give either --install or --remove");
    if (!cfg->install && !cfg->remove) return print_info(cfg->json, where, err);
    char *dir = environment_dir(err);
    if (dir == NULL) return DNN_EIO;
    int rc = cfg->install ? install(dir, err) : dnn_file_remove_tree(dir, err);
    dnn_free(dir);
    return rc;
}
