"""The declarations of the suite: names, groups, and that each module which needs no jaxlib is valid HLO."""

from dataclasses import replace

import numpy as np
import pytest

from ...benchmarks.suite.child import load
from ...benchmarks.suite.limits import work_of
from ...benchmarks.suite.workload import Case, Workload
from ...benchmarks.suite.workloads import REGISTERS, WORKLOADS
from ...formats.program import as_leaf, parameter_leaves
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ...hlo.verify.verifier import verify
from ...hlo.widen import widened

REQUIRED = {
    "elementwise": 5,
    "conversions": 3,
    "special": 20,
    "norms": 5,
    "reductions": 12,
    "argmax": 2,
    "cumsum": 2,
    "transposes": 4,
    "pad-concat-slice": 3,
    "gather-scatter": 3,
    "sorting": 4,
    "dots": 15,
    "convolutions": 8,
    "pooling": 2,
    "attention": 4,
    "models": 3,
    "training": 2,
    "solvers": 4,
    "while-loops": 2,
    "random": 3,
    "fft": 3,
    "linear-algebra": 5,
    "small-kernels": 3,
    "examples": 10,
}
"""Group → the fewest workloads that it must have."""


def test_names_are_unique_and_fit_the_tables():
    declared = [w.name for register in REGISTERS for w in register.workloads]
    assert len(declared) == len(set(declared)) == len(WORKLOADS) >= 60
    assert max(map(len, declared)) <= 24 and all(name.isascii() and " " not in name for name in declared)


def test_the_required_groups_are_covered():
    counts = {register.group: len(register.workloads) for register in REGISTERS}
    assert counts.keys() == REQUIRED.keys()
    assert not {group: n for group, n in counts.items() if n < REQUIRED[group]}


def test_what_the_suite_must_hold_is_there():
    for part in (
        *("dot_f32_8x10^6x8", "dot_bf16_128x4096x512", "decode_f32_4096", "dot_s8_s32_512", "dot_c64_256"),
        *(
            "top_32_of_64x16384",
            "sum_2^10",
            "sum_2^24",
            "sum_rows_4096x4096",
            "sum_cols_4096x4096",
            "sum_channels_nchw",
        ),
        *("conv_1x1_256_64", "conv_grouped_8", "conv_depthwise_128", "conv_1d_k9", "conv_3d_3x3x3"),
        *("attention_causal", "attention_decode_cache", "gpt2_block_gradient", "mlp_adam_step", "resnet18_112"),
    ):
        assert part in WORKLOADS, part


def test_most_workloads_run_without_jaxlib():
    assert sum(not w.needs_jax for w in WORKLOADS.values()) >= 60


def check_case(name):
    """The workload is valid HLO with inputs that fit, and is still valid in double precision."""
    _, text, inputs = load(name)
    module = parse_module(text, name)
    verify(module)
    verify(widened(module))
    shapes = parameter_leaves(module)
    assert len(shapes) == len(inputs)
    for n, (value, shape) in enumerate(zip(inputs, shapes, strict=True)):
        as_leaf(np.asarray(value), shape, f"{name}: input {n}")
    work = work_of(module)
    assert work.bytes_touched > 0 and work.flops >= 0


def test_bad_inputs_are_noticed(monkeypatch):
    case = WORKLOADS["add_one_8"]
    wrong = replace(case, make=lambda: replace(case.make(), inputs=(np.zeros(9, np.float32),)))
    monkeypatch.setitem(WORKLOADS, "add_one_8", wrong)
    with pytest.raises(InputError, match="shape"):
        check_case("add_one_8")


def test_constants_of_functions_have_their_values(monkeypatch):
    """JAX prints long ones as {...}, which no module can be read from: lax.lgamma of jaxlib 0.12 has some."""
    pytest.importorskip("jaxlib")
    table = np.arange(100, dtype=np.float32)
    case = Case((np.zeros(100, np.float32),), function=lambda x: x + table)
    monkeypatch.setitem(WORKLOADS, "table", Workload("table", "special", lambda: case, needs_jax=True))
    assert "{...}" not in load("table")[1]


@pytest.mark.parametrize(
    "name",
    [
        "dot_s8_s32_512",
        "conv_3x3_dilated_2",
        "updates_x40",
        "philox_bits_2^20",
        "kernels_8_x1000",
        "while_8_kernels_10^5",
    ],
)
def test_a_sample_of_texts_is_valid(name):
    check_case(name)


@pytest.mark.xla
@pytest.mark.parametrize("name", ["lorenz_rk4_f64", "threefry_uniform_2^20", "cholesky_256", "top_32_of_64x16384"])
def test_a_sample_of_jax_functions_is_valid(name):
    pytest.importorskip("jaxlib")
    check_case(name)


@pytest.mark.deep
@pytest.mark.xla
@pytest.mark.parametrize("name", list(WORKLOADS))
def test_every_workload_is_valid(name):
    pytest.importorskip("jaxlib")
    check_case(name)


@pytest.mark.parametrize("name", ["axpy_f32_4m", "dot_bf16_512"])
def test_inputs_lie_at_the_same_places_of_lines(name):
    """NumPy's own lie 16 bytes behind a line, where XLA's copies do not: rms_norm took twice the time that it takes."""
    case, _, inputs = load(name)
    assert all(x.ctypes.data % 64 == 0 for x in [*case.inputs, *inputs])


def test_inputs_of_a_module_do_so_too(tmp_path):
    text = "HloModule m\n\nENTRY e {\n  x = f32[3]{0} parameter(0)\n  ROOT y = f32[3]{0} negate(x)\n}\n"
    (tmp_path / "module.hlo").write_text(text)
    np.savez(tmp_path / "io.npz", in0=np.ones(3, np.float32), out0=-np.ones(3, np.float32))
    assert [x.ctypes.data % 64 for x in load(str(tmp_path))[2]] == [0]
