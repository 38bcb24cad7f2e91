"""The export of ChatGPT: conversations.json, a tree of messages for each conversation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from ssrem.readers.formats.logs.openai import OpenaiReader
from ssrem.readers.json.rows import first_objects


class ChatgptReader(OpenaiReader):
    """Of each conversation the branch that ends in `current_node`, read as the messages of a chat log.

    Answers that were regenerated, and what followed them, are left out.
    """

    format: ClassVar[str] = "chatgpt"
    describes: ClassVar[str] = "ChatGPT's export, conversations with a tree of messages under `mapping`"

    @classmethod
    def sniff(cls, path: Path) -> bool:
        return any({"mapping", "current_node"} <= row.keys() for row in first_objects(path))

    @classmethod
    def near_miss(cls, path: Path) -> str | None:
        return None

    def rows(self, path: Path) -> Iterator[tuple[int, object, bytes]]:
        for number, row, raw in super().rows(path):
            if isinstance(row, dict) and isinstance(nodes := row.get("mapping"), dict):
                about = {key: value for key, value in row.items() if key not in ("mapping", "current_node")}
                messages = list(_branch(nodes, row.get("current_node")))
                row = {**about, "messages": messages}  # noqa: PLW2901
            yield number, row, raw


def _branch(nodes: Mapping[str, Any], last: object) -> list[dict[str, Any]]:
    """The messages from the first one to the node `last`; empty ones, such as the root's, are left out."""
    branch: list[dict[str, Any]] = []
    for _ in nodes:
        node = nodes.get(last) if isinstance(last, str) else None
        if not isinstance(node, dict):
            break
        last, message = node.get("parent"), node.get("message")
        if isinstance(message, dict):
            content = message.get("content")
            parts = content.get("parts", content.get("text")) if isinstance(content, dict) else None
            author = message.get("author")
            role = author.get("role") if isinstance(author, dict) else None
            branch.append(
                {
                    "id": message.get("id"),
                    "role": role,
                    "content": parts,
                    "create_time": message.get("create_time"),
                }
            )
    return branch[::-1]
