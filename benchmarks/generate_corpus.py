"""Writes a synthetic corpus of the SSREM paper's size as canonical JSONL, one utterance a line.

    python benchmarks/generate_corpus.py --output corpus.jsonl

It is realistic in what the cost of the speaker tables depends on: how many people there are, how unevenly they
talk (a Zipf law), that friends meet again, how long conversations and messages are, and that many messages
are the same few words. What the messages say is made up. The same options give the same bytes.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

CHUNK = 50_000  # conversations in a chunk: about 350,000 lines, which bounds the memory
TURNS_BEYOND_FIRST_TWO = 5.0  # two turns at least and seven on average
ACTIVITY_EXPONENT = 0.7  # share of the speaker of rank r is r ** -exponent
MEAN_FRIENDS = 4
THREE_PEOPLE = 0.03  # share of the conversations that a third person joins
SHORT_SHARE = 0.12  # share of the messages that are one of SHORT
WORDS = 40_000
MOST_WORDS = 60
YEAR = 365 * 24 * 3600
START = np.datetime64("2025-01-01T00:00:00", "ms")

FREQUENT = """
i you the to a and it is that of in my me for so just not on like have this be do was but what are with
know good all can no if get one your at we they really now think about how up time go when out lol did
see love want he she her his there more right going some don't today oh got why too well yes make need
"""
SHORT = """
lol|yes|no|ok|haha|thanks|me too|yeah|really?|thank you|same|what?|nice|true|why?|i know|omg|good morning|
hey|hi|good night|love you|sure|of course|you too|no way|exactly|oh no|i see|right|nope|yay
"""
STOCK = SHORT.strip().replace("\n", "").split("|")


@dataclass(frozen=True)
class People:
    """Who talks to whom: pair `i` is (`first[i]`, `second[i]`); `cumulative` holds the cumulative probabilities."""

    first: np.ndarray
    second: np.ndarray
    cumulative: np.ndarray
    own_pair: np.ndarray  # (speakers,): index of a pair with each speaker, so that nobody is silent


@dataclass(frozen=True)
class Language:
    """`words` by falling frequency, and a `table` that contains each word's index in proportion to its frequency.

    Looking a random number up in the table is several times faster than searching the cumulative shares.
    """

    words: pa.Array
    table: np.ndarray


def zipf_shares(n: int, exponent: float) -> np.ndarray:
    """The shares (n,), summing to 1, of ranks 1 to n."""
    weights = np.arange(1, n + 1, dtype=np.float64) ** -exponent
    return np.asarray(weights / weights.sum())


def draw(rng: np.random.Generator, cumulative: np.ndarray, n: int) -> np.ndarray:
    """Draw n positions of `cumulative`, the cumulative probabilities of the positions."""
    return np.minimum(np.searchsorted(cumulative, rng.random(n), side="right"), len(cumulative) - 1)


def make_people(rng: np.random.Generator, speakers: int) -> People:
    """Draw friendships: everyone has a best friend and some others; busy people have more friends."""
    activity = rng.permutation(zipf_shares(speakers, ACTIVITY_EXPONENT))
    friends = 1 + rng.poisson(MEAN_FRIENDS - 1, speakers)
    first = np.repeat(np.arange(speakers), friends)
    own_pair = np.cumsum(friends) - friends
    rank = np.arange(len(first)) - np.repeat(own_pair, friends)
    second = draw(rng, np.cumsum(activity), len(first))
    second = np.where(second == first, (second + 1) % speakers, second)
    weights = activity[first] / (1.0 + rank)
    return People(first, second, np.cumsum(weights / weights.sum()), own_pair)


def make_language(rng: np.random.Generator) -> Language:
    """Make WORDS distinct words: the frequent ones short and English, the others of two to four random syllables."""
    syllables = np.array([c + v + e for c in "bdfghklmnprstvw" for v in "aeiou" for e in ("", "n", "r", "s")])
    words = dict.fromkeys(FREQUENT.split())
    while len(words) < WORDS:
        wanted = WORDS - len(words)
        parts = rng.choice(syllables, (wanted, 4))
        lengths = rng.integers(2, 5, wanted)
        words.update(dict.fromkeys("".join(row[:length]) for row, length in zip(parts, lengths, strict=True)))
    cumulative = np.cumsum(zipf_shares(WORDS, 1.0))
    table = np.searchsorted(cumulative, (np.arange(2**20) + 0.5) / 2**20).astype(np.int32)
    return Language(pa.array(list(words)[:WORDS]), table)


def make_texts(rng: np.random.Generator, n: int, language: Language) -> pa.Array:
    """Make n texts of ten words on average."""
    short = rng.random(n) < SHORT_SHARE
    lengths = np.clip(np.rint(rng.gamma(1.9, 11.0 / 1.9, n)), 1, MOST_WORDS).astype(np.int64)
    lengths[short] = 1
    offsets = np.zeros(n + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    words = language.table[rng.integers(0, len(language.table), int(offsets[-1]))]
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, language.words.take(pa.array(words))), " ")
    stock = draw(rng, np.cumsum(zipf_shares(len(STOCK), 1.0)), n)
    return pc.if_else(pa.array(short), pa.array(STOCK).take(pa.array(stock)), joined)


def make_chunk(
    rng: np.random.Generator, start: int, stop: int, people: People, language: Language
) -> pl.DataFrame:
    """Make the turns of conversations `start` to `stop` - 1, one a row, each conversation's together and in order."""
    n, speakers = stop - start, len(people.own_pair)
    conversation = np.arange(start, stop)
    pair = draw(rng, people.cumulative, n)
    pair = np.where(conversation < speakers, people.own_pair[np.minimum(conversation, speakers - 1)], pair)
    members = np.stack([people.first[pair], people.second[pair], rng.integers(0, speakers, n)], axis=1)
    third_is_new = (members[:, 2] != members[:, 0]) & (members[:, 2] != members[:, 1])
    sizes = np.where((rng.random(n) < THREE_PEOPLE) & third_is_new, 3, 2)

    turns = 2 + rng.geometric(1 / (1 + TURNS_BEYOND_FIRST_TWO), n) - 1
    owner = np.repeat(np.arange(n), turns)
    first_row = np.repeat(np.cumsum(turns) - turns, turns)
    turn = np.arange(len(owner)) - first_row
    size = sizes[owner]
    elapsed = np.cumsum(1 + rng.exponential(90, len(owner)).astype(np.int64))
    seconds = rng.integers(0, YEAR, n)[owner] + elapsed - elapsed[first_row]

    # A reply goes to whoever spoke before; the first message goes to the one who answers it.
    addressed = np.where(turn == 0, 1, (turn - 1) % size)
    return pl.DataFrame(
        {
            "conversation": conversation[owner],
            "turn": turn,
            "speaker": members[owner, turn % size],
            "addressee": members[owner, addressed],
            "time": START + seconds.astype("timedelta64[s]"),
        }
    ).with_columns(pl.Series("text", make_texts(rng, len(owner), language)))


def to_lines(turns: pl.DataFrame) -> str:
    """The turns as JSON lines. No value contains a character that JSON has to escape."""
    conversation = pl.col("conversation").cast(pl.String)
    turn = pl.col("turn")
    reply_to = pl.concat_str(
        pl.lit('"reply_to":"c'), conversation, pl.lit("-"), (turn - 1).cast(pl.String), pl.lit('",')
    )
    line = pl.concat_str(
        pl.lit('{"conversation_id":"c'),
        conversation,
        pl.lit('","utterance_id":"c'),
        conversation,
        pl.lit("-"),
        turn.cast(pl.String),
        pl.lit('","speaker":"s'),
        pl.col("speaker").cast(pl.String),
        pl.lit('","addressee":"s'),
        pl.col("addressee").cast(pl.String),
        pl.lit('",'),
        pl.when(turn > 0).then(reply_to).otherwise(pl.lit("")),
        pl.lit('"text":"'),
        pl.col("text"),
        pl.lit('","time":"'),
        pl.col("time").dt.strftime("%Y-%m-%dT%H:%M:%S"),
        pl.lit('"}\n'),
    )
    return str(turns.select(line.str.join("")).item())


def generate(output: Path, conversations: int, speakers: int, seed: int, chunk: int = CHUNK) -> int:
    """Writes the corpus to `output`, whole or not at all, and returns its number of turns.

    `chunk` conversations are made at a time. More are not faster, and the texts depend on this number.
    """
    rng = np.random.default_rng([seed, 0])
    people = make_people(rng, speakers)
    language = make_language(rng)

    output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = output.with_name(output.name + ".tmp")
    turns = 0
    with unfinished.open("wb") as file:
        for start in range(0, conversations, chunk):
            stop = min(start + chunk, conversations)
            # Each chunk has a generator of its own, so that none depends on how the others were drawn.
            frame = make_chunk(np.random.default_rng([seed, 1, start]), start, stop, people, language)
            file.write(to_lines(frame).encode())
            turns += len(frame)
            if sys.stderr.isatty():
                print(f"\r{stop:,} of {conversations:,} conversations", end="", file=sys.stderr)
    unfinished.replace(output)
    return turns


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Writes a synthetic corpus as JSONL.")
    parser.add_argument("--output", type=Path, required=True, help="the JSONL file to write")
    parser.add_argument("--conversations", type=int, default=770_000)
    parser.add_argument("--speakers", type=int, default=27_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    if options.speakers < 2 or options.conversations < 1 or options.seed < 0:
        parser.error("at least 2 speakers, 1 conversation and a seed of 0 or more are needed")
    started = time.perf_counter()
    turns = generate(options.output, options.conversations, options.speakers, options.seed)
    size = options.output.stat().st_size / 1e6
    print(
        f"{options.output}: {options.conversations:,} conversations, {options.speakers:,} speakers, "
        f"{turns:,} turns, {size:,.0f} MB in {time.perf_counter() - started:.1f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
