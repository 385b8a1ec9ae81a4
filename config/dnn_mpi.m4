# dnn_mpi.m4 - MPI: its compiler wrapper knows the flags.
#
# SPDX-License-Identifier: Apache-2.0

AC_DEFUN([DNN_MPI], [
AC_ARG_WITH([mpi],
    [AS_HELP_STRING([--with-mpi@<:@=DIR@:>@], [MPI (required; DIR: its prefix, with bin/mpicc)])],
    [], [with_mpi=auto])
AS_CASE([$with_mpi], [auto|yes|no], [dnn_path=$PATH], [dnn_path=$with_mpi/bin])
have_mpi=0 mpi_CPPFLAGS= mpi_LIBS= why_mpi="switched off (--without-mpi)"
AS_IF([test "x$with_mpi" != xno], [
    AC_PATH_PROG([MPICC], [mpicc], [no], [$dnn_path])
    why_mpi="no mpicc in $dnn_path"
    AS_IF([test "x$MPICC" != xno], [
        dnn_flags=`$MPICC --showme:compile 2>/dev/null`
        AS_IF([test $? = 0 && test -n "$dnn_flags"],
            [mpi_CPPFLAGS=$dnn_flags
             mpi_LIBS=`$MPICC --showme:link`],
            [dnn_flags=`$MPICC -compile_info 2>/dev/null | cut -s -d' ' -f2-`
             mpi_CPPFLAGS=`for f in $dnn_flags; do case $f in -I*|-D*) echo $f;; esac; done | tr '\n' ' '`
             dnn_flags=`$MPICC -link_info 2>/dev/null | cut -s -d' ' -f2-`
             mpi_LIBS=`for f in $dnn_flags; do case $f in -L*|-l*|-Wl,*) echo $f;; esac; done | tr '\n' ' '`])
        dnn_save_CPPFLAGS=$CPPFLAGS dnn_save_LIBS=$LIBS
        DNN_LIB_LINK([mpi], [mpi.h], [MPI_Init(NULL, NULL)])
        CPPFLAGS=$dnn_save_CPPFLAGS LIBS=$dnn_save_LIBS])])
AC_PATH_PROG([MPIEXEC], [mpiexec], [mpiexec], [$dnn_path])
AC_ARG_VAR([MPIEXEC], [starts the ranks of the tests, as MPIEXEC -n 4 PROGRAM])
DNN_LIB_END([mpi], [required], [MPI], [Debian: libopenmpi-dev openmpi-bin])
])
