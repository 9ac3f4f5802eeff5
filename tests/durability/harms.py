"""Ways to harm the files of an index: accidental damage, and forgery with valid checksums."""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from perikope.core.array_files import hash_of
from perikope.core.checked_json import with_checksum
from perikope.index import manifest as manifests
from perikope.index.blocks import CHECKSUMS
from perikope.index.columns import MAGIC, ColumnFile, ColumnWriter
from perikope.index.store import StoreWriter

Array = np.ndarray[Any, Any]


def do(folder: Path, harm: Mapping[str, Any]) -> None:
    """Apply a harm to an index: `{"do": name, …}` with the arguments of the function of that name in `HARMS`."""
    HARMS[harm["do"]](folder, **{name: value for name, value in harm.items() if name not in ("do", "changing", "region")})


def content_of(folder: Path) -> dict[str, bytes]:
    """The content of every file in a folder and its folders, by its name relative to the folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def restore(folder: Path, whole: Mapping[str, bytes]) -> None:
    """Restore the folder to exactly these files, whose names may be in folders."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        elif path.is_file() and path.relative_to(folder).as_posix() not in whole:
            path.unlink()
    for name, data in whole.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != data:
            path.unlink(missing_ok=True)  # not overwritten, since an older reader may have it mapped
            path.write_bytes(data)


def regions(path: Path) -> dict[str, range]:
    """The bytes of a file by what they are: columns by name, gaps between them, header, footer and tail."""
    file = ColumnFile(path)
    by_name = {"header": range(12)}
    end = 12
    for name, place in sorted(file._places.items(), key=lambda item: item[1]["offset"]):
        size = place["length"] * int(place["type"][1:])
        by_name[f"gap before {name}"] = range(end, place["offset"])
        by_name[name] = range(place["offset"], place["offset"] + size)
        end = place["offset"] + size
    tail = file.size - 28
    footer = int.from_bytes(path.read_bytes()[tail : tail + 8], "little")
    return by_name | {"last gap": range(end, footer), "footer": range(footer, tail), "tail": range(tail, file.size)}


def flip(folder: Path, file: str, at: int, mask: int) -> None:
    data = bytearray((folder / file).read_bytes())
    data[at] ^= mask
    _put(folder / file, bytes(data))


def cut(folder: Path, file: str, length: int) -> None:
    _put(folder / file, (folder / file).read_bytes()[:length])


def lose(folder: Path, file: str) -> None:
    (folder / file).unlink()


def swap(folder: Path, file: str, other: str) -> None:
    mine, theirs = (folder / file).read_bytes(), (folder / other).read_bytes()
    _put(folder / file, theirs)
    _put(folder / other, mine)


def blank(folder: Path, file: str, at: int, length: int) -> None:
    """Overwrite some bytes with zeros, as a lost block of a disk."""
    data = bytearray((folder / file).read_bytes())
    end = min(at + length, len(data))
    data[at:end] = bytes(end - at)
    _put(folder / file, bytes(data))


def grow(folder: Path, file: str, length: int) -> None:
    """Append zeros."""
    _put(folder / file, (folder / file).read_bytes() + bytes(length))


def put(folder: Path, file: str, data: str) -> None:
    _put(folder / file, data.encode("utf-8", "surrogateescape"))


def forge_columns(folder: Path, file: str, columns: Mapping[str, str], seed: int) -> None:
    """Change the values of columns by the named mutations; all checksums stay valid."""
    chance = random.Random(seed)
    _rewrite(folder, file, columns={name: lambda values, kind=kind: MUTATIONS[kind](values, chance) for name, kind in columns.items()})


def forge_fact(folder: Path, file: str, fact: str, value: object) -> None:
    _rewrite(folder, file, facts={fact: value})


def forge_store(folder: Path, file: str, store: str, data: str) -> None:
    """Replace every string of a compressed store by the same data."""
    strings = StoreWriter()
    for _ in range(ColumnFile(folder / file)[f"{store}.ends"].size):
        strings.append(data.encode("utf-8", "surrogateescape"))
    pieces: dict[str, Array] = {}

    class Collector:
        def stream(self, name: str, kind: Any, chunks: Any) -> None:
            pieces[name] = np.concatenate([*chunks, np.zeros(0, kind)]).astype(kind)

        def write(self, name: str, values: Array) -> None:
            pieces[name] = values

    strings.write(store, Collector())  # type: ignore[arg-type]
    _rewrite(folder, file, columns={name: lambda _, values=values: values for name, values in pieces.items()})


def forge_footer(folder: Path, file: str, footer: str) -> None:
    """Replace the footer; `COLUMNS` in it stands for the list of columns in the file."""
    data = (folder / file).read_bytes()
    offset, length, _ = struct.unpack_from("<QQI", data, len(data) - 28)
    original = data[offset : offset + length].decode()
    written = footer.replace("COLUMNS", json.dumps(json.loads(original)["columns"])[1:-1]).encode("utf-8", "surrogateescape")
    tail = struct.pack("<QQI8s", offset, len(written), zlib.crc32(written), MAGIC)
    _put(folder / file, data[:offset] + written + tail)
    _register(folder, file)


def forget_blocks(folder: Path, file: str) -> None:
    """Remove the checksums of blocks from a file, as earlier programs wrote it."""
    data = (folder / file).read_bytes()
    offset, length, _ = struct.unpack_from("<QQI", data, len(data) - 28)
    footer = json.loads(data[offset : offset + length])
    del footer["columns"][CHECKSUMS]
    forge_footer(folder, file, json.dumps(footer))


def forge_manifest(folder: Path, keys: list[str | int], value: object, file: str = manifests.FILE) -> None:
    """Change the value of a manifest that `keys` lead to, with a valid checksum; `None` removes it."""
    path = folder / file
    content = json.loads(path.read_bytes())
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    if value is None:
        del inner[keys[-1]]
    else:
        inner[keys[-1]] = value
    content.pop("checksum", None)
    _put(path, json.dumps(with_checksum(content)).encode())


def forge_array(folder: Path, store: str, file: str, mutation: str, seed: int) -> None:
    """Change the values of an array of a store of vectors by a named mutation; its hash in the manifest stays valid."""
    values = np.load(folder / store / file)
    forged = MUTATIONS[mutation](values.ravel(), random.Random(seed))
    forged = forged.reshape(-1, *values.shape[1:]) if values.ndim > 1 and forged.size % values.shape[1] == 0 else forged
    (folder / store / file).unlink()
    np.save(folder / store / file, forged)
    forge_manifest(folder, ["hashes", file], hash_of(folder / store / file), f"{store}/store.json")


def _rewrite(
    folder: Path, file: str, columns: Mapping[str, Callable[[Array], Array]] | None = None, facts: Mapping[str, object] | None = None
) -> None:
    source = ColumnFile(folder / file)
    contents = {name: values.copy() for name, values in source.items()}
    for name, forge in (columns or {}).items():
        contents[name] = forge(contents[name])
    (folder / file).unlink()
    with ColumnWriter(folder / file) as writer:
        for name, values in contents.items():
            writer.write(name, values)
        writer.close({name: value for name, value in {**source.facts, **(facts or {})}.items() if value is not None})
    _register(folder, file)


def _register(folder: Path, file: str) -> None:
    """Update size and checksum of the file in the manifest."""
    data = (folder / file).read_bytes()
    manifest = manifests.load(folder)
    for entry in manifest.segments:
        for part in (entry, entry.get("deleted", {})):
            if part.get("file") == file:
                part |= {"size": len(data), "checksum": struct.unpack_from("<I", data, len(data) - 12)[0]}
    manifests.replace(folder, manifest)


def _put(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def _one(values: Array, chance: random.Random, change: Callable[[int], int]) -> Array:
    if values.size:
        at = chance.randrange(values.size)
        limits = np.iinfo(values.dtype)
        values[at] = min(max(change(int(values[at])), limits.min), limits.max)
    return values


def _random(values: Array, chance: random.Random) -> Array:
    limits = np.iinfo(values.dtype)
    return np.array([chance.randint(limits.min, limits.max) for _ in range(values.size)], values.dtype)


def _typed(values: Array, kind: str, extreme: float) -> Array:
    changed = values.astype(kind)
    changed[: changed.size // 2] = extreme
    return changed


MUTATIONS: dict[str, Callable[[Array, random.Random], Array]] = {
    "all zero": lambda values, chance: np.zeros_like(values),
    "all the largest": lambda values, chance: np.full_like(values, np.iinfo(values.dtype).max),
    "one the largest": lambda values, chance: _one(values, chance, lambda value: 1 << 70),
    "one zero": lambda values, chance: _one(values, chance, lambda value: 0),
    "one more": lambda values, chance: _one(values, chance, lambda value: value + 1),
    "one less": lambda values, chance: _one(values, chance, lambda value: value - 1),
    "some random": lambda values, chance: _one(
        _one(values, chance, lambda _: chance.randrange(256)), chance, lambda _: chance.randrange(9)
    ),
    "all random": _random,
    "all small": lambda values, chance: np.array([chance.randrange(4) for _ in range(values.size)], values.dtype),
    "shuffled": lambda values, chance: np.array(chance.sample(values.tolist(), values.size), values.dtype),
    "backwards": lambda values, chance: values[::-1],
    "doubled": lambda values, chance: values * 2,
    "shorter": lambda values, chance: values[:-1],
    "longer": lambda values, chance: np.concatenate([values, values[-1:]]),
    "empty": lambda values, chance: values[:0],
    "wider": lambda values, chance: _typed(values, "u8", (1 << 64) - 1),
    "wider, the same": lambda values, chance: values.astype("u8"),
    "negative": lambda values, chance: _typed(values, "i8", -3),
    "signed, the same": lambda values, chance: values.astype("i8"),
    "narrower": lambda values, chance: values.astype("u1"),
    "fractions": lambda values, chance: values.astype("f8") + 0.5,
    "not a number": lambda values, chance: _typed(values, "f4", float("nan")),
}

HARMS: dict[str, Callable[..., None]] = {
    "flip": flip,
    "cut": cut,
    "lose": lose,
    "blank": blank,
    "grow": grow,
    "swap": swap,
    "put": put,
    "forge columns": forge_columns,
    "forge fact": forge_fact,
    "forge store": forge_store,
    "forge footer": forge_footer,
    "forge manifest": forge_manifest,
    "forge array": forge_array,
}
