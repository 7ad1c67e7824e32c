"""What the tests of a back end share: the platform, its roles, and how an undeclared capability must refuse."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from ...formats.text.parser import parse_module
from ...hlo.errors import TestbedError
from ...hlo.verify.verifier import verify
from ..base import CompileOptions, EmitFor, Executable, Platform
from ..device import BackendError, Capability, KernelSpec, StreamExecutor
from ..registry import platform as platform_of
from ..transfers import TransferManager

Test = TypeVar("Test", bound=Callable[..., None])


class Context:
    """Settings of the suite; a subclass sets them.

    platform: its name, or the platform itself. emit_for: the stack of each kernel, for a back end with stacks.
    programs: the names of programs (programs.py) that it runs; it must refuse the others in one line. kernel: code that
    writes the negatives of 8 numbers (f32) in its first argument to its second; needed where kernels are declared.
    """

    platform: str | Platform = ""
    emit_for: EmitFor | None = None
    programs: frozenset[str] | None = None
    kernel: KernelSpec | None = None

    @property
    def device_platform(self) -> Platform:
        if isinstance(self.platform, str):
            return platform_of(self.platform)
        return self.platform

    @property
    def executor(self) -> StreamExecutor:
        return self.device_platform.executor(0)

    @property
    def transfers(self) -> TransferManager:
        return self.device_platform.transfer_manager()

    def declares(self, capability: Capability) -> bool:
        return capability in self.device_platform.capabilities

    def compile(self, text: str, **options: Any) -> Executable:
        compiler, module = self.device_platform.compiler(), parse_module(text)
        chosen = CompileOptions(**{"cache": None, **options})
        verify(module)
        return compiler.compile(compiler.run_hlo_passes(module, chosen), self.chosen_stack, chosen)

    @property
    def chosen_stack(self) -> EmitFor | None:
        """`emit_for` as the class has it: a function in a class body is no method here."""
        found = inspect.getattr_static(self, "emit_for", None)
        return getattr(found, "__func__", found)


def refuses(action: Callable[[], object], *words: str, kind: type[TestbedError] = BackendError) -> str:
    """The one line with which an action is refused. Fails if it is not, or if the line does not say these words."""
    try:
        action()
    except kind as error:
        line = str(error)
        assert line and "\n" not in line, f"not one line: {line!r}"
        assert error.remedy or kind is not BackendError, f"no remedy: {line!r}"
        for word in words:
            assert re.search(re.escape(word), line), f"{line!r} does not say {word!r}"
        return line
    raise AssertionError(f"nothing was refused; expected {kind.__name__}")


def needs(capability: Capability, use: str) -> Callable[[Test], Test]:
    """A test of a capability. Where it is not declared, the method called `use` of the test's class must refuse."""

    def decorate(test: Test) -> Test:
        @wraps(test)
        def checked(self: Any, *arguments: Any, **named: Any) -> None:
            if self.declares(capability):
                test(self, *arguments, **named)
            else:
                refuses(getattr(self, use), self.device_platform.name, capability.value)

        return checked  # type: ignore[return-value]  # the same signature

    return decorate
