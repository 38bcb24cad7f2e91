"""Texts to vectors: averages of trained, packaged, downloaded or given word vectors, and transformers."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError

__all__ = ["DEFAULT_ENCODER", "Encoder", "load_encoder", "load_saved"]

DEFAULT_ENCODER = "glove-6b-50d+word2vec"


def load_encoder(spec: str, *, train_texts: Sequence[str] | None = None, seed: int = 0) -> Encoder:
    """The encoder that `spec` names.

    word2vec: trained on `train_texts` · glove-6b-50d: packaged GloVe · file:PATH or an existing path: a file
    in GloVe or word2vec format, or the folder of a transformer · all-minilm-l6-v2: the packaged sentence
    encoder · hf:NAME_OR_PATH: any other transformer, by its name on the hub or its folder · adem:FOLDER: the
    hierarchical GRU of a trained adem · a name known to gensim's downloader · A+B: the vectors of both, end to end.
    After a spec of word vectors, ":uniform" asks for the plain mean of the words and ":sif" (the default) for
    frequent words to count less; without a corpus it takes rows to run from frequent to rare, as they do.
    An unknown spec is an EvaluatorError that suggests the nearest names; nothing is silently replaced.
    """
    from ssrem.encoders import hub, sources

    if spec == hub.MINILM or _is_folder(spec):
        return _transformer(spec)
    if Path(spec).expanduser().is_file():
        return sources.file_vectors(Path(spec).expanduser())
    if "+" in spec and not spec.startswith("file:"):
        from ssrem.encoders.concatenation import Concatenation

        parts = [load_encoder(part, train_texts=train_texts, seed=seed) for part in spec.split("+")]
        return Concatenation(parts)
    if spec.startswith("hf:"):
        return _transformer(spec)
    if spec.startswith("adem:"):
        from ssrem.encoders.hierarchical_gru import HierarchicalGru

        return HierarchicalGru.of(Path(spec.removeprefix("adem:")).expanduser())
    name, _, weighting = spec.rpartition(":")
    if weighting not in ("sif", "uniform"):
        # conceptnet-numberbatch lists its words by the alphabet, so their rank says nothing.
        name, weighting = spec, "uniform" if spec.startswith("conceptnet-") else "sif"
    if name.startswith("file:") or Path(name).expanduser().is_file():
        return sources.file_vectors(Path(name.removeprefix("file:")).expanduser(), weighting=weighting)
    if name == "word2vec":
        if train_texts is None:
            raise EvaluatorError(
                "encoder word2vec learns from a corpus: pass train_texts, or name ready vectors"
            )
        return sources.train_word2vec(train_texts, seed=seed, weighting=weighting)
    if name == sources.GLOVE_NAME:
        return sources.packaged_glove(weighting=weighting)
    if name in sources.DOWNLOADS:
        return sources.downloaded_vectors(name, weighting=weighting)
    known = ["word2vec", sources.GLOVE_NAME, hub.MINILM, *sources.DOWNLOADS]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.3) or known[:2]
    raise EvaluatorError(
        f"no encoder or file {spec!r}; did you mean {', '.join(near)}, file:PATH, hf:NAME or adem:FOLDER?"
    )


def load_saved(folder: Path) -> Encoder:
    """The encoder that `Encoder.save` wrote into `folder`."""
    from ssrem.encoders.concatenation import Concatenation
    from ssrem.encoders.hierarchical_gru import HierarchicalGru
    from ssrem.encoders.transformer import Transformer
    from ssrem.encoders.word_average import WordAverage
    from ssrem.files import read_json

    kind = read_json(folder / "encoder.json", ("kind",))["kind"]
    kinds = (WordAverage, Concatenation, Transformer, HierarchicalGru)
    classes: dict[str, type[Encoder]] = {cls.kind: cls for cls in kinds}
    if kind not in classes:
        raise EvaluatorError(f"{folder}: an encoder of kind {kind!r}; this ssrem knows {', '.join(classes)}")
    return classes[kind].load(folder)


def _is_folder(spec: str) -> bool:
    """Whether a transformer's folder is meant: one of a bare name has to look like one."""
    folder = Path(spec.removeprefix("hf:").removeprefix("file:")).expanduser()
    return folder.is_dir() and (spec.startswith(("hf:", "file:")) or (folder / "config.json").is_file())


def _transformer(spec: str) -> Encoder:
    from ssrem.encoders.transformer import Transformer

    return Transformer(spec)
