"""The legacy stack reads HLO and LHLO alike: byte-identical LLVM IR from both sources."""

import json
import random
from pathlib import Path

import pytest

from .. import legacy
from ..codegen.options import EmitOptions, Target
from ..hlo.errors import TestbedError, UnsupportedError
from ..hlo.parser import parse_module
from ..hlo.planning import plan
from ..lhlo import LhloModule, from_kernels, to_kernels
from .corpus import CORPUS


@pytest.mark.skipif(not CORPUS.exists(), reason="no corpus beside the checkout")
@pytest.mark.parametrize(
    "suite, pattern, count",
    [("jax_programs", "module.hlo", 3), ("jax_programs", "xla_optimized.hlo", 2), ("op_cases", "", 25)],
)
def test_same_llvm_ir_from_hlo_and_lhlo(suite, pattern, count):
    folder, options, compared = CORPUS / suite, EmitOptions(Target.host()), 0
    rows = [json.loads(line)["hlo"] for line in (folder / "manifest.jsonl").read_text().splitlines()]
    for name in random.Random(5).sample(rows, count):
        path = folder / (Path(name).parent / pattern if pattern else name)
        try:
            kernels = plan(parse_module(path.read_text(), str(path))).kernels
        except UnsupportedError:
            continue
        for kernel in kernels:
            try:
                expected = legacy.emit([kernel], options).llvm_ir
            except TestbedError:
                continue
            (read_back,) = to_kernels(LhloModule.from_text(from_kernels([kernel]).to_text()))
            assert legacy.emit([read_back], options).llvm_ir == expected, f"{path}: {kernel.name}"
            compared += 1
    assert compared >= count / 2
