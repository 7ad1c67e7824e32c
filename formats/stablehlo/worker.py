"""A child process around XLA's converter: StableHLO on stdin, `+` and HLO text or `-` and the diagnostics on stdout.

It runs as a file, so that it needs only jaxlib. If a module crashes the converter, only this process ends.
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


def main() -> int:
    try:
        answer = "+" + convert(sys.stdin.buffer.read())
    except (RuntimeError, ValueError, TypeError) as error:
        answer = "-" + str(error)
    sys.stdout.buffer.write(answer.encode("utf-8", "replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
