"""Encode text as one vector per token (ColBERT: Khattab and Zaharia 2020).

    E_p = normalise(W · encoder(p))                     one vector of length 1 per token of a text p
    sim(E_q, E_p) = Σ_i max_j E_q_i · E_p_j             equation (6) of Albarede et al. 2023

The encoder is any model of Hugging Face's transformers: a folder, or the name of a model that was downloaded before.
This module downloads nothing. W is the projection to fewer dimensions. A ColBERT checkpoint contains W and the markers
of queries and passages. For other models, W starts as the principal components of the encoder's token vectors
(`fit_projection`), which loses almost nothing. Weights are read from safetensors files. Code that comes with a model is
not run.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from perikope.core.arrays import Floats32, Integers
from perikope.core.errors import MissingExtra, UsageError, unknown
from perikope.core.files import replacing
from perikope.index.layout import offsets
from perikope.neural.defaults import DEFAULT, DIMENSION
from perikope.neural.encoder_files import AGAIN, CONFIGURATION, read_settings

try:
    import torch
    from torch import Tensor, nn
    from transformers import AutoTokenizer

    from perikope.neural.devices import check_device, keeping_random_state, precision_of
    from perikope.neural.encoder_settings import SETTINGS, EncoderSettings, dimension_of, settings_of
    from perikope.neural.encoder_weights import (
        LOCAL,
        WEIGHTS,
        filled_transformer,
        folder_of,
        plain_transformer,
        reading,
        save_weights,
        unreadable,
        weights_of,
    )
    from perikope.neural.sentence_folders import BETWEEN, sentence_folder
except ImportError as missing:
    raise MissingExtra(missing.name or "torch", "neural") from None

RUNTIMES = ("torch", "onnx", "onnx-int8")
"""The programs that can compute the vectors; see `perikope.neural.onnx`."""
_MAX_TOKEN = 1 << 24
"""Maximum number of a token: more than the size of any vocabulary."""
_PROJECTION = "linear.weight"
"""Name of the projection's weights in ColBERT checkpoints."""
_AT_ONCE = 1 << 14
"""Tokens per batch on a GPU, padding included."""
_AT_ONCE_ON_CPU = 1 << 10
"""Tokens per batch on a CPU. In measurements, 1 << 10 was 1.6 to 2 times as fast as 1 << 14, presumably by caching."""

_WIDTHS: Integers = np.array([24, 64, 112])
"""Upper limits of text lengths, in tokens, of the groups of texts that are encoded together; a last group has no
limit."""


class Encoder(nn.Module):
    """A transformer with a projection. It turns a text into one vector of length 1 per token."""

    def __init__(self, transformer: nn.Module, tokenizer: Any, dimension: int, settings: EncoderSettings) -> None:
        """Combine a transformer with a projection to `dimension` values per vector.

        If `dimension` is 0, there is no projection, and vectors have the width of the transformer's vectors.
        """
        super().__init__()
        self.transformer, self.tokenizer, self.settings = transformer, tokenizer, settings
        self.width = int(transformer.config.hidden_size)  # type: ignore[union-attr, arg-type]
        if dimension > self.width:
            raise UsageError(f"dimension must be at most {self.width}, the width of the encoder's vectors, not {dimension}")
        self.projection = nn.Linear(self.width, dimension, bias=False) if dimension else None
        self.dimension = dimension or self.width
        self._check_lengths()
        self._remembered: dict[tuple[int, str], Integers] = {}
        vocabulary = tokenizer.get_vocab()
        largest = max(vocabulary.values(), default=0)
        if largest > _MAX_TOKEN:
            raise UsageError(f"the tokenizer has a token with the number {largest}, more than any vocabulary has: {AGAIN}")
        self._tokens_known = _embedded(transformer)
        skipped = [i for token, i in vocabulary.items() if token and all(sign in string.punctuation for sign in token)]
        punctuation = torch.zeros(1 + largest, dtype=torch.bool)
        punctuation[skipped] = True
        self.register_buffer("_punctuation", punctuation, persistent=False)

    @classmethod
    def load(
        cls,
        name: str = DEFAULT,
        dimension: int = DIMENSION,
        *,
        device: str = "",
        precision: str = "auto",
        settings: EncoderSettings | None = None,
        runtime: str = "torch",
    ) -> Encoder:
        """Load an encoder from a folder, or by the name of a model that was downloaded before.

        - `dimension`: values per token vector; 0 keeps the transformer's width. A saved encoder or a ColBERT checkpoint
          has its own dimension, which takes precedence.
        - `device`: `cpu`, `cuda` or another name that torch knows; by default a GPU if there is one.
        - `precision`: `float32`, `bfloat16` or `auto`. `auto` is bfloat16 if the device computes with it natively, else
          float32. bfloat16 takes half the time at no loss.
        - `settings`: by default the settings of the saved encoder or checkpoint, else `EncoderSettings()`.
        - `runtime`: `torch`, or `onnx` or `onnx-int8` to encode on the CPU with ONNX Runtime.
        """
        if runtime not in RUNTIMES:
            raise unknown("runtime", runtime, RUNTIMES)
        if runtime != "torch" and (device not in ("", "cpu") or precision not in ("auto", "float32")):
            raise UsageError(f"the runtime {runtime} sets the device (CPU) and the precision: leave out device and precision")
        check_device(device)
        chosen_device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        with keeping_random_state():
            encoder = cls._loaded(name, dimension, settings)
        if runtime != "torch":
            from perikope.neural.onnx import OnnxEncoder

            return OnnxEncoder(encoder, int8=runtime == "onnx-int8")
        return encoder.to(device=chosen_device, dtype=precision_of(precision, chosen_device)).eval()

    @classmethod
    def _loaded(cls, name: str, dimension: int, settings: EncoderSettings | None) -> Encoder:
        """Load an encoder by name or folder, in float32 on the CPU."""
        whole = sentence_folder(folder_of(name))
        folder = whole.transformer
        if not (folder / CONFIGURATION).is_file():
            raise UsageError(unreadable(name, FileNotFoundError(f"there is no {CONFIGURATION}")))
        read_settings(folder / CONFIGURATION, AGAIN)
        known = read_settings(folder / SETTINGS, AGAIN) if (folder / SETTINGS).is_file() else None
        weights = weights_of(folder)
        projection = weights.get(_PROJECTION)
        chosen = settings or settings_of(folder, known, whole.pooling)
        with reading(name):
            tokenizer = AutoTokenizer.from_pretrained(str(folder), **LOCAL)
            if projection is None and known is None:
                transformer = plain_transformer(folder, weights)
            else:
                transformer = filled_transformer(folder, weights)
            size = projection.shape[0] if projection is not None else dimension_of(folder, known, dimension)
            encoder = cls(transformer, tokenizer, size, chosen)
            if projection is not None and encoder.projection is not None:
                encoder.projection.weight.data.copy_(projection)
            elif encoder.projection is not None:
                encoder.fit_projection(_words_of(tokenizer))
        return encoder

    def save(self, folder: Path) -> None:
        """Write everything that `load` needs to a folder: weights as safetensors, the tokenizer and the settings."""
        folder.mkdir(parents=True, exist_ok=True)
        self.transformer.config.save_pretrained(folder)  # type: ignore[union-attr, operator]
        self.tokenizer.save_pretrained(folder)
        weights = {f"bert.{name}": value.detach().float().cpu().contiguous() for name, value in self.transformer.state_dict().items()}
        if self.projection is not None:
            weights[_PROJECTION] = self.projection.weight.detach().float().cpu().contiguous()
        save_weights(weights, folder / WEIGHTS)
        content = {"dimension": self.dimension if self.projection is not None else 0, **asdict(self.settings)}
        with replacing(folder / SETTINGS) as file:
            file.write(json.dumps(content, indent=1))

    @property
    def device(self) -> torch.device:
        """The device that the weights are on."""
        return next(self.transformer.parameters()).device

    @property
    def pooled_width(self) -> int:
        """Values of one vector per text; several kinds of pooling are joined."""
        return self.width * len(self.settings.pooling.split(BETWEEN))

    @property
    def batch_tokens(self) -> int:
        """Tokens per batch on this device."""
        return _AT_ONCE_ON_CPU if self.device.type == "cpu" else _AT_ONCE

    def queries(self, texts: Sequence[str], *, full: bool = True) -> tuple[Tensor, Tensor]:
        """Encode queries: returns vectors (queries, tokens, dimension), and their mask (queries, tokens).

        The mask is true for vectors that are compared with passages. Other vectors are zero. If `full` is true, queries
        are padded to `query_tokens`, otherwise to the longest of these queries.
        """
        settings = self.settings
        tokens, mask = self._tokens(texts, settings.query_tokens, settings.query_marker, full or settings.fill_queries)
        if settings.fill_queries:
            if self.tokenizer.mask_token_id is None:
                raise UsageError(f"the tokenizer has no mask token, with which queries are filled: {AGAIN}")
            tokens = torch.where(mask, tokens, self.tokenizer.mask_token_id)
            # No token attends to the mask tokens, but their vectors are compared with passages.
            return self(tokens, mask), torch.ones_like(mask)
        return self(tokens, mask) * mask.unsqueeze(-1), mask

    def passages(self, texts: Sequence[str], *, full: bool = True) -> tuple[Tensor, Tensor]:
        """Encode passages: returns vectors (passages, tokens, dimension), and their mask (passages, tokens).

        The mask is true for vectors that are compared with queries. It is false for padding and, with
        `skip_punctuation`, for punctuation. If `full` is true, passages are padded to `passage_tokens`, otherwise to
        the longest of these passages.
        """
        limit, marker = self._limits(False)
        return self._of_passages(self._ids(texts, limit - bool(marker)), full)

    def _of_passages(self, ids: Sequence[Integers], full: bool) -> tuple[Tensor, Tensor]:
        """Encode passages given as arrays of token ids (tokens of the passage,); returns the same as `passages`."""
        tokens, mask = self._padded(ids, *self._limits(False), full)
        vectors = self(tokens, mask) if full else self._by_length(tokens, mask)
        return vectors * mask.unsqueeze(-1), mask & ~self._skipped(tokens)

    def _by_length(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Compute the same as `forward`, in groups of texts of similar length, to save padding.

        `tokens` and `mask` are (texts, tokens); returns (texts, tokens, dimension). Neighbours of passages are often
        short titles. In one batch with the passages, more than half of all tokens would be padding.
        """
        if tokens.numel() <= self.batch_tokens:
            vectors: Tensor = self(tokens, mask)
            return vectors
        lengths = mask.sum(1).cpu().numpy()
        group = np.searchsorted(_WIDTHS, lengths)
        order, pieces = [], []
        for number in np.unique(group).tolist():
            rows = np.flatnonzero(group == number)
            width = int(lengths[rows].max())
            texts = torch.from_numpy(rows).to(tokens.device)
            vectors = self(tokens[texts, :width], mask[texts, :width])
            pieces.append(nn.functional.pad(vectors, (0, 0, 0, tokens.shape[1] - width)))
            order.append(rows)
        all_rows, all_pieces = torch.from_numpy(np.concatenate(order)).to(tokens.device), torch.cat(pieces)
        # The backward pass of `index_copy` is a gather; that of indexing is several times slower on a GPU.
        return torch.zeros_like(all_pieces).index_copy(0, all_rows, all_pieces)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Compute `normalise(W · encoder(tokens))` as float32 (texts, tokens, dimension).

        `tokens` (texts, tokens) are token ids; `mask` (texts, tokens) is false for padding.
        """
        states = self.transformer(input_ids=tokens, attention_mask=mask.long()).last_hidden_state
        if self.projection is not None:
            states = self.projection(states)
        return nn.functional.normalize(states.float(), dim=-1)

    def written(self, text: str, *, query: bool) -> list[str]:
        """The tokens of a query or passage as strings, one per token position, for explanations."""
        limit, marker = self._limits(query)
        tokens, _ = self._tokens([text], limit, marker, query and self.settings.fill_queries)
        strings: list[str] = self.tokenizer.convert_ids_to_tokens(tokens[0].tolist())
        return strings

    def encode(self, texts: Sequence[str], *, tokens_at_once: int = 0) -> Iterator[tuple[int, Floats32, Integers]]:
        """Yield the number of each passage, its vectors (vectors, dimension) and their token positions (vectors,).

        Padding and skipped punctuation have no vectors. Passages come longest first, not in the order of `texts`.
        `tokens_at_once` is the batch size in tokens, padding included; 0 chooses it by device.
        """
        at_once = tokens_at_once or self.batch_tokens
        limit, marker = self._limits(False)
        ids = self._ids(texts, limit - bool(marker))
        lengths = np.array([len(ids_of_text) + bool(marker) for ids_of_text in ids], np.int64)
        order = np.argsort(-lengths, kind="stable")
        start = 0
        with torch.inference_mode():
            while start < order.size:
                rows = order[start : start + max(at_once // int(lengths[order[start]]), 1)]
                vectors, mask = self._of_passages([ids[row] for row in rows.tolist()], full=False)
                for row, matrix, counted in zip(rows.tolist(), vectors.cpu().numpy(), mask.cpu().numpy(), strict=True):
                    yield row, matrix[counted], np.flatnonzero(counted)
                start += rows.size

    def fit_projection(self, texts: Sequence[str]) -> None:
        """Set the projection to the principal components of the transformer's vectors for the tokens of some texts.

        The components are the eigenvectors of `XᵀX` with the largest eigenvalues, where X (tokens, width) has the
        vectors scaled to length 1. The mean is not subtracted, because dot products are to be kept. An encoder without
        projection, or an empty list of texts, changes nothing.
        """
        if self.projection is None or not texts:
            return
        total = torch.zeros(self.projection.in_features, self.projection.in_features, dtype=torch.float64)
        with torch.inference_mode():
            for start in range(0, len(texts), 64):
                tokens, mask = self._tokens(texts[start : start + 64], self.settings.passage_tokens, self.settings.passage_marker, False)
                states = self.transformer(input_ids=tokens, attention_mask=mask.long()).last_hidden_state[mask]
                states = nn.functional.normalize(states.float(), dim=-1).double().cpu()
                total += states.T @ states
        components = torch.linalg.eigh(total).eigenvectors[:, -self.projection.out_features :].flip(1).T
        with torch.no_grad():
            self.projection.weight.copy_(components)

    def layers(self) -> list[nn.Module]:
        """The layers of the transformer, from input to output."""
        stacks = [module for module in self.transformer.modules() if isinstance(module, nn.ModuleList)]
        return max((list(stack) for stack in stacks), key=len, default=[])

    def freeze(self, layers: int | None = None) -> None:
        """Exclude the embeddings and the first `layers` layers from training, and include all other parameters.

        None freezes half of the layers (six of twelve in Albarede et al. 2023). 0 freezes nothing.
        """
        all_layers = self.layers()
        count = len(all_layers) // 2 if layers is None else layers
        if not 0 <= count <= len(all_layers):
            raise UsageError(f"the encoder has {len(all_layers)} layers, so at most {len(all_layers)} can be frozen, not {count}")
        frozen: list[nn.Module] = [*all_layers[:count]]
        if count and hasattr(self.transformer, "embeddings"):
            frozen.append(self.transformer.embeddings)  # type: ignore[arg-type]
        for parameter in self.parameters():
            parameter.requires_grad_(True)
        for module in frozen:
            for parameter in module.parameters():
                parameter.requires_grad_(False)

    def _limits(self, query: bool) -> tuple[int, str]:
        """The maximum number of tokens, and the marker, of queries if `query` is true, else of passages."""
        settings = self.settings
        return (settings.query_tokens, settings.query_marker) if query else (settings.passage_tokens, settings.passage_marker)

    def cut(self, texts: Sequence[str], *, query: bool = False) -> tuple[Integers, Integers]:
        """Tokenise texts: returns the token ids of all texts (tokens,), and the offset of each text (texts + 1,)."""
        limit, marker = self._limits(query)
        ids = self._ids(texts, limit - bool(marker))
        first = offsets(np.array([len(ids_of_text) for ids_of_text in ids], np.int64))
        return np.concatenate([first[:0], *ids]), first

    def remember(self, texts: Sequence[str], *, query: bool = False, cut: tuple[Integers, Integers] | None = None) -> None:
        """Keep the token ids of texts that are encoded repeatedly, as in training.

        Tokenising takes longer than encoding on a GPU. `cut` is the result of the method `cut` for these texts, perhaps
        from another process; None tokenises them here.
        """
        limit, marker = self._limits(query)
        tokens, first = cut or self.cut(texts, query=query)
        for text, ids in zip(texts, np.split(tokens, first[1:-1]) if texts else (), strict=True):
            self._remembered[limit - bool(marker), text] = ids

    def copied(self) -> Encoder:
        """A copy with separate weights; the tokenizer and the remembered token ids are shared."""
        copy = Encoder(deepcopy(self.transformer), self.tokenizer, self.dimension if self.projection is not None else 0, self.settings)
        copy.load_state_dict(self.state_dict())
        copy.share_remembered(self)
        return copy.to(self.device).eval()

    def share_remembered(self, other: Encoder) -> None:
        """Use the remembered token ids of another encoder, which must have the same tokenizer."""
        self._remembered = other._remembered

    def _ids(self, texts: Sequence[str], limit: int) -> list[Integers]:
        """The token ids of each text as one array (tokens of the text,), at most `limit` tokens, without the marker."""
        remembered = [self._remembered.get((limit, text)) for text in texts] if self._remembered else [None] * len(texts)
        # Texts keep bytes that are not UTF-8 as lone surrogates, which a tokenizer refuses.
        rest = [text.encode("utf-8", "replace").decode() for text, ids in zip(texts, remembered, strict=True) if ids is None]
        cut: list[list[int]] = self.tokenizer(rest, truncation=True, max_length=limit)["input_ids"] if rest else []
        new = (np.array(ids, np.int64) for ids in cut)
        return [next(new) if ids is None else ids for ids in remembered]

    def _tokens(self, texts: Sequence[str], limit: int, marker: str, full: bool) -> tuple[Tensor, Tensor]:
        """Padded token ids of texts (texts, tokens) and their mask (texts, tokens), false for padding."""
        return self._padded(self._ids(texts, limit - bool(marker)), limit, marker, full)

    def _padded(self, ids: Sequence[Integers], limit: int, marker: str, full: bool) -> tuple[Tensor, Tensor]:
        """Token ids with the marker, padded: (texts, tokens) and the mask (texts, tokens), false for padding.

        `ids` has one array (tokens of the text,) per text. `full` pads to `limit`, otherwise to the longest text.
        """
        if marker:
            marker_id = self.tokenizer.convert_tokens_to_ids(marker)
            if marker_id is None:
                raise UsageError(f"the tokenizer has no token {marker[:40]!r}, the marker of queries or passages: {AGAIN}")
            ids = [np.concatenate([ids_of_text[:1], [marker_id], ids_of_text[1:]]) for ids_of_text in ids]
        lengths = np.array([len(ids_of_text) for ids_of_text in ids], np.int64)
        width = limit if full else int(lengths.max(initial=1))
        mask = np.arange(width) < lengths[:, None]
        tokens = np.full(mask.shape, int(self.tokenizer.pad_token_id or 0), np.int64)
        tokens[mask] = np.concatenate([tokens[:0, 0], *ids])
        if tokens.size and not 0 <= int(tokens.min()) <= int(tokens.max()) < self._tokens_known:
            raise UsageError(f"the tokenizer has more tokens than the {self._tokens_known} of the encoder: {AGAIN}")
        return torch.from_numpy(tokens).to(self.device), torch.from_numpy(mask).to(self.device)

    def _skipped(self, tokens: Tensor) -> Tensor:
        """A mask in the shape of `tokens` (texts, tokens): true for token ids of passages that get no vector."""
        skipped: Tensor = self._punctuation[tokens] if self.settings.skip_punctuation else torch.zeros_like(tokens, dtype=torch.bool)  # type: ignore[index]
        return skipped

    def _check_lengths(self) -> None:
        longest = int(getattr(self.transformer.config, "max_position_embeddings", 1 << 30))  # type: ignore[union-attr]
        for what, tokens in (("passages", self.settings.passage_tokens), ("queries", self.settings.query_tokens)):
            if not 3 <= tokens <= longest:
                raise UsageError(f"the maximum of tokens of {what} must be from 3 to {longest}, the encoder's limit, not {tokens}")


def _embedded(transformer: nn.Module) -> int:
    """The number of tokens that a transformer has vectors for."""
    embeddings = transformer.get_input_embeddings()  # type: ignore[operator]
    return int(getattr(embeddings, "num_embeddings", _MAX_TOKEN))


def _words_of(tokenizer: Any, texts: int = 128, words: int = 40) -> list[str]:
    """Random texts of words of the tokenizer's vocabulary, to fit the projection to.

    There are `texts` texts of `words` words each, the same in every call; none if the vocabulary has no words.
    """
    known = sorted(token for token in tokenizer.get_vocab() if token.isalpha() and len(token) > 1)
    if not known:
        return []
    drawn = np.random.default_rng(1).choice(len(known), (texts, words))
    return [" ".join(known[word] for word in row) for row in drawn.tolist()]
