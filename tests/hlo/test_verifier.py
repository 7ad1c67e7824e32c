"""The verifier: every labelled constraint has a module that breaks it, and the corpora break none."""

# ruff: noqa: E501 - tables are read by line

import re
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.errors import VerificationError
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import Layout, Shape, array
from ...hlo.verify import verifier as verifier_module
from ...hlo.verify.infer import INFER, NEEDS_SHAPE, merged
from ...hlo.verify.verifier import verify
from ..cases.broken_modules import BROKEN, GATHER, module_text
from ..support.corpus import sample


def label_of(module: Module) -> str:
    """The label of the constraint that a module breaks."""
    with pytest.raises(VerificationError) as raised:
        verify(module)
    label = re.search(r"\[([A-Z]+\d+)\]", raised.value.message)
    assert label, raised.value.message
    return label[1]


@pytest.mark.parametrize("row", BROKEN, ids=lambda r: f"{r[0]}: {r[2][:60]}")
def test_broken_constraint(row):
    label, parameters, root = row
    module = parse_module(module_text(parameters, root), "broken.hlo")
    with pytest.raises(VerificationError) as raised:
        verify(module)
    assert f"[{label}]" in raised.value.message, raised.value.message
    assert "'root'" in raised.value.message
    assert str(raised.value).startswith("broken.hlo:")


# -- the header ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("label", "header"),
    [
        ("ENTRY1", "entry_computation_layout={(f32[2])->f32[]}"),
        ("ENTRY1", "entry_computation_layout={()->f32[2]}"),
        ("ALIAS1", "input_output_alias={ {}: (1, {}) }"),
        ("ALIAS1", "input_output_alias={ {0}: (0, {}) }"),
        ("ALIAS1", "input_output_alias={ {}: (0, {0}) }"),
        ("DONOR1", "buffer_donor={ (3, {}) }"),
    ],
)
def test_broken_header(label, header):
    module = parse_module(f"HloModule m, {header}\nENTRY e {{ ROOT p = f32[2] parameter(0) }}")
    assert label_of(module) == label


def test_aliased_shapes_agree():
    module = parse_module(
        "HloModule m, input_output_alias={ {}: (0, {}) }\nENTRY e { p = f32[2] parameter(0) ROOT c = s32[2] convert(p) }"
    )
    assert label_of(module) == "ALIAS1"


# -- what text cannot say, and a pass may build ----------------------------------------------------------------------------
def parameter(number: int = 0, name: str = "p", shape: Shape | None = None) -> Instruction:
    return Instruction(
        Op.PARAMETER, name, shape or array(DType.F32, 2), (), MappingProxyType({"parameter_number": number})
    )


def module_of(
    *instructions: Instruction, root: Instruction | None = None, extra: tuple[Computation, ...] = ()
) -> Module:
    entry = Computation("e", instructions, root or instructions[-1])
    return Module("m", (*extra, entry), entry)


def structures():
    p = parameter()
    minus = Instruction(Op.NEGATE, "n", p.shape, (p,))
    inner = parameter(name="i")
    body = Computation("body", (inner,), inner)
    entry = Computation("e", (p,), p)
    yield "MODULE1", Module("m", (), entry)
    yield "MODULE2", module_of(p, extra=(Computation("e", (inner,), inner),))
    yield "MODULE3", module_of(p, Instruction(Op.CALL, "c", p.shape, (p,), {"to_apply": body}))
    yield "COMP1", module_of(p, root=minus)
    yield "COMP2", module_of(minus, p)
    yield "COMP3", module_of(p, Instruction(Op.NEGATE, "p", p.shape, (p,)))
    yield "COMP4", module_of(parameter(1))
    yield "COMP5", module_of(p, minus.replace(attributes={"control-predecessors": ("q",)}))
    yield "ARITY1", module_of(p, minus.replace(operands=(p, p)))
    yield "ATTR1", module_of(p, Instruction(Op.TRANSPOSE, "t", p.shape, (p,)))
    yield "LAYOUT1", module_of(parameter(shape=replace(p.shape, layout=Layout((1,)))))
    yield "SIZE1", module_of(parameter(shape=array(DType.F32, *[1] * 65)))
    yield "SIZE1", module_of(parameter(shape=array(DType.F32, 1 << 31, 1 << 31, 0)))
    yield "REDUCE3", module_of(p, Instruction(Op.REDUCE, "r", p.shape, (p, p), {"dimensions": (), "to_apply": "add"}))
    constant = parse_module("ENTRY e { ROOT c = f32[] constant(1) }").entry.root
    yield "SHAPE1", module_of(constant.replace(shape=array(DType.F32, 3)))


@pytest.mark.parametrize(("label", "module"), list(structures()), ids=lambda v: v if isinstance(v, str) else "")
def test_broken_structure(label, module):
    assert label_of(module) == label


# -- labels and tables ---------------------------------------------------------------------------------------------------
RULE_FILES = [*Path(verifier_module.__file__).parent.glob("*.py")]


def labels(pattern: str) -> set[str]:
    return {m for path in RULE_FILES for m in re.findall(pattern, path.read_text())}


RAISED = r'["\[]([A-Z]+\d+)["\]]'


def test_every_label_has_a_failing_module():
    tested = {row[0] for row in BROKEN} | {label for label, _ in structures()} | {"ENTRY1", "ALIAS1", "DONOR1"}
    assert labels(RAISED) == tested


def test_every_label_is_explained_in_a_docstring():
    assert labels(RAISED) == labels(r"(?<![.\w])([A-Z]+\d+):\s")


def test_every_opcode_has_a_rule():
    assert INFER.keys() == set(Op)
    assert set(Op) > NEEDS_SHAPE


def test_two_rules_for_one_opcode_are_a_mistake():
    with pytest.raises(ValueError, match="two shape rules for abs"):
        merged({Op.ABS: INFER[Op.ABS]}, {Op.ABS: INFER[Op.ABS]})


# -- what must pass ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("parameters", "root"),
    [
        ("f32[2] bf16[2]", "f32[2] add(a, b)"),
        ("s8[2,3] s8[3,4]", "s32[2,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
        ("bf16[2] bf16[2]", "f32[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        ("f32[2]{0}", "f32[2] copy(a)"),
        ("f32[<=4]", "f32[<=4] abs(a)"),
        ("f32[?]", "f32[?] abs(a)"),
        ("pred[8]", "u8[8] bitcast-convert(a)"),
        ("s4[6]", "s8[3] bitcast(a)"),
        ("f32[5,3] s32[2]", "f32[2,3] gather(a, b), " + GATHER),
        ("f32[2,1,4] s32[3]", "f32[1,1,1] dynamic-slice(a, b), dynamic_slice_sizes={1,1,1}"),
        ("f32[4,2] f32[3,2,5] s32[3]", "f32[4,5] ragged-dot(a, b, c), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"),
        ("f32[4,6] f32[4,6] s32[3]", "f32[3,6,6] ragged-dot(a, b, c), lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_ragged_dims={0}"),
        ("f32[2,64] f32[64,2] f32[2,2] f32[2,2]", "f32[2,2] scaled-dot(a, b, c, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
        ("f32[5] f32[]", "f32[2] reduce-window(a, b), window={size=2 stride=2 rhs_dilate=2}, to_apply=add"),
        ("f32[2] f32[]", "f32[] scan(a, b), dimensions={0}, num_carries=1, to_apply=add"),
        ("f32[4]", "c64[3] fft(a), fft_type=RFFT, fft_length={4}"),
        ("c64[3]", "f32[4] fft(a), fft_type=IRFFT, fft_length={4}"),
    ],
)  # fmt: skip
def test_accepted(parameters, root):
    verify(parse_module(module_text(parameters, root)))


XLA_REFUSES_TOO = {"bdf3f1e09cb51b15": "bitcast-convert f32[33] → f32[33,16]: other sizes in bits"}
"""Modules of xla_modules that break a rule of XLA's own verifier."""


def corpus_failures(pattern: str, count: int | None) -> dict[str, str]:
    failures = {}
    for path in sample(pattern, count):
        try:
            verify(parse_module(path.read_text(), path.name))
        except VerificationError as error:
            failures[path.stem] = str(error)
    return failures


@pytest.mark.parametrize(
    ("pattern", "count"), [("xla_modules/*.hlo", 300), ("op_cases/*.hlo", 100), ("jax_programs/*/*.hlo", 20)]
)
def test_corpus_is_accepted(pattern, count):
    failures = corpus_failures(pattern, count)
    assert {k: v for k, v in failures.items() if k not in XLA_REFUSES_TOO} == {}


@pytest.mark.deep
@pytest.mark.parametrize("pattern", ["xla_modules/*.hlo", "op_cases/*.hlo", "jax_programs/*/*.hlo"])
def test_whole_corpus_is_accepted(pattern):
    assert corpus_failures(pattern, None).keys() == (
        set(XLA_REFUSES_TOO) if pattern.startswith("xla_modules") else set()
    )
