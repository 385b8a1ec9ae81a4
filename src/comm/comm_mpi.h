/* comm_mpi.h - for components that use a library with MPI.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_COMM_COMM_MPI_H
#define DNN_COMM_COMM_MPI_H

#include "comm/comm.h"

#include <mpi.h>

/* Local.  The MPI communicator, for libraries that duplicate it; false without MPI, or
 * if comm is NULL. */
bool dnn_comm_mpi_handle(const struct dnn_comm *comm, MPI_Comm *out);

/* Local.  Set the file descriptor for dnn_comm_print(), while stderr is redirected; -1:
 * stderr. */
void dnn_comm_print_to(int fd);

#endif
