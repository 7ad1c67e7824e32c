"""The pytest_test macro: one Bazel test target that runs pytest over the given files, sharded by test."""

load("@rules_python//python:defs.bzl", "py_test")

def pytest_test(name, srcs, support = [], deps = [], data = [], tags = [], size = "medium", **kwargs):
    """support: files that the tests import. No sandbox: its links, one a file, took as long as the tests; a test still
    sees the files of its target only.
    """
    py_test(
        name = name,
        srcs = srcs + support + ["//tools/python:pytest_main.py"],
        main = "//tools/python:pytest_main.py",
        args = [native.package_name() + "/" + src for src in srcs],
        data = data + ["//:pytest_files"],
        deps = deps + ["//tools/python", "@pypi_dev//pytest", "@pypi_dev//hypothesis"],
        size = size,
        tags = tags + ["no-sandbox"],
        legacy_create_init = 0,
        **kwargs
    )
