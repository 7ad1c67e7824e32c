"""Handlers whose bodies are kernels: called in this process, and as a library of C and objects without Python."""

from __future__ import annotations

import ctypes
import enum
import importlib.util
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from ... import ffi
from ...cli.main import main
from ...ffi.binding.native import built
from ...hlo.errors import InputError
from ..support.ffi_runtime import Frame, Runtime

AXPY = """
define i32 @axpy(ptr %x, i64 %n, ptr %y, i64 %m, float %k) {
entry:
  %none = icmp eq i64 %n, 0
  br i1 %none, label %out, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr float, ptr %x, i64 %i
  %to = getelementptr float, ptr %y, i64 %i
  %v = load float, ptr %from
  %w = fmul float %v, %k
  store float %w, ptr %to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %out
out:
  ret i32 0
}
"""

# Writes what it was given: dimensions, attributes, and the first element of the array; then it fails with `code`.
EVERYTHING = """
define i32 @everything(ptr %out, i64 %n, ptr %x, i64 %d0, i64 %d1, i8 %flag, i16 %small, double %big, ptr %span, i64 %s,
                       ptr %text, i64 %length, i32 %mode, i64 %address, i32 %code) {
  %x0 = load i16, ptr %x
  %x.w = zext i16 %x0 to i64
  %flag.w = zext i8 %flag to i64
  %small.w = sext i16 %small to i64
  %big.w = fptosi double %big to i64
  %span0 = load i32, ptr %span
  %span.w = sext i32 %span0 to i64
  %text0 = load i8, ptr %text
  %text.w = zext i8 %text0 to i64
  %mode.w = sext i32 %mode to i64
STORES
  ret i32 %code
}
"""
VALUES = ["d0", "d1", "x.w", "flag.w", "small.w", "big.w", "s", "span.w", "length", "text.w", "mode.w", "address", "n"]
STORES = "\n".join(
    f"  %o{n} = getelementptr i64, ptr %out, i64 {n}\n  store i64 %{v}, ptr %o{n}" for n, v in enumerate(VALUES)
)


@ffi.enum_type(ffi.int32)
class Mode(enum.Enum):
    SAFE = -2


def axpy_binding():
    return ffi.bind().arg(ffi.Buffer[ffi.F32]).ret(ffi.BufferR1[ffi.F32]).attr(ffi.float32, "k")


def everything_binding():
    return (
        ffi.bind()
        .ret(ffi.Buffer[ffi.S64])
        .arg(ffi.BufferR2[ffi.BF16])
        .attr(bool, "flag")
        .attr(ffi.int16, "small")
        .attr(float, "big")
        .attr(ffi.Span[ffi.int32], "span")
        .attr(str, "text")
        .attr(Mode, "mode")
        .attr(ffi.Pointer[int], "address")
        .attr(ffi.int32, "code")
    )


def handlers():
    everything = EVERYTHING.replace("STORES", STORES)
    return {
        "scale": axpy_binding().to_kernel(ffi.Kernel("axpy", AXPY)),
        "all_of_it": everything_binding().to_kernel(ffi.Kernel("everything", everything)),
    }


BF16 = np.dtype(ffi.Buffer[ffi.BF16].dtype.numpy)
X = np.arange(5, dtype=np.float32)
MATRIX = np.full((2, 3), 2, BF16)
ATTRS = {
    "flag": np.bool_(True), "small": np.int16(-3), "big": np.float64(7.5), "span": np.array([9, 8], np.int32),
    "text": "Az", "mode": np.int32(-2), "address": np.int64(0x1234), "code": np.int32(0),
}  # fmt: skip
EXPECTED = [2, 3, 0x4000, 1, -3, 7, 2, 9, 2, 65, -2, 0x1234, 13]


def without(name):
    return {k: v for k, v in ATTRS.items() if k != name}


CALLS = [
    ("scale", [X], [np.zeros(5, np.float32)], {"k": np.float32(3)}),
    ("scale", [X[:0]], [np.zeros(0, np.float32)], {"k": np.float32(3)}),
    ("scale", [X.astype(np.int32)], [np.zeros((1, 5), np.float32)], {"k": np.float64(3)}),
    ("scale", [X, X], [np.zeros(5, np.float32)], {"k": np.float32(3)}),
    ("scale", [X], [], {"k": np.float32(3)}),
    ("scale", [X], [np.zeros(5, np.float32)], {}),
    ("scale", [X], [np.zeros(5, np.float32)], {"k": np.float32(3), "more": "x", "and": "y"}),
    ("scale", [X], [np.zeros(5, np.float32)], {"kk": np.float32(3)}),
    ("scale", [X], [np.zeros(5, np.float32)], {"k": "3"}),
    ("all_of_it", [MATRIX], [np.zeros(13, np.int64)], ATTRS),
    *[("all_of_it", [MATRIX], [np.zeros(13, np.int64)], ATTRS | {"code": np.int32(n)}) for n in (1, 5, 16, 17, -1)],
    *[("all_of_it", [MATRIX], [np.zeros(13, np.int64)], ATTRS | {name: {"x": "y"}}) for name in ATTRS],
    *[("all_of_it", [MATRIX], [np.zeros(13, np.int64)], ATTRS | {name: np.zeros(2, np.int8)}) for name in ATTRS],
    *[("all_of_it", [MATRIX], [np.zeros(13, np.int64)], ATTRS | {name: np.uint8(3)}) for name in ATTRS],
    *[("all_of_it", [MATRIX], [np.zeros(13, np.int64)], without(name)) for name in ATTRS],
    ("all_of_it", [MATRIX[0]], [np.zeros(13, np.int64)], ATTRS),
]


def test_kernels_are_called_in_this_process():
    made, runtime = handlers(), Runtime()
    for _ in range(3):
        out = np.zeros(5, np.float32)
        frame = Frame(runtime, [X], [out], {"k": np.float32(3)})
        assert frame.call(made["scale"].ffi_address) is None and out.tolist() == [0, 3, 6, 9, 12]
        out = np.zeros(13, np.int64)
        frame = Frame(runtime, [MATRIX], [out], ATTRS)
        assert frame.call(made["all_of_it"].ffi_address) is None and out.tolist() == EXPECTED
    made["scale"](X, out := np.zeros(5, np.float32), 2.0)
    assert out.tolist() == [0, 2, 4, 6, 8]


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler (Debian: gcc)")
def test_the_library_does_and_says_what_the_handlers_in_python_do(tmp_path):
    made, runtime = handlers(), Runtime()
    for name, data in built("both", made).items():
        (tmp_path / name).write_bytes(data)
    flags = "CFLAGS=-O1 -Wall -Wextra -Wpedantic -Werror -fsanitize=undefined -fno-sanitize-recover"
    done = subprocess.run(["make", "-s", "-C", tmp_path, flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    library = ctypes.CDLL(str(tmp_path / "libboth.so"))
    for number, (name, args, rets, attrs) in enumerate(CALLS):
        address = ctypes.cast(library[name], ctypes.c_void_p).value
        outs = [[r.copy() for r in rets] for _ in range(2)]
        answers = [Frame(runtime, args, out, attrs).call(a) for out, a in zip(outs, (address, made[name].ffi_address))]
        assert answers[0] == answers[1], number
        assert [r.tolist() for r in outs[0]] == [r.tolist() for r in outs[1]]
        if name == "all_of_it" and answers[0] is None:
            assert outs[0][0].tolist() == EXPECTED
    for version in ((0, 1), (0, 3), (0, 7)):
        theirs, ours = (Runtime(version).metadata(a) for a in (address, made["all_of_it"].ffi_address))
        assert bytes(theirs) == bytes(ours)
    for size in (8, 35):
        theirs, ours = (Runtime().metadata(a, size) for a in (address, made["all_of_it"].ffi_address))
        assert theirs == ours and "size: expected at least 36" in ours
    frame = Frame(runtime, [], [], {}, stage=1)
    assert frame.call(address) == frame.call(made["all_of_it"].ffi_address) != None  # noqa: E711
    frame.frame.struct_size = 160
    assert frame.call(address) == frame.call(made["all_of_it"].ffi_address) != None  # noqa: E711


class Custom:
    pass


@pytest.mark.parametrize(
    "binding, what",
    [
        (lambda b: b.arg(ffi.AnyBuffer), "0, AnyBuffer: a kernel is compiled for one dtype"),
        (lambda b: b.arg(ffi.Buffer[ffi.F32]).optional_arg(ffi.Buffer[ffi.F32]), "1, an optional operand: decoded by"),
        (lambda b: b.remaining_rets(), "0, remaining operands: decoded by Python only"),
        (lambda b: b.attrs(), "0, Attrs: decoded by Python only"),
        (lambda b: b.ctx(ffi.ScratchAllocator), "0, Ctx: ScratchAllocator: decoded by Python only"),
        (lambda b: b.attr(ffi.complex64, "c"), "0, attribute c: complex64 is no scalar of C, Span or str"),
        (lambda b: b.attr(ffi.Dictionary, "d"), "0, attribute d: Dictionary is no scalar of C"),
        (lambda b: b.arg(ffi.Token), "0, token: no dtype of elements"),
    ],
)
def test_what_no_kernel_takes_is_refused_by_name(binding, what):
    with pytest.raises(InputError, match=re.escape(f"a kernel cannot have parameter {what}")):
        binding(ffi.bind()).to_kernel(ffi.Kernel("axpy", AXPY))


DOUBLE = AXPY.replace("float %k", "double %k").replace("%v, %k", "%v, %v")
FOREIGN = AXPY.replace("ret i32 0", "%z = call i32 @nosuch()\n ret i32 %z") + "declare i32 @nosuch()"
NEEDED = "(its binding needs i32 (ptr, i64, ptr, i64, float))"


@pytest.mark.parametrize(
    "kernel, what",
    [
        (ffi.Kernel("axpx", AXPY), "the LLVM IR defines no function axpx (it defines axpy)"),
        (ffi.Kernel("axpy", DOUBLE), f"is i32 (ptr, i64, ptr, i64, double) {NEEDED}"),
        (ffi.Kernel("axpy", "define i32 @axpy("), "LLVM refuses the IR"),
        (ffi.Kernel("axpy", FOREIGN), "the kernel of axpy needs nosuch, not in the C library or libm"),
    ],
)
def test_kernels_that_do_not_fit_are_refused(kernel, what):
    with pytest.raises(InputError, match=re.escape(what)):
        axpy_binding().to_kernel(kernel)


def test_a_kernel_runs_when_executing_only():
    with pytest.raises(InputError, match="a kernel runs in the stage execute, not prepare"):
        ffi.bind("prepare").to_kernel(ffi.Kernel("axpy", AXPY))


# -- the command ------------------------------------------------------------------------------------------------------
SCRIPT = f'''
from testbed import ffi
scale = ffi.bind().arg(ffi.Buffer[ffi.F32]).ret(ffi.BufferR1[ffi.F32]).attr(ffi.float32, "k").to_kernel(
    ffi.Kernel("axpy", """{AXPY}"""))
'''


def test_the_command_writes_c_objects_and_a_library(tmp_path, capsys):
    (tmp_path / "my_handlers.py").write_text(SCRIPT)
    assert main(["ffi", "build", str(tmp_path / "my_handlers.py"), "-o", str(tmp_path / "out"), "--no-link"]) == 0
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"my_handlers.c", "scale_kernel.o", "Makefile"}
    assert "my_handlers.c" in capsys.readouterr().out
    assert main(["ffi", "build", str(tmp_path / "my_handlers.py"), "-o", str(tmp_path / "two"), "--name", "two"]) == 0
    library = {"libtwo.so"} if shutil.which("cc") else set()
    assert {p.name for p in (tmp_path / "two").iterdir()} == {"two.c", "scale_kernel.o", "Makefile"} | library


@pytest.mark.parametrize(
    "text, what",
    [
        ("x = 1", "defines no handlers"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("from testbed import ffi\nh = ffi.bind().to(lambda: None)", "the body of h is Python"),
        ("from testbed import ffi\nh = ffi.bind().attrs().to_kernel(ffi.Kernel('a', ''))", "parameter 0, Attrs"),
        (SCRIPT.replace("scale", "größe"), "is no name of a C function"),
        (None, "No such file"),
    ],
)
def test_what_the_command_refuses(tmp_path, capsys, text, what):
    if text is not None:
        (tmp_path / "h.py").write_text(text)
    assert main(["ffi", "build", str(tmp_path / "h.py"), "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert what in said.replace("\n", " ") and not (tmp_path / "out").exists()


# -- numba ------------------------------------------------------------------------------------------------------------
NUMBA = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba: pip install numba")


def norms(x, y, k, weights):
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
        y[i] = np.sqrt(total) * k + weights[i % weights.size]


def norms_binding():
    binding = ffi.bind().arg(ffi.BufferR2[ffi.F32]).ret(ffi.BufferR1[ffi.F32])
    return binding.attr(ffi.float32, "k").attr(ffi.Span[ffi.int64], "weights")


@NUMBA
def test_numba_compiles_a_function_of_arrays():
    x, attrs = np.arange(6, dtype=np.float32).reshape(2, 3), {"k": np.float32(2), "weights": np.array([1, 2])}
    want, out = np.zeros(2, np.float32), np.zeros(2, np.float32)
    norms(x, want, 2.0, attrs["weights"])
    assert Frame(Runtime(), [x], [out], attrs).call(norms_binding().to_kernel(norms).ffi_address) is None
    np.testing.assert_allclose(out, want, rtol=1e-6)

    def total(x, y):
        y[()] = x.sum()

    sums = ffi.bind().arg(ffi.BufferR2[ffi.F32]).ret(ffi.BufferR0[ffi.F32]).to_kernel(total)
    assert Frame(Runtime(), [x], [cell := np.zeros((), np.float32)], {}).call(sums.ffi_address) is None and cell == 15


@NUMBA
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler (Debian: gcc)")
def test_a_library_of_a_numba_function_loads_no_python(tmp_path):
    for name, data in built("n", {"norms": norms_binding().to_kernel(norms)}).items():
        (tmp_path / name).write_bytes(data)
    subprocess.run(["make", "-s", "-C", tmp_path], check=True)
    needed = subprocess.run(["ldd", tmp_path / "libn.so"], check=True, capture_output=True, text=True).stdout
    assert "libc.so" in needed and "python" not in needed
    x, out = np.ones((2, 4), np.float32), np.zeros(2, np.float32)
    frame = Frame(Runtime(), [x], [out], {"k": np.float32(2), "weights": np.array([1])})
    assert frame.call(ctypes.cast(ctypes.CDLL(str(tmp_path / "libn.so")).norms, ctypes.c_void_p).value) is None
    assert out.tolist() == [5, 5]


@NUMBA
def test_what_numba_refuses_is_named():
    def allocates(x, y, k, weights):
        y[:] = np.zeros(x.shape[0])

    with pytest.raises(InputError, match="needs NRT_"):
        norms_binding().to_kernel(allocates)
    with pytest.raises(InputError, match=r"numba cannot compile _lambda__numba: .*'nosuch' is not defined"):
        norms_binding().to_kernel(lambda x, y, k, w: nosuch)  # noqa: F821
    with pytest.raises(InputError, match="parameter 0: numba has no type bfloat16"):
        ffi.bind().arg(ffi.Buffer[ffi.BF16]).to_kernel(norms)
    with pytest.raises(InputError, match="attribute s: numba takes no text"):
        ffi.bind().attr(str, "s").to_kernel(norms)


def test_without_numba_the_remedy_is_named():
    program = "import sys; sys.modules['numba'] = None\nfrom testbed import ffi\nffi.bind().to_kernel(lambda: None)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=dict(os.environ))
    assert "needs numba, which is not installed (install numba, or give ffi.Kernel(name, llvm_ir))" in done.stderr
