"""What JAX finds the plugin by: the entry point `jax_plugins`. It loads nothing unless the user names the platform."""

from __future__ import annotations

from .names import PLATFORM


def initialize() -> None:
    """Register the platform with JAX, if the user names it: JAX calls this when it looks for plugins.

    Without JAX_PLATFORMS, JAX starts every platform that is registered; a program that does not want this one is not to
    pay for it. JAX's callbacks need its CPU beside this platform.
    """
    import jax
    from jax._src import xla_bridge

    named = [name for name in (jax.config.jax_platforms or "").split(",") if name]
    if PLATFORM not in named or PLATFORM in xla_bridge._backend_factories:
        return
    if "cpu" not in named:
        jax.config.update("jax_platforms", ",".join([*named, "cpu"]))
    from . import lowering, plugin

    xla_bridge._nonexperimental_plugins.add(PLATFORM)
    xla_bridge.register_plugin(PLATFORM, c_api=plugin.table().capsule())
    lowering.register()
