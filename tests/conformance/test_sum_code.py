"""How long the code of a long sum is, which is what it takes to compile."""

from ... import legacy, mlir_emitters
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...planning.planner import plan

OPTIONS = EmitOptions(Target.level("x86-64-v4"))


def emitted(stack, dtype: str) -> str:
    add = f"add {{\n  a = {dtype}[] parameter(0)\n  b = {dtype}[] parameter(1)\n  ROOT c = {dtype}[] add(a, b) }}"
    entry = f"x = {dtype}[8,4096] parameter(0)\n  z = {dtype}[] constant(0)"
    root = f"y = {dtype}[8,4096] abs(x)\n  ROOT r = {dtype}[8] reduce(y, z), dimensions={{1}}, to_apply=add"
    module = parse_module(f"HloModule m\n{add}\nENTRY e {{\n  {entry}\n  {root}\n}}\n")
    return stack.emit(plan(module).kernels, OPTIONS).llvm_ir


def test_constants_in_all_lanes_are_written_once():
    text = emitted(legacy, "f32")
    assert "splat (float" in text and "float undef" not in text


def test_wide_elements_are_added_in_shorter_bodies():
    assert emitted(mlir_emitters, "f64").count(" load double") < emitted(mlir_emitters, "f32").count(" load float")
