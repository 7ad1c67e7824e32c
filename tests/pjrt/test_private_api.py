"""What the plugin uses of JAX beyond its public API: each name is there, and is what it is taken for."""

import inspect
from importlib import import_module

import pytest

from .children import needs_jax

pytestmark = needs_jax

NAMES = (
    *("jax._src.xla_bridge:register_plugin", "jax._src.xla_bridge:_nonexperimental_plugins"),
    *("jax._src.xla_bridge:_backend_factories", "jax._src.interpreters.mlir:_platforms_with_donation"),
    *("jax._src.interpreters.mlir:_platform_specific_lowerings", "jax._src.interpreters.mlir:_lowerings"),
    *("jax._src.interpreters.mlir:register_lowering", "jax._src.interpreters.mlir:dtype_to_ir_type"),
    *("jax._src.interpreters.mlir:set_sharding", "jax._src.callback:emit_python_callback"),
    *("jax._src.ffi:build_ffi_lowering_function", "jax._src.core:abstract_token"),
    *("jax._src.dtypes:canonicalize_value", "jax._src.sharding_impls:SdyArray", "jax._src.sharding_impls:SdyArrayList"),
    *("jax._src.lax.control_flow.conditionals:platform_index_p", "jax._src.lax.control_flow.conditionals:cond_p"),
    *("jax._src.lib:xla_client.register_custom_call_handler", "jax._src.lib:xla_client.custom_call_targets"),
    *("jax._src.lib:xla_client.register_custom_call_target", "jax._src.lib:xla_client.CompileOptions"),
    *("jax._src.cache_key:custom_hook", "jax._src.compilation_cache:is_cache_used"),
    *("jax._src.dlpack:to_dlpack", "jax._src.array:ArrayImpl.__dlpack_device__"),
    *("jaxlib._jax:mlir.mlir_module_to_xla_computation",),
)


@pytest.mark.parametrize("name", NAMES)
def test_name_is_there(name):
    module, _, path = name.partition(":")
    value = import_module(module)
    for part in path.split("."):
        assert hasattr(value, part), f"{name}: JAX has no {part} there now"
        value = getattr(value, part)


def test_signatures():
    from jax._src import callback
    from jax._src.interpreters import mlir

    names = list(inspect.signature(callback.emit_python_callback).parameters)
    assert names[:6] == ["ctx", "callback", "token", "operands", "operand_avals", "result_avals"]
    assert set(names[6:]) <= {"has_side_effect", "returns_token", "partitioned", "sharding"}
    assert "add_keepalive" in dir(mlir.ModuleContext)
    assert all(hasattr(rule, "rule") for rule in list(mlir._lowerings.values())[:3])


def test_emitters_of_callbacks_are_looked_up_where_they_are_replaced():
    """Callers name the module's attribute: what replaces it is called."""
    from jax._src import callback, checkify, debugging

    for module in (checkify, debugging):
        source = inspect.getsource(module)
        assert ".emit_python_callback(" in source and "import emit_python_callback" not in source
    assert "emit_python_callback(" in inspect.getsource(callback.pure_callback_lowering)
