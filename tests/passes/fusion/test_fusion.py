"""Loop fusion: which instructions become one kernel, which must not, and that code does not grow exponentially."""

import time

import pytest

from ....formats.text.parser import parse_module
from ....hlo.analysis.kernel_forms import MOST_OPERANDS
from ....hlo.dtypes import DType
from ....hlo.ir import Computation, Instruction, Module
from ....hlo.opcodes import Op
from ....hlo.shapes import array
from ....passes.fusion.cost import MOST_CODE
from ....passes.fusion.loop import fuse
from ....passes.pipeline import optimize
from ....planning.planner import plan


def kernels(body: str, *, head: str = "") -> list[str]:
    """Opcodes of each kernel of an entry, roots last, without parameters and constants: 'tanh exponential'."""
    found = plan(parse_module(f"HloModule m\n{REGION}{head}\nENTRY e {{ {body} }}"))
    return [describe(step.instruction) for step in found.walk()]


def describe(i: Instruction) -> str:
    if i.opcode is not Op.FUSION:
        return i.opcode.value
    return " ".join(m.opcode.value for m in i.called()[0].instructions if m.opcode not in (Op.PARAMETER, Op.CONSTANT))


REGION = """add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
"""


def test_an_elementwise_chain_is_one_kernel():
    assert kernels("""a = f32[4096] parameter(0)
      b = f32[4096] parameter(1)
      m = f32[4096] multiply(a, b)
      s = f32[4096] add(m, a)
      t = f32[4096] tanh(s)
      ROOT e = f32[4096] exponential(t)""") == ["multiply add tanh exponential"]


def test_a_reduce_takes_its_producers_but_is_not_computed_per_element():
    assert kernels("""x = f32[512,512] parameter(0)
      z = f32[] constant(0)
      e = f32[512,512] multiply(x, x)
      r = f32[512] reduce(e, z), dimensions={0}, to_apply=add
      b = f32[512,512] broadcast(r), dimensions={1}
      ROOT d = f32[512,512] divide(x, b)""") == ["multiply reduce", "broadcast divide"]


def test_costly_ops_are_not_repeated_under_a_broadcast():
    assert kernels("""v = f32[512] parameter(0)
      x = f32[512,512] parameter(1)
      e = f32[512] exponential(v)
      b = f32[512,512] broadcast(e), dimensions={1}
      ROOT m = f32[512,512] multiply(x, b)""") == ["exponential", "broadcast multiply"]


@pytest.mark.parametrize("op, along, stored", [("tanh", "1x64", True), ("abs", "1x64", False), ("tanh", "32x1", False)])
def test_costly_ops_are_not_computed_one_by_one_in_a_running_sum(op, along, stored):
    """A sum along memory reads its elements one by one; a sum across memory reads vectors of them."""
    before = {"1x64": "0_0x63_0", "32x1": "31_0x0_0"}[along]
    made = kernels(f"""a = f32[32,64] parameter(0)
      x = f32[32,64] {op}(a)
      y = f32[32,64] add(x, x)
      z = f32[] constant(0)
      ROOT r = f32[32,64] reduce-window(y, z), window={{size={along} pad={before}}}, to_apply=add""")
    assert made == ([f"{op} add", "reduce-window"] if stored else [f"{op} add reduce-window"])


def test_cheap_ops_are_repeated_under_a_broadcast():
    assert kernels("""v = f32[512] parameter(0)
      w = f32[512] parameter(1)
      x = f32[512,512] parameter(2)
      e = f32[512] add(v, w)
      b = f32[512,512] broadcast(e), dimensions={1}
      ROOT m = f32[512,512] multiply(x, b)""") == ["add broadcast multiply"]


def test_kernels_that_read_the_same_array_become_one_and_costly_ops_are_not_repeated():
    text = """x = f32[8192] parameter(0)
      c = f32[8192] {op}(x)
      z = f32[] constant(0)
      r = f32[] reduce(c, z), dimensions={{0}}, to_apply=add
      s = f32[8192] sine(c)
      ROOT t = (f32[], f32[8192]) tuple(r, s)"""
    assert kernels(text.format(op="negate")) == ["negate reduce sine tuple"]
    assert kernels(text.format(op="exponential")) == ["exponential reduce sine tuple"]


def test_what_a_dot_reads_is_stored_and_what_follows_it_is_its_epilogue():
    found = kernels("""x = f32[64,64] parameter(0)
      two = f32[] constant(2)
      b = f32[64,64] broadcast(two), dimensions={}
      d = f32[64,64] dot(x, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT a = f32[64,64] add(d, b)""")
    assert found == ["broadcast", "dot add"]


def test_a_dynamic_update_slice_takes_the_elementwise_start_and_the_update():
    assert kernels("""x = f32[64,64] parameter(0)
      i = s32[] parameter(1)
      z = s32[] constant(0)
      n = f32[64,64] negate(x)
      s = f32[1,64] dynamic-slice(x, i, z), dynamic_slice_sizes={1,64}
      e = f32[1,64] exponential(s)
      ROOT u = f32[64,64] dynamic-update-slice(n, e, i, z)""") == [
        "negate dynamic-slice exponential dynamic-update-slice"
    ]


@pytest.mark.parametrize("axis", [0, 1])
def test_a_reduction_does_not_take_what_reads_large_arrays_in_two_orders_of_memory(axis):
    """Across the order of a reduction each element is a line of memory: 6 to 9 of XLA's time with rows of 8 KiB."""
    text = """x = f32[{n},{n}] parameter(0)
      y = f32[{n},{n}]{{0,1}} parameter(1)
      e = f32[{n},{n}] exponential(x)
      m = f32[{n},{n}] multiply(e, y)
      s = f32[{n},{n}] negate(m)
      z = f32[] constant(0)
      ROOT r = f32[{n}] reduce(s, z), dimensions={{{axis}}}, to_apply=add"""
    assert kernels(text.format(n=16, axis=axis)) == ["exponential multiply negate reduce"]
    assert kernels(text.format(n=512, axis=axis)) == ["exponential multiply", "negate reduce"]


def test_broadcasts_have_no_order_of_memory():
    assert kernels("""x = f32[512,512] parameter(0)
      v = f32[512] parameter(1)
      b = f32[512,512]{0,1} broadcast(v), dimensions={0}
      m = f32[512,512] multiply(x, b)
      z = f32[] constant(0)
      ROOT r = f32[512] reduce(m, z), dimensions={1}, to_apply=add""") == ["broadcast multiply reduce"]


def test_large_transposes_are_stored_and_small_ones_fused():
    text = """x = f32[{n},{n}] parameter(0)
      t = f32[{n},{n}] transpose(x), dimensions={{1,0}}
      ROOT a = f32[{n},{n}] add(x, t)"""
    assert kernels(text.format(n=16)) == ["transpose add"]
    assert kernels(text.format(n=1024)) == ["transpose", "add"]


def test_control_dependencies_keep_instructions_apart():
    found = kernels("""x = f32[64] parameter(0)
      a = f32[64] negate(x)
      b = f32[64] abs(a)
      c = f32[64] sine(x), control-predecessors={a}
      ROOT t = (f32[64], f32[64]) tuple(b, c)""")
    assert found == ["negate", "abs", "sine"] or found == ["negate", "sine", "abs"]


def test_fusions_that_come_with_a_module_stay():
    head = """body { p = f32[64] parameter(0)
      n = f32[64] negate(p)
      e = f32[64] exponential(p)
      ROOT t = (f32[64], f32[64]) tuple(n, e) }"""
    found = kernels(
        """x = f32[64] parameter(0)
      a = f32[64] abs(x)
      f = (f32[64], f32[64]) fusion(a), kind=kLoop, calls=body
      g = f32[64] get-tuple-element(f), index=0
      h = f32[64] get-tuple-element(f), index=1
      ROOT s = f32[64] add(g, h)""",
        head=head,
    )
    assert found == ["abs", "negate exponential tuple", "add"]


def test_a_variadic_reduce_takes_its_iota():
    head = """least { a = f32[] parameter(0)
      i = s32[] parameter(1)
      b = f32[] parameter(2)
      j = s32[] parameter(3)
      c = pred[] compare(a, b), direction=LE
      v = f32[] select(c, a, b)
      k = s32[] select(c, i, j)
      ROOT t = (f32[], s32[]) tuple(v, k) }"""
    found = kernels(
        """x = f32[64] parameter(0)
      i = s32[64] iota(), iota_dimension=0
      z = f32[] constant(inf)
      n = s32[] constant(0)
      r = (f32[], s32[]) reduce(x, i, z, n), dimensions={0}, to_apply=least
      ROOT k = s32[] get-tuple-element(r), index=1""",
        head=head,
    )
    assert found == ["iota reduce"]


def doubling(levels: int) -> Module:
    """Repeat x = reverse(x) + pad(slice(x)): each level reads the previous one at two positions."""
    shape = array(DType.F32, 64)
    out = [Instruction(Op.PARAMETER, "x", shape, (), {"parameter_number": 0})]
    for n in range(levels):
        turned = Instruction(Op.REVERSE, f"r{n}", shape, (out[-1],), {"dimensions": (0,)})
        out += [turned, Instruction(Op.ADD, f"a{n}", shape, (turned, out[-1]))]
    entry = Computation("e", tuple(out), out[-1])
    return Module("doubling", (entry,), entry)


def test_a_constant_for_every_element_is_never_an_array_in_memory():
    """A kernel at its limit of code has room for constants. As arrays, they would take 4 KB each here."""
    lines = ["x = f32[1024] parameter(0)", "s0 = f32[1024] negate(x)"]
    for n in range(1, MOST_CODE + 20):
        lines += [f"k{n} = f32[] constant({n})", f"b{n} = f32[1024] broadcast(k{n}), dimensions={{}}"]
        lines += [f"s{n} = f32[1024] {('maximum', 'subtract')[n % 2]}(s{n - 1}, b{n})"]
    found = kernels("\n".join([*lines[:-1], "ROOT " + lines[-1]]))
    assert len(found) == 2 and all("subtract" in k for k in found)


def test_constants_for_every_element_do_not_count_as_operands():
    """Those of a long formula, which stand before it, are more than a kernel may have operands."""
    lines = ["x = f32[1024] parameter(0)", "s0 = f32[1024] negate(x)"]
    for n in range(1, 2 * MOST_OPERANDS):
        lines += [f"k{n} = f32[] constant({n})", f"b{n} = f32[1024] broadcast(k{n}), dimensions={{}}"]
    for n in range(1, 2 * MOST_OPERANDS):
        lines.append(f"s{n} = f32[1024] {('maximum', 'subtract')[n % 2]}(s{n - 1}, b{n})")
    text = "\n".join(["HloModule m", "ENTRY e {", *lines[:-1], "ROOT " + lines[-1], "}"])
    module = fuse(parse_module(text))
    assert [i.opcode for i in module.entry.instructions] == [Op.PARAMETER, Op.FUSION]


def test_code_does_not_explode_where_values_are_read_at_several_places():
    module = optimize(doubling(200))
    fusions = [i for i in module.entry.instructions if i.opcode is Op.FUSION]
    assert len(fusions) >= 200 / 8
    assert all(emitted(f.called()[0]) <= 2 * MOST_CODE for f in fusions)


def emitted(body: Computation) -> int:
    """The number of instructions of an emitter that memoises values per (instruction, number of reversals)."""
    places: dict[Instruction, set[int]] = {body.root: {0}}
    for i in reversed(body.instructions):
        for o in i.operands:
            places.setdefault(o, set()).update(n ^ 1 if i.opcode is Op.REVERSE else n for n in places.get(i, ()))
    return sum(map(len, places.values()))


@pytest.mark.parametrize("count", [4000])
def test_time_is_about_linear(count):
    """Ten times the instructions take at most thirty times as long; a quadratic pass would take a hundred times."""

    def seconds(n: int) -> float:
        module = doubling(n // 2)
        start = time.perf_counter()
        plan(module)
        return time.perf_counter() - start

    small = min(seconds(count // 10) for _ in range(3))
    assert seconds(count) < 30 * small + 0.5
