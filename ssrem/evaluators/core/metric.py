"""`Metric` for families whose settings are a dictionary `defaults` yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ssrem.errors import EvaluatorError
from ssrem.evaluators import metric
from ssrem.evaluators.core.fitted import settings_by
from ssrem.evaluators.metric import Scored

__all__ = ["Metric", "Scored", "check_text", "check_whole"]


class _Dictionary(dict[str, Any]):
    """Settings by name."""

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """As a model's."""
        return dict(self)


class Metric(metric.Metric):
    """A metric whose settings are checked by `check_settings`."""

    defaults: ClassVar[Mapping[str, Any]] = {}
    """Setting → value where none is given."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.settings_model = settings_by(cls, cls.defaults)

    def __init__(self, **settings: Any) -> None:
        self.settings = _Dictionary(self.check_settings(settings))

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """All settings, with defaults for those not in `settings`."""
        if unknown := sorted(set(settings) - set(cls.defaults)):
            known = ", ".join(cls.defaults) or "none"
            raise EvaluatorError(f"{cls.name} has no setting {', '.join(unknown)}; it has {known}")
        return {**cls.defaults, **settings}


def check_text(evaluator: str, name: str, value: object) -> None:
    """EvaluatorError unless the setting `name`, which names a model, is text."""
    if not isinstance(value, str) or not value:
        raise EvaluatorError(f"{evaluator}: {name} is {value!r}; expected a name or a folder")


def check_whole(evaluator: str, name: str, value: object) -> None:
    """EvaluatorError unless the setting `name` is a whole number from 1."""
    if type(value) is not int or value < 1:
        raise EvaluatorError(f"{evaluator}: {name} is {value!r}; expected a whole number from 1")
