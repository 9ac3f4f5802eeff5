"""The settings of an encoder: how texts are tokenised, and which vectors they get."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perikope.core.errors import InputError, MissingExtra
from perikope.neural.encoder_files import AGAIN, read_settings

try:
    from perikope.neural.sentence_folders import BETWEEN, POOLINGS
except ImportError as missing:
    raise MissingExtra(missing.name or "torch", "neural") from None

PASSAGE_TOKENS = 180
"""Default maximum of tokens per passage."""
QUERY_TOKENS = 120
"""Default maximum of tokens per query."""
SETTINGS = "perikope-encoder.json"
"""Name of the settings file of a saved encoder."""


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """How texts are tokenised, and which tokens get a vector."""

    passage_tokens: int = PASSAGE_TOKENS
    """Maximum tokens per passage, from 3 to the encoder's limit; longer passages are cut."""
    query_tokens: int = QUERY_TOKENS
    """Maximum tokens per query, from 3 to the encoder's limit; longer queries are cut."""
    skip_punctuation: bool = True
    """Whether punctuation tokens of passages get no vector. Punctuation tokens of queries always get a vector."""
    query_marker: str = ""
    """Token inserted after the first token of a query, for models that were trained with such a marker; empty for
    none."""
    passage_marker: str = ""
    """Token inserted after the first token of a passage, for models that were trained with such a marker; empty for
    none."""
    fill_queries: bool = False
    """Whether queries are padded to `query_tokens` with mask tokens, whose vectors are compared with passages too."""
    pooling: str = "mean"
    """How token vectors become one vector per text: a name of `sentence_folders.POOLINGS`, or several with `+` between
    them. Empty if the folder of the encoder has steps after pooling that are not known here."""


def settings_of(folder: Path, known: dict[str, Any] | None, pooling: str) -> EncoderSettings:
    """The settings of an encoder, from its settings file (`known`) or from the metadata of a ColBERT checkpoint."""
    if known is not None:
        names = EncoderSettings.__dataclass_fields__
        return _checked(EncoderSettings(**{name: value for name, value in known.items() if name in names}), folder / SETTINGS)
    metadata = folder / "artifact.metadata"
    if not metadata.is_file():
        return EncoderSettings(pooling=pooling)
    content = read_settings(metadata, AGAIN)
    colbert = EncoderSettings(
        query_marker=str(content.get("query_token_id", "[unused0]")),
        passage_marker=str(content.get("doc_token_id", "[unused1]")),
        skip_punctuation=bool(content.get("mask_punctuation", True)),
        query_tokens=content.get("query_maxlen", 32),
        fill_queries=True,
    )
    return _checked(colbert, metadata)


def _checked(settings: EncoderSettings, path: Path) -> EncoderSettings:
    """The same settings; raises `InputError` if a value has another type than the default."""
    for name, default in asdict(EncoderSettings()).items():
        if type(getattr(settings, name)) is not type(default):
            raise InputError(f"has an unusable value of {name!r}: {AGAIN}", path=path)
    if settings.pooling and not set(settings.pooling.split(BETWEEN)) <= POOLINGS.keys():
        raise InputError(f"has an unusable value of 'pooling': {AGAIN}", path=path)
    return settings


def dimension_of(folder: Path, known: dict[str, Any] | None, dimension: int) -> int:
    """The dimension in the settings of a saved encoder, else `dimension`."""
    found = dimension if known is None else known.get("dimension", dimension)
    if type(found) is not int or found < 0:
        raise InputError(f"has no usable dimension: {AGAIN}", path=folder / SETTINGS)
    return found
