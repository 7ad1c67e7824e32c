"""Run by the Python of another jaxlib, without this package: compiles a module, which XLA dumps.

python version_script.py PROTO SECONDS: a file with a serialized HloModuleProto; the file that gets the seconds.
"""

import sys
import time


def main(proto_file: str, seconds_file: str) -> None:
    import jax
    from jaxlib import xla_client

    client = jax.local_devices(backend="cpu")[0].client
    try:
        from jaxlib.cpu import _lapack

        _lapack.initialize()
    except (ImportError, AttributeError):
        pass  # another version keeps it elsewhere
    with open(proto_file, "rb") as file:
        proto = file.read()
    try:
        from jaxlib import _hlo

        computation = _hlo.XlaComputation(proto)
    except ImportError:
        computation = xla_client.XlaComputation(proto)
    text = xla_client._xla.mlir.xla_computation_to_mlir_module(computation)
    options = xla_client.CompileOptions()
    start = time.perf_counter()
    if hasattr(client, "compile_and_load"):
        client.compile_and_load(text, xla_client.DeviceList(tuple(client.local_devices()[:1])), options)
    else:
        client.compile(text, options)
    with open(seconds_file, "w", encoding="ascii") as file:
        file.write(repr(time.perf_counter() - start))


main(*sys.argv[1:])
