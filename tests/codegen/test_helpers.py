"""Functions that programs share: compiled once a process, in every form of a program, and independent of its sizes."""

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.host.loader import deserialize_and_load
from ...benchmarks.dot_shapes import Product
from ...codegen import helpers
from ...codegen.cache import MemoryCache
from ...codegen.optimize import build_object
from ...codegen.options import LEVELS, EmitOptions
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ..support.processors import code_for

CONVOLUTION = """HloModule m
ENTRY e {{
  x = f32[1,{size},{size},64] parameter(0)
  w = f32[3,3,64,64] parameter(1)
  ROOT r = f32[1,{size},{size},64] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f
}}
"""


def programs(kind: str) -> list[str]:
    """The text of one program in two sizes."""
    if kind == "product":
        return [Product("f32", "nn", size, size, size).module_text() for size in (256, 512)]
    return [CONVOLUTION.format(size=size) for size in (14, 40)]


def test_a_text_is_compiled_once_whatever_the_cache(monkeypatch):
    built = []
    monkeypatch.setattr(helpers, "_OBJECTS", {})
    monkeypatch.setattr(helpers, "build_object", lambda *given: built.append(given[0]) or build_object(*given))
    text, options = "define void @shared() { ret void }", EmitOptions.host()
    made = [helpers.build_helper(text, options, cache) for cache in (None, MemoryCache(), None)]
    assert built == [text] and len({x.data for x in made}) == 1 and [x.cached for x in made] == [False, True, True]
    assert helpers.build_helper(text, EmitOptions.host(strict=True), None).data and len(built) == 2


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("kind", ["product", "convolution"])
def test_programs_of_other_sizes_share_the_code_of_a_tile(kind, stack, level, monkeypatch):
    with code_for(level):
        options = CompileOptions(cache=None)
        small, large = (compile_module(parse_module(text), Flags.parse(stack), options) for text in programs(kind))
        assert set(small.code.objects) & set(large.code.objects)
        monkeypatch.setattr(helpers, "_OBJECTS", {})
        again = compile_module(parse_module(programs(kind)[0]), Flags.parse(stack), options)
        assert set(again.code.objects) == set(small.code.objects)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("kind", ["product", "convolution"])
def test_a_file_holds_the_functions_that_its_kernels_call(kind, stack):
    module = parse_module(programs(kind)[0])
    executable = compile_module(module, Flags.parse(stack), CompileOptions(cache=None))
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal(p.shape.dims).astype(np.float32) for p in module.entry.parameters]
    (expected,), (found,) = executable.execute(inputs), deserialize_and_load(executable.serialize()).execute(inputs)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
