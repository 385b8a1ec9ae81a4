# dnn_cuda.m4 - CUDA with cuBLAS, cuDNN and NCCL: the GPU backend needs all of them.
#
# SPDX-License-Identifier: Apache-2.0

AC_DEFUN([DNN_CUDA], [
AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@], [CUDA with cuBLAS (optional; DIR: its prefix, with bin/nvcc)])],
    [], [with_cuda=auto])
have_cuda=0 cuda_CPPFLAGS= cuda_LIBS= cuda_prefix= why_cuda="switched off (--without-cuda)"
AS_IF([test "x$with_cuda" != xno], [
    AS_CASE([$with_cuda], [auto|yes], [dnn_path=$PATH], [dnn_path=$with_cuda/bin])
    AC_PATH_PROG([NVCC], [nvcc], [no], [$dnn_path])
    why_cuda="no nvcc in $dnn_path"
    AS_IF([test "x$NVCC" != xno], [
        cuda_prefix=`dirname "$NVCC"`/..
        cuda_prefix=`cd "$cuda_prefix" && pwd -P`
        AS_IF([test -d "$cuda_prefix/lib64"], [dnn_lib=$cuda_prefix/lib64], [dnn_lib=$cuda_prefix/lib])
        dnn_save_CPPFLAGS=$CPPFLAGS dnn_save_LIBS=$LIBS
        cuda_CPPFLAGS="-I$cuda_prefix/include"
        cuda_LIBS="-L$dnn_lib -Wl,-rpath,$dnn_lib -lcublas -lcudart_static -lpthread -ldl -lrt -lstdc++"
        DNN_LIB_LINK([cuda], [cublas_v2.h], [cublasCreate(NULL)])
        CPPFLAGS=$dnn_save_CPPFLAGS LIBS=$dnn_save_LIBS])])
DNN_LIB_END([cuda], [optional], [CUDA with cuBLAS], [NVIDIA's CUDA toolkit])
dnn_save2_CPPFLAGS=$CPPFLAGS dnn_save2_LIBS=$LIBS
CPPFLAGS="$CPPFLAGS $cuda_CPPFLAGS" LIBS="$LIBS $cuda_LIBS"
DNN_LIB([cudnn], [optional], [cuDNN], [], [cudnn.h], [-lcudnn], [cudnnCreate(NULL)], [NVIDIA's cuDNN])
DNN_LIB([nccl], [optional], [NCCL], [], [nccl.h], [-lnccl], [ncclGetVersion(NULL)], [NVIDIA's NCCL])
CPPFLAGS=$dnn_save2_CPPFLAGS LIBS=$dnn_save2_LIBS
])
