# dnn_lib.m4 - how configure looks for one outside library.
#
# SPDX-License-Identifier: Apache-2.0

# DNN_LIB(name, need, what, pkg-config module, header, library list, function, hint,
#         subdirectory of include in which the header lies, if it is not include itself)
# -----------------------------------------------------------------------------------
# need is "required" or "optional".  Every library has --with-NAME[=DIR]; auto may
# fail quietly, an explicit request may not, and a required library never.
# Sets have_NAME, NAME_CPPFLAGS, NAME_LIBS, and a row of the final table.
AC_DEFUN([DNN_LIB], [
AC_ARG_WITH([$1],
    [AS_HELP_STRING([--with-$1@<:@=DIR@:>@], [$3 ($2; DIR: its prefix)])],
    [], [with_$1=auto])
DNN_LIB_TRY([$1], [$4], [$5], [$6], [$7], [$9])
DNN_LIB_END([$1], [$2], [$3], [$8])
])

# The search itself: --with-NAME=DIR first, then pkg-config, then the default paths.
AC_DEFUN([DNN_LIB_TRY], [
have_$1=0 why_$1="switched off (--without-$1)" $1_CPPFLAGS= $1_LIBS=
AS_IF([test "x$with_$1" != xno], [
    dnn_save_CPPFLAGS=$CPPFLAGS dnn_save_LIBS=$LIBS
    AS_CASE([$with_$1],
        [auto|yes], [
            AS_IF([test -n "$2" && $PKG_CONFIG --exists "$2" 2>/dev/null], [
                $1_CPPFLAGS=`$PKG_CONFIG --cflags "$2"`
                $1_LIBS=`$PKG_CONFIG --libs "$2"`],
                [$1_LIBS="$4"
                 test -z "$6" || $1_CPPFLAGS="-I/usr/include/$6"])],
        [AS_IF([test -f "$with_$1/include/m4_ifval([$6], [$6/])$3"], [], [
            AC_MSG_ERROR([--with-$1=$with_$1: there is no $with_$1/include/m4_ifval([$6], [$6/])$3; give the prefix that has include and lib])])
         $1_CPPFLAGS="-I$with_$1/include[]m4_ifval([$6], [ -I$with_$1/include/$6])"
         AS_IF([test -d "$with_$1/lib64"], [dnn_lib=$with_$1/lib64], [dnn_lib=$with_$1/lib])
         $1_LIBS="-L$dnn_lib -Wl,-rpath,$dnn_lib $4"])
    DNN_LIB_LINK([$1], [$3], [$5])
    CPPFLAGS=$dnn_save_CPPFLAGS LIBS=$dnn_save_LIBS])
])

# Try NAME_CPPFLAGS and NAME_LIBS with a header and a function.  MPI's flags are added
# because parallel builds of other libraries include mpi.h.
AC_DEFUN([DNN_LIB_LINK], [
    CPPFLAGS="$dnn_save_CPPFLAGS $$1_CPPFLAGS $mpi_CPPFLAGS"
    LIBS="$$1_LIBS $mpi_LIBS $dnn_save_LIBS"
    AC_MSG_CHECKING([for $1])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <stdio.h>
#include <$2>]])],
        [AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stdio.h>
#include <$2>
]], [[return $3 == 0;]])],
            [have_$1=1 why_$1=],
            [why_$1="$2 was found, but linking with $$1_LIBS fails"])],
        [why_$1="no <$2> that compiles"])
    AS_IF([test $have_$1 = 1], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no: $why_$1])])
])

AC_DEFUN([DNN_LIB_END], [
AS_IF([test $have_$1 = 0], [
    AS_IF([test "$2" = required],
        [AC_MSG_ERROR([$3 is required: $why_$1. Install it ($4), or give its prefix: --with-$1=DIR])],
        [test "x$with_$1" != xauto && test "x$with_$1" != xno],
        [AC_MSG_ERROR([--with-$1=$with_$1 was given, but $3 was not found: $why_$1. Install it ($4), or give another DIR])])])
AC_DEFINE_UNQUOTED(m4_toupper([DNN_HAVE_$1]), [$have_$1], [1 if $3 was found, else 0])
AC_SUBST([$1_CPPFLAGS])
AC_SUBST([$1_LIBS])
DNN_ROW([$1], [$have_$1], [$3], [$why_$1])
])

# DNN_ROW(name, 0 or 1, what, why not): a row of the table configure ends with.
AC_DEFUN([DNN_ROW], [
AS_IF([test "$2" = 1],
    [dnn_table="$dnn_table
  m4_format([%-10s], [$1]) yes   $3"
     dnn_built="$dnn_built $1"],
    [dnn_table="$dnn_table
  m4_format([%-10s], [$1]) no    $3: $4"])
])
