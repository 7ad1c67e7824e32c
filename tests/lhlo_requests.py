"""Are two kernel requests the same but for what LHLO drops?"""

from ..hlo.ir import Computation, Instruction
from ..hlo.plan import KernelRequest
from ..lhlo.attributes import DROPPED


def assert_same_request(a: KernelRequest, b: KernelRequest) -> None:
    assert (a.name, a.arguments, a.operands, a.results) == (b.name, b.arguments, b.operands, b.results)
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
