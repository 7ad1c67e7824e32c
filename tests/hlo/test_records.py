"""Classes of hlo/records.py do what those of the standard library do."""

import copy
import dataclasses
import pickle
import subprocess
import sys
import weakref

import pytest

from ...hlo import records


def classes(make, field):
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

    @make(frozen=True, slots=True)
    class Made:
        a: int
        b: list[int] = field(default_factory=lambda: [7])
        c: int = field(default=3, repr=False, compare=False)
        d: str = field(init=False)
        e: tuple[int, ...] = field(init=False, default=(1,))

        def __post_init__(self):
            object.__setattr__(self, "d", "d" * self.a)

    @make(eq=False)
    class Loose:
        a: int
        b: dict[int, int] = field(default_factory=dict)
        c: list[int] = field(default_factory=list, init=False)

    @make
    class Changed:
        a: int
        b: int = field(repr=False, default=2)

    @make(slots=True)
    class Tight:
        a: int
        b: int = 1

    return Ordered, Unequal, Open, Made, Loose, Changed, Tight


OURS, THEIRS = (classes(m.dataclass, m.field) for m in (records, dataclasses))
OFTEN = classes(records.dataclass, records.field)
for kind in OFTEN:  # these have an `__init__` of their own then
    for _ in range(records.OFTEN):
        kind(1) if kind is not OFTEN[2] else kind()


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


@pytest.mark.parametrize("which", range(7))
@pytest.mark.parametrize(("arguments", "named"), CALLS)
def test_values_are_made_or_refused_alike(which, arguments, named):
    ours, often, theirs = (value(group[which], *arguments, **named) for group in (OURS, OFTEN, THEIRS))
    assert ours == often == theirs
    assert "_arranged" not in OFTEN[which].__init__.__code__.co_names


@pytest.mark.parametrize("kind", [OURS, OFTEN, THEIRS], ids=["ours", "often", "theirs"])
def test_values_compare_hash_and_stay(kind):
    ordered, unequal, open_, *_ = kind
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


@pytest.mark.parametrize("kind", [OURS, OFTEN, THEIRS], ids=["ours", "often", "theirs"])
def test_settings_of_fields_and_values_that_change(kind):
    *_, made, loose, changed, tight = kind
    x, y = made(2), made(2, c=4)
    assert x == y and x.b is not y.b and (x.d, x.e, x.c, y.c) == ("dd", (1,), 3, 4) and x != made(3)
    assert repr(x).endswith("Made(a=2, b=[7], d='dd', e=(1,))")
    with pytest.raises(AttributeError, match="c"):
        x.c = 5
    assert copy.deepcopy(x) == x and copy.copy(x).b is x.b
    one, other = loose(1), loose(1)
    one.c.append(3)
    one.more = one.a = 4
    assert one != other and other.c == [] and (one.c, one.b, one.a) == ([3], {}, 4) and hash(one) != hash(other)
    with pytest.raises(AttributeError):
        loose.b  # noqa: B018
    assert changed.b == 2 and changed(1) == changed(1, 2) != changed(1, 3) and "b=" not in repr(changed(1))
    with pytest.raises(TypeError, match="unhashable"):
        hash(changed(1))
    small = tight(1)
    small.a = 3
    assert small == tight(3) == copy.deepcopy(small) and pickle.HIGHEST_PROTOCOL and not hasattr(small, "__dict__")
    with pytest.raises(AttributeError):
        small.c = 1

    class Longer(made):
        def __post_init__(self):
            object.__setattr__(self, "d", "longer")

    assert Longer(1).d == "longer" and Longer(1) != made(1)


@pytest.mark.parametrize("which", range(7))
def test_fields_are_those_of_the_standard_library(which):
    settings = [
        [(f.name, f.type, f.init, f.repr, f.compare) for f in dataclasses.fields(group[which])]
        for group in (OURS, THEIRS)
    ]
    assert settings[0] == settings[1] and OURS[which].__match_args__ == THEIRS[which].__match_args__


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
