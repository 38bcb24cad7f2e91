"""g: how similar a response is to the reference (the true response)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError
from ssrem.samples import Encode, Floats

METRICS = ("sms", "embedding-average")


def similarity(
    metric: str,
    encoder: Encoder,
    responses: Sequence[str],
    references: Sequence[str | None],
    *,
    encode: Encode | None = None,
) -> Floats:
    """g(r̂, r) of each pair, float64 (n,); NaN where the reference is None.

    'sms': sentence mover's similarity in [0, 1]; 'embedding-average': cosine of their vectors in [-1, 1].
    """
    metrics: dict[str, Callable[[list[str], list[str]], Floats]] = {
        "sms": lambda left, right: _movers_similarity(encoder, left, right),
        "embedding-average": lambda left, right: _cosine(encode or encoder.encode, left, right),
    }
    if metric not in metrics:
        raise EvaluatorError(f"no reference metric {metric!r}; one of {', '.join(METRICS)}")
    result = np.full(len(responses), np.nan)
    pairs = [(response, ref) for response, ref in zip(responses, references, strict=True) if ref is not None]
    here = np.array([ref is not None for ref in references], dtype=bool)
    if pairs:
        result[here] = metrics[metric]([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    return result


def _cosine(encode: Encode, left: list[str], right: list[str]) -> Floats:
    """Embedding average (Liu et al. 2016): cosine of the averages, 0 where a text has no known word."""
    a, b = encode(left).astype(np.float64), encode(right).astype(np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products: Floats = np.einsum("nd,nd->n", a, b)
    cosines: Floats = np.divide(products, norms, out=np.zeros(len(left)), where=norms > 0)
    return cosines


def _movers_similarity(encoder: Encoder, left: list[str], right: list[str]) -> Floats:
    """exp(-d) with d the exact transport cost between the texts' words and sentences (Clark et al. 2019).

    Words weigh as often as they occur, a sentence as many words as it has, each text 1 in all. Vectors are
    brought to unit length first, so d lies in [0, 2] with any encoder and exp(-d) neither vanishes nor
    depends on the scale of the vectors. 0 where a text has no known word.
    """
    import ot

    bags: dict[str, tuple[Floats, Floats]] = {}

    def bag(text: str) -> tuple[Floats, Floats]:
        if text not in bags:
            vectors, weights = encoder.bag(text)
            unit = vectors.astype(np.float64)
            norms = np.linalg.norm(unit, axis=1)
            nonzero = norms > 0
            bags[text] = (
                unit[nonzero] / norms[nonzero, None],
                weights[nonzero] / max(weights[nonzero].sum(), 1e-300),
            )
        return bags[text]

    result = np.zeros(len(left))
    for position, (one, other) in enumerate(zip(left, right, strict=True)):
        (a, weight_a), (b, weight_b) = bag(one), bag(other)
        if not len(a) or not len(b):
            continue
        distance = np.sqrt(np.maximum(2 - 2 * (a @ b.T), 0))
        distance[distance < 1e-7] = 0
        result[position] = np.exp(-float(ot.emd2(weight_a, weight_b, distance)))
    return result
