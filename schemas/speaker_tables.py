"""Tables derived from the messages: `turns`, `responses`, the sets of turns of each speaker (Bak and Oh 2020, section
3.1), `candidates` drawn from them, generated `negatives`, and `set_similarity` (Table 2 of the paper)."""

from ssrem.schemas.contract import (
    Between,
    Finite,
    NotEmpty,
    OneOf,
    Ranks,
    References,
    Table,
    at_least,
    columns,
)

SPLITS = ("train", "valid", "test")
ADDRESSEE_FROM = ("stated", "reply", "previous_speaker")

TURNS = Table(
    name="turns",
    grain="One row is a turn: consecutive messages of one speaker in one chain of a conversation, joined by a space.",
    key=("corpus", "turn_id"),
    columns=columns(
        corpus="VARCHAR: corpus it belongs to",
        turn_id="BIGINT: rank in the corpus, from 0; the turns of a conversation are consecutive",
        conversation_id="VARCHAR: conversation it is part of",
        turn="BIGINT: rank in the conversation, from 0",
        answers="BIGINT?: turn_id of the turn that it answers: that of the message replied to, or the turn before "
        "(in Slack, outside threads) where none is named; null if it opens the conversation or what it replies to is "
        "not there",
        speaker="VARCHAR: who speaks",
        is_person="BOOLEAN: false if the speaker is no person, such as a bot, a system or all deleted accounts: their "
        "turns are context, but neither responses nor in anyone's sets",
        addressee="VARCHAR?: who is addressed: the author of the message replied to, else the latest other "
        "speaker along the turns that it answers",
        addressee_from="VARCHAR?: where the addressee is known from: stated: the dump names them; reply: they wrote "
        "the message replied to; previous_speaker: a guess, the latest other speaker along the turns that it answers, "
        "or the first to answer an opening turn; null without an addressee",
        text="VARCHAR: the messages' texts",
        text_hash="UBIGINT: hash of the lower-case text without whitespace around it: equal hashes are the same text",
        messages="BIGINT: number of messages",
        started="TIMESTAMP?: time of its first message that has one, UTC",
        split="VARCHAR: train, valid or test: a hash of the conversation's id, 80/10/10; after 1,000 turns of a "
        "conversation, each 100 have a split of their own",
    ),
    expectations=(
        NotEmpty(),
        References(("corpus", "conversation_id"), "conversations"),
        OneOf("split", SPLITS),
        OneOf("addressee_from", ADDRESSEE_FROM),
        Ranks("turn_id"),
        *at_least(turn_id=0, turn=0, answers=0, messages=1),
    ),
)

RESPONSES = Table(
    name="responses",
    grain="One row is a response: a turn of a person that answers another turn of its conversation.",
    key=("corpus", "response_id"),
    columns=columns(
        corpus="VARCHAR: corpus it belongs to",
        response_id="BIGINT: turn_id of the response",
        context="BIGINT[]: turn_ids of its context: the turns along its chain of answers, the one it answers last",
        conversation_id="VARCHAR: conversation it is part of",
        speaker="VARCHAR: who responds",
        addressee="VARCHAR?: who is addressed",
        split="VARCHAR: train, valid or test",
    ),
    expectations=(
        References(("corpus", "response_id"), "turns", ("corpus", "turn_id"), ranks=True),
        OneOf("split", SPLITS),
    ),
)


def _set_table(name: str, grain: str) -> Table:
    return Table(
        name=name,
        grain=grain,
        key=("corpus", "set_id", "position"),
        columns=columns(
            corpus="VARCHAR: corpus it belongs to",
            set_id="BIGINT: id of the set: turn_id of the first turn of its speaker A",
            position="BIGINT: rank in the set, from 0, by turn_id; in rand, in the order drawn, with "
            "replacement",
            size="BIGINT: number of members",
            turn_id="BIGINT: the member",
        ),
        expectations=(References(("corpus", "turn_id"), "turns", ranks=True), *at_least(position=0, size=1)),
    )


SC = _set_table("sc", "One row is a member of SC_A: A's turns in one conversation in a split.")
SP = _set_table(
    "sp",
    "One row is a member of SP_A: A's turns towards one partner in a split; with --addressees stated those alone that "
    "state their addressee or are replies.",
)
SS = _set_table("ss", "One row is a member of SS_A: all turns of A in a split.")
RAND = _set_table(
    "rand",
    "One row is a member of Rand_A: turns of anyone but A in a split, as many as SS_A has and eight at least.",
)

CANDIDATES = Table(
    name="candidates",
    grain="One row is a candidate for a response: the true turn or a negative drawn from one of the four sets.",
    key=("corpus", "response_id", "kind", "k"),
    few=("kind", "k"),
    columns=columns(
        corpus="VARCHAR: corpus it belongs to",
        response_id="BIGINT: the response",
        kind="VARCHAR: GT: the true turn; SC, SP, SS, Rand: drawn from that set",
        k="BIGINT: number of the draw of that kind, from 0",
        turn_id="BIGINT?: the candidate; null if the set had nothing left to draw",
    ),
    expectations=(
        OneOf("kind", ("GT", "SC", "SP", "SS", "Rand")),
        References(("corpus", "turn_id"), "turns", ranks=True),
        *at_least(k=0),
    ),
)

NEGATIVES = Table(
    name="negatives",
    grain="One row is a negative that a generator made for a response.",
    key=("corpus", "response_id", "generator", "k"),
    columns=columns(
        corpus="VARCHAR: corpus it belongs to",
        response_id="BIGINT: the true response",
        generator="VARCHAR: name of the generator, such as mask-and-fill or random-2",
        k="BIGINT: number of the negative of that generator, from 0",
        text="VARCHAR: the negative",
        replaced="BIGINT: number of the response's tokens that were replaced",
        tokens="BIGINT: number of the response's tokens, by the generator's tokenizer",
        truncated="BOOLEAN: whether context or response was too long for the generator, and cut",
    ),
    expectations=(
        NotEmpty(),
        References(("corpus", "response_id"), "responses"),
        *at_least(k=0, replaced=0, tokens=1),
    ),
)

SET_SIMILARITY = Table(
    name="set_similarity",
    grain="One row is a kind of set: the mean cosine similarity among the turns inside its sets.",
    key=("corpus", "kind"),
    columns=columns(
        corpus="VARCHAR: corpus it belongs to",
        kind="VARCHAR: SC, SP, SS or Rand",
        mean="DOUBLE?: mean pairwise cosine inside sets: over a speaker's sets, then over speakers; -1 to 1",
        low="DOUBLE?: lower end of its 95% confidence interval",
        high="DOUBLE?: upper end of its 95% confidence interval",
        speakers="BIGINT: speakers counted, who have a set of every kind",
        of_speakers="BIGINT: speakers with a set of at least two turns of every kind, of whom those counted were drawn "
        "by --similarity",
        sets="BIGINT: their sets with at least two encoded turns",
        pairs="BIGINT: pairs of turns inside these sets",
        encoder="VARCHAR: signature of the encoder",
    ),
    expectations=(
        References(("corpus",), "corpora"),
        OneOf("kind", ("SC", "SP", "SS", "Rand")),
        Between("mean", -1, 1),
        Finite(("mean", "low", "high")),
        *at_least(speakers=0, of_speakers=0, sets=0, pairs=0),
    ),
)
