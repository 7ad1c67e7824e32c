"""`dataclass` and `replace` for frozen classes that a program from a file needs: they import and compile nothing.

The standard library's import `inspect` and compile six functions a class from text: half of the time in which a file
was loaded. These share functions. What asks for `dataclasses.fields` finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["dataclass", "replace"]

T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
else:

    def dataclass(
        *, frozen: bool, slots: bool = False, eq: bool = True, order: bool = False, weakref_slot: bool = False
    ) -> Callable[[type[T]], type[T]]:
        """As dataclasses.dataclass, for a class without bases whose defaults are values, not `field(…)`."""
        assert frozen

        def made(cls: type[T]) -> type[T]:
            names = tuple(cls.__annotations__)
            defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
            found = _with_slots(cls, names, weakref_slot) if slots else cls
            methods = {**_METHODS, **_init(found, names, defaults, slots)}
            methods |= _by_value(names) if eq else {}
            methods |= _ORDER if order else {}
            for name, value in methods.items():
                if name not in cls.__dict__ or (name == "__hash__" and cls.__hash__ is None):
                    setattr(found, name, value)
            return found

        return made

    def replace(value: T, /, **changes: Any) -> T:
        """The value with other fields. Raises TypeError for a name that is no field."""
        return type(value)(**({name: getattr(value, name) for name in value.__match_args__} | changes))


def _with_slots(cls: Any, names: Sequence[str], weak: bool) -> Any:
    """The class again, with slots: they exist only if a class is made with them."""
    kept = {k: v for k, v in cls.__dict__.items() if k not in names and k not in ("__dict__", "__weakref__")}
    return type(cls)(cls.__name__, cls.__bases__, {**kept, "__slots__": (*names, "__weakref__") if weak else names})


def _init(cls: type, names: tuple[str, ...], defaults: Mapping[str, Any], slots: bool) -> dict[str, Any]:
    count, prepare = len(names), getattr(cls, "__post_init__", None)
    setters: tuple[Callable[[Any, Any], None], ...]
    setters = tuple(cls.__dict__[name].__set__ if slots else _setter(name) for name in names)

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        if named or len(values) != count:
            given = values
            try:
                values += tuple([named.pop(n) if n in named else defaults[n] for n in names[len(given) :]])
            except KeyError as missing:
                raise TypeError(f"{cls.__qualname__} needs {missing.args[0]!r}") from None
            if named or len(values) != count:
                raise TypeError(f"{cls.__qualname__} takes {', '.join(names)}; too many: {[*given, *named]}")
        for put, value in zip(setters, values):
            put(self, value)
        if prepare is not None:
            prepare(self)

    def __setstate__(self: Any, state: Sequence[Any]) -> None:
        for put, value in zip(setters, state, strict=True):
            put(self, value)

    return {
        "__init__": __init__,
        "__setstate__": __setstate__,
        "__match_args__": names,
        "__dataclass_fields__": _Fields(names, defaults),
    }


def _setter(name: str) -> Callable[[Any, Any], None]:
    return lambda self, value: object.__setattr__(self, name, value)


def _repr(self: Any) -> str:
    fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{type(self).__qualname__}({fields})"


def _refuse(self: Any, name: str, value: Any = None) -> None:
    raise AttributeError(f"cannot change field {name!r} of a {type(self).__qualname__}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__match_args__]


_METHODS = {"__repr__": _repr, "__setattr__": _refuse, "__delattr__": _refuse, "__getstate__": _state}


def _by_value(names: Sequence[str]) -> dict[str, Any]:
    get: Callable[[Any], Any] = attrgetter(*names)

    def __eq__(self: Any, other: object) -> bool:
        return get(self) == get(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(get(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _comparison(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compared(a: Any, b: Any) -> bool:
        return compare(_state(a), _state(b)) if b.__class__ is a.__class__ else NotImplemented

    return compared


_ORDER = {
    "__lt__": _comparison(lambda a, b: a < b),
    "__le__": _comparison(lambda a, b: a <= b),
    "__gt__": _comparison(lambda a, b: a > b),
    "__ge__": _comparison(lambda a, b: a >= b),
}


class _Fields:
    """`__dataclass_fields__`, made when dataclasses.fields, replace or asdict asks for it."""

    def __init__(self, names: Sequence[str], defaults: Mapping[str, Any]):
        self._names, self._defaults = names, defaults

    def __get__(self, value: Any, owner: Any) -> Mapping[str, Any]:
        import dataclasses

        def default(value: Any) -> Any:
            return dataclasses.field(default_factory=lambda: value)

        types = {name: owner.__annotations__[name] for name in self._names}
        defaults = {name: default(value) for name, value in self._defaults.items()}
        copy: Any = type(owner.__name__, (), {"__annotations__": types, **defaults})
        fields: Mapping[str, Any] = dataclasses.dataclass(copy).__dataclass_fields__
        owner.__dataclass_fields__ = fields
        return fields
