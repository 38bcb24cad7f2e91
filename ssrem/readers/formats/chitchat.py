"""The ChitChat corpus: one JSON object, conversation id → messages, prompt, start and ratings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from ssrem.errors import DumpError
from ssrem.files import package_folder
from ssrem.readers.base import Reader, Record, problem
from ssrem.readers.json.values import one_object
from ssrem.readers.metadata import escaped_member


class ChitchatReader(Reader):
    """For each conversation its 'conversation' record (metadata: ratings, prompt, start), then its messages.

    Messages come in groups of one speaker, which the table `turns` restores later. `line` counts the
    messages of the file from 1, or the conversations for a conversation's own record. Messages have no ids.
    """

    format: ClassVar[str] = "chitchat"
    describes: ClassVar[str] = "the ChitChat corpus (name it chitchat) or a JSON file of its shape"
    aliases: ClassVar = {"speaker": ("sender",), "text": ("text",), "time": ("timestamp",)}

    @classmethod
    def sniff(cls, path: Path) -> bool:
        first = next(iter(one_object(path).values()), None)
        return isinstance(first, dict) and "messages" in first

    @classmethod
    def packaged(cls) -> Path:
        """The corpus as the package chitchat-dataset ships it; DumpError if the package is not installed."""
        folder = package_folder("chitchat_dataset")
        if folder is None or not (folder / "dataset.json").is_file():
            raise DumpError(
                "chitchat: the corpus is not installed; pip install 'ssrem[train]', or give a path"
            )
        return folder / "dataset.json"

    def records(self) -> Iterator[Record]:
        line = 0
        for ordinal, (id, content) in enumerate(self.members(self.path), 1):
            about = dict(content) if isinstance(content, dict) else {}
            groups = about.pop("messages", None)
            conversation = self.conversation(self.file, ordinal, id, about, content)
            if "problem" not in conversation and not isinstance(groups, list):
                raw = escaped_member(id, content)
                conversation = problem("malformed_row", self.file, ordinal, raw, conversation_id=id)
            yield conversation
            for group in groups if isinstance(groups, list) and "problem" not in conversation else ():
                for message in group if isinstance(group, list) else [group]:
                    line += 1
                    yield self.message(self.file, line, message, conversation_id=id)
