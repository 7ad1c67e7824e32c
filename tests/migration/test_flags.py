"""migration/: the flags value, its text and its errors; which stack a kernel goes to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction
from ...hlo.opclasses import ELEMENTWISE
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ...migration import Flags, choose, emit_for
from ...migration.flags import DTYPES, FAMILIES, OPCODES, FlagError, FlagRule
from ...migration.names import BACK_ENDS
from ...planning.plan import KernelRequest

F32, F16 = array(DType.F32, 4), array(DType.F16, 4)


def unnested(op, shape=F32):
    return KernelRequest(op.name, Instruction(op, op.value, shape), (), (), ())


def fusion(*ops, shape=F32):
    parameter = Instruction(Op.PARAMETER, "p", shape, (), {"parameter_number": 0})
    body = [parameter]
    for op in ops:
        body.append(Instruction(op, f"{op.value}.{len(body)}", shape, (body[-1],)))
    called = Computation("fused", tuple(body), body[-1])
    return KernelRequest("f", Instruction(Op.FUSION, "f", shape, (), {"calls": called, "kind": "kLoop"}), (), (), ())


@pytest.mark.parametrize(
    "text, canonical",
    [
        ("legacy", "legacy"),
        ("mlir", "mlir"),
        (" mlir , reduce = legacy ", "mlir,reduce=legacy"),
        ("legacy,tanh=mlir", "legacy,tanh=mlir"),
        (
            "mlir,elementwise=legacy,f16=legacy,dynamic-slice=mlir",
            "mlir,elementwise=legacy,f16=legacy,dynamic-slice=mlir",
        ),
    ],
)
def test_flags_parse_and_print(text, canonical):
    flags = Flags.parse(text)
    assert str(flags) == canonical and Flags.parse(canonical) == flags


def test_rules_alone_change_what_the_ledger_says_or_another_base():
    assert Flags.parse("tanh=mlir") == Flags.parse("ledger,tanh=mlir")
    assert (
        str(Flags.parse("tanh=mlir", "legacy")) == "legacy,tanh=mlir" and str(Flags.parse("mlir", "legacy")) == "mlir"
    )


@given(
    st.sampled_from(["legacy", "mlir"]),
    st.lists(
        st.builds(FlagRule, st.sampled_from([*OPCODES, *FAMILIES, *DTYPES]), st.sampled_from(["legacy", "mlir"])),
        unique_by=lambda rule: rule.key,
        max_size=6,
    ),
)
def test_every_flags_value_round_trips(default, rules):
    flags = Flags(default, tuple(rules))
    again = Flags.parse(str(flags))
    assert again == flags and hash(again) == hash(flags) and again.cache_key == flags.cache_key


def test_different_flags_have_different_keys():
    texts = ["legacy", "mlir", "mlir,reduce=legacy", "mlir,dot=legacy", "legacy,reduce=mlir"]
    assert len({Flags.parse(t).cache_key for t in texts}) == len(texts)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "the emitters flag is empty (give legacy or mlir)"),
        ("mlri", "unknown stack 'mlri' in 'mlri' (did you mean 'mlir'?)"),
        ("shade", "unknown stack 'shade' in 'shade' (did you mean 'shadow'?)"),
        ("mlir,reduce=legcy", "unknown stack 'legcy' in 'mlir,reduce=legcy' (did you mean 'legacy'?)"),
        (
            "mlir,redcue=legacy",
            "unknown opcode, family or dtype 'redcue' in 'mlir,redcue=legacy' (did you mean 'reduce'?)",
        ),
        ("mlir,legacy", "'legacy' must come first in 'mlir,legacy' (one stack, then opcode=stack rules)"),
        (
            "mlir,tanh",
            (
                "'tanh' in 'mlir,tanh' is not of the form key=stack (choose from legacy, mlir, shadow, "
                "c, "
                "xla-old, xla-new, xla-old-ir, xla-new-ir)"
            ),
        ),
        (
            "mlir,",
            (
                "'' in 'mlir,' is not of the form key=stack (choose from legacy, mlir, shadow, c, "
                "xla-old, xla-new, xla-old-ir, xla-new-ir)"
            ),
        ),
        ("mlir,tanh=legacy,tanh=mlir", "'tanh' stands twice in 'mlir,tanh=legacy,tanh=mlir' (keep one)"),
        ("mlir,tanh=legacy=mlir", "unknown stack 'legacy=mlir' in 'mlir,tanh=legacy=mlir' (did you mean 'legacy'?)"),
    ],
)
def test_wrong_words_are_refused_with_a_remedy(text, message):
    with pytest.raises(FlagError) as caught:
        Flags.parse(text)
    assert str(caught.value) == message


def test_a_wild_key_lists_what_there_is():
    with pytest.raises(FlagError, match=r"give an opcode such as reduce.*elementwise"):
        Flags.parse("mlir,@@@@=legacy")


@pytest.mark.parametrize(
    "flags, request_, stack",
    [
        ("mlir", unnested(Op.TANH), "mlir"),
        ("mlir,reduce=legacy", unnested(Op.REDUCE), "legacy"),
        ("mlir,reduce=legacy", unnested(Op.TANH), "mlir"),
        ("legacy,tanh=mlir", unnested(Op.TANH), "mlir"),
        ("legacy,tanh=mlir", fusion(Op.TANH), "mlir"),
        ("legacy,tanh=mlir", fusion(Op.TANH, Op.EXPONENTIAL), "legacy"),
        ("mlir,tanh=legacy", fusion(Op.TANH, Op.EXPONENTIAL), "legacy"),
        ("mlir,tanh=legacy", fusion(Op.SINE, Op.EXPONENTIAL), "mlir"),
        ("mlir,f16=legacy", unnested(Op.TANH, F16), "legacy"),
        ("mlir,f16=legacy", fusion(Op.TANH, shape=F16), "legacy"),
        ("mlir,f16=legacy", unnested(Op.TANH), "mlir"),
        ("mlir,f16=legacy,tanh=mlir", unnested(Op.TANH, F16), "mlir"),
        ("mlir,tanh=mlir,f16=legacy", unnested(Op.TANH, F16), "legacy"),
        ("mlir,elementwise=legacy", unnested(Op.DOT), "mlir"),
        ("mlir,elementwise=legacy,tanh=mlir", fusion(Op.TANH), "mlir"),
        ("mlir,fusion=legacy", fusion(), "legacy"),
        ("mlir", fusion(), "mlir"),
    ],
)
def test_which_stack_a_kernel_goes_to(flags, request_, stack):
    assert choose(Flags.parse(flags), request_) == stack


def test_a_dtype_counts_wherever_it_stands():
    source = Instruction(Op.PARAMETER, "p", F16, (), {"parameter_number": 0})
    request = KernelRequest("c", Instruction(Op.CONVERT, "c", F32, (source,)), (), (), ())
    assert choose(Flags.parse("mlir,f16=legacy"), request) == "legacy"


def test_every_elementwise_opcode_follows_its_family():
    flags, family = Flags.parse("mlir,elementwise=legacy"), ELEMENTWISE - {Op.COPY}  # copy belongs to the family shape
    assert {choose(flags, unnested(op)) for op in family} == {"legacy"}
    assert np.array([flags.stack_of(op, ()) == "mlir" for op in Op if op not in family]).all()


def test_both_stacks_are_reached_by_name():
    for name in ("legacy", "mlir"):
        found = emit_for(Flags.parse(name))(unnested(Op.TANH))
        assert found.name == name and callable(found.emit) and callable(found.unsupported)


def test_a_rule_may_be_for_one_platform():
    flags = Flags.parse("legacy,reduce@opencl=mlir,elementwise:f32=mlir,any@opencl=mlir,dot@opencl=legacy")
    assert str(Flags.parse(str(flags))) == str(flags)
    stacks = [
        flags.stack_of(op, {DType.F32}, platform) for platform in ("host", "opencl") for op in (Op.REDUCE, Op.DOT)
    ]
    assert stacks == ["legacy", "legacy", "mlir", "legacy"]
    assert flags.stack_of(Op.ADD, {DType.F32}) == "mlir" and flags.stack_of(Op.ADD, {DType.S32}) == "legacy"
    assert flags.stack_of(Op.ADD, {DType.S32}, "opencl") == "mlir"
    for name in BACK_ENDS:
        assert Flags.parse(f"legacy,any@{name}=mlir").stack_of(Op.ADD, (), name) == "mlir"
    for text, words in (
        ("reduce@moon=mlir", "unknown platform 'moon'"),
        ("any=mlir", "'any'"),
        ("any:f32@opencl=mlir", "'any'"),
    ):
        with pytest.raises(FlagError, match=words):
            Flags.parse(f"legacy,{text}")
