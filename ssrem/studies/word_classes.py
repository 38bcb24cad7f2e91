"""Which words scores depend on: the classes of words, those that negatives replace, and responses without a class.

Park et al. (2021, section 4.3, Figure 5) compare the parts of speech of the words that mask-and-fill selects with those
of all words, by NLTK's tagger. No package ships that tagger's data, so words are classified here by a list of English
function words (closed classes); all others count as content words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from ssrem.samples import Sample
from ssrem.studies.attacks import TrueResponses, fooled
from ssrem.studies.study import Finding, study

CLOSED = {
    "pronouns": "i you he she it we they me him her us them my your his its our their mine yours hers ours theirs "
    "myself yourself himself herself itself ourselves themselves who whom whose what which this that these those "
    "someone somebody something anyone anybody anything everyone everybody everything nobody nothing one",
    "determiners": "a an the some any each every no all both either neither another such",
    "prepositions": "of in to for on with at by from up about into over after under between out against during without "
    "before through around off down near above behind among across along until since toward towards upon within",
    "conjunctions": "and or but nor so yet if because as while although though unless whereas whether than when where "
    "how why",
    "auxiliaries and particles": "am is are was were be been being do does did have has had having can could will "
    "would shall should may might must not n't 's 'm 're 've 'll 'd s m re ve ll d t don doesn didn isn aren wasn "
    "weren won wouldn couldn shouldn can't won't there",
}
"""Class to its English words."""

CONTENT, NUMBERS, PUNCTUATION = "content words", "numbers", "punctuation"
CLASSES = (CONTENT, *CLOSED, NUMBERS, PUNCTUATION)

_CLASS = {word: name for name, words in CLOSED.items() for word in words.split()}
_WORD = re.compile(r"[^\W_]+(?=n't\b)|n't\b|['’][^\W_]+|[^\W_]+|[^\w\s]+|_+")


def words(text: str) -> list[str]:
    """Words, clitics such as 's and n't, and runs of punctuation, in order."""
    return _WORD.findall(text)


def word_class(word: str) -> str:
    """One of `CLASSES`."""
    lower = word.lower().replace("’", "'")
    if lower in _CLASS:
        return _CLASS[lower]
    if not any(letter.isalnum() for letter in word):
        return PUNCTUATION
    return NUMBERS if word.isdigit() else CONTENT


@study(
    "Classes of words",
    "Share of each class among the words of true responses, and among those that negatives replace; and the share of "
    "responses that score no lower without the words of a class. By a list of English function words, not a tagger.",
    "share",
)
def word_classes(data: TrueResponses, seed: int) -> list[Finding]:
    """Share of each class among the words of the true responses, and among the words that each written negative
    replaces; and the share of responses that score no lower without the words of a class ('fooled'), over the responses
    that have words of the class and others."""
    samples, true = data.scored()
    texts = [words(sample.response) for sample in samples]
    findings = list(_shares("all words", Counter(word_class(word) for text in texts for word in text)))
    for name, negatives in data.written.items():
        pairs = [
            (text, words(other)) for text, other in zip(texts, negatives, strict=True) if other is not None
        ]
        replaced = Counter(word_class(word) for text, other in pairs for word in _replaced(text, other))
        findings += _shares(f"replaced by {name.removeprefix('negative of ')}", replaced)
    for wanted in CLASSES:
        changed = [_without(sample, wanted) for sample in samples]
        findings.append(fooled(f"without {wanted}", samples, true, data.score, changed))
    return findings


def _shares(of: str, counts: Counter[str]) -> Iterator[Finding]:
    total = counts.total()
    for name in CLASSES:
        share = counts[name] / total if total else None
        yield Finding(f"{of}: {name}", "words", share, total, "ok" if total else "too_few")


def _replaced(text: Sequence[str], other: Sequence[str]) -> list[str]:
    """The words of the text that the other text replaces or lacks."""
    match = SequenceMatcher(None, [w.lower() for w in text], [w.lower() for w in other], autojunk=False)
    changes = (code for code in match.get_opcodes() if code[0] in ("replace", "delete"))
    return [word for _, first, last, *_ in changes for word in text[first:last]]


def _without(sample: Sample, wanted: str) -> str | None:
    """The response without the words of a class; None if it has none of them, or no others."""
    text = words(sample.response)
    left = [word for word in text if word_class(word) != wanted]
    spoken = any(word_class(word) != PUNCTUATION for word in left)
    return " ".join(left) if spoken and len(left) < len(text) else None
