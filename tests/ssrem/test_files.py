"""Paths with `~` in place of a home folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssrem.errors import HomeError
from ssrem.files import expanded, resolved


def test_a_tilde_stands_for_a_known_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert expanded("~/x") == expanded(Path("~/x")) == Path("/home/ann/x")
    assert expanded("a/~b") == Path("a/~b")
    with pytest.raises(HomeError, match=r"^~nouser/x: the home folder ~nouser is not known; write the path"):
        expanded("~nouser/x", HomeError)


def test_a_link_to_itself_stays_one(tmp_path: Path) -> None:
    folder, link, loop = tmp_path / "folder", tmp_path / "link", tmp_path / "loop"
    link.symlink_to(folder)
    loop.symlink_to(loop)
    assert resolved(link) == folder.resolve()
    assert resolved(loop) == tmp_path.resolve() / "loop" and resolved(loop).is_symlink()
