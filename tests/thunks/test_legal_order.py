"""Other orders of thunks: conflicts keep their order, and a thunk that declares too little is noticed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from testbed.backends.base import CompileOptions
from testbed.backends.host.executable import HostExecutable
from testbed.differential.executions import difference, in_order, same_bits
from testbed.formats.program import Program
from testbed.formats.text.parser import parse_module
from testbed.migration.api import compile
from testbed.planning.plan import BufferSlice
from testbed.thunks import KernelThunk, SequentialThunk, read, write
from testbed.thunks.legal_order import dependencies, reordered

A, B, C = (BufferSlice(0, offset, 8) for offset in (0, 8, 16))

TEXT = """HloModule m
less { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = pred[] compare(p, q), direction=LT }
c { s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT }
b { s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  v = f32[64] sort(x), dimensions={0}, to_apply=less
  y = f32[64] cosine(v)
  ROOT t = (s32[], f32[64]) tuple(j, y) }
ENTRY e { x = f32[64] parameter(0)
  z = s32[] constant(0)
  s = (s32[], f32[64]) tuple(z, x)
  w = (s32[], f32[64]) while(s), condition=c, body=b
  y = f32[64] get-tuple-element(w), index=1
  a = f32[64] sort(x), dimensions={0}, to_apply=less
  d = f32[64] sort(y), dimensions={0}, to_apply=less
  ROOT r = (f32[64], f32[64], f32[64]) tuple(a, d, y) }
"""

CHAIN = """HloModule m
less { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = pred[] compare(p, q), direction=LT }
ENTRY e { x = f32[64] parameter(0)
  a = f32[64] sort(x), dimensions={0}, to_apply=less
  b = f32[64] cosine(a)
  c = f32[64] sort(b), dimensions={0}, to_apply=less
  ROOT r = (f32[64], f32[64]) tuple(a, c) }
"""


def kernel(name, *uses):
    return KernelThunk(name, name, uses)


def test_conflicts_are_what_is_declared():
    thunks = [
        kernel("k0", write(A)),
        kernel("k1", write(B)),
        kernel("k2", read(A), read(B), write(C)),
        kernel("k3", read(A)),
    ]
    assert dependencies(thunks) == [set(), set(), {0, 1}, {0}]


def test_all_legal_orders_come_and_no_other():
    sequence = SequentialThunk((kernel("k0", write(A)), kernel("k1", write(B)), kernel("k2", read(A), write(A))))
    found = {"".join(t.name[1] for t in reordered(sequence, Random(seed)).thunks) for seed in range(100)}
    assert found == {"012", "021", "102"}


def test_a_program_has_the_same_bits_in_every_way():
    assert difference(Program("m", TEXT, parse_module(TEXT))) is None


def test_a_write_that_is_not_declared_is_noticed():
    executable = compile(CHAIN, options=CompileOptions(host_program="interpreted"))
    reads = SequentialThunk(tuple(map(only_reads, executable.thunks.thunks)))
    image = replace(executable.image, thunks=reads)
    other = HostExecutable(image, executable.program, executable.code, executable.target, {})
    assert same_bits(results_of(other), results_of(executable))
    assert not all(same_bits(results_of(in_order(seed)(other)), results_of(executable)) for seed in range(20))


def results_of(executable):
    """Its results, in memory that held nothing like them."""
    inputs = [np.cos(np.arange(64, dtype=np.float32))]
    outputs = executable.execute(inputs)
    for output in outputs:
        output.fill(np.nan)
    return executable.execute(inputs, outputs)


def only_reads(thunk):
    if not isinstance(thunk, KernelThunk):
        return thunk
    return replace(thunk, arguments=tuple(read(use.slice) for use in thunk.arguments))
