"""Repository rules for Bazel 4.2.3: the project's virtual environment as a Python toolchain and as `@pypi…`."""

def _find_python(ctx):
    candidates = [
        ctx.os.environ.get("TESTBED_PYTHON", ""),
        str(ctx.path(Label("//:pyproject.toml")).dirname) + "/.venv/bin/python3",
    ]
    if ctx.os.environ.get("VIRTUAL_ENV"):
        candidates.append(ctx.os.environ["VIRTUAL_ENV"] + "/bin/python3")
    for candidate in candidates:
        if candidate and ctx.path(candidate).exists:
            return candidate
    found = ctx.which("python3")
    if not found:
        fail("no Python found: run `./testbed setup`, or set TESTBED_PYTHON to an interpreter that has the lock installed")
    return str(found)

_PYTHON_BUILD = """\
load("@rules_python//python:defs.bzl", "py_runtime", "py_runtime_pair")

py_runtime(
    name = "runtime",
    interpreter_path = "{python}",
    python_version = "PY3",
    # The start script asks for `python` by default, which a bare Debian does not have; it only starts the interpreter.
    stub_shebang = "#!/usr/bin/env python3",
)

py_runtime_pair(
    name = "pair",
    py3_runtime = ":runtime",
)

toolchain(
    name = "toolchain",
    toolchain = ":pair",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)
"""

def _venv_python(ctx):
    ctx.file("BUILD", _PYTHON_BUILD.format(python = _find_python(ctx)))

venv_python = repository_rule(
    implementation = _venv_python,
    local = True,
    configure = True,
    environ = ["TESTBED_PYTHON", "VIRTUAL_ENV", "PATH"],
)

_PYPI_BUILD = """\
load("@rules_python//python:defs.bzl", "py_library")

py_library(
    name = "{name}",
    data = ["installed.txt"],
    visibility = ["//visibility:public"],
)
"""

def _requirements(text):
    """The (name, version) pairs of a lock, from the lines that start with a name."""
    found = []
    for line in text.split("\n"):
        if "==" not in line or line[0] in " #-":
            continue
        name, _, rest = line.partition("==")
        found.append((name.strip().lower().replace("-", "_").replace(".", "_"), rest.split(" ")[0].split(";")[0]))
    return found

def _venv_pypi(ctx):
    ctx.file("BUILD", "")
    for name, version in _requirements(ctx.read(ctx.attr.requirements)):
        # The wheel is in the venv already. This file makes targets depend on its version.
        ctx.file(name + "/installed.txt", version + "\n")
        ctx.file(name + "/BUILD", _PYPI_BUILD.format(name = name))

venv_pypi = repository_rule(
    implementation = _venv_pypi,
    local = True,
    configure = True,
    attrs = {"requirements": attr.label(allow_single_file = True)},
    environ = ["TESTBED_PYTHON", "VIRTUAL_ENV", "PATH"],
)
