"""The prompt of `ssrem sql`: queries up to their semicolon, commands that start with a dot."""

from __future__ import annotations

import argparse
import readline
import shlex
import sys
from collections.abc import Callable, Sequence
from textwrap import fill

from flows.cli import output as show
from flows.cli.commands.sql import SHOWN_ROWS, answer
from flows.cli.shell.completion import completions
from flows.cli.shell.history import History, place
from flows.cli.shell.statements import Statements
from schemas import TABLES
from sql import queries
from ssrem.errors import SsremError
from tasks.warehouse.home import Warehouse

PROMPT, MORE = "ssrem> ", "  ...> "
HELP = """\
SELECT …;            answers a query, over as many lines as it takes, at its semicolon
.tables              the tables, their rows and what one row is            also \\d
.schema TABLE        a table's columns and what they mean                  also \\d TABLE
.questions [NUMBER]  what people ask; with a number, the query and its answer
.help                this                                                  also \\?
.quit                leaves, as Ctrl-D does                                also \\q
Tab completes names and keywords; Ctrl-C stops a query, or drops what is typed; the up arrow brings back what was."""
ALIASES = {"\\d": ".tables", "\\?": ".help", "\\h": ".help", "\\q": ".quit", ".exit": ".quit"}
ALIASES |= {"quit": ".quit", "exit": ".quit", "help": ".help"}


def prompt(options: argparse.Namespace, home: Warehouse) -> None:
    """Read and answer until Ctrl-D or .quit. What goes wrong is one line, and the prompt goes on.

    Raises HomeError where nothing is published.
    """
    from tasks.query.sandbox import ask

    ask(home, "SELECT 1")
    _Session(options, home).run()


class _Session:
    def __init__(self, options: argparse.Namespace, home: Warehouse) -> None:
        self.options, self.home = options, home
        self.statements = Statements()
        self.history = History(place())
        self.candidates: list[str] = []
        self.commands: dict[str, Callable[[Sequence[str]], None]] = {
            ".tables": self._tables,
            ".schema": self._schema,
            ".questions": self._questions,
            ".help": lambda _: print(HELP),
            ".quit": self._quit,
        }

    def run(self) -> None:
        print(f"{show.count(len(TABLES), 'table')} of {self.home.root}; .help lists commands, Ctrl-D leaves")
        self._set_up()
        while True:
            try:
                line = input(MORE if self.statements.pending else PROMPT)
                self._do(line)
            except EOFError:
                print()
                return
            except _LeftError:
                return
            except KeyboardInterrupt:
                self.statements.rest()
                print("^C", flush=True)
            except BrokenPipeError:
                raise
            except (SsremError, OSError) as error:
                self.statements.rest()
                print(f"ssrem: {error}", file=sys.stderr, flush=True)

    def _do(self, line: str) -> None:
        word, *rest = line.split(maxsplit=1) or [""]
        if not self.statements.pending and (word in ALIASES or word.startswith((".", "\\"))):
            self._remember(line)
            self._command(word.rstrip(";"), rest[0] if rest else "")
            return
        for query in self.statements.take(line):
            self._remember(f"{query};")
            answer(self.options, self.home, query, SHOWN_ROWS)

    def _command(self, word: str, given: str) -> None:
        name = ".schema" if word == "\\d" and given else ALIASES.get(word, word)
        if name not in self.commands:
            raise SsremError(f"no command {show.printable(word)}; .help lists them")
        try:
            arguments = shlex.split(given.rstrip(" ;"))
        except ValueError:
            arguments = given.split()
        self.commands[name](arguments)

    def _tables(self, _: Sequence[str]) -> None:
        rows = dict.fromkeys(TABLES, 0)
        for part in self.home.partitions():
            rows[part.table] += part.rows
        listed = [
            {
                "table": name,
                "rows": rows[name],
                "one row is": table.grain.removeprefix("One row is ").rstrip("."),
            }
            for name, table in TABLES.items()
        ]
        show.tables({show.count(len(listed), "table"): listed})

    def _schema(self, given: Sequence[str]) -> None:
        table = TABLES.get(given[0].lower()) if len(given) == 1 else None
        if table is None:
            raise SsremError(f".schema takes the name of a table: {', '.join(TABLES)}")
        columns = [
            {
                "column": column.name,
                "type": column.type,
                "key": "key" if column.name in table.key else "",
                "what": column.meaning,
            }
            for column in table.columns
        ]
        show.tables({f"{table.name}: {table.grain}": columns})

    def _questions(self, given: Sequence[str]) -> None:
        known = {str(number): question for number, question in enumerate(queries("questions").values(), 1)}
        if not given:
            for number, question in known.items():
                print(f"{number:>2}  {question.title}")
        elif len(given) == 1 and given[0] in known:
            asked = known[given[0]]
            print(f"{asked.title}\n{fill(asked.notes, 110)}\n\n{asked.text};\n")
            answer(self.options, self.home, asked.text, SHOWN_ROWS)
        else:
            raise SsremError(f".questions takes a number from 1 to {len(known)}, or nothing")

    def _quit(self, _: Sequence[str]) -> None:
        raise _LeftError

    def _set_up(self) -> None:
        """Completion, and what was typed the last time."""
        readline.set_auto_history(False)
        readline.set_completer_delims(" \t\n\"'`@$><=;|&{}()[],+-*/%~!:")
        readline.set_completer(self._complete)
        # Where Python was built with the BSD library, that has commands of its own.
        bsd = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if bsd else "tab: complete")
        try:
            for line in self.history.load():
                readline.add_history(line)
        except OSError as error:
            print(
                f"ssrem: {self.history.path}: {error.strerror}; starting without a history", file=sys.stderr
            )

    def _remember(self, text: str) -> None:
        try:
            if line := self.history.add(text):
                readline.add_history(line)
        except OSError as error:
            print(f"ssrem: {self.history.path}: {error.strerror}; not kept", file=sys.stderr)

    def _complete(self, word: str, number: int) -> str | None:
        """What readline asks for: the candidate of that number, None after the last."""
        if number == 0:
            self.candidates = self._offered(word)
        return self.candidates[number] if number < len(self.candidates) else None

    def _offered(self, word: str) -> list[str]:
        line, begin, end = readline.get_line_buffer(), readline.get_begidx(), readline.get_endidx()
        before, after = line[:begin], line[end:]
        if self.statements.pending:
            return completions(f"{self.statements.pending}\n{before}", word, after)
        if before.split()[:1] in ([".schema"], ["\\d"]):
            return [name for name in TABLES if name.startswith(word.lower())]
        if not before.strip() and word.startswith("."):
            return [name for name in self.commands if name.startswith(word)]
        return completions(before, word, after)


class _LeftError(Exception):
    """Somebody typed .quit."""
