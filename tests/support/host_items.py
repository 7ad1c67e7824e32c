"""Code for this machine in the form of a device's: items by a variable, groups as threads that meet at a barrier."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from ...backends.accelerator.targets import DeviceTarget
from ...codegen.load import LoadedCode
from ...codegen.options import EmitOptions, GroupShape

ITEM, PLACE, WAIT = "testbed_item", "testbed_place", "testbed_wait"

WORKER = "fake-gpu"
"""Begins the names of threads that are a device's: of streams, and of items."""

LIMIT = 60.0
"""Seconds that an item waits for the others of its group."""

_Place, _Wait = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int32), ctypes.CFUNCTYPE(None)


def host_items(groups: GroupShape | None = None) -> DeviceTarget:
    """Code for this machine whose kernels read the number of their item from a variable of their module. groups: of
    items, which are threads; these kernels ask functions for their numbers and to wait for each other.
    """
    asked = f"  %place = load volatile ptr, ptr @{PLACE}\n  %number = call i64 %place(i32 "
    return DeviceTarget(
        name="recorded",
        target=EmitOptions.host().target,
        generic=0,
        memory=0,
        constants=0,
        stack=0,
        kernel="",
        function="",
        item=f"  %item = load volatile i64, ptr @{ITEM}\n",
        declarations=f"@{ITEM} = global i64 0\n",
        groups=groups,
        libm=True,
        place=(f"{asked}0)\n", f"{asked}1)\n", f"{asked}2)\n"),
        barrier=f"%wait = load volatile ptr, ptr @{WAIT}\n  call void %wait()",
        group_declarations=f"@{PLACE} = global ptr null\n@{WAIT} = global ptr null\n",
    )


def run_groups(code: LoadedCode, body: Callable[[], object], steps: int, across: int, down: int) -> None:
    """Run a kernel whose items wait for each other: each item of a group is a thread."""
    local, barrier = threading.local(), threading.Barrier(across * down)
    place, wait = _Place(lambda number: local.place[number]), _Wait(lambda: barrier.wait(LIMIT) and None)
    for name, function in ((PLACE, place), (WAIT, wait)):
        ctypes.c_void_p.from_address(code.address(name)).value = ctypes.cast(function, ctypes.c_void_p).value

    def work(step: int, x: int, y: int) -> None:
        local.place = step, x, y
        body()

    with ThreadPoolExecutor(across * down, WORKER) as pool:
        for step in range(steps):
            items = [pool.submit(work, step, x, y) for x in range(across) for y in range(down)]
            for item in items:
                item.result()
