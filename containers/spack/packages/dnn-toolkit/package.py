# package.py - spack recipe; use it from the source tree:
#
#   spack repo add containers/spack
#   spack dev-build dnn-toolkit@0.1.0
#
# SPDX-License-Identifier: Apache-2.0
# Copyright the dnn-toolkit authors

try:  # spack 1.0 and later keeps the build systems with its packages
    from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
except ImportError:  # earlier ones bring it with the next line
    pass

from spack.package import *


class DnnToolkit(AutotoolsPackage):
    """Deep-learning batch toolkit for Slurm clusters."""

    version("0.1.0")

    variant("hdf5", default=True, description="read HDF5 files")
    variant("images", default=True, description="read PNG, JPEG and TIFF images")
    variant("archives", default=True, description="read gzip and zip files")
    variant("tfrecord", default=True, description="read TFRecord files")
    variant("cuda", default=False, description="look for CUDA, cuDNN and NCCL")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("autoconf@2.69:", type="build")
    depends_on("automake@1.15:", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("openmpi@5:")
    depends_on("pmix@4:")
    depends_on("hwloc@2.7.1:")
    depends_on("onednn@3:")
    depends_on("openblas")
    depends_on("adios2@2.9: +mpi")
    depends_on("yyjson@0.10:")
    depends_on("xxhash@0.8:")

    depends_on("hdf5", when="+hdf5")
    with when("+images"):
        depends_on("libpng")
        depends_on("libjpeg-turbo")
        depends_on("libtiff")
    with when("+archives"):
        depends_on("zlib-api")
        depends_on("libzip")
    depends_on("protobuf-c", when="+tfrecord")
    with when("+cuda"):
        depends_on("cuda@12:")
        depends_on("cudnn@9:")
        depends_on("nccl")

    def autoreconf(self, spec, prefix):
        Executable("./autogen.sh")()

    def configure_args(self):
        spec = self.spec
        # Name of configure's option, name of the package whose prefix it takes.
        always = [
            ("mpi", "openmpi"),
            ("pmix", "pmix"),
            ("hwloc", "hwloc"),
            ("dnnl", "onednn"),
            ("openblas", "openblas"),
            ("adios2", "adios2"),
            ("yyjson", "yyjson"),
            ("xxhash", "xxhash"),
        ]
        chosen = [
            ("+hdf5", "hdf5", "hdf5"),
            ("+images", "png", "libpng"),
            ("+images", "jpeg", "libjpeg-turbo"),
            ("+images", "tiff", "libtiff"),
            ("+archives", "zlib", "zlib-api"),
            ("+archives", "zip", "libzip"),
            ("+tfrecord", "protobufc", "protobuf-c"),
            ("+cuda", "cuda", "cuda"),
        ]
        args = ["--without-nifti"]  # spack has no nifti2 library
        for option, package in always:
            args.append("--with-{0}={1}".format(option, spec[package].prefix))
        for variant_, option, package in chosen:
            if spec.satisfies(variant_):
                args.append("--with-{0}={1}".format(option, spec[package].prefix))
            else:
                args.append("--without-{0}".format(option))
        return args
