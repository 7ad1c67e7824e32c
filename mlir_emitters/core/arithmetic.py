"""Scalar operations of the arith and math dialects, created by name: 2 µs each, against 5 for the generated classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

from mlir import ir

from ...codegen.field.element import active
from ...codegen.field.element import constant as element_of
from .facts import Facts

Value: TypeAlias = ir.Value

FLOAT_PREDICATES = {
    "oeq": 1,
    "ogt": 2,
    "oge": 3,
    "olt": 4,
    "ole": 5,
    "one": 6,
    "ord": 7,
    "ueq": 8,
    "ugt": 9,
    "uge": 10,
    "ult": 11,
    "ule": 12,
    "une": 13,
    "uno": 14,
}
INTEGER_PREDICATES = {"eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5, "ult": 6, "ule": 7, "ugt": 8, "uge": 9}


class Types:
    """Types and attributes of one Context, created once because emission uses them often."""

    def __init__(self) -> None:
        self.f16, self.f32, self.f64 = ir.F16Type.get(), ir.F32Type.get(), ir.F64Type.get()
        self.i1, self.i8, self.i16, self.i32, self.i64, self.i128 = (
            ir.IntegerType.get_signless(bits) for bits in (1, 8, 16, 32, 64, 128)
        )
        self.index = ir.IndexType.get()
        self.unit = ir.UnitAttr.get()
        self.parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
        self.contract = {"fastmath": ir.Attribute.parse("#arith.fastmath<contract>")}
        self.reassociate = {"fastmath": ir.Attribute.parse("#arith.fastmath<reassoc,contract>")}
        self.no_nan_no_zero = {"fastmath": ir.Attribute.parse("#arith.fastmath<nnan,nsz>")}
        self.rolled, self.vectorized = (
            {"loop_annotation": ir.Attribute.parse(f"#llvm.loop_annotation<unroll = <disable = true>{more}>")}
            for more in ("", ", vectorize = <followupVectorized = <mustProgress = true>>")
        )
        self.lean = {
            "loop_annotation": ir.Attribute.parse(
                "#llvm.loop_annotation<unroll = <disable = true>, interleave = <count = 1 : i32>>"
            )
        }
        self.abreast = {"loop_annotation": ir.Attribute.parse("#llvm.loop_annotation<interleave = <count = 4 : i32>>")}
        self.twice = {"loop_annotation": ir.Attribute.parse("#llvm.loop_annotation<unroll = <count = 2 : i32>>")}
        self.done = {
            "loop_annotation": ir.Attribute.parse(
                "#llvm.loop_annotation<unroll = <disable = true>, vectorize = <disable = true>>"
            )
        }
        self.scalar = {"loop_annotation": ir.Attribute.parse("#llvm.loop_annotation<vectorize = <disable = true>>")}
        self.no_wrap = {"overflowFlags": ir.Attribute.parse("#arith.overflow<nsw>")}
        self.compare_float = {k: {"predicate": ir.IntegerAttr.get(self.i64, v)} for k, v in FLOAT_PREDICATES.items()}
        self.compare_integer = {
            k: {"predicate": ir.IntegerAttr.get(self.i64, v)} for k, v in INTEGER_PREDICATES.items()
        }
        self.internal = ir.Attribute.parse("#llvm.linkage<internal>")

    def integer(self, bits: int) -> ir.Type:
        return ir.IntegerType.get_signless(bits)


class Arithmetic:
    """Creates operations at `ip`, in one function at a time."""

    def __init__(self, module: ir.Module, types: Types, facts: Facts):
        self.module, self.types, self.facts = module, types, facts
        self.strict, self.by_element, self.vector_bits = facts.strict, facts.by_element, facts.vector_bits
        self.fma_hardware, self.processor = facts.fma, facts.processor
        self.location = ir.Location.unknown()
        self.ip = ir.InsertionPoint(module.body)
        self.functions: dict[str, ir.Operation] = {}
        self.globals: set[str] = set()
        self.helpers: dict[str, Any] = {}  # functions of modules of their own that are called: name → what they do
        self.hints = True  # whether loops have annotations
        self.vectors = set[str]()  # the operations of the vector dialect, by name
        self.loops = 0  # that were opened
        self.generics = self.hinted = 0  # linalg.generic operations, and those whose loops get hints
        self._arrays: dict[tuple[str, bytes], str] = {}
        self.math_calls: list[ir.Operation] = []
        self.scopes: list[dict[Any, Any]] = []
        self.outside: tuple[ir.InsertionPoint, int] | None = None
        """Of a linalg.generic whose body is being built: the point before it, and the number of scopes there."""
        self._constants: dict[Any, Value] = {}
        self._constant_ip = self.ip
        self._flags = None if facts.strict else types.contract

    # Operations ------------------------------------------------------------------------------------------------------

    def operation(
        self,
        name: str,
        results: Sequence[ir.Type],
        operands: Sequence[Value],
        attributes: dict[str, ir.Attribute] | None = None,
        regions: int = 0,
    ) -> ir.Operation:
        if name.startswith("vector."):
            self._note(name, results, operands)
        return ir.Operation.create(
            name,
            results=results,
            operands=operands,
            attributes=attributes,
            regions=regions,
            loc=self.location,
            ip=self.ip,
        )

    def op(
        self,
        name: str,
        *operands: Value,
        type: ir.Type | None = None,
        attributes: dict[str, ir.Attribute] | None = None,
    ) -> Value:
        """Create a one-result operation. type: of the result; None for the first operand's type."""
        if name.startswith("vector."):
            self._note(name, [operands[0].type if type is None else type], operands)
        return ir.Operation.create(
            name,
            results=[operands[0].type if type is None else type],
            operands=operands,
            attributes=attributes,
            loc=self.location,
            ip=self.ip,
        ).result

    def _note(self, name: str, results: Sequence[ir.Type], operands: Sequence[Value]) -> None:
        """Remember an operation of the vector dialect: its name, if it is of plain vectors, made of scalars or so."""
        given = [t for x in operands if isinstance(t := x.type, ir.VectorType)]
        made = [t for t in results if isinstance(t, ir.VectorType)]
        plain = all(t.rank == 1 for t in (*given, *made)) and not (given and name == "vector.broadcast")
        self.vectors.add(name if plain else f"{name} of vectors")

    def constant(self, value: float | int, type: ir.Type) -> Value:
        """A scalar constant, created once per function, in its entry block."""
        if isinstance(value, float):
            value = element_of(value)
        key = (type, repr(value) if isinstance(value, float) else int(value))
        found = self._constants.get(key)
        if found is None:
            if isinstance(value, float):
                attribute: ir.Attribute = ir.FloatAttr.get(type, value)
            elif type == self.types.index:
                attribute = ir.IntegerAttr.get(type, value)
            else:
                width = type.width
                wrapped = (int(value) + 2 ** (width - 1)) % 2**width - 2 ** (width - 1) if width > 1 else int(value) & 1
                attribute = ir.IntegerAttr.get(type, wrapped)
            found = ir.Operation.create(
                "arith.constant",
                results=[type],
                attributes={"value": attribute},
                loc=self.location,
                ip=self._constant_ip,
            ).result
            if isinstance(value, float) and value and math.isfinite(value) and active() is not None:
                found = self.at_entry("func.call", type, [found], {"callee": self.symbol_of_value(type)})
            self._constants[key] = found
        return found

    def symbol_of_value(self, type: ir.Type) -> ir.Attribute:
        """The function that gives a constant over a field. MLIR's translation computes with constants as floats."""
        raise NotImplementedError

    def vector_constant(self, value: ir.Attribute, type: ir.Type, key: Any) -> Value:
        """A constant of vector type; equal keys share one."""
        return self.constant_once(key, lambda: self.at_entry("arith.constant", type, (), {"value": value}))

    def constant_once(self, key: Any, make: Callable[[], Value]) -> Value:
        """What `make` creates in the function's entry block; equal keys share one."""
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = make()
        return found

    def at_entry(
        self,
        name: str,
        type: ir.Type,
        operands: Sequence[Value] = (),
        attributes: dict[str, ir.Attribute] | None = None,
    ) -> Value:
        """A one-result operation in the function's entry block, where constants are."""
        if name.startswith("vector."):
            self._note(name, [type], operands)
        return ir.Operation.create(
            name, results=[type], operands=operands, attributes=attributes, loc=self.location, ip=self._constant_ip
        ).result

    def f32(self, value: float) -> Value:
        return self.constant(float(value), self.types.f32)

    def f64(self, value: float) -> Value:
        return self.constant(float(value), self.types.f64)

    def like(self, value: float | int, other: Value) -> Value:
        """A constant of the type of another value."""
        type = other.type
        return self.constant(float(value) if self.is_float(type) else int(value), type)

    def is_float(self, type: ir.Type) -> bool:
        types = self.types
        return type == types.f32 or type == types.f64 or type == types.f16

    # Float arithmetic: it may contract unless strict; the `exact_` forms never do

    def addf(self, a: Value, b: Value) -> Value:
        return self.op("arith.addf", a, b, attributes=self._flags)

    def subf(self, a: Value, b: Value) -> Value:
        return self.op("arith.subf", a, b, attributes=self._flags)

    def mulf(self, a: Value, b: Value) -> Value:
        return self.op("arith.mulf", a, b, attributes=self._flags)

    def divf(self, a: Value, b: Value) -> Value:
        return self.op("arith.divf", a, b, attributes=self._flags)

    def negf(self, a: Value) -> Value:
        return self.op("arith.negf", a)

    def absf(self, a: Value) -> Value:
        return self.op("math.absf", a)

    def maxf(self, a: Value, b: Value) -> Value:
        """The larger value; NaN if either is NaN."""
        return self.op("arith.maximumf", a, b)

    def minf(self, a: Value, b: Value) -> Value:
        """The smaller value; NaN if either is NaN."""
        return self.op("arith.minimumf", a, b)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a·b + c: one fused operation if the target has it, otherwise two operations."""
        if self.fma_hardware:
            return self.op("math.fma", a, b, c)
        return self.op("arith.addf", self.op("arith.mulf", a, b), c)

    def fused(self, a: Value, b: Value, c: Value) -> Value:
        """a·b + c whose product is not rounded and cannot overflow, on every target.

        Without an instruction for it, f32 is computed in f64 (exact product, sum rounded twice), f64 by libm's fma.
        """
        if self.fma_hardware or a.type != self.types.f32:
            return self.op("math.fma", a, b, c)
        x, y, z = map(self.extend, (a, b, c))
        return self.truncate(self.op("arith.addf", self.op("arith.mulf", x, y), z), self.types.f32)

    def copysign(self, magnitude: Value, sign: Value) -> Value:
        return self.op("math.copysign", magnitude, sign)

    def math(self, name: str, *operands: Value, type: ir.Type | None = None) -> Value:
        """A math operation that math_library may expand later."""
        made = self.operation(name, [operands[0].type if type is None else type], operands)
        self.math_calls.append(made)
        return made.result

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """Compare floats: 'oeq', 'olt', 'une', 'uno', …"""
        return self.op("arith.cmpf", a, b, type=self.types.i1, attributes=self.types.compare_float[predicate])

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        return self.op("arith.select", condition, a, b, type=a.type)

    def is_nan(self, a: Value) -> Value:
        return self.compare("uno", a, a)

    def extend(self, a: Value) -> Value:
        """Extend f32 to f64, or a narrower float to f32."""
        return self.op("arith.extf", a, type=self.types.f64 if a.type == self.types.f32 else self.types.f32)

    def truncate(self, a: Value, type: ir.Type) -> Value:
        return self.op("arith.truncf", a, type=type)

    # Integers --------------------------------------------------------------------------------------------------------

    def compare_integers(self, predicate: str, a: Value, b: Value) -> Value:
        """Compare integers: 'eq', 'slt', 'ult', …"""
        return self.op("arith.cmpi", a, b, type=self.types.i1, attributes=self.types.compare_integer[predicate])

    def binary(self, name: str, a: Value, b: Value | int) -> Value:
        """arith.<name> of two integers. An int becomes a constant of a's type."""
        return self.op(f"arith.{name}", a, self.constant(b, a.type) if isinstance(b, int) else b)

    def all_of(self, conditions: Sequence[Value]) -> Value:
        """Whether all conditions hold, of which there is one at least."""
        return reduce(lambda x, y: self.binary("andi", x, y), conditions)

    def extui(self, a: Value, type: ir.Type) -> Value:
        return self.op("arith.extui", a, type=type)

    def extsi(self, a: Value, type: ir.Type) -> Value:
        return self.op("arith.extsi", a, type=type)

    def trunci(self, a: Value, type: ir.Type) -> Value:
        return self.op("arith.trunci", a, type=type)

    def bitcast(self, a: Value, type: ir.Type) -> Value:
        return a if a.type == type else self.op("arith.bitcast", a, type=type)
