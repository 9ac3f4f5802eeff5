"""Messages with attachments."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

import perikope as pk
from perikope.core.errors import UnreadableFile


def _message(subject: str, text: str, *attached: EmailMessage) -> EmailMessage:
    message = EmailMessage()
    message["subject"] = subject
    message.set_content(text)
    for each in attached:
        message.add_attachment(each)
    return message


def _metadata(folder: Path, data: bytes) -> dict[str, Any]:
    (folder / "m.eml").write_bytes(data)
    [document] = pk.read(folder / "m.eml")
    assert "sealed" not in document.text
    return document.metadata


def test_a_forwarded_message_is_named_by_its_subject_and_not_opened(tmp_path):
    message = _message("Forward", "see below", _message("Leak of the seal", "sealed"), _message("", "sealed"))
    message.add_attachment(b"sealed", maintype="application", subtype="pdf", filename="plan.pdf")
    assert _metadata(tmp_path, bytes(message))["attachments"] == ["Leak of the seal.eml", "message.eml", "plan.pdf"]


def test_a_damaged_forwarded_message_does_not_matter(tmp_path):
    data = bytes(_message("Forward", "see below", _message("Leak", "sealed")))
    assert _metadata(tmp_path, data[: data.index(b"subject: Leak")])["attachments"] == ["message.eml"]


@pytest.mark.parametrize("data", [bytes(range(256)) * 8, b"No headers.\n\nOnly text.\n", b"content-type: text/plain\n\nNot sent.\n"])
def test_what_is_no_message_is_named(tmp_path, data):
    (tmp_path / "m.eml").write_bytes(data)
    with pytest.raises(UnreadableFile, match=r"m\.eml: is no e-mail: it has no sender"):
        list(pk.read(tmp_path / "m.eml"))
