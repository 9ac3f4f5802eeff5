"""E-mail: the text of a message, with sender, recipients and date as metadata. Attachments are named, never opened."""

from __future__ import annotations

import email
import email.policy
import email.utils
import re
from collections.abc import Iterator
from dataclasses import replace
from email.message import EmailMessage, Message
from typing import Any

from perikope.core.errors import UnreadableFile
from perikope.document.tree import Document
from perikope.formats import Source, html, reader
from perikope.formats._blocks import tree_of
from perikope.formats._extraction.blocks import Extracted, FileBlock

_HEADERS = {"from": "from", "to": "to", "cc": "cc", "message-id": "message_id"}
_EXPECTED = ("from", "to", "cc", "date", "subject", "message-id", "received")
"""Headers of which every message has one."""
_QUOTED = re.compile(r"^(?:> ?)+", re.MULTILINE)


@reader("email", suffixes=(".eml",), whole=True, contained=True)
def read(source: Source) -> Iterator[Document]:
    """E-mail messages; attachments are not opened."""
    try:
        message = email.message_from_bytes(source.data(), policy=email.policy.default)
        if not any(name in message for name in _EXPECTED) and source.data().strip():
            raise UnreadableFile("is no e-mail: it has no sender, recipient, date or subject; save it again", path=source.path)
        metadata, subject = _metadata(message), _header(message, "subject")
        body = message.get_body(("plain", "html"))
        text = "" if body is None else str(body.get_content())
        is_html = body is not None and body.get_content_subtype() == "html"
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise UnreadableFile(f"is no e-mail that can be read ({type(error).__name__}); save it again", path=source.path) from None
    if is_html:
        for document in html.read(replace(source, content=text.encode())):
            yield replace(document, metadata={**metadata, "subject": subject})
        return
    yield source.finish(tree_of(source, Extracted(_blocks(text), subject, _header(message, "content-language"), metadata)))


def _header(message: EmailMessage, name: str) -> str:
    return " ".join(str(message.get(name, "")).replace("\0", "").split())


def _metadata(message: EmailMessage) -> dict[str, Any]:
    metadata: dict[str, Any] = {name: value for header, name in _HEADERS.items() if (value := _header(message, header))}
    if date := email.utils.parsedate_tz(_header(message, "date")):
        metadata["date"] = "{:04d}-{:02d}-{:02d}".format(*date[:3])
    names = [name for part in message.iter_attachments() if (name := _name_of_attachment(part))]
    return {**metadata, "attachments": names} if names else metadata


def _name_of_attachment(part: Message) -> str:
    """The name of the file. A forwarded message without one is called by its subject; other attachments have none."""
    name = part.get_filename()
    if name is None and part.get_content_type() == "message/rfc822":
        payload = part.get_payload()
        forwarded = payload[0] if isinstance(payload, list) and payload else None
        name = f"{_header(forwarded, 'subject') or 'message'}.eml" if isinstance(forwarded, EmailMessage) else None
    return name or ""


def _blocks(text: str) -> list[FileBlock]:
    """Paragraphs between blank lines; quoted lines are quotations."""
    blocks = []
    for paragraph in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n").replace("\0", "")):
        lines = [line for line in paragraph.split("\n") if line.strip()]
        is_quoted = bool(lines) and all(line.startswith(">") for line in lines)
        content = " ".join(" ".join(_QUOTED.sub("", line) for line in lines).split())
        if content and content != "--":
            blocks.append(FileBlock("blockquote" if is_quoted else "p", content))
    return blocks
