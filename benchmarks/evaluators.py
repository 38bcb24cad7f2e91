"""Responses scored per second, and results beside those of the libraries that implement the same metrics, in one run.

python -m benchmarks.evaluators [FILE] [--only NAME…] [--saved FOLDER…] [--count 10000] [--seconds 60]

FILE is an annotated set, or one of samples, as `ssrem score` reads it; without one, COUNT turns of the default
corpus are drawn, a random turn answers each context and the true one is the reference. Every evaluator without
training, every packaged one, and every saved one that is named, is measured in a process of its own: the model is
loaded, then single responses are scored, then COUNT at once, or as many as fit into SECONDS by the time of the first
hundred. Loading is not counted. Peak memory is that of the whole process, after the first response and after the last.
The second table is of packaged and saved evaluators that have an encoder: scores f per second when the encoder's
vectors are known already, and the time of the first 616 samples, with encoding and references, against the 2,861 s
that ADEM took for as many on a CPU (Lowe et al. 2017).
The third table compares evaluators with libraries over the same texts, in turns, by the median of three rounds.
`difference` is the greatest one between their scores, `alone` that of the fifty most different samples when the library
scores them one by one.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import measure
from ssrem.encoders import hub
from ssrem.errors import SsremError
from ssrem.evaluators import EVALUATORS, evaluator_class, load_evaluator, packaged
from ssrem.evaluators.base import Evaluator
from ssrem.responses import read_samples
from ssrem.samples import Sample

CONTEXT = 5
SINGLES = 20
FIRST = 100
ROUNDS = 3
WORST = 50
# Size of ADEM's test set, and the seconds that the paper's code took for it on a CPU.
PAPER_RESPONSES, PAPER_SECONDS = 616, 2861

SPEED = "{ready:.1f} | {one:.2f} | {n:,} | {rate:,.0f} | {peak_one:.0f} | {peak:.0f}"
VECTORS = "{n:,} | {rate:,.0f} | {some:.2f} | {times:,.0f}"
COMPARISON = "{n:,} | {ours:.2f} | {theirs:.2f} | {ratio:.2f} | {difference:.0e} | {alone:.0e}"

# Function from samples to their scores that has loaded all it needs.
Scorer = Callable[[Sequence[Sample]], Sequence[float]]


def draw_samples(count: int, seed: int) -> list[Sample]:
    """Contexts of the default corpus, each with a random turn as its response and the true one as its reference."""
    from benchmarks.encoders import read_turns

    turns = read_turns("chitchat")
    generator = np.random.default_rng(seed)
    answers = np.array([row for row, start in enumerate(turns.start) if row > start])
    rows = generator.choice(answers, min(count, len(answers)), replace=False)
    others = generator.integers(len(turns.text), size=len(rows))
    return [
        Sample(
            tuple(turns.text[max(turns.start[row], row - CONTEXT) : row]), turns.text[other], turns.text[row]
        )
        for row, other in zip(rows, others, strict=True)
    ]


def write_samples(file: str, source: str, count: str, seed: str) -> None:
    """Write samples of `source`, or of the default corpus if it is empty, into `file`, as `read_samples` reads them.

    Runs in a process of its own: the memory of a process counts for the peak memory of those that it starts.
    """
    samples = read_samples(Path(source))[: int(count)] if source else draw_samples(int(count), int(seed))
    rows = [{"context": s.context, "response": s.response, "reference": s.reference} for s in samples]
    Path(file).write_text(json.dumps(rows), encoding="utf-8")


def load_named(what: str) -> Evaluator:
    """The evaluator of that name with default settings, or the one saved in that folder."""
    return evaluator_class(what)() if what in EVALUATORS and what not in packaged() else load_evaluator(what)


def affordable(score: Scorer, samples: Sequence[Sample], seconds: float) -> Sequence[Sample]:
    """As many of the samples as are scored in so many seconds, by the time that the first ones take.

    The first ones are left out if there are others, since some evaluators remember what they have scored.
    """
    start = time.perf_counter()
    score(samples[:FIRST])
    taken = time.perf_counter() - start
    return (samples[FIRST:] or samples)[: max(FIRST, int(FIRST * seconds / max(taken, 1e-9)))]


def peak() -> float:
    """Peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def speed(what: str, file: str, seconds: str) -> None:
    """Print the time and memory of an evaluator as JSON; runs in a process of its own."""
    samples = read_samples(Path(file))
    start = time.perf_counter()
    try:
        evaluator = load_named(what)
        evaluator.score(samples[:1])
    except SsremError as error:
        print(json.dumps({"skipped": str(error)}))
        return
    figures: dict[str, float] = {"ready": time.perf_counter() - start, "peak_one": peak()}
    singles = []
    for sample in samples[1 : 1 + SINGLES]:
        start = time.perf_counter()
        evaluator.score([sample])
        singles.append(time.perf_counter() - start)
    some = affordable(evaluator.score, samples[1 + SINGLES :], float(seconds))
    start = time.perf_counter()
    evaluator.score(some)
    taken = time.perf_counter() - start
    print(
        json.dumps(
            {
                **figures,
                "one": statistics.median(singles) * 1000,
                "n": len(some),
                "rate": len(some) / taken,
                "peak": peak(),
            }
        )
    )


def vectors(what: str, file: str, seconds: str) -> None:
    """Print the time of an evaluator with an encoder as JSON, with all texts already encoded."""
    samples = read_samples(Path(file))
    evaluator: Any = load_named(what)
    if evaluator.encoder is None:
        print(json.dumps({"skipped": "has no encoder"}))
        return
    bare = [Sample(sample.context, sample.response) for sample in samples]
    texts = list({text for sample in bare for text in (*sample.context, sample.response)})
    place, table = {text: at for at, text in enumerate(texts)}, evaluator.encoder.encode(texts)
    evaluator.encoder.cache = lambda wanted: table[[place[text] for text in wanted]]

    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        evaluator.score(bare)
        taken.append(time.perf_counter() - start)
    evaluator.encoder.cache = None
    start = time.perf_counter()
    evaluator.score(samples[:PAPER_RESPONSES])
    some = time.perf_counter() - start
    figures = {"n": len(bare), "rate": len(bare) / statistics.median(taken), "some": some}
    print(json.dumps({**figures, "times": PAPER_SECONDS / some}))


def rouge() -> Scorer:
    """ROUGE-L of the library rouge-score, without stemming."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"])
    return lambda samples: [scorer.score(s.reference or "", s.response)["rougeL"].fmeasure for s in samples]


def bert_score() -> Scorer:
    """BERTScore of its authors' library, with the last layer of the packaged MiniLM."""
    from bert_score import BERTScorer

    with hub.quiet():
        scorer = BERTScorer(model_type=hub.model_folder(hub.MINILM), num_layers=6)

    def score(samples: Sequence[Sample]) -> Sequence[float]:
        figures: list[float] = scorer.score(
            [s.response for s in samples], [s.reference or "" for s in samples]
        )[2]
        return [float(f) for f in figures]

    return score


LIBRARIES: dict[str, tuple[str, Callable[[], Scorer]]] = {
    "rouge-l": ("rouge-score", rouge),
    "bertscore": ("bert-score", bert_score),
}


def comparable(sample: Sample) -> bool:
    """Whether every library can read the text: rouge-score reads only ASCII, bert-score no empty text."""
    return all(
        text is not None and text.isascii() and text.strip() for text in (sample.response, sample.reference)
    )


def compare(what: str, file: str, seconds: str) -> None:
    """Print an evaluator beside its library as JSON; they run in turns, so that a busy machine slows both alike."""
    try:
        theirs = LIBRARIES[what][1]()
    except ImportError as error:
        print(json.dumps({"skipped": f"{LIBRARIES[what][0]} is not installed ({error})"}))
        return
    evaluator = load_named(what)
    samples = [sample for sample in read_samples(Path(file)) if comparable(sample)]
    theirs(samples[:1])
    some = affordable(theirs, samples, float(seconds) / (2 * ROUNDS))
    evaluator.score(some[:FIRST])
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(ROUNDS):
        start = time.perf_counter()
        ours = evaluator.score(some)
        between = time.perf_counter()
        other = theirs(some)
        times["ours"].append(between - start)
        times["theirs"].append(time.perf_counter() - between)
    ratio = statistics.median(b / a for a, b in zip(times["ours"], times["theirs"], strict=True))
    figures: dict[str, float] = {name: statistics.median(taken) for name, taken in times.items()}
    differences = np.abs(ours - np.asarray(other))
    # bert-score's figures depend on the batch: where a token's best cosine is below 0, its padding counts as 0.
    worst = np.argsort(-differences)[:WORST]
    alone = max(abs(ours[at] - theirs([some[at]])[0]) for at in worst)
    figures |= {"n": len(some), "ratio": ratio, "difference": float(differences.max()), "alone": float(alone)}
    print(json.dumps(figures))


def main() -> None:
    """Print tables in Markdown: speed and memory, speed without encoding, and evaluators beside their libraries."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("file", nargs="?", type=Path, help="an annotated set")
    options.add_argument("--only", nargs="*", help="evaluators by name, instead of all without training")
    options.add_argument("--saved", nargs="*", type=Path, default=[], help="folders of saved evaluators")
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--seed", type=int, default=0)
    parsed = options.parse_args()
    names = (
        [name for name in EVALUATORS if not evaluator_class(name).learns_from]
        if parsed.only is None
        else parsed.only
    )
    with tempfile.TemporaryDirectory() as scratch:
        file = f"{scratch}/samples.json"
        source, saved = str(parsed.file.resolve() if parsed.file else ""), [f.resolve() for f in parsed.saved]
        measure(
            ["-m", "benchmarks.evaluators", "--samples", file, source, str(parsed.count), str(parsed.seed)]
        )

        def child(worker: str, what: str) -> dict[str, Any]:
            arguments = ["-m", "benchmarks.evaluators", worker, what, file, str(parsed.seconds)]
            return dict(json.loads(measure(arguments).output.splitlines()[-1]))

        heading("evaluator | ready, s | one, ms | responses | a second | MB, first | MB, last")
        for what in (*names, *packaged(), *map(str, saved)):
            line(what, child("--speed", what), SPEED)
        print()
        heading("evaluator | responses | f a second, vectors at hand | 616 responses, s | 2,861 s / that")
        for what in (*packaged(), *map(str, saved)):
            line(what, child("--vectors", what), VECTORS)
        print()
        heading("evaluator | library | responses | ours, s | theirs, s | theirs / ours | difference | alone")
        for what in (name for name in names if name in LIBRARIES):
            line(f"{what} | {LIBRARIES[what][0]}", child("--compare", what), COMPARISON)


def heading(names: str) -> None:
    """Print the first two lines of a table."""
    print(f"| {names} |\n|{'---|' * len(names.split(' | '))}")


def line(what: str, figures: dict[str, Any], form: str) -> None:
    """Print a line of a table: the figures, or the reason why there are none."""
    print(
        f"| {what} | {figures['skipped'] if 'skipped' in figures else form.format(**figures)} |", flush=True
    )


if __name__ == "__main__":
    workers = {"--samples": write_samples, "--speed": speed, "--vectors": vectors, "--compare": compare}
    if len(sys.argv) > 1 and sys.argv[1] in workers:
        workers[sys.argv[1]](*sys.argv[2:])
    else:
        main()
