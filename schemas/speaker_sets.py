"""`sc`, `sp`, `ss`, `rand`: the four sets of turns for each speaker (Bak and Oh 2020, section 3.1)."""

from schemas.contract import Between, Column, References, Table


def _table(name: str, grain: str) -> Table:
    return Table(
        name=name,
        grain=grain,
        part="corpus",
        key=("corpus", "set_id", "position"),
        columns=(
            Column("corpus", "VARCHAR", "corpus it belongs to"),
            Column("set_id", "BIGINT", "id of the set: turn_id of the first turn of its speaker A"),
            Column("position", "BIGINT", "rank in the set, from 0, by turn_id; in rand, in the order drawn"),
            Column("size", "BIGINT", "number of members"),
            Column("turn_id", "BIGINT", "the member"),
        ),
        expectations=(
            References(("corpus", "turn_id"), "turns"),
            Between("position", 0),
            Between("size", 1),
        ),
    )


SC = _table("sc", "One row is a member of SC_A: A's turns in one conversation.")
SP = _table("sp", "One row is a member of SP_A: A's turns towards one partner.")
SS = _table("ss", "One row is a member of SS_A: all turns of A.")
RAND = _table(
    "rand", "One row is a member of Rand_A: turns of anyone but A, as many as SS_A has and eight at least."
)
