"""Functions around the steps of a host program, in MLIR: chunks of split kernels, and the mode of floats."""

from __future__ import annotations


def symbol_name(name: str) -> str:
    """A symbol as MLIR writes it."""
    return f'@"{name}"'


CHUNK = ".chunk"
"""Behind the symbol of a split kernel: the function that the pool calls for a chunk of it."""


def chunk_function(symbol: str, count: int, private: bool) -> list[str]:
    """The function for a chunk. private: another thread's own scratch memory takes the last argument's place."""
    types = ", ".join([*["!llvm.ptr"] * count, "i64", "i64"])
    parameters = "%context: !llvm.ptr, %begin: i64, %end: i64, %own: !llvm.ptr"
    lines = [
        f"  llvm.func {symbol_name(symbol)}({types})",
        f"  llvm.func internal {symbol_name(symbol + CHUNK)}({parameters}) {{",
    ]
    names = [f"%argument{number}" for number in range(count)]
    for number, name in enumerate(names):
        lines.append(f"    %place{number} = llvm.getelementptr %context[{8 * number}] : (!llvm.ptr) -> !llvm.ptr, i8")
        lines.append(f"    {name} = llvm.load %place{number} : !llvm.ptr -> !llvm.ptr")
    if private:
        lines.append("    %null = llvm.mlir.zero : !llvm.ptr")
        lines.append('    %mine = llvm.icmp "eq" %own, %null : !llvm.ptr')
        lines.append(f"    %scratch = llvm.select %mine, {names[-1]}, %own : i1, !llvm.ptr")
        names[-1] = "%scratch"
    arguments = ", ".join([*names, "%begin", "%end"])
    return [*lines, f"    llvm.call {symbol_name(symbol)}({arguments}) : ({types}) -> ()", "    llvm.return", "  }"]


_IN_MODE_X86 = """
  func.func @{entry}(%bases: !llvm.ptr, %control: !llvm.ptr) -> i64 {{
    %one = arith.constant 1 : i32
    %saved = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
    %changed = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
    llvm.call_intrinsic "llvm.x86.sse.stmxcsr"(%saved) : (!llvm.ptr) -> ()
    %mode = arith.constant {mode} : i32
    llvm.store %mode, %changed : i32, !llvm.ptr
    llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%changed) : (!llvm.ptr) -> ()
    %status = func.call @{steps}(%bases, %control) : (!llvm.ptr, !llvm.ptr) -> i64
    llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%saved) : (!llvm.ptr) -> ()
    return %status : i64
  }}"""

_IN_MODE_AARCH64 = """
  func.func @{entry}(%bases: !llvm.ptr, %control: !llvm.ptr) -> i64 {{
    %old = llvm.call_intrinsic "llvm.aarch64.get.fpcr"() : () -> i64
    %mode = arith.constant {mode} : i64
    llvm.call_intrinsic "llvm.aarch64.set.fpcr"(%mode) : (i64) -> ()
    %status = func.call @{steps}(%bases, %control) : (!llvm.ptr, !llvm.ptr) -> i64
    llvm.call_intrinsic "llvm.aarch64.set.fpcr"(%old) : (i64) -> ()
    return %status : i64
  }}"""

IN_MODE = {"x86_64": _IN_MODE_X86, "aarch64": _IN_MODE_AARCH64}
"""Architecture → a function around the steps that sets the mode of floats, and then the caller's again (runner.py). The
steps are never inlined, so that no arithmetic moves out.
"""
