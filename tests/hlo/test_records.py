"""Frozen classes of hlo/records.py do what those of the standard library do."""

import copy
import dataclasses
import pickle
import subprocess
import sys
import weakref

import pytest

from ...hlo import records


def classes(make):
    @make(frozen=True, slots=True, order=True)
    class Ordered:
        """With a default."""

        a: int
        b: str = "x"

        def double(self):
            return 2 * self.a

        @property
        def both(self):
            return (self.a, self.b)

    @make(frozen=True, eq=False, slots=True, weakref_slot=True)
    class Unequal:
        a: int

    @make(frozen=True)
    class Open:
        a: tuple[int, ...] = ()

        def __post_init__(self):
            if len(self.a) > 3:
                raise ValueError("too many")

        def __repr__(self):
            return "open"

    return Ordered, Unequal, Open


OURS, THEIRS = classes(records.dataclass), classes(dataclasses.dataclass)


def value(make, *arguments, **named):
    """What a call gives, as text, or the kind of its error."""
    try:
        return repr(make(*arguments, **named)).replace("classes.<locals>.", "")
    except (TypeError, ValueError) as error:
        return type(error)


CALLS = [
    *[((), {}), ((1,), {}), ((1, "y"), {}), ((1, "y", 2), {}), ((1,), {"b": "z"}), ((), {"b": "z", "a": 3})],
    *[((1,), {"a": 2}), ((1,), {"c": 2}), ((), {"b": "z"}), (((1, 2, 3, 4),), {}), (((1, 2),), {})],
]


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize(("arguments", "named"), CALLS)
def test_values_are_made_or_refused_alike(which, arguments, named):
    ours, theirs = (value(group[which], *arguments, **named) for group in (OURS, THEIRS))
    assert (ours == theirs) if which != 1 or isinstance(theirs, type) else ours.startswith("Unequal(a=")


@pytest.mark.parametrize("kind", [OURS, THEIRS], ids=["ours", "theirs"])
def test_values_compare_hash_and_stay(kind):
    ordered, unequal, open_ = kind
    x, y = ordered(1, "y"), ordered(2)
    assert x == ordered(1, "y") != y and x != (1, "y") and hash(x) == hash(ordered(1, "y"))
    assert x < y and x <= y and y > x and y >= x and sorted([y, x]) == [x, y]
    with pytest.raises(TypeError):
        assert x < 1
    assert unequal(1) != unequal(1) and len({unequal(1), unequal(1)}) == 2 and weakref.ref(unequal(1)) is not None
    assert open_((1,)) == open_((1,)) and repr(open_()) == "open" and (y.double(), y.both) == (4, (2, "x"))
    for change in (lambda: setattr(x, "a", 3), lambda: delattr(x, "a"), lambda: setattr(open_(), "a", ())):
        with pytest.raises(AttributeError, match="a"):
            change()
    assert not hasattr(x, "__dict__") and ordered.__doc__ == "With a default."


@pytest.mark.parametrize("replace", [records.replace, dataclasses.replace])
def test_fields_are_found_and_replaced(replace):
    x = OURS[0](1, "y")
    assert replace(x, b="z") == OURS[0](1, "z")
    with pytest.raises(TypeError):
        replace(x, c=1)
    assert dataclasses.asdict(x) == {"a": 1, "b": "y"} and dataclasses.is_dataclass(x)
    assert [(f.name, f.type) for f in dataclasses.fields(x)] == [
        (f.name, f.type) for f in dataclasses.fields(THEIRS[0])
    ]


@records.dataclass(frozen=True, slots=True)
class Sent:
    a: int
    b: str


def test_values_are_copied_and_pickled():
    x = Sent(1, "y")
    assert pickle.loads(pickle.dumps(x)) == copy.copy(x) == copy.deepcopy(x) == x
    match x:
        case Sent(a, b):
            assert (a, b) == (1, "y")


def test_loading_a_program_imports_neither_dataclasses_nor_inspect():
    code = (
        "import sys; import testbed.backends.host.loader; print({'dataclasses', 'inspect', 'numpy'} & {*sys.modules})"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"
