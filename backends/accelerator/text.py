"""LLVM IR of kernels in the host's ABI → LLVM IR of kernels of a device, as text.

A body keeps its function; its pointers become generic ones. An entry is added, which casts the arguments and says which
steps of the kernel a work item computes. Both are inlined into one by LLVM.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...codegen.options import ACROSS, BARRIER, DOWN, GROUP_SPACE, STEP, Grouped
from .legal import legal
from .targets import DeviceTarget


@dataclass(frozen=True, slots=True)
class Work:
    """How a kernel is spread over work items: item n computes the steps [n·each, (n+1)·each) of `extent`.

    extent: 0 for a kernel without a range, which one item runs alone. private: bytes of the last argument that an
    item has for itself. walks: whether an item walks along what lies side by side in memory. group: of a kernel whose
    steps are computed by groups of items, one each; then nothing else counts.
    """

    name: str
    arguments: int
    extent: int = 0
    each: int = 1
    private: int = 0
    walks: bool = False
    group: Grouped | None = None

    @property
    def items(self) -> int:
        if self.group is not None:
            return self.group.steps * self.group.across * self.group.down
        return -(-self.extent // self.each) if self.extent else 1


_POINTER = re.compile(r"(?<![%@\w.\"!$])ptr(?![\w.\"(])(?! addrspace)")
_ALLOCA = re.compile(r'^(\s*)(%(?:"[^"\n]*"|[-\w.$]+)) = alloca ([^\n]*)$', re.MULTILINE)
_GLOBAL = re.compile(r'^(@(?:"[^"\n]*"|[-\w.$]+)) = ([^\n]*?)\b(constant|global) ', re.MULTILINE)
_DEFINE = re.compile(r'^define ([^@\n]*)@(?:"([^"\n]*)"|([-\w.$]+))\(', re.MULTILINE)
_MANGLED = re.compile(r"(@\"?llvm\.[\w.]*?)((?:\.p0)+)(?=[.\"(])")
_TYPED = re.compile(r"(?<=[ (,])\[[^\[\]\n]*\]\* (?=[@%])")  # llvmlite's type of a global
_DECLARED = re.compile(rf'^declare \w+ @"?(?:{BARRIER}|{STEP}|{ACROSS}|{DOWN})"?\(\)[^\n]*\n', re.MULTILINE)
_HEADER = re.compile(r"^(?:target (?:triple|datalayout)|source_filename) = [^\n]*\n", re.MULTILINE)


def entry_name(kernel: str) -> str:
    """The name of a kernel's entry. PTX allows no dots."""
    return re.sub(r"\W", "_", kernel)


def device_text(text: str, kernels: Sequence[Work], target: DeviceTarget) -> str:
    """One module for a device, from the text of a stack for a target of its own."""
    text = legal(_TYPED.sub("ptr ", _HEADER.sub("", text)))
    if " alloca " not in text and target.constants == target.memory:
        # All pointers without a space of their own are to memory: no cast hides that.
        target = replace(target, generic=target.memory)
    constants = [found.group(1) for found in _GLOBAL.finditer(text)]
    text = _with_spaces(text, constants, target)
    bodies = {work.name for work in kernels}
    text = _DEFINE.sub(lambda found: _body(found, bodies), text)
    entries = [_entry(work, target) if work.group is None else _group_entry(work, target) for work in kernels]
    alone = any(work.group is None for work in kernels)
    if any(work.group is not None for work in kernels):
        text = _DECLARED.sub("", text)
        entries.append(_group_functions(target))
    return "\n".join([text, target.declarations if alone else "", *entries])


def _with_spaces(text: str, constants: Sequence[str], target: DeviceTarget) -> str:
    """The text with generic pointers; arrays on the stack and constants are cast to them."""
    generic = f"ptr addrspace({target.generic})" if target.generic else "ptr"
    text = _ALLOCA.sub(_Marked(target), text) if target.stack != target.generic else text
    if target.generic:
        text = _POINTER.sub(generic, text)
        text = _MANGLED.sub(lambda f: f.group(1) + f.group(2).replace("p0", f"p{target.generic}"), text)
    text = text.replace(_STACK_POINTER, "ptr" if not target.stack else f"ptr addrspace({target.stack})")
    space = f"addrspace({target.constants})"
    if constants and target.constants:
        text = _GLOBAL.sub(rf"\1 = \2{space} \3 ", text)
    for name in constants if target.constants != target.generic else ():
        use = re.compile(rf"{re.escape(generic)}\s+{re.escape(name)}(?![-\w.$\"])")
        text = use.sub(f"{generic} addrspacecast (ptr {space} {name} to {generic})", text)
    return text


_STACK_POINTER = "PTR_OF_STACK"


class _Marked:
    """Replaces an alloca by one under another name, and a cast of it to a generic pointer."""

    def __init__(self, target: DeviceTarget):
        self._space = f", addrspace({target.stack})" if target.stack else ""

    def __call__(self, found: re.Match[str]) -> str:
        indent, name, rest = found.groups()
        plain = name[1:].strip('"')
        private = f'%"{plain}.stack"'
        cast = f"{indent}{name} = addrspacecast {_STACK_POINTER} {private} to ptr"
        return f"{indent}{private} = alloca {rest}{self._space}\n{cast}"


def _body(found: re.Match[str], bodies: set[str]) -> str:
    """The definition of a kernel's body, or of a function that bodies call: neither is seen from outside."""
    name = found.group(2) or found.group(3)
    words = re.sub(r"\b(?:private|internal|linkonce_odr|dso_local)\b ?", "", found.group(1))
    suffix = ".body" if name in bodies else ""
    return f'define internal {words}@"{name}{suffix}"('


def _entry(work: Work, target: DeviceTarget) -> str:
    """The function that a launch names: one call of the body, for the steps of this item."""
    space, generic = _pointer(target.memory), _pointer(target.generic)
    numbers = range(work.arguments)
    parameters = ", ".join(f"{space} noalias %arg{n}" for n in numbers)
    casts = [f"  %given{n} = {_cast(space, f'%arg{n}', generic)}" for n in numbers]
    given = [f"{generic} %given{n}" for n in numbers]
    steps: list[str] = []
    if work.private:
        steps += [
            f"  %skip = mul nuw nsw i64 %item, {work.private}",
            f"  %own = getelementptr i8, {given[-1]}, i64 %skip",
        ]
        given[-1] = f"{generic} %own"
    if work.extent:
        steps += _range(work)
        given += ["i64 %begin", "i64 %end"]
    lines = [
        f"define {target.kernel}void @{entry_name(work.name)}({parameters}) {{",
        "entry:",
        target.item.rstrip("\n"),
        *casts,
        f"  %begin = mul nuw nsw i64 %item, {work.each}",
        f"  %inside = icmp ult i64 %begin, {work.extent or 1}",
        "  br i1 %inside, label %work, label %done",
        "work:",
        *steps,
    ]
    arguments = ", ".join(given)
    lines += [f'  call void @"{work.name}.body"({arguments})', "  br label %done", "done:", "  ret void", "}", ""]
    return "\n".join(lines)


def _group_entry(work: Work, target: DeviceTarget) -> str:
    """The entry of a kernel whose steps are computed by groups: the group's number is the step's."""
    assert work.group is not None
    space, generic = _pointer(target.memory), _pointer(target.generic)
    numbers, name, memory = range(work.arguments), entry_name(work.name), f"ptr addrspace({GROUP_SPACE})"
    parameters = ", ".join(f"{space} noalias %arg{n}" for n in numbers)
    casts = [f"  %given{n} = {_cast(space, f'%arg{n}', generic)}" for n in numbers]
    given = [f"{generic} %given{n}" for n in numbers]
    given.append(f"{memory} @{name}.shared")
    size, across, down = max(work.group.memory, 1), work.group.across, work.group.down
    sized = target.sized.format(across=across, down=down, items=across * down)
    return "\n".join([
        f"@{name}.shared = internal addrspace({GROUP_SPACE}) global [{size} x i8] undef, align 64",
        f"define {target.kernel}void @{name}({parameters}){sized} {{",
        "entry:",
        *casts,
        f'  call void @"{work.name}.body"({", ".join(given)})',
        "  ret void",
        "}",
        "",
    ])  # fmt: skip


def _group_functions(target: DeviceTarget) -> str:
    """What kernels of groups call."""
    head = "define internal {type} @{name}() convergent alwaysinline nounwind {{\n{body}}}\n"
    made = [head.format(type="void", name=BARRIER, body=f"  {target.barrier}\n  ret void\n")]
    for name, line in zip((STEP, ACROSS, DOWN), target.place, strict=True):
        made.append(head.format(type="i64", name=name, body=f"{line}  ret i64 %number\n"))
    return "".join(made) + target.group_declarations


def _pointer(space: int) -> str:
    return f"ptr addrspace({space})" if space else "ptr"


def _cast(given: str, name: str, wanted: str) -> str:
    """The instruction that makes one pointer of another; of the same type, one that LLVM removes."""
    if given == wanted:
        return f"getelementptr i8, {given} {name}, i64 0"
    return f"addrspacecast {given} {name} to {wanted}"


def _range(work: Work) -> list[str]:
    """`%end`, the end of an item's steps."""
    if work.extent % work.each == 0:
        return [f"  %end = add nuw nsw i64 %begin, {work.each}"]
    return [
        f"  %next = add nuw nsw i64 %begin, {work.each}",
        f"  %over = icmp ugt i64 %next, {work.extent}",
        f"  %end = select i1 %over, i64 {work.extent}, i64 %next",
    ]
