"""XLA:CPU in this process: text → HloModuleProto → StableHLO → PJRT CPU client.

XLA ends its process at some modules: what is not known to compile goes through child.py.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...hlo.errors import InputError
from .errors import XlaRefused, reason_of
from .flags import NO_FLAGS, XlaFlags
from .installed import require_installed
from .unoptimize import unoptimised

TOKEN = np.zeros(0, bool)
"""What JAX passes for a token."""

_FLAG_ERROR = re.compile(r"No such compile option: .*|While setting option .*")


@cache
def start_client() -> Any:
    """Load jaxlib, which takes seconds, and start its client. Raises InputError if jaxlib is absent."""
    require_installed()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read when jaxlib loads; hides its start-up messages
    import jax
    from jaxlib.cpu import _lapack

    _lapack.initialize()  # registers the targets, which crash before this call
    return jax.local_devices(backend="cpu")[0].client


class XlaExecutable:
    """A module compiled by XLA:CPU."""

    def __init__(self, text: str, flags: XlaFlags = NO_FLAGS):
        """Compile HLO text. Raises InputError if jaxlib is absent, XlaRefused if XLA refuses the module or a flag."""
        client = start_client()
        from jaxlib import _hlo, xla_client

        try:
            proto = unoptimised(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
            computation = _hlo.XlaComputation(proto)
            stablehlo = xla_client._xla.mlir.xla_computation_to_mlir_module(computation)
            devices = xla_client.DeviceList(tuple(client.local_devices()[:1]))
            options = xla_client.CompileOptions()
            options.env_option_overrides = list(flags)
            self._loaded = client.compile_and_load(stablehlo, devices, options)
            shape = computation.program_shape()
            self._takes = [_is_token(leaf) for p in shape.parameter_shapes() for leaf in _leaves(p)]
            self._returns = [_is_token(leaf) for leaf in _leaves(shape.result_shape())]
        except (RuntimeError, ValueError, TypeError) as error:  # XlaRuntimeError is a RuntimeError
            reason = reason_of(str(error))
            if found := _FLAG_ERROR.search(reason):
                raise InputError(f"XLA's flags: {found[0]}", remedy="correct --xla-flags") from None
            raise XlaRefused(reason) from error

    @property
    def temporary_bytes(self) -> int:
        """Size in bytes of the arena that XLA uses for temporaries."""
        return self._loaded.get_compiled_memory_stats().temp_size_in_bytes

    def put(self, inputs: Sequence[np.ndarray]) -> list[Any]:
        """Device arrays of the inputs, and of TOKEN where a token is taken. Several calls of `run` may use them."""
        import jax

        rest = iter(inputs)
        given = [TOKEN if is_token else next(rest, None) for is_token in self._takes]
        with jax.enable_x64(True):
            return [jax.device_put(x, jax.local_devices(backend="cpu")[0]) for x in (*given, *rest) if x is not None]

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """Run on device arrays and wait for the results that are arrays."""
        results = self._loaded.execute_sharded(list(arrays)).disassemble_into_single_device_arrays()
        leaves = [r[0] for r, is_token in zip(results, self._returns, strict=True) if not is_token]
        for leaf in leaves:
            leaf.block_until_ready()
        return leaves

    def execute(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        return self.timed(inputs)[0]

    def timed(self, inputs: Sequence[np.ndarray]) -> tuple[list[np.ndarray], float]:
        """Results, and the seconds of the run alone."""
        arrays = self.put(inputs)
        start = time.perf_counter()
        leaves = self.run(arrays)
        seconds = time.perf_counter() - start
        return [np.asarray(leaf) for leaf in leaves], seconds


def _leaves(shape: Any) -> Iterator[Any]:
    """The leaves of one of XLA's shapes."""
    if not shape.is_tuple():
        yield shape
        return
    for element in shape.tuple_shapes():
        yield from _leaves(element)


def _is_token(shape: Any) -> bool:
    return str(shape) == "token[]"
