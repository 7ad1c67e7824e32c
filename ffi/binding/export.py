"""Handlers for runtimes: the decorator that makes one, capsules for JAX, and registration by platform."""

from __future__ import annotations

import ctypes
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, overload

from ...hlo.errors import InputError
from .. import registry
from ..abi import CAPSULE, Stage
from .declare import Declaration, infer, parameter_count, stage_of
from .errors import Error
from .futures import Future
from .handler import Handler
from .kernels import Kernel
from .native import KernelHandler, kernel_handler

if TYPE_CHECKING:
    F = Callable[..., Any]

Handlers = Handler | Mapping[str, Handler]
"""A handler of the stage execute, or handlers by the names of their stages."""


class Binding(Declaration):
    """The parameters of a handler, declared step by step: `bind().arg(Buffer[F32]).ret(Buffer[F32]).to(function)`."""

    def to(self, function: Callable[..., Any], traits: Iterable[int] = (), state: type | None = None) -> Handler:
        """The handler that calls a function. state: the class of the state that it returns (not when executing)."""
        count = parameter_count(function)
        if count is not None and count != len(self.specs):
            name = getattr(function, "__name__", "the function")
            raise InputError(
                f"{name} takes {count} parameters, and its binding has {len(self.specs)}",
                remedy="bind each parameter once, in order",
            )
        return Handler(function, self, tuple(traits), state)

    def to_kernel(self, kernel: Kernel | Callable[..., Any]) -> KernelHandler:
        """The handler that calls a Kernel, or a Python function that numba compiles. Raises InputError."""
        return kernel_handler(kernel, self)


def bind(stage: Stage | str = Stage.EXECUTE) -> Binding:
    """An empty binding for a stage: "instantiate", "prepare", "initialize" or "execute"."""
    return Binding(stage_of(stage))


@overload
def handler(function: F) -> Handler: ...
@overload
def handler(
    *, stage: Stage | str = ..., traits: Iterable[int] = ..., state: type | None = ...
) -> Callable[[F], Handler]: ...
def handler(
    function: F | None = None,
    *,
    stage: Stage | str = Stage.EXECUTE,
    traits: Iterable[int] = (),
    state: type | None = None,
) -> Handler | Callable[[F], Handler]:
    """Make a handler of a function; its annotations say what each parameter is. Raises InputError.

    state: the class of the state that the function returns; without it, the class that its annotation says. Only
    handlers of the stages before "execute" return one.
    """
    if function is None:
        return functools.partial(handler, stage=stage, traits=traits, state=state)  # type: ignore[return-value]
    binding = infer(function, bind(stage))
    if state is None and binding.stage != Stage.EXECUTE:
        state = _declared_state(function)
    return binding.to(function, traits, state)


def _declared_state(function: F) -> type | None:
    found = inspect.signature(function, eval_str=True).return_annotation
    states = isinstance(found, type) and not issubclass(found, (Error, Future, type(None), inspect.Signature.empty))
    return found if states else None


def capsule(of: Handler) -> Any:
    """A PyCapsule of a handler's C function, as jax.ffi.register_ffi_target takes it."""
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(("PyCapsule_New", ctypes.pythonapi))(of.ffi_address, CAPSULE, None)


def by_stage(handlers: Handlers, name: str) -> dict[str, Handler]:
    """The handlers of a target by stage. Raises InputError for one that stands under another's stage."""
    given = handlers if isinstance(handlers, Mapping) else {"execute": handlers}
    for stage, one in given.items():
        if not isinstance(one, Handler):
            raise InputError(f"{name}: {one!r} is no handler", remedy="decorate the function with @ffi.handler")
        if one.binding.stage != stage_of(stage):
            raise InputError(f"{name}: {one!r} stands under the stage {stage!r}")
    return dict(given)


def register(name: str, handlers: Handlers, platform: str = registry.HOST, replace: bool = False) -> registry.Handler:
    """Register handlers with this project's runtime, for a platform such as "Host" or "CUDA". Raises InputError."""
    stages = by_stage(handlers, name)
    traits = stages["execute"].traits if "execute" in stages else 0
    return registry.register(name, stages, platform, traits=traits, replace=replace)


def register_with_jax(name: str, handlers: Handlers, platform: str = "cpu") -> None:
    """Register handlers with JAX, for jax.ffi.ffi_call(name, …)."""
    import jax

    stages = by_stage(handlers, name)
    if set(stages) == {"execute"}:
        jax.ffi.register_ffi_target(name, capsule(stages["execute"]), platform=platform)
    else:
        capsules = {stage: capsule(one) for stage, one in stages.items()}
        jax.ffi.register_ffi_target(name, capsules, platform=platform)
