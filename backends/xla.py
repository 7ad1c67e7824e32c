"""XLA:CPU through jaxlib, if it is installed: the external reference.

Text → HloModuleProto → StableHLO → PJRT CPU client.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ..hlo.errors import InputError, TestbedError, UnsupportedError

REMEDY = "install it with ./testbed setup --xla"


def installed() -> bool:
    """Whether jaxlib and jax can be imported. Neither is imported by the check."""
    return importlib.util.find_spec("jaxlib") is not None and importlib.util.find_spec("jax") is not None


@cache
def _client() -> Any:
    import jax
    from jaxlib.cpu import _lapack

    _lapack.initialize()  # registers the targets, which crash before this call
    return jax.local_devices(backend="cpu")[0].client


class XlaExecutable:
    """A module compiled by XLA:CPU."""

    def __init__(self, text: str):
        """Compile HLO text. Raises TestbedError if jaxlib is absent, UnsupportedError if XLA refuses the module."""
        if not installed():
            raise InputError("the stack xla needs jaxlib", remedy=REMEDY)
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read when jaxlib loads; hides its start-up messages
        from jaxlib import _hlo, xla_client

        try:
            proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
            stablehlo = xla_client._xla.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(proto))
            client = _client()
            devices = xla_client.DeviceList(tuple(client.local_devices()[:1]))
            options = xla_client.CompileOptions()
            self._loaded = client.compile_and_load(stablehlo, devices, options)
        except (
            Exception
        ) as error:  # jaxlib raises XlaRuntimeError, ValueError or RuntimeError for a module that it refuses
            if isinstance(error, (TestbedError, KeyboardInterrupt)):
                raise
            raise UnsupportedError("xla", str(error).strip().splitlines()[0][:200]) from error

    @property
    def temporary_bytes(self) -> int:
        """Size in bytes of the arena that XLA uses for temporaries."""
        return self._loaded.get_compiled_memory_stats().temp_size_in_bytes

    def put(self, inputs: Sequence[np.ndarray]) -> list[Any]:
        """Device arrays of the inputs, which several calls of `run` may use."""
        import jax

        with jax.enable_x64(True):
            return [jax.device_put(x, jax.local_devices(backend="cpu")[0]) for x in inputs]

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """Run on device arrays and wait for the results."""
        results = self._loaded.execute_sharded(list(arrays)).disassemble_into_single_device_arrays()
        leaves = [r[0] for r in results]
        for leaf in leaves:
            leaf.block_until_ready()
        return leaves

    def execute(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [np.asarray(leaf) for leaf in self.run(self.put(inputs))]
