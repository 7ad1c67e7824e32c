"""A child process around XLA's converters: a module on stdin, `+` and the result or `-` and the diagnostics on stdout.

The argument says which: import (StableHLO to HLO text; also without an argument), or text or bytecode (an
HloModuleProto to StableHLO). It runs as a file, so that it needs only jaxlib. If a module crashes a converter, only
this process ends.
"""

import sys


def convert(code: bytes) -> str:
    """XLA's HLO text of a StableHLO module; no constant is elided. Raises the errors of jaxlib."""
    from jaxlib import _hlo, _jax

    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    options.print_backend_config = True
    computation = _jax.mlir.mlir_module_to_xla_computation(code, use_tuple_args=False, return_tuple=False)
    return computation.get_hlo_module().to_string(options)


def export(proto: bytes, kind: str) -> bytes:
    """StableHLO of an HloModuleProto. kind: text or bytecode. What is no StableHLO is refused by its serializer."""
    from jaxlib import _hlo, _jax
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    text = _jax.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(proto))
    code = _jax.mlir.serialize_portable_artifact(text, stablehlo.get_current_version())
    if kind == "bytecode":
        return code
    context = ir.Context()
    stablehlo.register_dialect(context)
    module = stablehlo.deserialize_portable_artifact(context, code)
    return module.operation.get_asm(enable_debug_info=True).encode("utf-8") + b"\n"


def main() -> int:
    kind = sys.argv[1] if len(sys.argv) > 1 else "import"
    data = sys.stdin.buffer.read()
    try:
        if kind == "import":
            answer = b"+" + convert(data).encode("utf-8", "replace")
        else:
            answer = b"+" + export(data, kind)
    except Exception as error:  # jaxlib raises errors of many classes, MLIRError among them
        answer = b"-" + str(error).encode("utf-8", "replace")
    sys.stdout.buffer.write(answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
