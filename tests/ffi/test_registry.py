"""Targets are found by name and platform, and what is no handler is refused."""

from __future__ import annotations

import ctypes

import pytest

from ...ffi import abi, registry
from ...hlo.errors import InputError, Location, UnsupportedError


@pytest.fixture
def handler():
    made = abi.HANDLER(lambda frame: None)
    yield made
    for platform in ("Host", "CUDA"):
        for name in ("test.registry", "test.other"):
            registry.unregister(name, platform)


def test_forms_of_a_function_give_its_address(handler):
    address = ctypes.cast(handler, ctypes.c_void_p).value
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    make = new(("PyCapsule_New", ctypes.pythonapi))
    for given in (address, handler, make(address, abi.CAPSULE, None), make(address, None, None)):
        registry.register("test.registry", given, replace=True)
        assert registry.lookup("test.registry", "cpu").execute == address
    made = registry.register("test.registry", {"execute": handler, "instantiate": address}, replace=True)
    assert made.of(abi.Stage.INSTANTIATE) == address and made.of(abi.Stage.PREPARE) == 0


def test_a_name_stands_for_one_handler_until_it_is_unregistered(handler):
    registry.register("test.registry", handler)
    registry.register("test.registry", handler)
    other = abi.HANDLER(lambda frame: None)
    with pytest.raises(InputError, match="registered already for Host"):
        registry.register("test.registry", other)
    registry.unregister("test.registry")
    registry.register("test.registry", other)
    assert "test.registry" in registry.targets()


def test_an_unknown_target_is_located_with_near_names(handler):
    registry.register("test.registry", handler)
    where = Location(3, 7, "m.hlo")
    with pytest.raises(
        UnsupportedError, match=r"^m.hlo:3:7: ffi has no handler for custom-call\(test.registri\) of call.1 \(near"
    ):
        registry.lookup("test.registri", what="call.1", location=where)
    with pytest.raises(UnsupportedError, match="registered for Host only"):
        registry.lookup("test.registry", "CUDA")


@pytest.mark.parametrize(
    "given, message",
    [
        (0, "no address"),
        (-1, "no address"),
        (True, "bool is no handler"),
        ("name", "str is no handler"),
        ({"run": 1}, "no stage 'run'"),
        ({"instantiate": 1}, "no handler for the stage 'execute'"),
    ],
)
def test_what_is_no_handler_is_refused(given: object, message: str):
    with pytest.raises(InputError, match=message):
        registry.register("test.other", given)
    assert registry.find("test.other") is None
