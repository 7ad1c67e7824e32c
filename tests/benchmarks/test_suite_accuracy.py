"""The reference in double precision, and errors against it; results of XLA that recycles memory."""

import numpy as np
import pytest

from ...benchmarks.suite.accuracy import error_of, exact_results
from ...benchmarks.suite.rivals import prepare, with_donated_results
from ...benchmarks.suite.workload import Case
from ...formats.text.parser import parse_module
from ...formats.text.printer import print_module
from ...hlo.verify.verifier import verify
from ...hlo.widen import widened


def exact(text, *inputs):
    module = parse_module(text)
    verify(module)
    verify(widened(module))
    return exact_results(module, inputs)


def test_narrow_floats_become_f64_through_loops_and_constants():
    x = np.array([0.1, 0.7, 3.0], np.float32)
    (result,) = exact(
        """HloModule m

body {
  s = (s32[], f32[3]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[3]{0} get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  k = f32[3]{0} constant({0.5, 0.25, 0.1})
  b = bf16[3]{0} convert(x)
  c = f32[3]{0} convert(b)
  y = f32[3]{0} multiply(c, k)
  ROOT t = (s32[], f32[3]{0}) tuple(j, y)
}

condition {
  s = (s32[], f32[3]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT less = pred[] compare(i, n), direction=LT
}

ENTRY e {
  x = f32[3]{0} parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[3]{0}) tuple(zero, x)
  w = (s32[], f32[3]{0}) while(s), condition=condition, body=body
  ROOT r = f32[3]{0} get-tuple-element(w), index=1
}
""",
        x,
    )
    factor = np.array([0.5, 0.25, 0.1], np.float32).astype(np.float64)
    np.testing.assert_allclose(result, x.astype(np.float64) * factor**4, rtol=1e-15)


def test_bits_keep_their_type():
    bits = np.array([0x3F800000, 0x40490FDB], np.uint32)
    values, back = exact(
        """HloModule m

ENTRY e {
  u = u32[2]{0} parameter(0)
  f = f32[2]{0} bitcast-convert(u)
  g = f32[2]{0} add(f, f)
  b = u32[2]{0} bitcast-convert(g)
  ROOT t = (f32[2]{0}, u32[2]{0}) tuple(g, b)
}
""",
        bits,
    )
    floats = bits.view(np.float32)
    assert values.dtype == np.float64 and values.tolist() == (2 * floats.astype(np.float64)).tolist()
    assert back.tolist() == (2 * floats).view(np.uint32).tolist()


def test_complex_numbers_become_c128():
    z = np.array([0.1 + 0.3j], np.complex64)
    text = "HloModule m\n\nENTRY e {\n  z = c64[1]{0} parameter(0)\n  ROOT r = c64[1]{0} multiply(z, z)\n}\n"
    (result,) = exact(text, z)
    assert result.dtype == np.complex128 and result[0] == pytest.approx(complex(z[0]) ** 2, rel=1e-15)


def test_errors_by_hand():
    wanted = [np.array([3.0, 4.0]), np.array([1, 2, 3, 4])]
    found = error_of([np.array([3.0, 4.5]), np.array([1, 2, 3, 5])], wanted)
    assert found.norm == 0.25 and found.worst == 0.25  # the integers: one of four
    found = error_of([np.array([3.3, 4.4]), wanted[1]], wanted)
    assert found.norm == pytest.approx(0.1) and found.worst == pytest.approx(0.1)
    special = [np.array([np.nan, np.inf, -np.inf, 0.0])]
    assert error_of(special, special).norm == 0
    assert error_of([np.array([0.0, np.inf, -np.inf, 0.0])], special).norm == np.inf
    assert error_of([np.array([1e-3])], [np.array([0.0])]).norm == 1e-3
    for wrong in ([wanted[0]], [wanted[1], wanted[0]]):
        with pytest.raises(ValueError, match="result"):
            error_of(wrong, wanted)


TWO = """HloModule two, entry_computation_layout={(f32[4]{0})->(f32[4]{0}, s32[4]{0})}

ENTRY e {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} add(x, x)
  i = s32[4]{0} convert(x)
  ROOT t = (f32[4]{0}, s32[4]{0}) tuple(y, i)
}
"""


def test_each_result_takes_over_the_memory_of_a_parameter_that_is_not_read():
    module = with_donated_results(parse_module(TWO))
    verify(module)
    assert [str(shape) for shape in module.parameter_shapes] == ["f32[4]{0}", "f32[4]{0}", "s32[4]{0}"]
    assert "input_output_alias={ {0}: (1, {}, may-alias), {1}: (2, {}, may-alias) }" in print_module(module)


@pytest.mark.xla
def test_xla_recycles_results_and_they_stay_right():
    pytest.importorskip("jaxlib")
    x = np.array([1.0, 2.5, -3.0, 4.0], np.float32)
    rival = prepare("recycled", Case((x,), TWO), parse_module(TWO), [x])
    places = set()
    for _ in range(3):
        y, i = rival.run()
        np.testing.assert_array_equal(np.asarray(y), 2 * x)
        np.testing.assert_array_equal(np.asarray(i), x.astype(np.int32))
        places.add((y.unsafe_buffer_pointer(), i.unsafe_buffer_pointer()))
    assert len(places) == 1
