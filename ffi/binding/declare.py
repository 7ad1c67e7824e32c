"""Which arguments, results, attributes and context a handler takes: declared step by step, or by its annotations."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

from ...hlo.errors import InputError
from ..abi import Stage
from .attributes import Dictionary, attr_decoding, is_struct
from .buffers import RemainingArgs, RemainingRets, is_custom
from .context import Context, is_context
from .specs import (
    ArgSpec,
    AttrSpec,
    AttrsSpec,
    BufferSpec,
    CtxSpec,
    OptionalSpec,
    RemainingSpec,
    ResultSpec,
    Spec,
)


@dataclass(frozen=True, slots=True)
class Declaration:
    """The parameters of a handler, in order. Each method gives a longer binding; wrong orders raise InputError."""

    stage: Stage = Stage.EXECUTE
    specs: tuple[Spec, ...] = ()

    def arg(self, of: Any) -> Self:
        """An argument: `.arg(Buffer[F32])`."""
        self._refuse(False, "argument can't be passed after", "optional argument", "remaining arguments")
        return self._with(ArgSpec(_operand(of, False)))

    def ret(self, of: Any) -> Self:
        """A result: `.ret(Buffer[F32])`."""
        of = of.of if isinstance(of, ResultSpec) else of
        self._refuse(True, "result can't be passed after", "optional result", "remaining results")
        return self._with(ResultSpec(_operand(of, True)))

    def optional_arg(self, of: Any) -> Self:
        self._refuse(False, "optional argument can't be passed after", "", "remaining arguments")
        return self._with(OptionalSpec(_operand(of, False), False))

    def optional_ret(self, of: Any) -> Self:
        of = of.of if isinstance(of, ResultSpec) else of
        self._refuse(True, "optional result can't be passed after", "", "remaining results")
        return self._with(OptionalSpec(_operand(of, True), True))

    def remaining_args(self) -> Self:
        self._once(RemainingSpec(False), "remaining arguments can be passed just once")
        return self._with(RemainingSpec(False))

    def remaining_rets(self) -> Self:
        self._once(RemainingSpec(True), "remaining results can be passed just once")
        return self._with(RemainingSpec(True))

    def attr(self, type: Any, name: str) -> Self:
        """An attribute: `.attr(int32, "i32")`."""
        if any(isinstance(s, AttrsSpec) for s in self.specs):
            raise InputError("dictionary attributes can't be mixed with regular ones")
        attr_decoding(type)
        return self._with(AttrSpec(type, name))

    def attrs(self, type: Any = Dictionary) -> Self:
        """All attributes, as a Dictionary or a struct."""
        if any(isinstance(s, AttrSpec) for s in self.specs):
            raise InputError("dictionary attributes can't be mixed with regular ones")
        attr_decoding(type)
        return self._with(AttrsSpec(type))

    def ctx(self, type: Any = Context) -> Self:
        """Something of the execution context: `.ctx(ScratchAllocator)`."""
        if not is_context(type):
            raise InputError(f"{type} is nothing of a context", remedy="ScratchAllocator, ThreadPool, State[T], …")
        return self._with(CtxSpec(type))

    def _with(self, spec: Spec) -> Self:
        return replace(self, specs=(*self.specs, spec))

    def _refuse(self, is_result: bool, text: str, optional: str, remaining: str) -> None:
        for spec in self.specs:
            if optional and isinstance(spec, OptionalSpec) and spec.is_result == is_result:
                raise InputError(f"{text} {optional}")
        if RemainingSpec(is_result) in self.specs:
            raise InputError(f"{text} {remaining}")

    def _once(self, spec: RemainingSpec, text: str) -> None:
        if spec in self.specs:
            raise InputError(text)


D = TypeVar("D", bound=Declaration)


def stage_of(stage: Stage | str) -> Stage:
    if isinstance(stage, Stage):
        return stage
    try:
        return Stage[stage.upper()]
    except KeyError:
        raise InputError(f"no stage {stage!r}", remedy="instantiate, prepare, initialize or execute") from None


def _operand(of: Any, is_result: bool) -> Any:
    if isinstance(of, BufferSpec) or is_custom(of, is_result):
        return of
    what, register = ("result", "register_ret_decoding") if is_result else ("parameter", "register_arg_decoding")
    raise InputError(f"{of} is no type of a {what}", remedy=f"Buffer[F32], or ffi.{register}")


def parameter_count(function: Callable[..., Any]) -> int | None:
    """How many positional arguments a function wants; None if it takes various numbers, or does not say."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind == p.VAR_POSITIONAL or p.default is not p.empty for p in parameters):
        return None
    return len(parameters)


def infer(function: Callable[..., Any], binding: D) -> D:
    """An empty declaration, with what a function's annotations say. Raises InputError with the parameter's name."""
    name = getattr(function, "__name__", repr(function))
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError as error:
        remedy = "annotations are evaluated where the module's names are known"
        raise InputError(f"{name}: an annotation names what does not exist: {error}", remedy=remedy) from None
    for parameter in signature.parameters.values():
        try:
            if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                raise InputError("no positional parameter")
            binding = _bind_one(binding, parameter.annotation, parameter.name)
        except InputError as error:
            what = f"{name}, parameter {parameter.name}: {error.message}"
            raise InputError(what, remedy=error.remedy) from None
    return binding


def _bind_one(binding: D, annotation: Any, name: str) -> D:
    if typing.get_origin(annotation) is typing.Annotated:
        annotation = annotation.__metadata__[0]
    if isinstance(annotation, ResultSpec):
        inner = annotation.of
        return binding.optional_ret(inner.of) if isinstance(inner, OptionalSpec) else binding.ret(inner)
    if isinstance(annotation, OptionalSpec):
        of = annotation.of
        if annotation.is_result or isinstance(of, ResultSpec):
            return binding.optional_ret(of)
        return binding.optional_arg(of)
    if isinstance(annotation, AttrSpec):
        return binding.attr(annotation.type, annotation.name or name)
    if annotation is RemainingArgs:
        return binding.remaining_args()
    if annotation is RemainingRets:
        return binding.remaining_rets()
    if isinstance(annotation, BufferSpec) or is_custom(annotation, False):
        return binding.arg(annotation)
    if is_custom(annotation, True):
        return binding.ret(annotation)
    if annotation is Dictionary or is_struct(annotation):
        return binding.attrs(annotation)
    if is_context(annotation):
        return binding.ctx(annotation)
    missing = annotation is inspect.Parameter.empty
    what = "no annotation" if missing else f"{annotation} is not supported for binding"
    raise InputError(what, remedy="write Buffer[F32], Result[Buffer[F32]], Attr[int32], …")
