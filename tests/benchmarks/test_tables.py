"""Tables at a width: names stay whole, and lines are no longer than they must be."""

from ...benchmarks.tables import left, right, text_table

LONG = "dynamic-update-slice.complex"


def table(names, width=40, more="a sentence of some words"):
    return text_table([left("row"), right("ulp"), left("what")], [(n, "123", more) for n in names], width).splitlines()


def test_a_name_that_leaves_no_room_has_a_line_of_its_own():
    lines = text_table([left("row"), *[right("n")] * 1], [(LONG, "1" * 10), ("sort.half", "2")], 32).splitlines()
    assert lines[1] == LONG and lines[2].split() == ["1" * 10] and lines[3].split() == ["sort.half", "2"]
    assert all(len(line) <= 32 for line in lines)


def test_names_that_fit_are_whole_and_other_columns_wrap():
    lines = table(["sort.half", LONG], width=46)
    assert any(line.startswith(f"{LONG}  123") for line in lines) and all(len(line) <= 46 for line in lines)
    assert sum("sentence" in line for line in lines) == 2


def test_a_table_without_a_width_is_as_it_was():
    assert text_table([left("a"), right("b")], [("x" * 200, "1")]).splitlines()[1] == "x" * 200 + "  1"
    assert text_table([right("a")], [("1",)], 40).splitlines() == ["a", "1"]
    assert text_table([left("a")], [], 40) == "a"
