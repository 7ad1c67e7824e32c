"""State of loops in registers: which memory it is, that no iteration loads or stores it, and the same bits."""

import random
import re

import numpy as np
import pytest

from ...codegen.contract import ARCHITECTURES
from ...codegen.inline import with_kernels
from ...codegen.load import load
from ...codegen.optimize import compile_object
from ...codegen.options import EmitOptions, Target
from ...planning.allocation import BufferSlice
from ...thunks import ConditionalThunk, CopyThunk, SequentialThunk, WhileThunk, rounds
from ...thunks.executor import Executor
from ...thunks.host_build import Inlining, host_ir, module_of
from ...thunks.host_locals import Local, Registers, kept_in_registers
from ...thunks.host_program import HostProgram
from ..support.thunk_kernels import KERNELS, counted_loop, kernel, part

HOST = EmitOptions.host()
COUNTER, ONE, LIMIT, PREDICATE = part(1), part(1, 4), part(1, 8), part(1, 12, 1)


def loop(*body):
    return counted_loop(COUNTER, ONE, LIMIT, PREDICATE, *body)


def kept(thunk, count=16, small=("add", "less", "step"), outer=()):
    return kept_in_registers(thunk, Registers(frozenset(small), count, 64), outer)


def test_overlapping_slices_are_one_variable():
    body = [kernel("step", [part(0, 0, 8)], [part(0, 8, 8)]), kernel("step", [part(0, 12, 8)], [part(0, 64, 4)])]
    assert kept(loop(*body)) == [
        (PREDICATE, True),
        (part(0, 64, 4), True),
        (COUNTER, True),
        (part(0, 8, 12), True),
        (ONE, False),
        (LIMIT, False),
        (part(0, 0, 8), False),
    ]


def test_what_other_kernels_touch_stays_in_memory():
    body = [kernel("step", [part(0, 0, 8)], [part(0, 8, 8)]), kernel("large", [part(0, 4, 2), COUNTER], [part(2)])]
    assert kept(loop(*body)) == [(PREDICATE, True), (part(0, 8, 8), True), (ONE, False), (LIMIT, False)]


def test_registers_go_to_what_is_written_then_to_what_is_small():
    body = [kernel("step", [part(0, 0, 4), part(2, 0, 128)], [part(0, 64, 192)])]
    assert [len(kept(loop(*body), count)) for count in (0, 2, 5, 8, 16)] == [0, 2, 3, 6, 7]
    assert (part(0, 64, 192), True) in kept(loop(*body), 5) and (ONE, False) not in kept(loop(*body), 5)


def test_variables_of_an_outer_loop_serve_the_inner_one():
    outer = [Local(part(1, 0, 64), True, "%outer")]
    assert kept(loop(kernel("step", [], [part(0)])), outer=outer) == [(part(0), True)]
    assert kept(loop(kernel("step", [], [part(0)])), count=4, outer=outer) == []  # the four words of the outer loop


BODY = """
define void @step(ptr noalias align 32 %x) {
  %v = load <8 x float>, ptr %x
  %w = fmul <8 x float> %v, splat (float 5.0e-01)
  store <8 x float> %w, ptr %x
  ret void
}
define void @more(ptr noalias align 32 %x, ptr noalias %n) {
  %v = load <8 x float>, ptr %x
  %i = load i32, ptr %n
  %f = sitofp i32 %i to float
  %s = insertelement <8 x float> poison, float %f, i32 0
  %b = shufflevector <8 x float> %s, <8 x float> poison, <8 x i32> zeroinitializer
  %w = fadd <8 x float> %v, %b
  store <8 x float> %w, ptr %x
  ret void
}
"""


@pytest.mark.skipif(Target.host().architecture not in ARCHITECTURES, reason="kernels are not inlined here")
@pytest.mark.parametrize("choice", [False, True])
def test_an_iteration_loads_and_stores_nothing_but_the_word_to_stop(choice):
    state = BufferSlice(0, 0, 32)
    steps = [kernel("step", [], [state]), kernel("more", [], [state, COUNTER])]
    if choice:
        branches = tuple(SequentialThunk((step,)) for step in steps)
        steps = [ConditionalThunk("either", COUNTER, False, branches)]
    root, seconds = SequentialThunk((loop(*steps),)), dict.fromkeys(("add", "less", "step", "more"), 1e-9)
    module = module_of(root, HOST, seconds)
    again, kernels = Inlining(root, seconds, module, (KERNELS + BODY,)).prepare(HOST)
    text = with_kernels(host_ir(again), kernels, HOST)
    blocks = re.findall(r"^[^;\s][^\n]*:.*?(?=\n\n|\n\})", text, re.MULTILINE | re.DOTALL)
    inside = [b for b in blocks if "fadd" in b or "fmul" in b]
    assert inside and not [
        line for b in inside for line in b.splitlines() if re.search(r" = load (?!atomic)|store ", line)
    ]


WIDTHS = {"f32": ("float", 4), "x4": ("<4 x float>", 16), "x8": ("<8 x float>", 32), "i32": ("i32", 4)}


def drawn_kernels():
    """Kernels of two arguments for each type: out = out · 1.25 + in, and out = in."""
    text = ""
    for name, (kind, _) in WIDTHS.items():
        if kind == "i32":
            steps = "%c = mul i32 %a, 5\n  %d = add i32 %c, %b"
        else:
            factor = "1.25" if kind == "float" else "splat (float 1.25)"
            steps = f"%c = fmul {kind} %a, {factor}\n  %d = fadd {kind} %c, %b"
        head = f"(ptr noalias align 4 %x, ptr noalias align 4 %y) {{\n  %b = load {kind}, ptr %y, align 4\n"
        text += f"define void @move_{name}{head}  store {kind} %b, ptr %x, align 4\n  ret void\n}}\n"
        text += f"define void @mix_{name}{head}  %a = load {kind}, ptr %x, align 4\n  {steps}\n"
        text += f"  store {kind} %d, ptr %x, align 4\n  ret void\n}}\n"
    return text


def drawn_loop(rng, depth=0):
    """Steps on slices of one allocation, which overlap as they come. `other` is not inlined."""
    body, cells = [], 64
    for _ in range(rng.randrange(1, 7)):
        name, (_, size) = rng.choice(list(WIDTHS.items()))
        to = 4 * rng.randrange(cells - size // 4)
        source = rng.choice([o for o in range(0, 4 * cells - size, 4) if abs(o - to) >= size])
        pair = part(0, source, size), part(0, to, size)
        kind = rng.choice(["mix", "move", "other", "copy"] if rng.random() < 0.3 else ["mix", "move"])
        if kind == "copy":
            body.append(CopyThunk("copy", *pair))
        else:
            body.append(kernel("other" if kind == "other" else f"{kind}_{name}", *([p] for p in pair)))
            body[-1] = type(body[-1])(body[-1].name, body[-1].symbol, body[-1].arguments[::-1])
    if depth < 2 and rng.random() < 0.5:
        body.insert(rng.randrange(len(body) + 1), drawn_loop(rng, depth + 1))
    word = 16 * (depth + 1)
    counter, predicate = part(1, word), part(1, word + 4, 1)
    limit = part(1, 8)
    again = SequentialThunk((kernel("less", [counter, limit], [predicate]),))
    steps = SequentialThunk((kernel("add", [counter, ONE], [counter]), *body))
    return SequentialThunk((kernel("zero", [], [counter]), WhileThunk("loop", again, steps, predicate)))


OTHER = "define void @other(ptr %x, ptr %y) {\n  store volatile i32 7, ptr %x, align 4\n  ret void\n}\n"


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("most", [1, 3, rounds.MOST_ROUNDS])
def test_overlapping_state_of_nested_loops_keeps_its_bits(seed, most, monkeypatch):
    """most: iterations after which a loop returns to Python and is resumed."""
    monkeypatch.setattr(rounds, "MOST_ROUNDS", most)
    monkeypatch.setattr(rounds, "MOST_STEADY_ROUNDS", most)
    rng, kernels = random.Random(seed), KERNELS + drawn_kernels()
    code = load([compile_object(kernels + OTHER, HOST, cache=None)])
    root = SequentialThunk((drawn_loop(rng),))
    seconds = dict.fromkeys(code.addresses, 1e-9)
    module = module_of(root, HOST, seconds)
    built = Inlining(root, seconds, module, (kernels,)).build(HOST, None)
    addresses = {name: code.address(name) for name in module.symbols}
    program = HostProgram(module, load([built.data], addresses))
    results = []
    for host in (None, program):
        values = np.random.default_rng(seed).normal(size=64).astype(np.float32)
        words = np.zeros(16, np.int32)
        words[1:3] = 1, 5
        frame = Executor(root, code.address, [0, 1], program=host).frame(
            np.array([values.ctypes.data, words.ctypes.data], np.uint64)
        )
        frame.run()
        results.append((values.tobytes(), words.tobytes()))
    assert results[0] == results[1]
