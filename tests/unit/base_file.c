/* base_file.c - reading and writing whole files, directories, and a full disk.
 *
 * "base_file victim HOW PATH" does one operation and ends with its message and exit
 * status; tests/cli/inject.t makes each of its system calls fail.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[256]; /* the temporary directory of this test */

static const char *at(const char *name)
{
    static char path[4][512];
    static int turn;
    char *out = path[turn++ % 4];

    snprintf(out, sizeof path[0], "%s/%s", top, name);
    return out;
}

/* The message without the directory, which differs from run to run. */
static bool is_message(const struct dnn_err *err, const char *want, const char *what)
{
    char text[sizeof err->text];
    size_t len = strlen(top) + 1;
    const char *from = err->text;
    char *to = text;

    while (*from != '\0') {
        if (strncmp(from, top, len - 1) == 0 && from[len - 1] == '/')
            from += len;
        else
            *to++ = *from++;
    }
    *to = '\0';
    return is_text(text, want, what);
}

/* Write a file with stdio, to compare with. */
static void put(const char *path, const char *text, size_t len)
{
    FILE *f = fopen(path, "w");

    if (f == NULL || fwrite(text, 1, len, f) != len || fclose(f) != 0) {
        printf("Bail out! %s: %s\n", path, strerror(errno));
        exit(1);
    }
}

static bool holds(const char *path, const char *text, size_t len)
{
    struct dnn_err err = {0};
    size_t got;
    char *all;

    if (dnn_file_read(path, (size_t)1 << 30, &all, &got, &err) < 0) return false;
    bool same = got == len && memcmp(all, text, len) == 0;
    dnn_free(all);
    return same;
}

/* How many entries a directory has. */
static int entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = -2;

    if (dir == NULL) return -1;
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static void test_read(void)
{
    struct dnn_err err = {0};
    char *text = NULL;
    size_t len = 0;

    put(at("some"), "one\ntwo\0three", 13);
    ok(dnn_file_read(at("some"), 13, &text, &len, &err) == 0 && len == 13 &&
           memcmp(text, "one\ntwo\0three", 14) == 0,
       "a file of exactly the allowed size is read, and ends with a NUL");
    dnn_free(text);
    text = NULL;
    is_int(dnn_file_read(at("some"), 12, &text, &len, &err), DNN_EDATA,
           "one byte too many");
    is_message(&err, "some: 13 B exceeds the limit of 12 B; is it the right file?",
               "its message");
    ok(text == NULL && len == 13, "and nothing is written");
    is_int(dnn_file_read_text(at("some"), 100, &text, &err), DNN_EDATA,
           "a NUL in a text");
    is_message(&err, "some: not a text file: byte 8 is NUL", "its message");
    put(at("empty"), "", 0);
    ok(dnn_file_read_text(at("empty"), 100, &text, &err) == 0 && text[0] == '\0',
       "an empty text is one");
    dnn_free(text);
    is_int(dnn_file_read(at("none"), 100, &text, &len, &err), DNN_EIO, "no such file");
    is_message(&err, "none: cannot be read: No such file or directory", "its message");
    is_int(dnn_file_read(top, 100, &text, &len, &err), DNN_EIO, "a directory");
    ok(strstr(err.text, ": is a directory, not a file") != NULL, "its message");
    is_int(dnn_file_read("/dev/zero", 5000, &text, &len, &err), DNN_EDATA,
           "an endless file");
    is_text(err.text,
            "/dev/zero: more exceeds the limit of 4.9 KiB; is it the right file?",
            "its message");
    ok(dnn_file_read("/proc/self/status", 1 << 20, &text, &len, &err) == 0 && len > 100,
       "a file with size 0 that has content (/proc)");
    dnn_free(text);

    /* More than the capacity of a pipe. */
    enum { MUCH = 300000 };
    int ends[2];
    char path[32];
    ok(pipe(ends) == 0, "a pipe");
    pid_t child = fork();
    if (child == 0) {
        char *much = dnn_alloc(MUCH);

        close(ends[0]);
        for (size_t done = 0; done < MUCH;) {
            ssize_t n = write(ends[1], much, MUCH - done);

            if (n <= 0) _exit(1);
            done += (size_t)n;
        }
        dnn_free(much);
        _exit(0);
    }
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    ok(dnn_file_read(path, MUCH, &text, &len, &err) == 0 && len == MUCH,
       "is read to its end");
    dnn_free(text);
    close(ends[0]);
    waitpid(child, NULL, 0);
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

static void test_write(void)
{
    struct dnn_err err = {0};

    mkdir(at("w"), 0777);
    umask(027);
    ok(dnn_file_write(at("w/a"), "first", 5, &err) == 0 && holds(at("w/a"), "first", 5),
       "a new file is written");
    is_int(mode_of(at("w/a")), 0640, "with the mode of the umask");
    umask(022);
    chmod(at("w/a"), 0604);
    ok(dnn_file_write(at("w/a"), "", 0, &err) == 0 && holds(at("w/a"), "", 0),
       "an old one is replaced, by an empty one too");
    is_int(mode_of(at("w/a")), 0604, "with the mode it had");
    put(at("w/a"), "target", 6);
    ok(symlink("a", at("w/link")) == 0, "a link to it");
    ok(dnn_file_write(at("w/link"), "through", 7, &err) == 0 &&
           holds(at("w/a"), "through", 7),
       "writes the file it points to");
    struct stat st;
    ok(lstat(at("w/link"), &st) == 0 && S_ISLNK(st.st_mode), "and stays a link");
    is_int(entries(at("w")), 2, "no temporary files are left");

    char name[256];
    int home = open(".", O_RDONLY | O_DIRECTORY);
    memset(name, 'n', 255);
    name[255] = '\0';
    ok(chdir(at("w")) == 0 && dnn_file_write(name, "x", 1, &err) == 0 &&
           holds(name, "x", 1),
       "the longest possible name, in the current directory");
    ok(fchdir(home) == 0 && unlink(at("w/a")) == 0, "back to the old directory");
    close(home);

    is_int(dnn_file_write(at("w/link"), "x", 1, &err), DNN_EIO, "a broken link");
    is_message(&err, "w/link: cannot be written: is a broken symbolic link",
               "its message");
    is_int(dnn_file_write(at("w"), "x", 1, &err), DNN_EIO, "a directory");
    is_message(&err, "w: cannot be written: is a directory", "its message");
    is_int(dnn_file_write("/dev/full", "x", 1, &err), DNN_EIO, "a device");
    is_text(err.text, "/dev/full: cannot be written: is a device or pipe, not a file",
            "its message");
    is_int(dnn_file_write(at("no/where"), "x", 1, &err), DNN_EIO, "no directory");
    is_message(&err,
               "no/where: cannot be written: its directory: No such file or directory",
               "its message");
    is_int(dnn_file_write(at("some/where"), "x", 1, &err), DNN_EIO, "below a file");
    is_message(&err, "some/where: cannot be written: Not a directory", "its message");
    is_int(dnn_file_write(at("w/new/"), "x", 1, &err), DNN_EIO, "no name");
    is_message(&err, "w/new/: cannot be written: the file name is missing",
               "its message");
}

static void test_stream(void)
{
    struct dnn_err err = {0};
    struct dnn_file *file = NULL, *other = NULL;

    mkdir(at("s"), 0777);
    put(at("s/f"), "old", 3);
    ok(dnn_file_open(at("s/f"), &file, &err) == 0, "opened");
    ok(dnn_file_add(file, "ab", 2, &err) == 0 && dnn_file_add(file, "", 0, &err) == 0 &&
           dnn_file_add(file, "cd", 2, &err) == 0,
       "added to");
    ok(holds(at("s/f"), "old", 3), "the old content is still there");
    ok(dnn_file_open(at("s/f"), &other, &err) == 0 &&
           dnn_file_add(other, "2", 1, &err) == 0,
       "another writer writes it, too");
    ok(dnn_file_commit(file, &err) == 0 && holds(at("s/f"), "abcd", 4), "committed");
    ok(dnn_file_commit(other, &err) == 0 && holds(at("s/f"), "2", 1),
       "the last commit is kept");
    ok(dnn_file_open(at("s/f"), &file, &err) == 0 &&
           dnn_file_add(file, "x", 1, &err) == 0,
       "opened again");
    dnn_file_abandon(file);
    dnn_file_abandon(NULL);
    ok(holds(at("s/f"), "2", 1), "aborted: the file is not changed");
    is_int(entries(at("s")), 1, "no temporary files are left");
}

static void test_dirs(void)
{
    struct dnn_err err = {0};

    ok(dnn_file_make_dirs(at("d/e//f/"), &err) == 0 && entries(at("d/e/f")) == 0,
       "directories are made");
    is_int(dnn_file_make_dirs(at("d/e/f"), &err), 0, "those that exist are fine");
    is_int(dnn_file_make_dirs("/", &err), 0, "so is the root");
    is_int(dnn_file_make_dirs(at("some/x"), &err), DNN_EIO, "below a file");
    is_message(&err, "some: cannot be created: exists and is not a directory",
               "its message");
    is_int(dnn_file_make_dirs("", &err), DNN_EIO, "no name");
    is_text(err.text, "the directory name is empty", "its message");
    ok(symlink("d", at("dlink")) == 0 && dnn_file_make_dirs(at("dlink/g"), &err) == 0 &&
           entries(at("d/g")) == 0,
       "a link to a directory is one");

    put(at("d/e/f/file"), "x", 1);
    put(at("keep"), "x", 1);
    ok(symlink(at("keep"), at("d/e/out")) == 0 && symlink("..", at("d/e/up")) == 0,
       "links");
    is_int(dnn_file_remove_tree(at("dlink/"), &err), 0, "a link is removed");
    ok(entries(at("d")) == 2, "not its target");
    is_int(dnn_file_remove_tree(at("d"), &err), 0, "a tree with links is removed");
    ok(entries(at("d")) == -1 && holds(at("keep"), "x", 1),
       "and their targets are kept");
    is_int(dnn_file_remove_tree(at("d"), &err), 0,
           "a path that does not exist is no error");
    is_int(dnn_file_remove_tree(at("keep"), &err), 0, "a file is removed");
    static const char *const never[] = {"/", "", ".", "..", "//"};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        char want[100];

        is_int(dnn_file_remove_tree(never[i], &err), DNN_EIO, never[i]);
        snprintf(want, sizeof want,
                 "\"%s\": refusing to remove this; give a directory below another one",
                 never[i]);
        is_text(err.text, want, "is never removed");
    }
}

/* A tree deeper than allowed is refused; one level less is removed. */
static void test_depth(void)
{
    struct dnn_err err = {0};
    struct dnn_buf path = {0}, want = {0};

    dnn_buf_add(&path, "%s", at("deep"));
    dnn_buf_add(&want, "deep");
    for (int i = 0; i < DNN_TREE_DEPTH; i++) {
        dnn_buf_add(&path, "/d");
        dnn_buf_add(&want, "/d");
    }
    ok(dnn_file_make_dirs(path.text, &err) == 0, "a deep tree");
    is_int(dnn_file_remove_tree(at("deep"), &err), DNN_EIO, "is too deep");
    dnn_buf_add(&want, ": cannot be removed: more than 100 levels deep");
    is_message(&err, want.text, "its message");
    ok(rmdir(path.text) == 0 && dnn_file_remove_tree(at("deep"), &err) == 0,
       "one level less is removed");
    dnn_buf_free(&path);
    dnn_buf_free(&want);
}

/* ---- a full disk: a small tmpfs in a new mount namespace ---- */

/* Make the mount that contains path private, so that new mounts are not visible
 * elsewhere; in a chroot this may not be that of "/". */
static bool private_mount(const char *path)
{
    char up[600];

    if (mount("", "/", "", MS_REC | MS_PRIVATE, NULL) == 0) return true;
    snprintf(up, sizeof up, "%s", path);
    for (;;) {
        if (mount("", up, "", MS_PRIVATE, NULL) == 0) return true;
        char *slash = strrchr(up, '/');
        if (slash == NULL || slash == up) return false;
        *slash = '\0';
    }
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0) close(fd);
    return done;
}

/* A new mount namespace; without root, in a user namespace. */
static bool own_mounts(void)
{
    char users[64], groups[64];

    snprintf(users, sizeof users, "0 %ld 1", (long)geteuid());
    snprintf(groups, sizeof groups, "0 %ld 1", (long)getegid());
    if (geteuid() == 0) return unshare(CLONE_NEWNS) == 0;
    return unshare(CLONE_NEWNS | CLONE_NEWUSER) == 0 &&
           write_text("/proc/self/setgroups", "deny") &&
           write_text("/proc/self/uid_map", users) &&
           write_text("/proc/self/gid_map", groups);
}

/* In a child process, the only one that sees the mount.  Exit status: 77 not possible
 * here, 0 correct, else the number of the failed check. */
static int full_disk(const char *dir, const char *far)
{
    enum { MUCH = 4 << 20 };
    struct dnn_err err = {0};
    struct dnn_file *file;
    struct statvfs fs;
    char path[600], want[1024], space[32];

    if (!own_mounts() || !private_mount(dir) ||
        mount("dnn", dir, "tmpfs", 0, "size=1m") != 0)
        return 77;
    char *much = dnn_alloc(MUCH);
    snprintf(path, sizeof path, "%s/f", dir);
    if (dnn_file_write(path, "old", 3, &err) != 0) return 1;
    statvfs(dir, &fs);
    dnn_text_bytes(space, sizeof space, (double)fs.f_bavail * (double)fs.f_frsize);
    if (dnn_file_write(path, much, MUCH, &err) != DNN_EIO) return 2;
    snprintf(want, sizeof want, "%s: the disk is full: 4.0 MiB needed, %s free", path,
             space);
    if (strcmp(err.text, want) != 0) {
        printf("# got: %s\n# want: %s\n", err.text, want);
        return 3;
    }
    if (!holds(path, "old", 3) || entries(dir) != 1) return 4;
    if (dnn_file_open(path, &file, &err) != 0 ||
        dnn_file_add(file, much, 65536, &err) != 0)
        return 5;
    if (dnn_file_add(file, much, MUCH, &err) != DNN_EIO) return 6;
    snprintf(want, sizeof want, "%s: the disk is full: 4.1 MiB needed, %s free", path,
             space);
    if (strcmp(err.text, want) != 0) return 7;
    if (dnn_file_commit(file, &err) != DNN_EIO) return 8;
    snprintf(want, sizeof want, "%s: cannot be written: an earlier write failed", path);
    if (strcmp(err.text, want) != 0) return 9;
    if (!holds(path, "old", 3) || entries(dir) != 1) return 10;
    dnn_free(much);

    /* The mount is another file system: removing the tree above stops at it. */
    if (dnn_file_remove_tree(far, &err) != DNN_EIO) return 11;
    snprintf(want, sizeof want,
             "%s: cannot be removed: another file system is mounted there", dir);
    if (strcmp(err.text, want) != 0) return 12;
    return holds(path, "old", 3) ? 0 : 13;
}

/* Run the child below base; its exit status. */
static int try_full(const char *base)
{
    char far[512], full[520];
    struct dnn_err err = {0};
    int status = 0;

    snprintf(far, sizeof far, "%s/dnn-full.XXXXXX", base);
    if (mkdtemp(far) == NULL) return 77;
    snprintf(full, sizeof full, "%s/full", far);
    mkdir(full, 0777);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int rc = full_disk(full, far);

        fflush(stdout);
        _exit(rc);
    }
    waitpid(child, &status, 0);
    is_int(entries(full), 0, "the mount is visible only in the child");
    is_int(dnn_file_remove_tree(far, &err), 0, "and no files are left");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static void test_full(void)
{
    char here[400];
    int rc = try_full(top);

    /* In a chroot only one of the two may be below a mount. */
    if (rc == 77 && getcwd(here, sizeof here) != NULL) rc = try_full(here);
    if (rc == 77)
        skip("a full disk", "a small file system cannot be mounted here");
    else
        is_int(rc, 0,
               "a full disk: old file kept, no temporary files, sizes in the message");
}

/* ---- for tests/cli/inject.t ---- */

static int victim(const char *how, const char *path)
{
    struct dnn_err err = {0};
    int rc = 0;
    char *text = dnn_alloc(100000);

    memset(text, 'n', 100000);
    if (strcmp(how, "write") == 0)
        rc = dnn_file_write(path, text, 100000, &err);
    else if (strcmp(how, "stream") == 0) {
        struct dnn_file *file = NULL;

        rc = dnn_file_open(path, &file, &err);
        for (int i = 0; rc == 0 && i < 4; i++)
            rc = dnn_file_add(file, text, 25000, &err);
        if (rc == 0)
            rc = dnn_file_commit(file, &err);
        else
            dnn_file_abandon(file);
    } else if (strcmp(how, "dirs") == 0)
        rc = dnn_file_make_dirs(path, &err);
    else if (strcmp(how, "tree") == 0)
        rc = dnn_file_remove_tree(path, &err);
    else if (strcmp(how, "read") == 0) {
        char *got = NULL;
        size_t len;

        rc = dnn_file_read(path, 100000, &got, &len, &err);
        if (rc == 0) fwrite(got, 1, len, stdout);
        dnn_free(got);
    } else
        rc = dnn_fail(&err, DNN_EUSAGE, "victim: no such thing as \"%s\"", how);
    dnn_free(text);
    if (rc < 0) fprintf(stderr, "victim: %s\n", err.text);
    return dnn_exit_status(rc);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "victim") == 0) return victim(argv[2], argv[3]);

    const char *tmp = getenv("TMPDIR");
    struct dnn_err err = {0};
    char where[200];
    snprintf(where, sizeof where, "%s/dnn-file.XXXXXX", tmp == NULL ? "/tmp" : tmp);
    if (mkdtemp(where) == NULL) {
        printf("Bail out! %s: %s\n", where, strerror(errno));
        return 1;
    }
    snprintf(top, sizeof top, "%s", where);
    test_read();
    test_write();
    test_stream();
    test_dirs();
    test_depth();
    test_full();
    is_int(dnn_file_remove_tree(top, &err), 0, "the directory is removed");
    ok(access(top, F_OK) != 0, "it does not exist any more");
    return done();
}
