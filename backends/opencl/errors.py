"""OpenCL's error codes in words."""

from __future__ import annotations

from ..device import BackendError

NAMES = {
    -1: "DEVICE_NOT_FOUND",
    -2: "DEVICE_NOT_AVAILABLE",
    -4: "MEM_OBJECT_ALLOCATION_FAILURE",
    -5: "OUT_OF_RESOURCES",
    -6: "OUT_OF_HOST_MEMORY",
    -11: "BUILD_PROGRAM_FAILURE",
    -14: "EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
    -30: "INVALID_VALUE",
    -33: "INVALID_DEVICE",
    -34: "INVALID_CONTEXT",
    -36: "INVALID_COMMAND_QUEUE",
    -38: "INVALID_MEM_OBJECT",
    -42: "INVALID_BINARY",
    -44: "INVALID_PROGRAM",
    -45: "INVALID_PROGRAM_EXECUTABLE",
    -46: "INVALID_KERNEL_NAME",
    -48: "INVALID_KERNEL",
    -49: "INVALID_ARG_INDEX",
    -50: "INVALID_ARG_VALUE",
    -51: "INVALID_ARG_SIZE",
    -52: "INVALID_KERNEL_ARGS",
    -54: "INVALID_WORK_GROUP_SIZE",
    -55: "INVALID_WORK_ITEM_SIZE",
    -58: "INVALID_EVENT",
    -61: "INVALID_BUFFER_SIZE",
    -63: "INVALID_GLOBAL_WORK_SIZE",
    -1001: "PLATFORM_NOT_FOUND",
}

MEMORY = frozenset({-4, -5, -6, -61})
LOST = frozenset({-2, -14, -36})

_REMEDIES = (
    (MEMORY, "use less memory at once: smaller arrays, fewer programs"),
    (LOST, "the device is lost: start the process again"),
)


def describe(code: int) -> str:
    """A code in words: 'INVALID_VALUE (-30)'."""
    return f"{NAMES.get(code, 'error')} ({code})"


def check(code: int, what: str) -> None:
    """Raises BackendError with what failed, unless the code says success."""
    if code == 0:
        return
    remedy = next((text for codes, text in _REMEDIES if code in codes), "testbed platforms shows the device's limits")
    raise BackendError(f"OpenCL cannot {what}: {describe(code)}", remedy=remedy)
