"""What JAX lowers to for the platform: the rules of its CPU, callbacks, donation, its cache, targets of custom calls.

All that is used of JAX beyond its public API stands here and in callbacks.py; tests/pjrt/test_private_api.py names it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ffi import registry
from ..ffi.static_library import OF_JAX, register_jaxlib
from . import callbacks
from .names import PLATFORM
from .settings import settings

OWN_RULES = ("dot_general",)
"""Primitives whose generic rule is better than the CPU's: it keeps the algorithm of a product."""


def register() -> None:
    """Teach JAX what it has to know of the platform."""
    from jax._src.interpreters import mlir

    mlir._platforms_with_donation.append(PLATFORM)
    rules = mlir._platform_specific_lowerings
    for primitive, rule in rules["cpu"].items():
        if primitive.name not in OWN_RULES:
            rules[PLATFORM].setdefault(primitive, rule)
    _register_platform_choices()
    register_jaxlib("")
    _register_callbacks()
    _register_targets()
    _register_cache()
    _register_dlpack()


def _register_platform_choices() -> None:
    """Where a program chooses by platform (lax.platform_dependent), what is for JAX's CPU is for this one, too."""
    from jax._src.interpreters import mlir
    from jax._src.lax.control_flow import conditionals

    for primitive, name in ((conditionals.platform_index_p, "platforms"), (conditionals.cond_p, "branches_platforms")):
        rule = mlir._lowerings[primitive].rule
        mlir.register_lowering(primitive, _with_platform(rule, name), platform=PLATFORM)


def _with_platform(rule: Callable[..., Any], parameter: str) -> Callable[..., Any]:
    """A rule that takes lists of platforms, of which those with the CPU get this platform."""

    def lower(ctx: Any, *args: Any, **parameters: Any) -> Any:
        lists = parameters.get(parameter)
        if lists is not None:
            has = any(PLATFORM in names for names in lists if names is not None)
            more = [(*names, PLATFORM) if names and "cpu" in names and not has else names for names in lists]
            parameters[parameter] = tuple(more)
        return rule(ctx, *args, **parameters)

    return lower


def _register_callbacks() -> None:
    from jax._src import callback

    callbacks.register_target()
    callback.emit_python_callback = callbacks.emit_for(callback.emit_python_callback)


def _register_targets() -> None:
    """Custom-call targets that are registered for this platform, or for JAX's CPU, from now on and before."""
    from jax._src.lib import xla_client

    xla_client.register_custom_call_handler(PLATFORM, _target)
    for name, handler in xla_client.custom_call_targets("cpu").items():
        if not name.startswith(OF_JAX):
            registry.register(name, handler, replace=True)
    original = xla_client.register_custom_call_target

    def register_custom_call_target(
        name: str, fn: Any, platform: str = "cpu", api_version: int = 0, traits: int = 0
    ) -> None:
        original(name, fn, platform, api_version, traits)
        if platform == "cpu" and not str(name).startswith(OF_JAX):
            _target(name, fn, platform, api_version, traits)

    xla_client.register_custom_call_target = register_custom_call_target


def _target(name: Any, handler: Any, platform: str, api_version: int = 0, traits: int = 0) -> None:
    """Make a target of JAX known to the compiler. handler: a capsule, or capsules by stage."""
    text = name.decode() if isinstance(name, bytes) else str(name)
    version = registry.CallVersion.API_VERSION_TYPED_FFI if api_version else registry.CallVersion.API_VERSION_ORIGINAL
    registry.register(text, handler, version=version, traits=traits, replace=True)


def _register_cache() -> None:
    """Let JAX keep compiled programs on disk, with the emitters in their key."""
    from jax._src import cache_key, compilation_cache

    is_used: Callable[[Any], bool] = compilation_cache.is_cache_used

    def is_cache_used(backend: Any) -> bool:
        return is_used(_Supported() if backend.platform == PLATFORM else backend)

    before: Callable[[], str] = cache_key.custom_hook
    compilation_cache.is_cache_used = is_cache_used
    cache_key.custom_hook = lambda: f"{before()} {settings().flags}"


def _register_dlpack() -> None:
    """Let arrays be exported: as arrays of JAX's CPU on the same memory, since JAX exports those of platforms that it
    knows only.
    """
    import jax
    import numpy as np
    from jax._src import array, dlpack

    export, device_of = dlpack.to_dlpack, array.ArrayImpl.__dlpack_device__

    def is_ours(x: Any) -> bool:
        return isinstance(x, array.ArrayImpl) and x.platform() == PLATFORM

    def to_dlpack(x: Any, stream: Any = None, src_device: Any = None, **options: Any) -> Any:
        if is_ours(x):
            src_device = jax.devices("cpu")[0]
            x = jax.device_put(np.asarray(x), src_device)
        return export(x, stream=stream, src_device=src_device, **options)

    def __dlpack_device__(x: Any) -> Any:  # it becomes the method of this name
        return (dlpack.DLDeviceType.kDLCPU, 0) if is_ours(x) else device_of(x)

    dlpack.to_dlpack = to_dlpack
    array.ArrayImpl.__dlpack_device__ = __dlpack_device__


class _Supported:
    """A back end whose programs JAX keeps, for the question whether it does."""

    platform, supports_executable_serialization = "cpu", True
