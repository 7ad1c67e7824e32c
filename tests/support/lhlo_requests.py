"""Compares kernel requests, apart from what LHLO drops."""

from dataclasses import replace

from ...hlo.ir import Computation, Instruction
from ...lhlo import LhloModule, parse_text, to_kernels
from ...lhlo.attributes import DROPPED
from ...planning.plan import KernelArgument, KernelRequest, KernelStep, Plan


def assert_same_request(a: KernelRequest, b: KernelRequest) -> None:
    assert (a.name, a.arguments, a.operands, a.results) == (b.name, b.arguments, b.operands, b.results)
    assert a.scratch == b.scratch
    left, right = a.instruction.operands, b.instruction.operands
    assert [o.shape for o in left] == [o.shape for o in right]
    assert [left.index(o) for o in left] == [right.index(o) for o in right]
    assert_same(a.instruction, b.instruction)


def assert_same(a: Instruction, b: Instruction) -> None:
    assert (a.opcode, a.name, a.shape) == (b.opcode, b.name, b.shape)
    assert a.attributes.keys() - DROPPED == b.attributes.keys() - DROPPED
    for key in b.attributes:
        x, y = a.attributes[key], b.attributes[key]
        if not isinstance(x, Computation):
            assert type(x) is type(y) and x == y, key
            continue
        assert (x.name, x.root.name) == (y.name, y.root.name)
        assert [i.name for i in x.instructions] == [i.name for i in y.instructions]
        for p, q in zip(x.instructions, y.instructions, strict=True):
            assert [o.name for o in p.operands] == [o.name for o in q.operands]
            assert_same(p, q)


def assert_program_kernels(program: Plan, made: LhloModule) -> None:
    """Check that a program reads back as its kernels, each with the arguments of its first step in the text."""
    expected: dict[str, KernelRequest] = {}
    for step in program.walk():
        if isinstance(step, KernelStep) and step.kernel.name not in expected:
            pairs = zip(step.arguments, step.kernel.arguments, strict=True)
            arguments = tuple(KernelArgument(s, a.alignment, a.written) for s, a in pairs)
            expected[step.kernel.name] = replace(step.kernel, instruction=step.instruction, arguments=arguments)
    found = to_kernels(parse_text(made.to_text()))
    assert [k.name for k in found] == list(expected)
    for kernel in found:
        assert_same_request(expected[kernel.name], kernel)
