"""Compares encoders and settings of SSREM on a corpus: validation loss, identification, seconds.

python benchmarks/encoders.py [SOURCE] [--seed 0] [--only NAME…]

SOURCE is a dump that ssrem reads (default: chitchat). Contexts are up to five turns; the split is by a
hash of the conversation's id, 80/10/10; a response has one SC, SP and SS and four Rand negatives of its
split. The draws here are numpy's, not those of the SQL tables, so figures differ from a run's in the third
digit. Kinds come in the order GT, SC, SP, SS, Rand, Context (the last turn copied).
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from ssrem.agreement.identify import identification
from ssrem.encoders import DEFAULT_ENCODER, Encoder, load_encoder
from ssrem.evaluators.bilinear import RSREM, SSREM, Bilinear, SSREMPaper
from ssrem.readers import open_dump
from ssrem.samples import TEST, TRAIN, VALID, Candidates

CONTEXT = 5
TRIES = 20

# Name, encoder, settings, evaluator.
Setting = tuple[str, str, dict[str, object], type[Bilinear]]


@dataclass
class Turns:
    """Turns of a corpus as columns."""

    text: list[str] = field(default_factory=list)
    speaker: list[str] = field(default_factory=list)
    partner: list[str | None] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    split: list[int] = field(default_factory=list)


def read_turns(source: str) -> Turns:
    """Read turns: consecutive messages of one speaker, joined; the partner is the speaker before, else the next one."""
    messages: dict[str, list[tuple[str, list[str]]]] = defaultdict(list)
    for batch in open_dump(source):
        for row in batch.select(["record", "conversation_id", "speaker", "text"]).to_pylist():
            text = (row["text"] or "").strip()
            if row["record"] != "message" or not text or row["speaker"] is None:
                continue
            turns = messages[row["conversation_id"]]
            if turns and turns[-1][0] == row["speaker"]:
                turns[-1][1].append(text)
            else:
                turns.append((row["speaker"], [text]))
    result = Turns()
    for conversation, turns in messages.items():
        tenth = int(hashlib.md5(conversation.encode()).hexdigest(), 16) % 10
        start = len(result.text)
        for position, (speaker, parts) in enumerate(turns):
            neighbour = turns[position - 1] if position else (turns[1] if len(turns) > 1 else None)
            result.text.append(" ".join(parts))
            result.speaker.append(speaker)
            result.partner.append(neighbour[0] if neighbour else None)
            result.start.append(start)
            result.split.append({8: VALID, 9: TEST}.get(tenth, TRAIN))
    return result


def draw_candidates(turns: Turns, seed: int) -> Candidates:
    """One SC, SP and SS and four Rand negatives per response, -1 if TRIES draws give none."""
    generator = np.random.default_rng(seed)
    sets: dict[object, list[int]] = defaultdict(list)
    for row, speaker in enumerate(turns.speaker):
        sets["SC", speaker, turns.start[row]].append(row)
        sets["SP", speaker, turns.partner[row], turns.split[row]].append(row)
        sets["SS", speaker, turns.split[row]].append(row)
        sets["Rand", turns.split[row]].append(row)

    def draw(members: list[int], row: int, first: int, other: bool) -> int:
        for _ in range(TRIES):
            drawn = members[generator.integers(len(members))]
            if drawn == row or first <= drawn < row or turns.text[drawn] == turns.text[row]:
                continue
            if not other or turns.speaker[drawn] != turns.speaker[row]:
                return drawn
        return -1

    response = [row for row, start in enumerate(turns.start) if row > start]
    begin = [max(turns.start[row], row - CONTEXT) for row in response]
    negatives: dict[str, list[list[int]]] = {"SC": [], "SP": [], "SS": [], "Rand": []}
    for row, first in zip(response, begin, strict=True):
        speaker, split = turns.speaker[row], turns.split[row]
        negatives["SC"].append([draw(sets["SC", speaker, turns.start[row]], row, first, False)])
        negatives["SP"].append([draw(sets["SP", speaker, turns.partner[row], split], row, first, False)])
        negatives["SS"].append([draw(sets["SS", speaker, split], row, first, False)])
        negatives["Rand"].append([draw(sets["Rand", split], row, first, True) for _ in range(4)])
    rows = np.array(response)
    return Candidates(
        turns.text,
        rows,
        np.array(begin),
        rows,
        {kind: np.array(drawn) for kind, drawn in negatives.items()},
        np.array(turns.split, dtype=np.uint8)[rows],
    )


def main() -> None:
    """Print a Markdown table with one line per setting."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", nargs="?", default="chitchat")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="the lines whose name contains one of these")
    options = parser.parse_args()
    turns = read_turns(options.source)
    candidates = draw_candidates(turns, options.seed)
    train_texts = [text for text, split in zip(turns.text, turns.split, strict=True) if split == TRAIN]
    encoders: dict[str, tuple[Encoder, float]] = {}

    def encoder(spec: str) -> tuple[Encoder, float]:
        if spec not in encoders:
            began = time.perf_counter()
            encoders[spec] = load_encoder(spec, train_texts=train_texts, seed=options.seed), 0.0
            encoders[spec] = encoders[spec][0], time.perf_counter() - began
        return encoders[spec]

    default = DEFAULT_ENCODER
    lines: list[Setting] = [
        ("ssrem", default, {}, SSREM),
        ("  glove-6b-50d", "glove-6b-50d", {}, SSREM),
        ("ssrem-paper, wordllama", default, {}, SSREMPaper),
        ("  glove-6b-50d:uniform", "glove-6b-50d:uniform", {}, SSREMPaper),
        ("  glove-6b-50d", "glove-6b-50d", {}, SSREMPaper),
        ("  word2vec:uniform", "word2vec:uniform", {}, SSREMPaper),
        ("  word2vec", "word2vec", {}, SSREMPaper),
        ("  glove-6b-50d+word2vec", "glove-6b-50d+word2vec", {}, SSREMPaper),
        ("  context_turns 1", default, {"context_turns": 1}, SSREMPaper),
        ("  context_turns 2", default, {"context_turns": 2}, SSREMPaper),
        ("  context_turns 5", default, {"context_turns": 5}, SSREMPaper),
        ("  logits raw", default, {"logits": "raw"}, SSREMPaper),
        ("  init normal (authors' code)", default, {"init": "normal"}, SSREMPaper),
        ("rsrem", default, {}, RSREM),
    ]
    print("| setting | valid loss | GT above SC/SP/SS/Rand, valid | test | mean f, test |")
    print("|---|---|---|---|---|")
    for name, spec, settings, make in lines:
        if options.only and not any(part in name for part in options.only):
            continue
        model, prepared = encoder(spec)
        evaluator = make(make.settings_model(seed=options.seed, **settings), model)
        training = evaluator.fit(candidates)
        shares = []
        for split in (VALID, TEST):
            rows = identification(evaluator.score_candidates(candidates, split))
            shares.append(" / ".join(f"{row.above:.3f}" for row in rows[1:5] if row.above is not None))
        means = " / ".join(f"{row.mean:.3f}" for row in rows if row.mean is not None)
        print(
            f"| {name} ({prepared:.0f} s + {training.seconds:.0f} s, {training.best_epoch} epochs) "
            f"| {training.figures['valid_loss']:.3f} | {shares[0]} | {shares[1]} | {means} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
