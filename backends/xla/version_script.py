"""Run by the Python of another jaxlib, without this package: compiles a module, which XLA may dump, and may run it.

python version_script.py FOLDER ROUNDS: reads module.pb (a serialized HloModuleProto); if ROUNDS > 0, in0.bin, … and
arrays.json ([[dtype, dims], …]). Writes seconds.json ([compile, fastest run or null, bytes of compiling]), results.json
and out0.bin, ….
"""

import json
import os
import resource
import sys
import time


def compiled(client, proto):
    """The loaded executable, by the names that this version has, and the seconds of the compilation."""
    from jaxlib import xla_client

    try:
        from jaxlib import _hlo

        computation = _hlo.XlaComputation(proto)
    except ImportError:
        computation = xla_client.XlaComputation(proto)
    text = xla_client._xla.mlir.xla_computation_to_mlir_module(computation)
    options = xla_client.CompileOptions()
    start = time.perf_counter()
    if hasattr(client, "compile_and_load"):
        loaded = client.compile_and_load(text, xla_client.DeviceList(tuple(client.local_devices()[:1])), options)
    else:
        loaded = client.compile(text, options)
    return loaded, time.perf_counter() - start


def ran(loaded, device, folder, rounds):
    """The fastest of some runs, in seconds. Writes the results."""
    import jax
    import ml_dtypes
    import numpy as np

    arrays = []
    with open(os.path.join(folder, "arrays.json"), encoding="ascii") as file:
        described = json.load(file)
    for number, (name, dims) in enumerate(described):
        dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
        data = np.fromfile(os.path.join(folder, f"in{number}.bin"), np.uint8)
        arrays.append(jax.device_put(data.view(dtype).reshape(dims), device))
    fastest = None
    for _ in range(rounds):
        start = time.perf_counter()
        leaves = [r[0] for r in loaded.execute_sharded(arrays).disassemble_into_single_device_arrays()]
        for leaf in leaves:
            leaf.block_until_ready()
        seconds = time.perf_counter() - start
        fastest = seconds if fastest is None else min(fastest, seconds)
    results = [np.ascontiguousarray(np.asarray(leaf)) for leaf in leaves]
    for number, result in enumerate(results):
        result.tofile(os.path.join(folder, f"out{number}.bin"))
    with open(os.path.join(folder, "results.json"), "w", encoding="ascii") as file:
        json.dump([[str(result.dtype), list(result.shape)] for result in results], file)
    return fastest


def peak():
    """The peak of this process's memory so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main(folder, rounds):
    import jax

    jax.config.update("jax_enable_x64", True)
    device = jax.local_devices(backend="cpu")[0]
    try:
        from jaxlib.cpu import _lapack

        _lapack.initialize()
    except (ImportError, AttributeError):
        pass  # another version keeps it elsewhere
    with open(os.path.join(folder, "module.pb"), "rb") as file:
        proto = file.read()
    before = peak()
    loaded, seconds = compiled(device.client, proto)
    grown = peak() - before
    fastest = ran(loaded, device, folder, rounds) if rounds else None
    with open(os.path.join(folder, "seconds.json"), "w", encoding="ascii") as file:
        json.dump([seconds, fastest, grown], file)


main(sys.argv[1], int(sys.argv[2]))
