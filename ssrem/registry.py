"""Registries name objects as "module:name"; the module is imported when the object is first used. Installed packages
add their own by entry points."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from ssrem.errors import SsremError, say
from ssrem.extras import explained


def object_at(place: str) -> Any:
    """The object at "module:name"; SsremError if there is none, or if a module that it needs is not installed. The
    message then names the extra of ssrem that installs the module, if there is one."""
    module, _, name = place.partition(":")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        missing = f"{place} needs the module {error.name}, which is not installed"
        raise explained(error) or SsremError(missing) from error
    except (AttributeError, ImportError, SyntaxError) as error:
        raise SsremError(f"{place} cannot be used: {error}") from error


def usable(registry: Mapping[str, str], own: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Yield each name of a registry with its object. own: the part of the registry that comes with ssrem. What an
    installed package adds and cannot be imported is left out, and the user is told once."""
    for name, place in registry.items():
        try:
            found = object_at(place)
        except SsremError as error:
            if name in own:
                raise
            _say_once(f"{name} is left out: {error}")
        else:
            yield name, found


_say_once = cache(say)


def with_installed(group: str, own: Mapping[str, str]) -> dict[str, str]:
    """The registry `own`, preceded by the entries that installed packages add to it as entry points of the group.

    Raises SsremError, which names the package, if a package adds a name that is taken.
    """
    added: dict[str, str] = {}
    for entry in _installed().select(group=group):
        if added.setdefault(entry.name, entry.value) != entry.value or entry.name in own:
            package = entry.dist.name if entry.dist else entry.value
            raise SsremError(
                f"the package {package} adds {entry.name!r} to {group}, which has one; uninstall it"
            )
    return {**added, **own}


@cache
def _installed() -> Any:
    from importlib.metadata import entry_points

    return entry_points()


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean A?` with the known names that are similar to `name`; empty if none is."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def nearest(name: str, known: Iterable[str], cutoff: float = 0.4) -> str:
    """The up to three known names that are most similar to `name`, or all if none is, joined by commas."""
    names = list(known)
    return ", ".join(difflib.get_close_matches(name, names, n=3, cutoff=cutoff) or names)
