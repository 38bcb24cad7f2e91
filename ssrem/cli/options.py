"""Turns a function into a verb of the command line: its parameters and models of settings become options.

A parameter before `*` becomes an argument, every other one an option; the docstring of the function explains them. A
parameter whose type is a model of settings becomes an option for each field of the model; two fields of the same name
in two models are one option, and both get its value. The library cyclopts divides a command into texts and writes the
help; Pydantic checks each text by its type.
"""

from __future__ import annotations

import inspect
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from cyclopts import Parameter
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from ssrem.cli import STDIN, UsageError
from ssrem.errors import SsremError
from ssrem.registry import object_at
from ssrem.settings import Seconds, Settings, explained
from ssrem.tasks.settings import Margins, Resources

if TYPE_CHECKING:
    from ssrem.tasks.warehouse.home import Warehouse


def checked_by(place: str) -> AfterValidator:
    """A validator that calls the function at "module:name", imported when used, which raises SsremError if wrong."""

    def check(value: Any) -> Any:
        object_at(place)(value)
        return value

    return AfterValidator(check)


EvaluatorName = Annotated[str, checked_by("ssrem.evaluators:check_name")]
SetFile = Annotated[str, checked_by("ssrem.cli.people:check_set")]

Corpora = Annotated[tuple[str, ...], Field(description="corpora (default: all that have landed)")]
DryRun = Annotated[bool, Field(description="count the requests and tokens it would take; ask nothing")]
Raw = Annotated[bool, Field(description="in CSV, write text that a spreadsheet takes for a formula as it is")]

CHECKS = {
    "encoder": "ssrem.encoders:check_spec",
    "init": "ssrem.encoders.hub:check_at_hand",
    "model": "ssrem.encoders.hub:check_at_hand",
}
"""Field of settings → function that checks its value before the stages, whose imports take longer, are imported."""


class Call(Settings):
    """Options of all verbs."""

    home_: Path | None = None
    """home folder (default: $SSREM_HOME, or warehouse in the current folder)"""
    json_: bool = False
    """print JSON instead of tables"""
    quiet: bool = False
    """print no notes, such as how a dump was read; errors are printed (default: $SSREM_QUIET, or not)"""

    def model_post_init(self, context: Any, /) -> None:
        """Set $SSREM_QUIET if --quiet is given, which silences the notes of worker processes, too."""
        if self.quiet:
            os.environ["SSREM_QUIET"] = "1"

    @cached_property
    def home(self) -> Warehouse:
        """The home folder."""
        from ssrem.tasks.warehouse.home import Warehouse  # imports DuckDB

        return Warehouse.at(self.home_ or os.environ.get("SSREM_HOME") or "warehouse")

    @property
    def root(self) -> str:
        """Path of the home folder, as stages take it."""
        return str(self.home.root)

    @property
    def shown(self) -> str:
        """The option --home for a command that is suggested to the user; empty if it was not given."""
        return f" --home {shlex.quote(str(self.home_))}" if self.home_ else ""


class Writer(Call):
    """Options of verbs that write into the home folder, one at a time."""

    wait: Seconds | None = None
    """how long to wait for another writer, such as 90, 30m or 6h (default: $SSREM_WAIT, or not at all)"""

    def model_post_init(self, context: Any, /) -> None:
        """Set $SSREM_WAIT, by which every lock knows how long to wait."""
        super().model_post_init(context)
        if self.wait is not None:
            os.environ["SSREM_WAIT"] = str(self.wait)


class StageCall(Writer):
    """Options of verbs that carry out stages."""

    resources: Resources = Resources()


@dataclass
class Option:
    """An option, or an argument if it is positional, made from a parameter or a field of settings."""

    name: str
    field: FieldInfo
    help: str
    positional: bool

    @property
    def flag(self) -> str:
        """The name that users see: `--context-turns`, or `SOURCE` for an argument."""
        name = self.name.strip("_")  # as in `output_`, beside a module or keyword
        return name.upper() if self.positional else f"--{name.replace('_', '-')}"

    @property
    def kinds(self) -> list[Any]:
        """The possible types of the value, without `Annotated` and without the types of elements of a tuple or dict."""
        hint = self.field.annotation
        parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        bare = (get_args(part)[0] if get_origin(part) is Annotated else part for part in parts)
        return [one if get_origin(one) in (None, Literal) else get_origin(one) for one in bare]

    @property
    def several(self) -> bool:
        """Whether the option takes several values."""
        return not {tuple, dict, Margins}.isdisjoint(self.kinds)

    def parameter(self) -> inspect.Parameter:
        """The parameter that cyclopts parses: a flag, a text or several texts."""
        kinds, default = self.kinds, self.field.default
        words = [one for kind in kinds if get_origin(kind) is Literal for one in get_args(kind)]
        number = not {int, float}.isdisjoint(kinds)
        if number or not words:
            words.insert(0, "N" if number else re.split("[-_]", self.flag)[-1].upper())
        pair = re.fullmatch(r"([A-Z]+=[A-Z]+): (.*)", self.help)
        metavar, help = pair.groups() if pair else ("|".join(words), self.help)
        kind: Any = bool if bool in kinds else tuple[str, ...] if self.several else str
        stated = isinstance(default, str | int | float) and kind is str and "(default" not in help
        about = Parameter(
            name=None if self.positional else self.flag,
            help=help,
            metavar=f"{metavar}..." if self.several else metavar,
            show_default=str(default) if stated and default != "" else False,
            consume_multiple=(1, None) if self.several and not self.positional else None,
            negative=None if {bool, NoneType} <= set(kinds) else (),
        )
        own = (one for one in self.field.metadata if isinstance(one, Parameter))
        hint = Annotated[kind | None, Parameter.combine(about, *own)]
        place = inspect.Parameter.POSITIONAL_ONLY if self.positional else inspect.Parameter.KEYWORD_ONLY
        missing = inspect.Parameter.empty if self.field.is_required() else None
        return inspect.Parameter(self.name, place, default=missing, annotation=hint)

    def checked(self, given: Any) -> Any:
        """What was given, converted to the type of the option; raises UsageError if it does not fit."""
        texts = tuple("-" if text == STDIN else text for text in (given if self.several else (given,)))
        kind, checks = self.field.annotation, self.field.metadata
        hint: Any = Annotated[(kind, *checks)] if checks else kind
        try:
            value = TypeAdapter(hint).validate_python(texts if self.several else texts[0])
            if self.name in CHECKS:
                object_at(CHECKS[self.name])(value)
            return value
        except ValidationError as error:
            raise UsageError(explained(error, option=self.flag)) from None
        except SsremError as error:
            if Margins in self.kinds:
                raise UsageError(f"{self.flag}: {error}") from None
            raise


class Verb:
    """A verb of the command line, which the function `run` carries out.

    The first parameter of `run` is the `Call` with the options of all verbs. cyclopts calls the verb with the texts of
    a command; the verb checks them all and returns `run` with their values bound, ready to be called.
    """

    def __init__(self, run: Callable[..., int | None]) -> None:
        self.run = run
        self.fields = _parameters(run)
        self.options: dict[str, Option] = {}
        for name, field in _flat(self.fields):
            help = " ".join((field.description or "").split())
            known = self.options.setdefault(name, Option(name, field, help, field.kw_only is False))
            if known.help != help:  # the form of the value, such as FIELD=COLUMN, is not repeated
                known.help += "; " + re.sub("^[A-Z]+=[A-Z]+: ", "", help)
        self.__signature__ = inspect.Signature([option.parameter() for option in self.options.values()])
        self.__annotations__: dict[str, Any] = {}
        self.__name__ = run.__name__

    def __call__(self, *words: Any, **texts: Any) -> Callable[[], int | None]:
        places = [name for name, option in self.options.items() if option.positional]
        texts |= zip(places, words, strict=False)
        values = {name: self.options[name].checked(text) for name, text in texts.items()}
        arguments = _values(self.fields, values)
        return partial(self.run, arguments.pop("call"), **arguments)


Fields = Mapping[str, FieldInfo]


def _parameters(function: Callable[..., Any]) -> dict[str, FieldInfo]:
    """A function's parameters as Pydantic fields, described by the lines of its docstring; `call` comes last."""
    lines = re.findall(r"^(\w+): (.*(?:\n    .*)*)", inspect.getdoc(function) or "", re.MULTILINE)
    hints, texts = get_type_hints(function, include_extras=True), dict(lines)
    call, *others = inspect.signature(function).parameters.values()
    fields = {one.name: FieldInfo.from_annotation(hints[one.name]) for one in (*others, call)}
    for one in others:
        field = fields[one.name]
        field.default = PydanticUndefined if one.default is one.empty else one.default
        field.description = texts.get(one.name, field.description)
        field.kw_only = one.kind is one.KEYWORD_ONLY
    return fields


def _flat(fields: Fields) -> Iterator[tuple[str, FieldInfo]]:
    """The fields, with the fields of each model of settings in place of the model."""
    for name, field in fields.items():
        if model := _model(field):
            yield from _flat(model.model_fields)
        else:
            yield name, field


def _values(fields: Fields, values: Mapping[str, Any]) -> dict[str, Any]:
    """Field → its value: every model of settings, made from the given values, and each other field that was given."""
    models = {name: model for name, field in fields.items() if (model := _model(field))}
    made = {name: model(**_values(model.model_fields, values)) for name, model in models.items()}
    return made | {name: values[name] for name in fields if name in values and name not in models}


def _model(field: FieldInfo) -> type[Settings] | None:
    """The model of settings that is the type of the field, else None; `Margins` does not count, as it is one option."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Settings) and kind is not Margins else None
