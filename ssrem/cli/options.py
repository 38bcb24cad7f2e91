"""Makes a verb of the command line of a function: its parameters and models of settings become options.

A parameter before `*` is an argument, every other one an option, explained in the docstring. A parameter whose type is
a model of settings stands for an option for each of its fields; fields of one name in two models are one option, and
both get its value. The library cyclopts divides a command into texts and writes the help; Pydantic checks each text by
its type.
"""

from __future__ import annotations

import inspect
import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from cyclopts import Parameter
from pydantic import AfterValidator, TypeAdapter, ValidationError

from ssrem.cli import STDIN, UsageError
from ssrem.errors import SsremError
from ssrem.registry import registered
from ssrem.settings import Seconds, Settings, explained

if TYPE_CHECKING:
    from ssrem.tasks.warehouse.home import Warehouse


def checked_by(place: str) -> AfterValidator:
    """A check of a value: the function at "module:name", which raises an SsremError, and is imported only then."""

    def check(value: Any) -> Any:
        registered(place)(value)
        return value

    return AfterValidator(check)


EvaluatorName = Annotated[str, checked_by("ssrem.evaluators:check_name")]
SetFile = Annotated[str, checked_by("ssrem.cli.people:check_set")]

Corpora = Annotated[tuple[str, ...], "corpora (default: all that have landed)"]
DryRun = Annotated[bool, "say how many requests, tokens and how much money it would take, and ask nothing"]
Raw = Annotated[bool, "in CSV, write text as it is, even where a spreadsheet would take it for a formula"]


@dataclass(frozen=True)
class Call:
    """What a verb gets from the options that all verbs have. shown: --home as the next command has to name it, too."""

    home: Warehouse
    json: bool
    shown: str

    @classmethod
    def of(cls, *, home: Path | None = None, json: bool = False) -> Call:
        """From the values of its options.

        home: home folder (default: $SSREM_HOME, or warehouse in the current folder)
        json: print JSON instead of tables
        """
        from ssrem.tasks.warehouse.home import Warehouse  # imports DuckDB

        root = home or os.environ.get("SSREM_HOME") or "warehouse"
        return cls(Warehouse.at(root), json, f" --home {shlex.quote(str(home))}" if home else "")

    @property
    def root(self) -> str:
        """The home folder as stages take it."""
        return str(self.home.root)


class Writer(Call):
    """The same for verbs that write into the home folder, one at a time."""

    @classmethod
    def of(cls, *, wait: Seconds | None = None, **common: Any) -> Call:
        """From the values of its options; worker processes wait as long.

        wait: how long to wait for another writer, such as 90, 30m or 6h (default: $SSREM_WAIT, or not at all)
        """
        if wait is not None:
            os.environ["SSREM_WAIT"] = str(wait)
        return super().of(**common)


@dataclass
class Option:
    """An option, or an argument if it is positional. annotation: its type, with Pydantic's checks."""

    name: str
    annotation: Any
    default: Any
    help: str
    positional: bool = False

    @property
    def flag(self) -> str:
        """As a user knows it: `--context-turns`, or `SOURCE` for an argument."""
        name = self.name.strip("_")  # beside a module or keyword of the same name
        return name.upper() if self.positional else f"--{name.replace('_', '-')}"

    @property
    def kinds(self) -> list[Any]:
        """The types that a value may have, as `_kinds` gives them."""
        return _kinds(self.annotation)

    @property
    def several(self) -> bool:
        """Whether it takes several values."""
        return any(kind in (tuple, dict) or _is_model(kind) for kind in self.kinds)

    def parameter(self) -> inspect.Parameter:
        """As cyclopts takes it: a flag, a text or several texts."""
        words = [one for kind in self.kinds if get_origin(kind) is Literal for one in get_args(kind)]
        if int in self.kinds or not words:
            words.insert(0, "N" if int in self.kinds else re.split("[-_]", self.flag)[-1].upper())
        pair = re.fullmatch(r"([A-Z]+=[A-Z]+): (.*)", self.help)
        metavar, help = pair.groups() if pair else ("|".join(words), self.help)
        kind: Any = bool if bool in self.kinds else tuple[str, ...] if self.several else str
        stated = isinstance(self.default, str | int | float) and kind is str and "(default" not in help
        about = Parameter(
            name=None if self.positional else self.flag,
            help=help,
            metavar=f"{metavar}..." if self.several else metavar,
            show_default=str(self.default) if stated and self.default != "" else False,
            consume_multiple=(1, None) if self.several and not self.positional else None,
            negative=None if {bool, type(None)} <= set(self.kinds) else (),
        )
        own = (one for one in get_args(self.annotation)[1:] if isinstance(one, Parameter))
        hint = Annotated[kind | None, Parameter.combine(about, *own)]
        made = inspect.Parameter
        if self.positional and self.several:
            return made(self.name, made.VAR_POSITIONAL, annotation=Annotated[str, about])
        place = made.POSITIONAL_ONLY if self.positional else made.KEYWORD_ONLY
        default = made.empty if self.default is made.empty else None
        return made(self.name, place, default=default, annotation=hint)

    def checked(self, given: Any) -> Any:
        """What was given, as a value of its type; UsageError where it cannot be one."""
        texts = tuple("-" if text == STDIN else text for text in (given if self.several else (given,)))
        try:
            return TypeAdapter(self.annotation).validate_python(texts if self.several else texts[0])
        except ValidationError as error:
            raise UsageError(explained(error, option=self.flag)) from None
        except SsremError as error:
            if any(map(_is_model, self.kinds)):
                raise UsageError(f"{self.flag}: {error}") from None
            raise


class Verb:
    """A verb, which the function `run` carries out.

    Called with the texts of a command, as cyclopts does it, it checks them all, and returns `run` with their values,
    ready to be called.
    """

    def __init__(self, run: Callable[..., int | None]) -> None:
        self.run = run
        self.hints = get_type_hints(run, include_extras=True)
        makers = dict.fromkeys((Call.of, self.hints["call"].of))
        self.common = {option.name: option for of in makers for option in _options(of)}
        self.options: dict[str, Option] = {}
        for option in (*_options(run), *self.common.values()):
            known = self.options.setdefault(option.name, option)
            known.help = "; ".join(dict.fromkeys([known.help, option.help]))
        self.__signature__ = inspect.Signature([option.parameter() for option in self.options.values()])
        self.__annotations__: dict[str, Any] = {}
        self.__name__ = run.__name__

    def __call__(self, *words: Any, **texts: Any) -> Callable[[], int | None]:
        places = [name for name, option in self.options.items() if option.positional]
        texts |= zip(places, words, strict=False)
        if words and self.options[places[-1]].several:
            texts[places[-1]] = words[len(places) - 1 :]
        values = {name: self.options[name].checked(text) for name, text in texts.items()}
        arguments = {name: values[name] for name in values if name in self.hints}
        for name, model in self.hints.items():
            if _is_model(model):
                arguments[name] = model(**{one: values[one] for one in model.model_fields if one in values})
        call = self.hints["call"].of(**{name: values[name] for name in values if name in self.common})
        return partial(self.run, call, **arguments)


def _options(function: Callable[..., Any]) -> Iterator[Option]:
    """The options of a function's parameters, without `call`; those of models are the models' fields."""
    hints = get_type_hints(function, include_extras=True)
    lines = re.findall(r"^(\w+): (.*(?:\n    .*)*)", inspect.getdoc(function) or "", re.MULTILINE)
    texts = {name: " ".join(text.split()) for name, text in lines}
    for one in inspect.signature(function).parameters.values():
        hint = hints[one.name]
        if _is_model(hint):
            for name, field in hint.model_fields.items():
                kind = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
                yield Option(name, kind, field.get_default(), " ".join(field.description.split()))
        elif one.name not in ("call", "common"):
            about = (getattr(part, "description", part) for part in get_args(hint)[1:])
            help = texts.get(one.name) or next(text for text in about if isinstance(text, str))
            yield Option(one.name, hint, one.default, help, one.kind is not inspect.Parameter.KEYWORD_ONLY)


def _kinds(annotation: Any) -> list[Any]:
    """The types of a union, without `Annotated`; a tuple's or dictionary's without those of its parts."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kinds(parts[0])
    if origin in (Union, UnionType):
        return [kind for part in parts for kind in _kinds(part)]
    return [annotation if origin in (None, Literal) else origin]


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Settings)
