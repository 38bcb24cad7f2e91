"""Checks mask-and-fill as its paper does (Park et al. 2021, sections 3.2 and 4.3).

python -m benchmarks.mask_and_fill HOME --model NAME_OR_FOLDER [--negatives mask-and-fill] [--corpus chitchat]
    [--responses 300] [--seed 0]

Prints, over responses of the training split, the share that get a negative, the share of their tokens that are
replaced, and the parts of speech of the replaced words beside those of all words. Tags are the Hannover Tagger's
(`pip install 'ssrem[bench]'`), mapped to the universal tagset; the paper's are NLTK's, whose model has to be
downloaded.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ssrem.negatives import load_generator
from ssrem.samples import TRAIN
from ssrem.tables.candidates import load_candidates
from ssrem.tasks.warehouse.home import Warehouse

PAPER = {"with_negative": 0.9489, "replaced": 0.2728}
"""Shares in Park et al. 2021, section 3.2: BERT-base tuned on DailyDialog, threshold 0.5."""

# Beginning of the tagger's tags (CLAWS 5) → universal tag; the first match counts.
UNIVERSAL = {
    "V": "VERB", "N": "NOUN", "AJ": "ADJ", "ORD": "ADJ", "AV": "ADV", "XX": "ADV", "PN": "PRON", "PR": "ADP",
    "AT": "DET", "D": "DET", "EX": "DET", "CJ": "CONJ", "CRD": "NUM", "PO": "PRT", "TO": "PRT", "PU": ".",
}  # fmt: skip
# Words and punctuation; clitics such as n't are words of their own.
_TOKEN = re.compile(r"n't\b|'\w+|\w+(?=n't\b)|\w+|[^\w\s]+")


def universal(tag: str) -> str:
    """The universal part-of-speech tag of one of the tagger's tags; 'X' if it has none."""
    return next((name for start, name in UNIVERSAL.items() if tag.startswith(start)), "X")


def replaced(before: Sequence[str], after: Sequence[str]) -> Iterator[int]:
    """Positions of the words of `before` that `after` replaces; none if their numbers of words differ."""
    if len(before) == len(after):
        yield from (at for at, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1])


def main() -> None:
    """Print both shares beside the paper's, and the table of tags."""
    options = _options()
    from HanTa.HanoverTagger import HanoverTagger

    tagger: Any = HanoverTagger("morphmodel_en.pgz")
    with Warehouse.at(options.home).reader() as connection:
        candidates = load_candidates(connection, [options.corpus])
    rows = np.random.default_rng(options.seed).permutation(candidates.rows(TRAIN))[: options.responses]
    generator = load_generator(options.negatives, model=options.model)
    negatives = [
        negative for batch in generator.generate(candidates, rows, seed=options.seed) for negative in batch
    ]
    texts = {negative.response: negative.text for negative in negatives}
    every, chosen = Counter[str](), Counter[str]()
    for row in rows.tolist():
        words = _TOKEN.findall(candidates.texts[int(candidates.response[row])])
        tags = [universal(tag) for _, _, tag in tagger.tag_sent(words)] if words else []
        every.update(tags)
        chosen.update(tags[at] for at in replaced(words, _TOKEN.findall(texts.get(row, ""))))
    first = [one for one in negatives if one.generator == options.negatives and one.k == 0]
    shares = [one.replaced / one.tokens for one in first]
    print(f"{len(rows)} responses of {options.corpus}, {generator.signature}")
    print(f"with a negative   {len(first) / len(rows):6.1%}   paper {PAPER['with_negative']:.1%}")
    print(f"tokens replaced   {np.mean(shares):6.1%}   paper {PAPER['replaced']:.1%}")
    print("\ntag    all words   replaced")
    for tag, count in every.most_common():
        print(f"{tag:5}  {count / every.total():9.1%}  {chosen[tag] / max(chosen.total(), 1):9.1%}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mask_and_fill",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("home", metavar="HOME")
    parser.add_argument("--model", required=True, help="masked language model")
    parser.add_argument(
        "--negatives", default="mask-and-fill", help="mask-and-fill or a variant of it, such as select-random"
    )
    parser.add_argument("--corpus", default="chitchat")
    parser.add_argument("--responses", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
