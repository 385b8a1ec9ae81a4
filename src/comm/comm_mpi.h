/* comm_mpi.h - for rooms that hand the ranks on to a library which speaks MPI itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_COMM_COMM_MPI_H
#define DNN_COMM_COMM_MPI_H

#include "comm/comm.h"

#include <mpi.h>

/* Local.  MPI's handle of these ranks, for a library that makes its own of it
 * (MPI_Comm_dup); false if there is no MPI underneath, or comm is NULL. */
bool dnn_comm_mpi_handle(const struct dnn_comm *comm, MPI_Comm *out);

/* Local.  While stderr leads elsewhere (a library's words are being caught): where to
 * say why a job ends.  -1: stderr again. */
void dnn_comm_print_to(int fd);

#endif
