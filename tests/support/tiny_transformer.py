"""Tiny transformers with random weights and a vocabulary of whole words, in folders as transformers writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

WORDS = ("red", "blue", "green", "cat", "dog", "runs", "##ning", "sat", "the", ".")
SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 12,
}


def tokenizer(words: tuple[str, ...] = WORDS) -> PreTrainedTokenizerFast:
    """WordPiece over SPECIAL and `words`, lower-casing, with [CLS] before a text and [SEP] after it."""
    vocabulary = {word: number for number, word in enumerate((*SPECIAL.values(), *words))}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return PreTrainedTokenizerFast(tokenizer_object=backend, **SPECIAL)


def write_bert(folder: Path, *, seed: int = 0, dtype: torch.dtype = torch.float32) -> Path:
    """A BERT of two layers and 16 dimensions; 12 positions."""
    torch.manual_seed(seed)
    # A wide initialisation, so that texts get clearly different vectors.
    config = BertConfig(vocab_size=len(SPECIAL) + len(WORDS), initializer_range=0.5, **SIZES)
    BertModel(config).to(dtype).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def write_json(folder: Path, file: str, content: Any) -> None:
    """`content` as JSON in a file of the model's folder."""
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(json.dumps(content), encoding="utf-8")


def write_modules(
    folder: Path,
    *kinds: str,
    pooling: dict[str, Any] | None = None,
    transformer: dict[str, Any] | None = None,
) -> None:
    """The files with which sentence-transformers describes a pipeline of modules."""
    names = ("Transformer", *kinds)
    modules = [
        {
            "idx": idx,
            "name": str(idx),
            "path": f"{idx}_{kind}" if idx else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for idx, kind in enumerate(names)
    ]
    write_json(folder, "modules.json", modules)
    if pooling is not None:
        write_json(folder, "1_Pooling/config.json", pooling)
    if transformer is not None:
        write_json(folder, "sentence_bert_config.json", transformer)
