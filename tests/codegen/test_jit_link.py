"""LLVM's linker, for processors whose relocations ours does not know: it frees what it keeps."""

import ctypes
import gc
import weakref

import numpy as np
import pytest

from ...codegen import jit_link as module
from ...codegen.errors import CodegenError
from ...codegen.optimize import compile_object
from ...codegen.options import EmitOptions

TWICE = """
define void @twice(ptr %x) {
  %v = load float, ptr %x
  %w = fadd float %v, %v
  store float %w, ptr %x
  ret void
}
"""


def twice(addresses):
    x = np.array([3], np.float32)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(addresses["twice"])(x.ctypes.data)
    return x[0]


def test_a_jit_is_freed_after_its_last_library_whatever_the_order(monkeypatch):
    """LLVM keeps the names of an unloaded library in its JIT, so the JIT has to end."""
    monkeypatch.setattr(module, "JIT_LIBRARIES", 2)
    monkeypatch.setattr(module, "_current", None)
    monkeypatch.setattr(module, "_served", 0)
    data = compile_object(TWICE, EmitOptions.host(), cache=None)
    codes = [module.jit_link([data], ["twice"], {}) for _ in range(6)]
    before = weakref.ref(module._current)
    codes.append(module.jit_link([data], ["twice"], {}))
    assert module._current is not before()
    last = codes[5]
    for number in (4, 5):
        assert before() is not None and twice(last[0]) == 6
        codes[number][1]()
        codes[number] = None
    del last
    gc.collect()
    assert before() is None


def test_what_llvm_refuses_is_an_error():
    data = compile_object(TWICE, EmitOptions.host(), cache=None)
    with pytest.raises(CodegenError, match="the code does not load"):
        module.jit_link([data, data], ["twice"], {})
