/* mpi_half.c - sums of 16-bit floating-point numbers; MPI has no type for them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/tensor.h"
#include "comm/mpi_impl.h"

void dnn_mpi_add_bf16(void *in, void *inout, int *n, MPI_Datatype *type)
{
    const uint16_t *a = in;
    uint16_t *b = inout;

    (void)type;
    for (int i = 0; i < *n; i++)
        b[i] = dnn_bf16_from_f32(dnn_bf16_to_f32(a[i]) + dnn_bf16_to_f32(b[i]));
}

void dnn_mpi_add_f16(void *in, void *inout, int *n, MPI_Datatype *type)
{
    const uint16_t *a = in;
    uint16_t *b = inout;

    (void)type;
    for (int i = 0; i < *n; i++)
        b[i] = dnn_f16_from_f32(dnn_f16_to_f32(a[i]) + dnn_f16_to_f32(b[i]));
}
