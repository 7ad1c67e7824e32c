"""Dynamic dimensions become padded arrays with sizes: evaluator before and after the pass, and both stacks."""

import numpy as np
import pytest

from ....backends.interpreter.platform import InterpreterExecutable
from ....cli.main import main
from ....evaluator.evaluator import evaluate
from ....formats.program import save_io
from ....formats.text.parser import parse_module
from ....hlo.errors import InputError
from ....migration import compile_module
from ...cases.dynamic_poison import evaluate_poisoned, poisoned
from ...support.check import check
from ...support.passes import agree, fill, run, same

REGIONS = """HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
mul { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] multiply(p, q) }
top { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] maximum(p, q) }
less { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = pred[] compare(p, q), direction=LT }
"""


def entry(*lines: str, regions: str = "") -> str:
    return REGIONS + regions + "ENTRY e {\n" + "\n".join(lines) + "\n}\n"


X, Z = "x = f32[<=5,3] parameter(0)", "z = f32[] constant(0)"
BODIES = {
    "elementwise": [X, "y = f32[5,3] parameter(1)", "ROOT r = f32[<=5,3] add(x, y)"],
    "scalar operands": [X, "p = pred[] constant(true)", "n = f32[<=5,3] negate(x)",
                        "ROOT r = f32[<=5,3] select(p, n, x)"],
    "reduce": [X, Z, "ROOT r = f32[3] reduce(x, z), dimensions={0}, to_apply=add"],
    "reduce kept": [X, Z, "ROOT r = f32[<=5] reduce(x, z), dimensions={1}, to_apply=add"],
    "product": [X, "o = f32[] constant(2)", "ROOT r = f32[] reduce(x, o), dimensions={0,1}, to_apply=mul"],
    "maximum": [X, "o = f32[] constant(-9)", "ROOT r = f32[3] reduce(x, o), dimensions={0}, to_apply=top"],
    "broadcast": [X, "ROOT r = f32[2,3,<=5] broadcast(x), dimensions={2,1}"],
    "transpose": [X, "ROOT r = f32[3,<=5] transpose(x), dimensions={1,0}"],
    "reverse": [X, "ROOT r = f32[<=5,3] reverse(x), dimensions={0,1}"],
    "slice": [X, "ROOT r = f32[<=2,2] slice(x), slice={[1:5:2], [0:2]}"],
    "concatenate": [X, "y = f32[2,3] parameter(1)", "ROOT r = f32[<=12,3] concatenate(x, y, x), dimensions={0}"],
    "concatenate beside": [X, "y = f32[<=5,2] slice(x), slice={[0:5], [1:3]}",
                           "ROOT r = f32[<=5,5] concatenate(x, y), dimensions={1}"],
    "pad": [X, "f = f32[] constant(7)", "ROOT r = f32[<=12,4] pad(x, f), padding=2_1_1x0_1"],
    "pad less": [X, "f = f32[] constant(7)", "ROOT r = f32[<=3,3] pad(x, f), padding=-1_-1x0_0"],
    "dot": [X, "y = f32[5,2] parameter(1)",
            "ROOT r = f32[3,2] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}"],
    "dot rows": [X, "y = f32[3,2] parameter(1)",
                 "ROOT r = f32[<=5,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"],
    "reshape": [X, "ROOT r = f32[<=5,1,3] reshape(x)"],
    "reshape flat": [X, "ROOT r = f32[<=15] reshape(x)"],
    "reshape again": [X, "t = f32[3,<=5] transpose(x), dimensions={1,0}", "ROOT r = f32[<=15] reshape(t)"],
    "sort": [X, "ROOT r = f32[<=5,3] sort(x), dimensions={0}, is_stable=true, to_apply=less"],
    "gather": [X, "i = s32[2] constant({2,0})", ("ROOT r = f32[2,<=5] gather(x, i), offset_dims={1}, "
               "collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={5,1}")],
    "dynamic-slice": [X, "i = s32[] parameter(1)", "j = s32[] constant(0)",
                      "ROOT r = f32[1,3] dynamic-slice(x, i, j), dynamic_slice_sizes={1,3}"],
    "dynamic-update-slice": [X, "y = f32[1,3] parameter(1)", "i = s32[] parameter(2)", "j = s32[] constant(0)",
                             "ROOT r = f32[<=5,3] dynamic-update-slice(x, y, i, j)"],
    "reduce-window": [X, Z, "ROOT r = f32[<=5,3] reduce-window(x, z), window={size=3x1 pad=1_1x0_0}, to_apply=add"],
    "windows apart": [X, Z, "ROOT r = f32[<=2,3] reduce-window(x, z), window={size=2x1 stride=2x1}, to_apply=top"],
    "sizes": [X, "n = s32[] get-dimension-size(x), dimensions={0}", "m = s32[] get-dimension-size(x), dimensions={1}",
              "ROOT r = s32[] multiply(n, m)"],
    "smaller": [X, "n = s32[] constant(2)", "ROOT r = f32[<=5,3] set-dimension-size(x, n), dimensions={0}"],
    "larger": [X, "n = s32[] constant(4)", "ROOT r = f32[<=5,3] set-dimension-size(x, n), dimensions={0}"],
    "tuple": [X, "n = f32[<=5,3] negate(x)", "t = (f32[<=5,3], f32[<=5,3]) tuple(x, n)",
              "g = f32[<=5,3] get-tuple-element(t), index=1", "ROOT r = (f32[<=5,3], (f32[<=5,3])) tuple(g, u)"],
}  # fmt: skip
BODIES["tuple"].insert(4, "u = (f32[<=5,3]) tuple(x)")


LEAST = {"pad less": 3, "dynamic-slice": 1, "dynamic-update-slice": 1, "windows apart": 1}
"""Sizes below which nothing is left of the operand."""


@pytest.mark.parametrize("name, size", [(n, s) for n in BODIES for s in (0, 1, 3, 5) if s >= LEAST.get(n, 0)])
def test_padded(name, size):
    text = entry(*BODIES[name])
    x, *rest = fill(parse_module(text), size)
    inputs = [x[:size], *rest]
    after = same(text, inputs, "flatten", "pad-dynamic")
    assert not any(i.shape.is_dynamic for i in after.instructions())
    agree(parse_module(text), evaluate(parse_module(text), inputs), evaluate_poisoned(poisoned(text), inputs))
    check(text, inputs)


def test_scatter_of_as_many_updates_as_there_are():
    text = entry(
        "x = f32[4] parameter(0)", "i = s32[<=3] parameter(1)", "u = f32[<=3] parameter(2)",
        "ROOT r = f32[4] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
    )  # fmt: skip
    x, updates = np.arange(4, dtype=np.float32), np.array([10, 20], np.float32)
    (out,) = check(text, [x, np.array([1, 3], np.int32), updates])
    assert out.tolist() == [0, 11, 2, 23]


@pytest.mark.parametrize("size", [0, 3, 5])
def test_targets_of_xlas_own_padder(size):
    text = entry(
        "x = f32[<=5,3] parameter(0)",
        'p = (f32[5,3], s32[], s32[]) custom-call(x), custom_call_target="PadToStatic"',
        "a = f32[5,3] get-tuple-element(p), index=0", "n = s32[] get-tuple-element(p), index=1",
        "m = s32[] get-tuple-element(p), index=2",
        'y = f32[<=8,3] custom-call(a, n, m), custom_call_target="SliceToDynamic"',
        "ROOT t = (f32[5,3], s32[], s32[], f32[<=8,3]) tuple(a, n, m, y)",
    )  # fmt: skip
    (x,) = fill(parse_module(text), 1)
    same(text, [x[:size]], "flatten", "pad-dynamic", exact=True)
    assert check(text, [x[:size]])[1] == size


LOOP = """condition { t = (s32[], f32[<=4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
body { t = (s32[], f32[<=4]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[<=4] get-tuple-element(t), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  n = s32[] get-dimension-size(x), dimensions={0}
  m = s32[] subtract(n, one)
  y = f32[<=4] set-dimension-size(x, m), dimensions={0}
  d = f32[<=4] add(y, y)
  ROOT r = (s32[], f32[<=4]) tuple(j, d) }
yes { x = f32[<=4] parameter(0)
  ROOT n = f32[<=4] negate(x) }
no { x = f32[<=4] parameter(0)
  n = s32[] constant(2)
  ROOT y = f32[<=4] set-dimension-size(x, n), dimensions={0} }
"""


def test_sizes_change_in_a_loop():
    text = entry(
        "x = f32[<=4] parameter(0)", "i = s32[] constant(0)", "t = (s32[], f32[<=4]) tuple(i, x)",
        "ROOT w = (s32[], f32[<=4]) while(t), condition=condition, body=body", regions=LOOP,
    )  # fmt: skip
    x = np.arange(4, dtype=np.float32)
    same(text, [x], "flatten", "pad-dynamic")
    assert [r.tolist() for r in check(text, [x])] == [3, [0]]


@pytest.mark.parametrize("taken", [True, False])
def test_sizes_come_from_the_branch_that_ran(taken):
    text = entry(
        "x = f32[<=4] parameter(0)", "p = pred[] parameter(1)",
        "ROOT c = f32[<=4] conditional(p, x, x), true_computation=yes, false_computation=no", regions=LOOP,
    )  # fmt: skip
    inputs = [np.arange(3, dtype=np.float32), np.array(taken)]
    same(text, inputs, "flatten", "pad-dynamic")
    assert len(check(text, inputs)[0]) == (3 if taken else 2)


def test_fusions_of_dynamic_arrays_are_taken_apart():
    body = """body { x = f32[<=4] parameter(0)
  ROOT n = f32[<=4] negate(x) }
"""
    text = entry("x = f32[<=4] parameter(0)", "ROOT f = f32[<=4] fusion(x), kind=kLoop, calls=body", regions=body)
    check(text, [np.arange(3, dtype=np.float32)])


def test_given_outputs_hold_the_bound_and_results_are_cut():
    text = entry("x = f32[<=4] parameter(0)", "ROOT n = f32[<=4] negate(x)")
    program = compile_module(parse_module(text))
    assert [leaf.shape.dims for leaf in program.inputs] == [leaf.shape.dims for leaf in program.outputs] == [(4,)]
    (place,) = program.execute([np.zeros(4, np.float32)])
    interpreted = InterpreterExecutable(parse_module(text))
    for given in (program, interpreted):
        place[:] = 9
        (out,) = given.execute([np.array([1, 2], np.float32)], [place])
        assert out.tolist() == [-1, -2] == place[:2].tolist()
        with pytest.raises(InputError, match=r"output 0: expected"):
            given.execute([np.array([1, 2], np.float32)], [np.zeros(2, np.float32)])


def test_the_command_line_takes_present_sizes(tmp_path, capsys):
    (tmp_path / "module.hlo").write_text(entry("x = f32[<=4] parameter(0)", "ROOT n = f32[<=4] negate(x)"))
    x = np.array([1, 2], np.float32)
    save_io(tmp_path / "io.npz", [x], [-x])
    assert main(["diff", str(tmp_path), "--stacks", "evaluator,legacy,mlir", "--all"]) == 0
    assert "f32[2]" in capsys.readouterr().out
    assert main(["bench", str(tmp_path), "--rounds", "3", "--seconds", "0.001"]) == 0
    save_io(tmp_path / "io.npz", [np.zeros(5, np.float32)], [x])
    assert main(["run", str(tmp_path)]) == 2
    assert "shape [5] does not match f32[<=4] (give an array that fits f32[<=4])" in capsys.readouterr().err


@pytest.mark.parametrize("dims", [(5,), (2, 2)])
def test_inputs_beyond_the_bound_are_refused(dims):
    text = entry("x = f32[<=4] parameter(0)", "ROOT n = f32[<=4] negate(x)")
    for give in (
        compile_module(parse_module(text)).execute,
        lambda v: evaluate(run(text, "flatten", "pad-dynamic"), v),
    ):
        with pytest.raises(InputError, match=r"input 0 .*f32\[4\]"):
            give([np.zeros(dims, np.float32)])
