"""The floors of the rooms, for Bazel: a room imports only from floors below its own.

tests/repository/test_repository.py compares this list with the import-linter contract in pyproject.toml.
"""

load("@rules_python//python:defs.bzl", "py_library")

# The top floor first.
FLOORS = [
    ["cli", "pjrt"],
    ["display"],
    ["benchmarks", "differential"],
    ["migration"],
    ["backends"],
    ["ffi", "legacy", "mlir_emitters", "profiling", "thunks", "xla_kernels"],
    ["codegen", "lhlo"],
    ["planning"],
    ["passes"],
    ["evaluator", "formats"],
    ["hlo"],
]

ROOMS = [name for floor in FLOORS for name in floor]

def _others(name, above):
    """The rooms on the floors above `name`, or on those below it."""
    number = [i for i, floor in enumerate(FLOORS) if name in floor][0]
    floors = FLOORS[:number] if above else FLOORS[number + 1:]
    return [other for floor in floors for other in floor]

def room(name, deps):
    """One py_library per room, with all its files. deps: dependencies other than the rooms below it.

    A room depends on all rooms below it. Tests depend on `files`, the room alone, of each room that they need
    (tests/rooms_of.bzl).
    """
    py_library(
        name = "files",
        srcs = native.glob(["**/*.py"]),
        data = native.glob(
            ["**/*"],
            allow_empty = True,
            exclude = ["**/*.py", "**/*.pyc", "BUILD"],
        ),
        visibility = ["//tests:__subpackages__"],
        deps = ["//:testbed"] + deps,
    )
    py_library(
        name = name,
        visibility = ["//%s:__subpackages__" % other for other in _others(name, True) + ["tests"]],
        deps = [":files"] + ["//" + other for other in _others(name, False)],
    )
