# dnn_adios2.m4 - ADIOS2 with MPI and its C bindings: installed under several names.
#
# SPDX-License-Identifier: Apache-2.0

AC_DEFUN([DNN_ADIOS2], [
AC_ARG_WITH([adios2],
    [AS_HELP_STRING([--with-adios2@<:@=DIR@:>@], [ADIOS2 with MPI and C bindings (required; DIR: its prefix)])],
    [], [with_adios2=auto])
have_adios2=0
AS_CASE([$with_adios2], [auto|yes|no], [dnn_prefix=/usr], [dnn_prefix=$with_adios2])
dnn_found=
for dnn_libs in "-ladios2_mpi_c_mpi -ladios2_mpi_c -ladios2_mpi_core" "-ladios2_c_mpi -ladios2_c"; do
    AS_IF([test $have_adios2 = 0], [
        DNN_LIB_TRY([adios2], [], [adios2_c.h], [$dnn_libs], [adios2_init_mpi(MPI_COMM_WORLD)])
        AS_IF([test $have_adios2 = 0 && test -d "$dnn_prefix/include/adios2/build/mpi"], [
            dnn_save_CPPFLAGS=$CPPFLAGS dnn_save_LIBS=$LIBS
            adios2_CPPFLAGS="$adios2_CPPFLAGS -DADIOS2_USE_MPI -I$dnn_prefix/include/adios2/build/mpi"
            DNN_LIB_LINK([adios2], [adios2_c.h], [adios2_init_mpi(MPI_COMM_WORLD)])
            CPPFLAGS=$dnn_save_CPPFLAGS LIBS=$dnn_save_LIBS])])
done
DNN_LIB_END([adios2], [required], [ADIOS2 with MPI], [Debian: libadios2-mpi-c-dev])
])
