"""What ADEM learns: the encoder's weights, a projection, M and N, and the constants of its scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.hierarchical_gru import PREFIX, Encoded
from ssrem.errors import EvaluatorError
from ssrem.evaluators.core.scaling import Bounds
from ssrem.samples import Floats, Rows

LOWEST, HIGHEST = 1.0, 5.0
"""The scale of the paper's human scores, which ADEM's scores are on."""

MATRICES = {"f": "M", "g": "N"}
"""Which matrix a part has."""

_CENTRAL = (1, 99)


@dataclass(frozen=True)
class Vectors:
    """What M and N stand between, float64 (n, k) each.

    left: part → contexts ("f") or references ("g"). right: responses. cut: bool (n,), whether words fell away.
    """

    left: Mapping[str, Floats]
    right: Floats
    cut: NDArray[np.bool_]

    def part(self, rows: Rows) -> Vectors:
        """Those at `rows`."""
        left = {part: vectors[rows] for part, vectors in self.left.items()}
        return Vectors(left, self.right[rows], self.cut[rows])


@dataclass(frozen=True)
class Projection:
    """Principal components: mean float32 (h,), axes float32 (h, k), orthonormal columns, the widest first."""

    mean: NDArray[np.float32]
    axes: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: Floats, components: int) -> Projection:
        """Of vectors (n, h); k is `components`, or n or h where that is less.

        An axis has no direction of its own: the largest entry of each is made positive.
        """
        mean = vectors.mean(axis=0)
        _, _, rows = np.linalg.svd(vectors - mean, full_matrices=False)
        rows = rows[:components]
        signs = np.sign(rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)])
        return cls(mean.astype(np.float32), (rows * signs[:, None]).T.astype(np.float32))

    def apply(self, encoded: Encoded) -> Floats:
        """Float64 (n, k); where there is no known word zero, which is the mean of all."""
        projected: Floats = self._centred(encoded) @ self.axes.astype(np.float64)
        return np.where(encoded.known[:, None], projected, 0.0)

    def lost(self, encoded: Encoded) -> float:
        """Share of the variance around the mean that the projection leaves out."""
        centred = self._centred(encoded)[encoded.known]
        total = float((centred**2).sum())
        projected = float(((centred @ self.axes.astype(np.float64)) ** 2).sum())
        return max(0.0, 1 - projected / total) if total > 0 else 0.0

    def _centred(self, encoded: Encoded) -> Floats:
        return np.asarray(encoded.vectors - self.mean.astype(np.float64))


@dataclass(frozen=True)
class Constants:
    """α and β of score = (cᵀMr̂ + rᵀNr̂ - α) / β (eq. 1)."""

    alpha: float
    beta: float

    @classmethod
    def spanning(cls, products: Floats) -> Constants:
        """The 1st percentile of the finite products becomes 1, the 99th 5; the middle, 3, if they coincide.

        Not the extremes: products grow with the vectors' lengths, and one long pair would press all others
        together.
        """
        finite = products[np.isfinite(products)]
        if not finite.size:
            return cls(-(LOWEST + HIGHEST) / 2, 1.0)
        low, high = (float(value) for value in np.percentile(finite, _CENTRAL))
        if high <= low:
            return cls(low - (LOWEST + HIGHEST) / 2, 1.0)
        beta = (high - low) / (HIGHEST - LOWEST)
        return cls(low - LOWEST * beta, beta)

    @classmethod
    def around(cls, products: Floats, mean: float) -> Constants:
        """As spread as `spanning` has them, with `mean` as the mean of the scores."""
        beta = cls.spanning(products).beta
        return cls(float(products.mean()) - mean * beta, beta)


@dataclass(frozen=True)
class State:
    """What a fit leaves.

    encoder: weights of the hierarchical encoder; none where the encoder is off the shelf. matrices: part → M
    or N, float32 (k, k). bounds: of each part. tuned: on how many human scores.
    """

    encoder: Mapping[str, NDArray[np.float32]]
    projection: Projection
    matrices: Mapping[str, NDArray[np.float32]]
    constants: Constants
    bounds: Mapping[str, Bounds]
    tuned: int = 0

    @property
    def tensors(self) -> dict[str, NDArray[np.floating]]:
        """Everything learned but the bounds, by name."""
        return {
            **{PREFIX + name: array for name, array in self.encoder.items()},
            "pca.mean": self.projection.mean,
            "pca.axes": self.projection.axes,
            **{MATRICES[part]: matrix for part, matrix in self.matrices.items()},
            "constants": np.array([self.constants.alpha, self.constants.beta]),
        }

    @classmethod
    def of(
        cls, tensors: Mapping[str, NDArray[np.floating]], bounds: Mapping[str, Bounds], tuned: int
    ) -> State:
        """From `tensors` of an evaluator that has the parts of `bounds`; EvaluatorError if they do not fit."""
        if tensors["pca.axes"].ndim != 2:
            raise EvaluatorError(
                f"pca.axes of shape {tensors['pca.axes'].shape} is no matrix, train it again"
            )
        length, size = tensors["pca.axes"].shape
        wanted: dict[str, tuple[int, ...]] = {"pca.mean": (length,), "constants": (2,)}
        wanted |= {MATRICES[part]: (size, size) for part in bounds}
        for name, shape in wanted.items():
            if tensors[name].shape != shape:
                raise EvaluatorError(f"{name} of shape {tensors[name].shape} is not {shape}, train it again")
        encoder = {name.removeprefix(PREFIX): a for name, a in tensors.items() if name.startswith(PREFIX)}
        return cls(
            {name: array.astype(np.float32) for name, array in encoder.items()},
            Projection(tensors["pca.mean"].astype(np.float32), tensors["pca.axes"].astype(np.float32)),
            {part: tensors[MATRICES[part]].astype(np.float32) for part in bounds},
            Constants(*tensors["constants"].astype(np.float64).tolist()),
            bounds,
            tuned,
        )

    def shares(self, products: Mapping[str, Floats]) -> dict[str, Floats]:
        """Each part in units of the score: cᵀMr̂ / β and rᵀNr̂ / β, less α / β where there is one alone."""
        alpha, beta = self.constants.alpha, self.constants.beta
        if len(products) == 1:
            return {part: (values - alpha) / beta for part, values in products.items()}
        return {part: values / beta for part, values in products.items()}

    def products(self, vectors: Vectors) -> dict[str, Floats]:
        """cᵀMr̂ and rᵀNr̂ of each row, float64 (n,) a part."""
        return {
            part: bilinear(vectors.left[part], matrix, vectors.right)
            for part, matrix in self.matrices.items()
        }

    def total(self, products: Mapping[str, Floats]) -> Floats:
        """The products' sum, float64 of their shape."""
        return np.asarray(sum(products.values()))

    def score(self, products: Mapping[str, Floats]) -> Floats:
        """(cᵀMr̂ + rᵀNr̂ - α) / β, eq. (1), float64 of the products' shape."""
        return (self.total(products) - self.constants.alpha) / self.constants.beta


def bilinear(left: Floats, matrix: NDArray[np.float32], right: Floats) -> Floats:
    """leftᵀ matrix right of each row, float64 (n,), from (n, k) each."""
    products: Floats = np.einsum("nk,nk->n", left @ matrix.astype(np.float64), right)
    return products
