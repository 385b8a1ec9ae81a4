/* file.c - common functions for writing and reading BP files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "bp/bp_impl.h"
#include "comm/comm_mpi.h"

static const struct {
    enum dnn_dtype dtype;
    adios2_type adios;
} types[] = {
    /* A type of ADIOS2 is read as the first dtype listed for it. */
    {DNN_F32,  adios2_type_float   },
    {DNN_F64,  adios2_type_double  },
    {DNN_I8,   adios2_type_int8_t  },
    {DNN_U8,   adios2_type_uint8_t },
    {DNN_I16,  adios2_type_int16_t },
    {DNN_U16,  adios2_type_uint16_t},
    {DNN_I32,  adios2_type_int32_t },
    {DNN_U32,  adios2_type_uint32_t},
    {DNN_I64,  adios2_type_int64_t },
    {DNN_U64,  adios2_type_uint64_t},
    /* ADIOS2 does not have these types: they are stored as integers of the same size,
     * with an attribute NAME/type. */
    {DNN_F16,  adios2_type_uint16_t},
    {DNN_BF16, adios2_type_uint16_t},
    {DNN_BOOL, adios2_type_uint8_t },
};
enum { NTYPES = sizeof types / sizeof types[0] };

adios2_type dnn_bp_adios_type(enum dnn_dtype type)
{
    for (int i = 0; i < NTYPES; i++)
        if (types[i].dtype == type) return types[i].adios;
    return adios2_type_unknown;
}

bool dnn_bp_dtype(adios2_type type, enum dnn_dtype *out)
{
    for (int i = 0; i < NTYPES; i++)
        if (types[i].adios == type) {
            *out = types[i].dtype;
            return true;
        }
    return false;
}

struct dnn_bp *dnn_bp_make(struct dnn_comm *comm, const char *path)
{
    struct dnn_bp *bp = dnn_alloc(sizeof *bp);

    bp->comm = comm;
    bp->size = comm == NULL ? 1 : dnn_comm_size(comm);
    bp->rank = comm == NULL ? 0 : dnn_comm_rank(comm);
    bp->path = dnn_strdup(path);
    return bp;
}

int dnn_bp_start(struct dnn_bp *bp, struct dnn_err *err)
{
    struct bp_capture capture;
    MPI_Comm ranks;

    dnn_bp_capture_start(&capture);
    bp->adios = bp->size > 1 && dnn_comm_mpi_handle(bp->comm, &ranks)
                    ? adios2_init_mpi(ranks)
                    : adios2_init_serial();
    if (bp->adios != NULL) bp->io = adios2_declare_io(bp->adios, "file");
    bool good = bp->io != NULL && adios2_set_engine(bp->io, "BP5") == 0;
    return dnn_bp_capture_end(&capture, good, bp->path, "starting ADIOS2", err);
}

static void free_bp(struct dnn_bp *bp)
{
    for (int i = 0; i < bp->nvars; i++) {
        dnn_free((char *)bp->var[i].pub.name);
        dnn_free(bp->var[i].put);
    }
    dnn_free(bp->var);
    dnn_free(bp->index);
    dnn_free(bp->op_name);
    dnn_free(bp->op_params);
    dnn_free(bp->path);
    dnn_free(bp);
}

void dnn_bp_close(struct dnn_bp *bp)
{
    struct bp_capture capture;

    if (bp == NULL) return;
    dnn_bp_direct_close(bp);
    dnn_bp_capture_start(&capture);
    if (bp->engine != NULL && !bp->writing) adios2_close(bp->engine);
    /* If several ranks write the file, ADIOS2 is not finalized: that is collective, and
     * possibly only this rank has failed. */
    if (bp->adios != NULL && !bp->failed && !(bp->writing && bp->size > 1))
        adios2_finalize(bp->adios);
    dnn_bp_capture_end(&capture, true, bp->path, "closing", NULL);
    free_bp(bp);
}
