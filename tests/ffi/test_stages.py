"""Handlers in programs: static registration, stages, states, memory, control flow, threads, files, older versions."""

from __future__ import annotations

import ctypes
import gc
import threading

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.host.ahead import AheadOptions, compile_ahead
from ...backends.host.handler_checks import HandlerError, run_checked
from ...backends.host.loader import load_executable
from ...backends.host.red_zones import RedZoneError
from ...backends.registry import platform
from ...codegen.options import EmitOptions
from ...evaluator.evaluator import evaluate
from ...ffi import registry
from ...ffi.calls import CallError, user_data
from ...ffi.static_library import elf_library, load_library, register_symbols
from ...formats.proto.proto import module_from_proto, module_to_proto
from ...formats.text.parser import parse_module
from ...formats.text.printer import print_instruction
from ...hlo.errors import InputError, UnsupportedError
from ...lhlo import from_plan, parse_text
from ...lhlo.to_plan import to_plan
from ...migration import Flags, compile_module
from ...migration.choose import emit_for
from ...planning.planner import plan
from ..cases.ffi_stages import SOURCE
from ..support.check import check
from ..support.cpp import compile_cpp

TYPED = "api_version=API_VERSION_TYPED_FFI"
PLAIN = ("add_one", "tick", "weighted", "overrun", "hang", "crash")
OLD = {
    "original": "API_VERSION_ORIGINAL",
    "original_tuple": "API_VERSION_ORIGINAL",
    "returning": "API_VERSION_STATUS_RETURNING",
    "unified": "API_VERSION_STATUS_RETURNING_UNIFIED",
}


@pytest.fixture(scope="module")
def library():
    path = compile_cpp(SOURCE)
    names = load_library(path)
    assert names == ("test.count", "test.notes", "test.use")
    register_symbols(path, {f"test.{name}": name for name in PLAIN})
    found = ctypes.CDLL(str(path))
    for name, version in OLD.items():
        registry.register(f"test.{name}", getattr(found, name), version=version)
    yield found
    for name in ("count", "notes", "use", *PLAIN, *OLD):
        registry.unregister(f"test.{name}")


def entry(*lines: str) -> str:
    return "HloModule m\n\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


def call(target: str, *, shape: str = "f32[1]{0}", operands: str = "x", more: str = "") -> str:
    return f'{shape} custom-call({operands}), custom_call_target="test.{target}", {TYPED}{more}'


def compiled(text: str, stack: str = "legacy", **options):
    return compile_module(parse_module(text), Flags.parse(stack), CompileOptions(**options))


X = "x = f32[1]{0} parameter(0)"
COUNT = call("count", more=", backend_config={start = 5 : i32}")
ONE = [np.ones(1, np.float32)]


def test_each_call_site_has_a_state_of_its_own_and_deletes_it(library):
    before = library.deleted_counters()
    text = entry(X, f"a = {COUNT}", f"b = {COUNT}", "ROOT r = (f32[1]{0}, f32[1]{0}) tuple(a, b)")
    executable = compiled(text, "mlir")
    for n in range(3):
        assert [float(r[0]) for r in executable.execute(ONE)] == [6 + n, 6 + n]
    assert library.deleted_counters() == before
    del executable
    gc.collect()
    assert library.deleted_counters() == before + 2


def test_an_error_of_instantiate_ends_the_compilation(library):
    with pytest.raises(CallError, match=r"^r: custom-call\(test.count\): OUT_OF_RANGE: start is negative"):
        compiled(entry(X, "ROOT r = " + call("count", more=", backend_config={start = -1 : i32}")))


def test_states_of_initialize_belong_to_a_run(library):
    before = library.ended_notes()
    executable = compiled(entry(X, "ROOT r = " + call("notes")))
    assert [float(executable.execute(ONE)[0][0]) for _ in range(3)] == [1, 1, 1]
    assert library.ended_notes() == before + 3


def test_user_data_is_what_the_caller_gave(library):
    library.data_id.restype = ctypes.c_int64
    value = ctypes.c_float(2.5)
    executable = compiled(entry(X, "ROOT r = " + call("use")))
    with user_data({library.data_id(): ctypes.addressof(value)}):
        assert float(executable.execute(ONE)[0][0]) == 2.5
    with pytest.raises(CallError, match=r"User data .* not found in execution context"):
        executable.execute(ONE)


@pytest.mark.parametrize("dies", [True, False])
def test_an_aliased_operand_is_its_results_memory(library, dies):
    """The handler writes one element only: the others are the operand's."""
    more = ", output_to_operand_aliasing={{}: (0, {})}"
    text = entry(
        "p = f32[4]{0} parameter(0)", "x = f32[4]{0} negate(p)",
        "r = " + call("add_one", shape="f32[4]{0}", more=more),
        "ROOT t = (f32[4]{0}, f32[4]{0}) tuple(r, " + ("p)" if dies else "x)"),
    )  # fmt: skip
    values = np.arange(4, dtype=np.float32)
    results = check(text, [values])
    assert results[0].tolist() == [1, -1, -2, -3]
    assert results[1].tolist() == (values if dies else -values).tolist()


def test_a_literal_and_a_schedule_change_no_result(library):
    """XLA gives the literal to no handler either; both stay with the call in text, protos and LHLO."""
    more = ", literal=( s32[] 5, f32[2]{0} {1, 2} ), schedule=SCHEDULE_LATEST"
    x = np.arange(4, dtype=np.float32)
    text = entry("x = f32[4]{0} parameter(0)", "ROOT r = " + call("weighted", shape="f32[4]{0}", more=more))
    assert check(text, [x])[0].tolist() == [0, 2, 6, 12]
    again = module_from_proto(module_to_proto(parse_module(text)))
    assert more in print_instruction(again.entry.root)


@pytest.mark.parametrize("layout", ["{2,1,0}", "{0,1,2}", "{1,2,0}"])
@pytest.mark.parametrize("wanted", ["{2,1,0}", "{0,2,1}"])
def test_operands_lie_as_the_constraint_says(library, layout, wanted):
    more = f", operand_layout_constraints={{f32[2,3,4]{wanted}}}"
    text = entry(
        f"p = f32[2,3,4]{layout} parameter(0)", f"x = f32[2,3,4]{layout} negate(p)",
        "ROOT r = " + call("weighted", shape=f"f32[2,3,4]{wanted}", more=more),
    )  # fmt: skip
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    (result,) = check(text, [x])
    order = [int(c) for c in reversed(wanted[1:-1].split(","))]
    weights = np.arange(1, 25, dtype=np.float32).reshape([(2, 3, 4)[d] for d in order]).transpose(np.argsort(order))
    assert np.array_equal(result, -x * weights)


def test_empty_and_token_operands_and_results(library):
    text = entry("x = f32[0,3]{1,0} parameter(0)", "ROOT r = " + call("weighted", shape="f32[0,3]{1,0}"))
    assert check(text, [np.zeros((0, 3), np.float32)])[0].shape == (0, 3)
    ticks = f'custom-call(t), custom_call_target="test.tick", {TYPED}, custom_call_has_side_effect=true'
    text = entry(X, "t = token[] after-all()", f"u = (f32[2]{{0}}, token[]) {ticks}", "ROOT r = f32[1]{0} add(x, x)")
    before = library.tick_count()
    assert check(text, ONE)[0] == 2 and library.tick_count() == before + 3


def test_side_effects_happen_once_and_only_they_keep_a_call(library):
    tick = 'custom-call(), custom_call_target="test.tick", ' + TYPED
    kept = entry(X, f"u = f32[1]{{0}} {tick}, custom_call_has_side_effect=true", "ROOT r = f32[1]{0} add(x, x)")
    dropped = entry(X, f"u = f32[1]{{0}} {tick}", "ROOT r = f32[1]{0} add(x, x)")
    for text, count in ((kept, 1), (dropped, 0)):
        before = library.tick_count()
        compiled(text).execute(ONE)
        assert library.tick_count() == before + count


LOOP = """HloModule m

cond { s = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)
  ROOT c = pred[] compare(i, n), direction=LT }

yes { x = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0} custom-call(x), custom_call_target="test.weighted", api_version=API_VERSION_TYPED_FFI }

no { x = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0} negate(x) }

body { s = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4]{0} get-tuple-element(s), index=1
  two = s32[] constant(2)
  k = s32[] remainder(i, two)
  zero = s32[] constant(0)
  even = pred[] compare(k, zero), direction=EQ
  y = f32[4]{0} conditional(even, x, x), true_computation=yes, false_computation=no
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[4]{0}) tuple(j, y) }

ENTRY e { x = f32[4]{0} parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[4]{0}) tuple(zero, x)
  w = (s32[], f32[4]{0}) while(s), condition=cond, body=body
  ROOT r = f32[4]{0} get-tuple-element(w), index=1 }
"""


def test_loops_and_branches_call_handlers(library):
    (result,) = check(LOOP, [np.ones(4, np.float32)])
    assert result.tolist() == [-1, -16, -81, -256]


def test_an_error_ends_a_loop_at_once(library):
    text = LOOP.replace("test.weighted", "test.add_one").replace("constant(7)", "constant(2000000000)")
    text = text.replace("f32[4]{0} custom-call(x)", "f32[4]{0} custom-call(x, x)")
    for host in ("interpreted", "compiled"):
        with pytest.raises(CallError, match="Wrong number of arguments"):
            compiled(text, host_program=host).execute([np.ones(4, np.float32)])


def test_threads_share_call_sites(library):
    """Each run has its own frames, and the state of the site counts all calls."""
    text = entry(X, f"a = {COUNT}", "ROOT r = (f32[1]{0}, f32[1]{0}) tuple(a, x)")
    executable, seen, wrong = compiled(text), [], []

    def work(number: int) -> None:
        for _ in range(200):
            a, x = executable.execute([np.full(1, number * 1000, np.float32)])
            seen.append(float(a[0]) - number * 1000)
            wrong.extend([x] if x[0] != number * 1000 else [])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and sorted(seen) == [5 + n for n in range(800)]


def test_a_file_needs_its_target_and_runs_with_it(library, tmp_path):
    path = tmp_path / "m.tbx"
    compiled(entry(X, f"ROOT r = {COUNT}"), "mlir").save(path)
    assert float(load_executable(path).execute(ONE)[0][0]) == 6
    handler = registry.lookup("test.count")
    registry.unregister("test.count")
    try:
        with pytest.raises(InputError, match=r"m.tbx: ffi has no handler for custom-call\(test.count\) of r"):
            load_executable(path)
    finally:
        registry.add(handler)


def test_lhlo_calls_handlers_and_c_does_not(library):
    module = parse_module(entry(X, f"ROOT r = {COUNT}"))
    again = to_plan(parse_text(from_plan(plan(module)).to_text()))
    compiler = platform("host").compiler()
    executable = compiler.compile(again, emit_for(Flags.parse("mlir")), CompileOptions())
    assert float(executable.execute(ONE)[0][0]) == 6
    with pytest.raises(InputError, match=r"ahead of time: custom-call r of 'test.count'"):
        compile_ahead(plan(module), emit_for(Flags.parse("legacy")), AheadOptions(EmitOptions.host()))


def test_writes_out_of_bounds_are_named(library):
    text = entry("x = f32[16]{0} parameter(0)", "ROOT r = " + call("overrun", shape="f32[16]{0}"))
    with pytest.raises(RedZoneError, match=r"\(r\) wrote out of bounds: argument \d \(64 bytes, written\) at offset"):
        compiled(text, red_zones=True).execute([np.ones(16, np.float32)])


@pytest.mark.parametrize(
    "target, error, message",
    [
        ("hang", HandlerError, "^r: did not return within 0.5 s"),
        ("crash", HandlerError, r"^r: ended its process \(SIGSEGV\)"),
        ("overrun", RedZoneError, r"\(r\) wrote out of bounds"),
        ("weighted", None, ""),
    ],
)
def test_a_checked_run_outlives_what_handlers_do(library, target, error, message):
    text = entry("x = f32[16]{0} parameter(0)", "ROOT r = " + call(target, shape="f32[16]{0}"))
    executable, inputs = compiled(text, red_zones=True), [np.ones(16, np.float32)]
    if error is None:
        assert np.array_equal(run_checked(executable, inputs)[0], np.arange(1, 17))
        return
    with pytest.raises(error, match=message):
        run_checked(executable, inputs, limit=0.5)


def test_a_checked_run_gives_the_errors_of_handlers(library):
    text = entry(X, "ROOT r = " + call("weighted", operands="x, x"))
    with pytest.raises(CallError, match="Wrong number of arguments") as error:
        run_checked(compiled(text, red_zones=True), ONE)
    assert error.value.instruction == "r"
    with pytest.raises(InputError, match="no red zones"):
        run_checked(compiled(text), ONE)


def old(name: str, *, shape: str = "f32[1]{0}", operands: str = "x", config: str = "") -> str:
    about = f', backend_config="{config}"' if config else ""
    version = "" if OLD[name] == "API_VERSION_ORIGINAL" else f", api_version={OLD[name]}"
    return f'{shape} custom-call({operands}), custom_call_target="test.{name}"{version}{about}'


def test_older_versions(library):
    y = "y = f32[1]{0} parameter(1)"
    two = [np.full(1, 2, np.float32), np.full(1, 7, np.float32)]
    assert check(entry(X, y, "ROOT r = " + old("original", operands="x, y")), two)[0] == 9
    pair = old("original_tuple", shape="(f32[1]{0}, f32[1]{0})", operands="x, y")
    assert [float(r[0]) for r in check(entry(X, y, "ROOT r = " + pair), two)] == [4, 21]
    assert check(entry(X, "ROOT r = " + old("returning")), two[:1])[0] == 7
    assert check(entry(X, "ROOT r = " + old("unified", config="ab")), two[:1])[0] == 2 + 2 + ord("a")


def test_older_versions_report_failures(library):
    for stack in ("legacy", "mlir"):
        with pytest.raises(CallError, match=r"INTERNAL: a negative number$"):
            compiled(entry(X, "ROOT r = " + old("returning")), stack).execute([-np.ones(1, np.float32)])
    with pytest.raises(CallError, match="no opaque"):
        evaluate(parse_module(entry(X, "ROOT r = " + old("unified"))), ONE)


def test_the_version_of_a_call_is_its_handlers(library):
    with pytest.raises(UnsupportedError, match="its handler is registered with API_VERSION_TYPED_FFI"):
        compiled(entry(X, 'ROOT r = f32[1]{0} custom-call(x), custom_call_target="test.add_one"'))


def test_the_library_for_static_registration_is_small():
    data = elf_library()
    assert data[:4] == b"\x7fELF" and len(data) < 5000
