/* hdf5_write.c - make an HDF5 file of arrays whose values are written later.
 *
 * HDF5 writes a temporary file in the same directory, which is then synced and renamed.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import/hdf5_write.h"

#if DNN_HAVE_HDF5
#include "import/hdf5_impl.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct dnn_hdf5_out {
    char *path, *temp, *dir; /* owned: final path, temporary file, their directory */
    hid_t file, groups;
};

/* ---- failures ---- */

static int fail(const struct dnn_hdf5_out *out, const char *what, struct dnn_err *err)
{
    struct dnn_err why = {0};

    dnn_hdf5_fail("", &why);
    const char *text = strstr(why.text, "it: ");
    return dnn_fail(err, DNN_EIO, "%s: HDF5 cannot write %s: %.300s", out->path, what,
                    text == NULL ? why.text : text + 4);
}

static int fail_system(const struct dnn_hdf5_out *out, const char *what,
                       struct dnn_err *err)
{
    return dnn_fail(err, DNN_EIO, "%s: cannot %s: %s", out->path, what,
                    strerror(errno));
}

/* ---- the file ---- */

static void set_paths(struct dnn_hdf5_out *out, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : (size_t)(slash - path);

    out->path = dnn_strdup(path);
    out->dir = slash == NULL ? dnn_strdup(".") : dnn_strndup(path, len == 0 ? 1 : len);
    out->temp = dnn_format("%s/.%s.%ld.part", out->dir,
                           slash == NULL ? path : slash + 1, (long)getpid());
}

/* With the lock held. */
static void close_file(struct dnn_hdf5_out *out)
{
    if (out->file >= 0) H5Fclose(out->file);
    if (out->groups >= 0) H5Pclose(out->groups);
    out->file = out->groups = -1;
}

static void free_out(struct dnn_hdf5_out *out)
{
    dnn_free(out->path);
    dnn_free(out->temp);
    dnn_free(out->dir);
    dnn_free(out);
}

int dnn_hdf5_create(const char *path, struct dnn_hdf5_out **out, struct dnn_err *err)
{
    struct dnn_hdf5_out *o = dnn_alloc(sizeof *o);

    set_paths(o, path);
    dnn_hdf5_lock();
    o->groups = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(o->groups, 1);
    hid_t how = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(how, H5F_CLOSE_STRONG);
    H5Pset_libver_bounds(how, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
    hid_t root = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_obj_track_times(root, false);
    o->file = H5Fcreate(o->temp, H5F_ACC_TRUNC, root, how);
    int rc = o->file < 0 ? fail(o, "it", err) : 0;
    H5Pclose(root);
    H5Pclose(how);
    if (rc < 0) close_file(o);
    dnn_hdf5_unlock();
    if (rc < 0)
        free_out(o);
    else
        *out = o;
    return rc;
}

/* ---- datasets ---- */

/* An empty dataset, or less than 0. */
static hid_t make_set(struct dnn_hdf5_out *out, const char *name, hid_t type,
                      const struct dnn_shape *shape, hid_t how)
{
    hsize_t dims[DNN_MAX_DIMS];

    for (int i = 0; i < shape->ndim; i++)
        dims[i] = (hsize_t)shape->dim[i];
    hid_t space = H5Screate_simple(shape->ndim, dims, NULL);
    hid_t set = H5Dcreate2(out->file, name, type, space, out->groups, how, H5P_DEFAULT);
    H5Sclose(space);
    return set;
}

/* Make the groups of a name, without the times that are in those that HDF5 makes. */
static void make_groups(hid_t file, const char *name)
{
    hid_t how = H5Pcreate(H5P_GROUP_CREATE);
    char *path = dnn_strdup(name);

    H5Pset_obj_track_times(how, false);
    for (char *slash = path; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        if (H5Lexists(file, path, H5P_DEFAULT) > 0) continue;
        hid_t group = H5Gcreate2(file, path, H5P_DEFAULT, how, H5P_DEFAULT);
        if (group >= 0) H5Gclose(group);
    }
    dnn_free(path);
    H5Pclose(how);
}

/* Equal content is equal bytes: no times are stored. */
int dnn_hdf5_reserve(struct dnn_hdf5_out *out, const char *name, enum dnn_dtype type,
                     const struct dnn_shape *shape, int64_t *offset,
                     struct dnn_err *err)
{
    haddr_t at = HADDR_UNDEF;

    dnn_hdf5_lock();
    hid_t of = dnn_hdf5_type(type);
    hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_layout(how, H5D_CONTIGUOUS);
    H5Pset_alloc_time(how, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(how, H5D_FILL_TIME_NEVER);
    H5Pset_obj_track_times(how, false);
    make_groups(out->file, name);
    hid_t set = make_set(out, name, of, shape, how);
    if (set >= 0) at = H5Dget_offset(set);
    int rc = at == HADDR_UNDEF ? fail(out, name, err) : 0;
    if (set >= 0 && H5Dclose(set) < 0 && rc == 0) rc = fail(out, name, err);
    H5Pclose(how);
    H5Tclose(of);
    dnn_hdf5_unlock();
    *offset = (int64_t)at;
    return rc;
}

/* ---- the end ---- */

static int sync_path(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 ? -1 : fsync(fd);
    int why = errno;

    if (fd >= 0) close(fd);
    errno = why;
    return rc;
}

int dnn_hdf5_commit(struct dnn_hdf5_out *out, struct dnn_err *err)
{
    int rc = 0;

    dnn_hdf5_lock();
    if (H5Fclose(out->file) < 0) rc = fail(out, "the end of the file", err);
    out->file = -1;
    close_file(out);
    dnn_hdf5_unlock();
    if (rc == 0 && sync_path(out->temp) < 0)
        rc = fail_system(out, "sync it to disk", err);
    if (rc == 0 && rename(out->temp, out->path) < 0)
        rc = fail_system(out, "rename the temporary file", err);
    if (rc < 0) unlink(out->temp);
    /* EINVAL: the file system does not need or support fsync() of directories. */
    if (rc == 0 && sync_path(out->dir) < 0 && errno != EINVAL)
        rc = fail_system(out, "sync its directory to disk", err);
    free_out(out);
    return rc;
}

void dnn_hdf5_abandon(struct dnn_hdf5_out *out)
{
    if (out == NULL) return;
    dnn_hdf5_lock();
    close_file(out);
    dnn_hdf5_unlock();
    unlink(out->temp);
    free_out(out);
}

#else

int dnn_hdf5_create(const char *path, struct dnn_hdf5_out **out, struct dnn_err *err)
{
    (void)out;
    return dnn_fail(err, DNN_ECONFIG,
                    "%s: cannot be written: this program was built without HDF5", path);
}

int dnn_hdf5_reserve(struct dnn_hdf5_out *out, const char *name, enum dnn_dtype type,
                     const struct dnn_shape *shape, int64_t *offset,
                     struct dnn_err *err)
{
    (void)out, (void)type, (void)shape, (void)offset;
    return dnn_fail(err, DNN_ECONFIG, "%s: this program was built without HDF5", name);
}

int dnn_hdf5_commit(struct dnn_hdf5_out *out, struct dnn_err *err)
{
    (void)out;
    return dnn_fail(err, DNN_ECONFIG, "this program was built without HDF5");
}

void dnn_hdf5_abandon(struct dnn_hdf5_out *out)
{
    (void)out;
}

#endif
