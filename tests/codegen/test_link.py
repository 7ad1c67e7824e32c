"""Our own linker: what LLVM makes of our modules runs, other forms and damage are refused, memory is given back."""

import ctypes
import gc
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ...codegen import elf
from ...codegen.elf import read_object
from ...codegen.errors import CodegenError
from ...codegen.jit_link import jit_link
from ...codegen.link import WIDTHS, free, link
from ...codegen.load import load
from ...codegen.optimize import compile_object
from ...codegen.options import EmitOptions, Target

pytestmark = pytest.mark.skipif(Target.machine().architecture != "x86_64", reason="the linker is for x86-64")

PLAIN = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64", "", 128))

ALL_KINDS = """
@table = internal constant [3 x ptr] [ptr @one, ptr @two, ptr @far]
@count = internal global i64 40
@shown = global i64 7
@elsewhere = external global i64
declare i64 @far(i64)
declare i64 @next(i64)
define internal i64 @one(i64 %x) noinline {
  %y = add i64 %x, 1
  ret i64 %y
}
define internal i64 @two(i64 %x) noinline {
  %y = mul i64 %x, 2
  ret i64 %y
}
define i64 @run(i64 %n) {
  %p = getelementptr ptr, ptr @table, i64 %n
  %f = load volatile ptr, ptr %p
  %a = call i64 %f(i64 10)
  %b = call i64 @far(i64 %a)
  %c = call i64 @next(i64 %b)
  %old = load volatile i64, ptr @count
  %new = add i64 %old, 1
  store volatile i64 %new, ptr @count
  %e = load i64, ptr @elsewhere
  %s = load i64, ptr @shown
  %t = add i64 %e, %s
  %d = add i64 %c, %new
  %u = add i64 %d, %t
  ret i64 %u
}
define double @constant(double %x) {
  %y = fmul double %x, 0x400921FB54442D18
  ret double %y
}
"""
NEXT = "define i64 @next(i64 %x) {\n  %y = add i64 %x, 1000\n  ret i64 %y\n}\n"


@pytest.fixture(scope="module")
def objects():
    return [compile_object(text, PLAIN, cache=None) for text in (ALL_KINDS, NEXT)]


@pytest.fixture
def external():
    """Addresses of a function and of data that are far away from what is mapped."""
    far = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: x + 100)
    word = ctypes.c_int64(5)
    yield {"far": ctypes.cast(far, ctypes.c_void_p).value, "elsewhere": ctypes.addressof(word)}
    assert word.value == 5


def run(addresses, n):
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(addresses["run"])(n)


def test_every_kind_of_relocation_gives_what_llvms_linker_gives(objects, external):
    kinds = {row.type for data in objects for table in read_object(data).relocations.values() for row in table}
    assert {1, 2, 4} <= kinds and kinds & {9, 41, 42} and kinds <= set(WIDTHS)
    names = ("run", "shown", "next", "constant")
    theirs, unload = jit_link(objects, names, external)
    ours = link([read_object(data) for data in objects], external)
    assert set(ours.addresses) == set(names)
    for n, first in enumerate((11, 20, 110)):
        assert run(ours.addresses, n) == run(theirs, n) == first + 100 + 1000 + 41 + n + 12
    constant = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    assert constant(ours.addresses["constant"])(2.0) == constant(theirs["constant"])(2.0) == 2 * np.pi
    unload()
    free(ours.address, ours.size)


def permissions(address):
    """Those of the page at an address; '' if nothing is there."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        begin, end = (int(word, 16) for word in line.split()[0].split("-"))
        if begin <= address < end:
            return line.split()[1]
    return ""


def test_code_cannot_be_written_and_data_cannot_run(objects, external):
    ours = link([read_object(data) for data in objects], external)
    assert permissions(ours.addresses["run"]) == "r-xp" and permissions(ours.addresses["shown"]) == "rw-p"
    assert permissions(ours.address + ours.size - 1) == "rw-p"
    free(ours.address, ours.size)


def test_memory_is_given_back_with_the_code(objects, external):
    code = load(objects, external)
    address = code.address("run")
    assert permissions(address) == "r-xp"
    circle = [code]
    circle.append(circle)
    del code, circle
    gc.collect()
    assert permissions(address) != "r-xp"


def changed(data, place, form, value):
    return data[:place] + struct.pack(form, value) + data[place + struct.calcsize(form) :]


def header(data, number):
    """The place of a section's header."""
    return struct.unpack_from("<Q", data, 0x28)[0] + number * elf.SECTION.size


def first(data, **wanted):
    """The number of the first section with these fields."""
    sections = read_object(data).sections
    return next(n for n, row in enumerate(sections) if wanted.items() <= row._asdict().items())


def test_what_is_not_known_is_refused_by_name(objects, external):
    data = objects[0]
    text, relocations = first(data, flags=6), first(data, type=elf.SHT_RELA)
    table = read_object(data).sections[relocations].offset
    symbols = first(data, type=elf.SHT_SYMTAB)
    symbol = read_object(data).sections[symbols].offset + elf.SYMBOL.size
    cases = [
        (changed(data, 0x12, "<H", 183), "for ELF's machine 183"),
        (changed(data, table + 8, "<I", 23), "relocations of type 23"),
        (changed(data, header(data, text) + 8, "<Q", 7), "code that can be written"),
        (changed(data, header(data, text) + 8, "<Q", 0x406), "neither code nor plain data"),
        (changed(data, header(data, text) + 4, "<I", 14), "neither code nor plain data"),
        (changed(data, header(data, text) + 48, "<Q", 1 << 20), "an alignment of 1048576"),
        (changed(data, symbol + 4, "<B", 6), "common, thread-local"),
        (changed(data, symbol + 6, "<H", 0xFFF2), "common, thread-local"),
        (changed(data, header(data, text) + 32, "<Q", 1 << 62), "GB"),
    ]
    for wrong, words in cases:
        with pytest.raises(CodegenError, match=words):
            link([read_object(wrong), read_object(objects[1])], external)


def test_a_relocation_outside_its_section_is_damage(objects, external):
    o = read_object(objects[0])
    for name, value in (("offset", 1 << 40), ("symbol", 1 << 20)):
        tables = {section: [table[0]._replace(**{name: value}), *table[1:]] for section, table in o.relocations.items()}
        with pytest.raises(CodegenError, match="damaged ELF object"):
            link([replace(o, relocations=tables), read_object(objects[1])], external)


def test_any_damage_of_the_tables_is_an_error_or_links(objects, external):
    """Nothing is run: the bytes of code are not the linker's. Every byte outside of them, with each bit flipped."""
    data, refused = objects[0], 0
    for place in range(len(data)):
        wrong = bytearray(data)
        wrong[place] ^= 1 << place % 8
        try:
            linked = link([read_object(bytes(wrong)), read_object(objects[1])], external)
            free(linked.address, linked.size)
        except CodegenError as error:
            refused += bool(str(error))
    for size in range(0, len(data), 7):
        with pytest.raises(CodegenError):
            link([read_object(data[:size])], external)
    assert refused > len(data) // 20
