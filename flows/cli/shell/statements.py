"""SQL as it is typed or piped in, line by line, cut into statements."""

from __future__ import annotations

from itertools import pairwise

import duckdb

_Token = tuple[bytes, "duckdb.token_type"]


class Statements:
    """Text so far; `take` gives each statement whose semicolon has come. One in quotes or a comment ends nothing."""

    def __init__(self) -> None:
        self.pending = ""
        """What waits for its semicolon."""

    def take(self, line: str) -> list[str]:
        """Add a line; returns the statements that it completes, without their semicolons."""
        self.pending = f"{self.pending}\n{_valid(line)}" if self.pending else _valid(line)
        complete, current = [], b""
        for text, kind in _tokens(self.pending):
            if kind == duckdb.token_type.operator and text.startswith(b";"):
                complete.append(current.decode())
                current = text.removeprefix(b";")
            else:
                current += text
        self.pending = current.decode() if _says(current.decode()) else ""
        return [statement.strip() for statement in complete if _says(statement)]

    def rest(self) -> str:
        """What is left at the end of the input: a statement without a semicolon, or nothing."""
        left, self.pending = self.pending.strip(), ""
        return left


def on_one_line(statement: str) -> str:
    """The statement without comments and line breaks, save such as stand in quotes."""
    line, apart = "", False
    for text, kind in _tokens(_valid(statement)):
        if kind != duckdb.token_type.comment:
            quoted = kind in (duckdb.token_type.string_const, duckdb.token_type.identifier)
            body = text.strip() if quoted else b" ".join(text.split())
            line += (" " if apart and line else "") + body.decode()
        apart = text[-1:].isspace() or kind == duckdb.token_type.comment
    return line


def _says(text: str) -> bool:
    """Whether anything but comments stands there."""
    return any(kind != duckdb.token_type.comment for body, kind in _tokens(text) if body.strip())


def _tokens(text: str) -> list[_Token]:
    """The text cut before each token, so that the pieces are all of it; the first may start with blanks."""
    raw = text.encode()
    found = duckdb.tokenize(text)  # offsets are of bytes
    starts = [0, *(offset for offset, _ in found[1:]), len(raw)]
    return [(raw[a:b], kind) for (a, b), (_, kind) in zip(pairwise(starts), found, strict=False)]


def _valid(text: str) -> str:
    """Text that can be encoded: bytes that were no text are question marks."""
    return text.encode("utf-8", "replace").decode()
