"""`dataclass`, `field` and `replace` for classes that small programs need: they import nothing and compile little.

The standard library's import `inspect` and compile six functions a class from text: a fifth of the time in which a
process compiled its first program. These share functions; a class that makes many values gets an `__init__` of its
own. What asks for `dataclasses.fields` finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["dataclass", "field", "replace"]

T = TypeVar("T")

OFTEN = 64
"""From this many values of a class up, an `__init__` of its own is worth its compilation."""

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
else:

    def dataclass(
        cls: type[T] | None = None,
        /,
        *,
        frozen: bool = False,
        slots: bool = False,
        eq: bool = True,
        order: bool = False,
        weakref_slot: bool = False,
    ) -> type[T] | Callable[[type[T]], type[T]]:
        """As dataclasses.dataclass, for a class whose bases have no fields."""

        def made(cls: type[T]) -> type[T]:
            assert not any(hasattr(base, "__match_args__") for base in cls.__bases__)
            record = _Record(cls, frozen, slots)
            found = _with_slots(cls, record.names, weakref_slot) if slots else cls
            for name in () if slots else record.settings:
                setattr(found, name, record.defaults[name]) if name in record.defaults else delattr(found, name)
            methods = {"__repr__": _repr, **record.methods(found), **(_FROZEN if frozen else {})}
            methods |= _by_value(record.compared, frozen) if eq else {}
            methods |= _ORDER if order else {}
            for name, value in methods.items():
                if name not in cls.__dict__ or (name == "__hash__" and cls.__hash__ is None):
                    setattr(found, name, value)
            return found

        return made if cls is None else made(cls)

    def field(**settings: Any) -> Any:
        """As dataclasses.field: default, default_factory, init, repr, compare."""
        return _Field(settings)

    def replace(value: T, /, **changes: Any) -> T:
        """The value with other fields. Raises TypeError for a name that is no field."""
        return type(value)(**({name: getattr(value, name) for name in value.__match_args__} | changes))


class _Field:
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings


def _with_slots(cls: Any, names: Sequence[str], weak: bool) -> Any:
    """The class again, with slots: they exist only if a class is made with them."""
    kept = {k: v for k, v in cls.__dict__.items() if k not in names and k not in ("__dict__", "__weakref__")}
    return type(cls)(cls.__name__, cls.__bases__, {**kept, "__slots__": (*names, "__weakref__") if weak else names})


class _Record:
    """The fields of a class. settings: of those that `field` gives. arguments: the fields that `__init__` takes."""

    def __init__(self, cls: type, frozen: bool, slots: bool) -> None:
        self.annotations = dict(cls.__annotations__)
        self.names = tuple(self.annotations)
        given = {name: cls.__dict__[name] for name in self.names if name in cls.__dict__}
        self.settings = {name: value.settings for name, value in given.items() if isinstance(value, _Field)}
        plain = {name: {"default": value} for name, value in given.items() if name not in self.settings}
        values = {**plain, **self.settings}
        self.defaults = {name: values[name]["default"] for name in given if "default" in values[name]}
        self.factories = {n: s["default_factory"] for n, s in self.settings.items() if "default_factory" in s}
        self.arguments, self.shown, self.compared = (
            tuple(name for name in self.names if self.settings.get(name, {}).get(setting, True))
            for setting in ("init", "repr", "compare")
        )
        self.frozen, self.slots = frozen, slots

    def methods(self, cls: Any) -> dict[str, Any]:
        """The methods of the class `cls` that depend on its fields."""
        self._setters = {name: cls.__dict__[name].__set__ if self.slots else _setter(name) for name in self.names}
        made = {"__init__": self._init(cls), "__dataclass_fields__": _Fields(self)}
        made |= {"__match_args__": self.arguments, "__shown__": self.shown}
        return {**made, **self._states()} if self.frozen and self.slots else made

    def _init(self, cls: Any) -> Callable[..., None]:
        arguments, number, prepares = self.arguments, len(self.arguments), hasattr(cls, "__post_init__")
        setters = tuple(self._setters[name] for name in arguments)
        others = [name for name in self.names if name not in arguments]
        made = [(self._setters[name], name) for name in others if name in self.factories or name in self.defaults]
        calls = count(1)

        def __init__(self_: Any, *values: Any, **named: Any) -> None:
            if next(calls) == OFTEN:
                cls.__init__ = self._own_init(cls)
            if named or len(values) != number:
                values = self._arranged(cls, values, named)
            for put, value in zip(setters, values):
                put(self_, value)
            for put, name in made:
                put(self_, self._default(name))
            if prepares:
                self_.__post_init__()

        return __init__

    def _arranged(self, cls: type, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """The values of all arguments. Raises TypeError for too many, and for a missing one."""
        rest = self.arguments[len(values) :]
        try:
            all_ = values + tuple([named.pop(name) if name in named else self._default(name) for name in rest])
        except KeyError as missing:
            raise TypeError(f"{cls.__qualname__} needs {missing.args[0]!r}") from None
        if named or len(all_) != len(self.arguments):
            takes = ", ".join(self.arguments)
            raise TypeError(f"{cls.__qualname__} takes {takes}; too many: {[*values, *named]}")
        return all_

    def _default(self, name: str) -> Any:
        return self.factories[name]() if name in self.factories else self.defaults[name]

    def _own_init(self, cls: Any) -> Any:
        """The `__init__` as the standard library compiles it."""
        scope: dict[str, Any] = {"put": object.__setattr__, "missing": (missing := object())}
        parameters, lines = [], []
        for n, name in enumerate(self.names):
            has_default = name in self.defaults or name in self.factories
            if name in self.arguments:
                parameters.append(name + (f"=d{n}" if has_default else ""))
                value = f"f{n}() if {name} is missing else {name}" if name in self.factories else name
            elif has_default:
                value = f"f{n}()" if name in self.factories else f"d{n}"
            else:
                continue
            scope |= {f"s{n}": self._setters[name], f"f{n}": self.factories.get(name)}
            scope[f"d{n}"] = missing if name in self.factories else self.defaults.get(name)
            ways = {(True, True): f"s{n}(self, {value})", (True, False): f"put(self, {name!r}, {value})"}
            lines.append(ways.get((self.frozen, self.slots), f"self.{name} = {value}"))
        lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
        text = f"def __init__({', '.join(['self', *parameters])}):\n  " + "\n  ".join(lines or ["pass"])
        exec(text, scope)
        return scope["__init__"]

    def _states(self) -> dict[str, Any]:
        """What copies and pickles values that cannot be changed."""
        setters = tuple(self._setters.values())

        def __getstate__(self_: Any) -> list[Any]:
            return [getattr(self_, name) for name in self.names]

        def __setstate__(self_: Any, state: Sequence[Any]) -> None:
            for put, value in zip(setters, state, strict=True):
                put(self_, value)

        return {"__getstate__": __getstate__, "__setstate__": __setstate__}


def _setter(name: str) -> Callable[[Any, Any], None]:
    return lambda self, value: object.__setattr__(self, name, value)


def _repr(self: Any) -> str:
    fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__shown__)
    return f"{type(self).__qualname__}({fields})"


def _refuse(self: Any, name: str, value: Any = None) -> None:
    raise AttributeError(f"cannot change field {name!r} of a {type(self).__qualname__}")


_FROZEN = {"__setattr__": _refuse, "__delattr__": _refuse}


def _by_value(names: Sequence[str], frozen: bool) -> dict[str, Any]:
    get: Callable[[Any], Any] = attrgetter(*names) if names else lambda _: ()

    def __eq__(self: Any, other: object) -> bool:
        return get(self) == get(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(get(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _comparison(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compared(a: Any, b: Any) -> bool:
        return compare(_values(a), _values(b)) if b.__class__ is a.__class__ else NotImplemented

    return compared


def _values(value: Any) -> list[Any]:
    return [getattr(value, name) for name in value.__match_args__]


_ORDER = {
    "__lt__": _comparison(lambda a, b: a < b),
    "__le__": _comparison(lambda a, b: a <= b),
    "__gt__": _comparison(lambda a, b: a > b),
    "__ge__": _comparison(lambda a, b: a >= b),
}


class _Fields:
    """`__dataclass_fields__`, made when dataclasses.fields, replace or asdict asks for it."""

    def __init__(self, record: _Record):
        self._record = record

    def __get__(self, value: Any, owner: Any) -> Mapping[str, Any]:
        import dataclasses

        record = self._record
        settings = {name: dict(record.settings.get(name, {})) for name in record.names}
        for name, default in record.defaults.items():
            settings[name].pop("default", None)
            settings[name]["default_factory"] = lambda default=default: default
        given = {name: dataclasses.field(**s) for name, s in settings.items() if s}
        copy: Any = type(owner.__name__, (), {"__annotations__": record.annotations, **given})
        fields: Mapping[str, Any] = dataclasses.dataclass(copy).__dataclass_fields__
        owner.__dataclass_fields__ = fields
        return fields
