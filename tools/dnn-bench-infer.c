/* dnn-bench-infer.c - the options of dnn-bench infer.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "dnn-bench.h"

#include "backend/backend.h"
#include "topo/topo.h"

struct dnn_option dnn_bench_infer_options[DNN_BENCH_OPTIONS] = {
    TEXT("model", 'm', infer.zoo.zoo, "NAME",
         "a network of the zoo: unet3d, resnet50..."),
    TEXT("layers", 'l', infer.layers, "FILE",
         "a network from a Keras JSON file instead"),
    TEXT("size", 's', infer.size, "N|DxHxW",
         "spatial size of the input; default: the network's own"),
    INT("channels", 0, infer.channels, "0", 0, 1e6,
        "channels of the input; 0: the network's own"),
    INT("batch", 'b', infer.batch, "1", 1, 1e6, "batch size"),
    INT("threads", 't', infer.threads, "0", 0, DNN_TOPO_THREADS,
        "threads; 0: OMP_NUM_THREADS, else one per CPU"),
    INT("reps", 'r', infer.reps, "9", 1, 10000, "turns; medians are printed"),
    TEXT("backend", 0, infer.backend, "NAME",
         "backend: cpu or ref; default: the fastest in this build"),
    ENUM("kernels", 0, infer.kernels, "HOW", "autotune", dnn_kernel_selections,
         "kernel selection: autotune measures them first, heuristic does not"),
    TEXT("cache", 0, infer.cache, "FILE",
         "store autotuned kernels in this file; default: autotune every time"),
    ENUM("against", 'a', infer.against, "PEER", "none", dnn_bench_infer_peers,
         "compare with the same network in PyTorch, ONNX Runtime, or both"),
    REAL("bound", 0, infer.bound, "X", "1e-5", 0, 1,
         "largest allowed difference of the outputs, relative to the largest output"),
    INT("compile", 0, infer.compile, "300", 0, 3600,
        "seconds for torch.compile; 0: eager mode only"),
    FLAG("json", 'j', infer.json, "print one JSON object instead of the table"),
    {.name = NULL},
};

const char dnn_bench_infer_about[] =
    "Builds a network for inference, with batch norms folded and ops fused, fills it "
    "with random numbers and times it.  Printed are the median, fastest and slowest of "
    "the turns.\n\n"
    "With --against the same network, weights and inputs run in PyTorch (eagerly in "
    "both memory formats, and with torch.compile and frozen weights in the faster "
    "one), "
    "in ONNX Runtime (the network as PyTorch exports it, all optimizations), or both, "
    "in turns with ours and with as many threads.  No time is printed if an output "
    "differs by more than --bound; the exit status is then 6.  The ratio is their time "
    "divided by ours.  \"dnn-bench torch\" prints which Python is used.\n\n"
    "With --json one object is printed: seconds (median), fastest, slowest, turns, "
    "gflops and threads; against a peer torch, torch_mkl, torch_onednn, onnxruntime "
    "(versions), bound, ratio_torch and ratio_onnxruntime (to the fastest variant), "
    "and "
    "the array peers, of objects with peer, format, mode, times as above, error and "
    "ratio.";
