"""The names of `ssrem.evaluators.learning` for families that are not on `ssrem.evaluators.base` yet."""

from ssrem.evaluators.learning import HeldOutSplit, check_enough, enough, number_of_contexts, on_scale

__all__ = ["HeldOutSplit", "check_enough", "enough", "number_of_contexts", "on_scale"]
