"""The pytest_test macro: one Bazel test target that runs pytest over the given files, sharded by test."""

load("@rules_python//python:defs.bzl", "py_test")

def pytest_test(name, srcs, deps = [], data = [], shard_count = None, size = "medium", **kwargs):
    py_test(
        name = name,
        srcs = srcs + ["//tools/python:pytest_main.py"],
        main = "//tools/python:pytest_main.py",
        args = [native.package_name() + "/" + src for src in srcs],
        data = data + ["//:pytest_files"],
        deps = deps + ["//tools/python", "@pypi_dev//pytest", "@pypi_dev//hypothesis"],
        shard_count = shard_count,
        size = size,
        legacy_create_init = 0,
        **kwargs
    )
