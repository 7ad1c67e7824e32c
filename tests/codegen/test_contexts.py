"""The order in which LLVM's modules and contexts are freed."""

import subprocess
import sys

import pytest

from ...codegen.errors import CodegenError
from ...codegen.llvm import _CONTEXTS, llvm, parse

TEXT = "define void @f(ptr %p) {\n  store i32 1, ptr %p\n  ret void\n}\n"

CYCLES = f"""
import gc
from testbed.codegen.llvm import llvm, parse

gc.disable()
for n in range(100):
    for order in ("context", "module"), ("module", "context"):
        box = type("Box", (), {{}})()
        context = llvm.create_context()
        module, other = parse({TEXT!r}, context), parse({TEXT.replace("@f", "@g")!r}, context)
        module.link_in(other)
        made = dict(context=context, module=module)
        box.itself, box.first, box.second = box, *(made[name] for name in order)
        del box, context, module, other, made
    gc.collect()
print("freed")
"""


def test_modules_in_cycles_are_freed_before_their_contexts():
    """A traceback makes such a cycle, so that a compilation that was interrupted ended the process later."""
    done = subprocess.run([sys.executable, "-c", CYCLES], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "freed\n"), done.stderr


def test_a_context_lives_as_long_as_its_modules():
    before = len(_CONTEXTS)
    context = llvm.create_context()
    modules = [parse(TEXT.replace("@f", f"@f{n}"), context) for n in range(3)]
    assert len(_CONTEXTS) == before + 3
    modules[0].link_in(modules.pop())
    del context
    assert len(_CONTEXTS) == before + 2 and "@f2" in str(modules[0])
    modules.pop(0).close()
    assert len(_CONTEXTS) == before + 1
    with pytest.raises(CodegenError):
        parse("define void @f(")
    assert "@f1" in str(modules.pop())
    assert len(_CONTEXTS) == before
