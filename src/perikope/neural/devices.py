"""What torch computes with: devices, precisions and random states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from perikope.core.errors import MissingExtra, UsageError

try:
    import torch
except ImportError as missing:
    raise MissingExtra(missing.name or "torch", "neural") from None


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


def has_bfloat16(device: torch.device) -> bool:
    """Whether a device computes with bfloat16 natively, rather than emulating it."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    native = any(getattr(torch.cpu, name, bool)() for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return device.type == "cpu" and native and bool(supported and supported())


def precision_of(name: str, device: torch.device) -> torch.dtype:
    """The data type of a precision, `auto` by the device; raises `UsageError` if the name is unknown."""
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    if name == "auto":
        return torch.bfloat16 if has_bfloat16(device) else torch.float32
    if name not in known:
        raise UsageError(f"precision must be auto, float32 or bfloat16, not {name!r}")
    return known[name]
