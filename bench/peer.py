"""How PyTorch runs as a peer: in the strongest form known (an allocator that keeps its memory, the widest BLAS kernels)."""
import glob
import os
import sys


def environment(**more):
    """The environment for PyTorch's process; ends the program where the allocator is not installed."""
    jemalloc = sorted(glob.glob("/usr/lib/*/libjemalloc.so.2"))
    if not jemalloc:
        sys.exit("libjemalloc.so.2 is missing (package libjemalloc2): PyTorch would not be in its strongest form")
    result = dict(os.environ, LD_PRELOAD=jemalloc[0], MALLOC_CONF="dirty_decay_ms:-1,muzzy_decay_ms:-1", **more)
    with open("/proc/cpuinfo", encoding="ascii") as cpu:
        # OpenBLAS takes its AVX2 kernels on AMD's CPUs that have AVX-512; without AVX-512 its own choice is the best.
        if "avx512vl" in cpu.read():
            result["OPENBLAS_CORETYPE"] = "SkylakeX"
    return result
