"""HUMOD as its authors publish it: raters' rows of one reply, what is left out, and which line a message names."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssrem.annotated_sets import read_set
from ssrem.errors import AnnotationError

HEADER = [
    *("Dialogue_ID", "Dialogue_Context", "Reply", "Label", "Age", "Gender", "English_Proficency"),
    *("User_Relevance_Score", "User_Reply", "Task_ID"),
]


def written(tmp_path: Path, content: str) -> Path:
    path = tmp_path / "HUMOD.TXT"
    path.write_text(content, encoding="utf-8")
    return path


def said(path: Path) -> str:
    with pytest.raises(AnnotationError) as raised:
        read_set(path)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def humod(*rows: tuple[str, str, str, str, str], tail: str = "\tmine\t88") -> str:
    lines = [
        "\t".join((number, context, reply, label, "30", "f", "good", score)) + tail
        for number, context, reply, label, score in rows
    ]
    return "\n".join(["\t".join(HEADER), *lines]) + "\n"


CONTEXT = "Speaker 1: do you sail? Speaker 2: every summer."
FILM = ("1", CONTEXT, "Speaker 1: lucky you.", "0")
DRAWN = ("2", CONTEXT, "Speaker 1: the bank is shut.", "1")


def test_humod(tmp_path: Path) -> None:
    rows = [(*FILM, "5"), (*FILM, "4"), (*DRAWN, "1"), (*DRAWN, "")]
    annotated = read_set(written(tmp_path, humod(*rows)))
    assert annotated.layout == "humod"
    film, drawn = annotated.rows
    assert film.context == drawn.context == ("do you sail?", "every summer.")
    assert (film.response, film.reference, film.ground_truth) == ("lucky you.", "lucky you.", True)
    assert (drawn.response, drawn.reference, drawn.system) == ("the bank is shut.", "lucky you.", "random")
    assert (film.ratings, drawn.ratings) == ({"relevance": (5.0, 4.0)}, {"relevance": (1.0,)})
    assert annotated.left_out == {"rating given as N/A or left empty": 1}


def test_humod_rows_that_miss_the_last_tab_or_differ_in_a_sign(tmp_path: Path) -> None:
    other = ("1", CONTEXT, "Speaker 1: lucky you.:", "0")
    path = written(tmp_path, humod((*FILM, "5"), (*other, "3"), tail="\tmine 88"))
    (row,) = read_set(path).rows
    assert row.ratings == {"relevance": (5.0, 3.0)}


@pytest.mark.parametrize(
    ("row", "tail", "named"),
    [
        ((*FILM[:3], "2", "5"), "\tmine\t88", "the label is '2'"),
        ((*FILM, "five"), "\tmine\t88", "rating 'five' of 'relevance'"),
        ((*FILM, "5"), "\tmine\t88\tmore", "11 cells between tabs, the header has 10"),
        (("1", CONTEXT, "Speaker 1: other.", "0", "5"), "\tmine\t88", "another context or reply"),
    ],
)
def test_a_malformed_humod_file(
    tmp_path: Path, row: tuple[str, str, str, str, str], tail: str, named: str
) -> None:
    good = humod((*FILM, "5"))
    path = written(tmp_path, good + humod(row, tail=tail).partition("\n")[2])
    assert named in said(path)
    assert f"{path}, line " in said(path)
