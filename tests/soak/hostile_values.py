"""Values and files that users do not mean, and attackers do: for options, queries, topics, judgements and documents."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from pathlib import Path

LONG = 100_000
"""Characters of a long value; the system allows a few more in one argument."""
DEEP = 5_000
SPARSE = 1 << 31
"""Bytes of a file that takes no space on disk."""

NUMBERS = (
    "0", "-1", "1", "007", "1.5", "1e308", "-1e308", "1e-400", "nan", "inf", "-inf", "9" * 400, "-" + "9" * 400, "1_000", "1,5", "0x10",
    "2147483648", "9223372036854775808", "18446744073709551616", " 5 ", "\u0663", "\u00b2", "5\n", "5%", "all", "", "-", "1/0", "99999999",
)  # fmt: skip
TEXTS = (
    "", " ", "\n\n", "\t", "-", "--", "=", "\x1b[2J\x1b]0;x\x07", "a\x7fb\x01", "\u202eabc\u202c", "\u200b" * 50, "e" + "\u0301" * 1000,
    "\udcff\udcfe", "\ud800", "\U0001f600" * 100, "x" * LONG, "\u00e9" * (LONG // 2), "pump " * (LONG // 5), "(" * DEEP,
    "(" * DEEP + "pump" + ")" * DEEP,
    "NOT " * DEEP + "pump", "pump AND " * DEEP + "rotor", "pump OR (" * 1000, '"' * 999, '"pump' * 1000, "pump NEAR/99999999999 rotor",
    "pump NEAR/0 rotor", "*", "p*", "a* " * 500, "pump~9", "~", "+" * 100, "-pump", "[" * DEEP, '{"a":' * 2000, "bm25(" * 1000,
    "bm25(k1=nan)",
    "bm25(k1=1e999)", "qsf_v(alpha=[0,1,2])", "fuse(models=[" * 500, "lm(mu=" + "9" * 5000 + ")", "year>" + "9" * 5000,
    "year=" + "*" * 5000,
    "ipc=" + "|".join(["A"] * DEEP), "%s%n{0}{x}", "CON", "'; DROP TABLE x; --", "$(echo x)", "nDCG@" + "9" * 30, "P@-1", "AP " * DEEP,
    "a,b,,c," * 900,
    "en,de,xx,", "words:0", "words:" + "9" * 40, "windows:1/0", "at-most:-5", "tags:" + "p," * DEEP, "\u0130\u0131\u1e9e", "0" * LONG,
)  # fmt: skip
OUTPUTS = (
    "/dev/full",
    "/dev/null",
    ".",
    "missing/out.csv",
    "x" * 300,
    "out\n.csv",
    "out\u202e.csv",
    "out.unknown",
    "out.csv",
    "out.xlsx",
    "\udcff.csv",
    "",
)


def write_files(folder: Path) -> list[str]:
    """Write hostile files to a folder; returns their paths, and paths of devices and folders that are no files."""
    folder.mkdir()
    for name, data in _contents().items():
        (folder / name).write_bytes(data)
    for name in ("sparse.jsonl", "sparse.txt", "sparse.xml"):
        with (folder / name).open("wb") as file:
            os.truncate(file.fileno(), SPARSE)
    (folder / "loop").symlink_to("loop")
    (folder / "inner").mkdir()
    (folder / "inner" / "up").symlink_to("..")
    paths = sorted(str(path) for path in folder.iterdir())
    others = [
        "/dev/zero",
        "/dev/null",
        "/proc/self/mem",
        "/proc/self/environ",
        "",
        ".",
        "missing",
        "x" * 300,
        "x/" * 3000,
        "index/manifest.json",
    ]
    return [*paths, *others, "\udcff", "a\nb", "~nobody/x", "index"]


def _contents() -> dict[str, bytes]:
    deep_list = "[" * 100_000
    line = json.dumps({"id": "h", "passages": ["pump " * 1000]})
    odd = [
        {"id": "", "passages": ["x"]},
        {"id": "a\u0000b", "text": "\u0000"},
        {"id": 1, "passages": 5},
        {"id": "x" * LONG, "passages": ["y"]},
    ]
    return {
        "empty.txt": b"",
        "nul.txt": b"pump\0\0\0rotor\0" * 1000,
        "invalid.txt": bytes(range(256)) * 100,
        "utf16.txt": "pump rotor\n".encode("utf-16"),
        "word.txt": b"x" * (4 * LONG),
        "lines.tsv": b"\n" * LONG,
        "tabs.tsv": b"\t".join([b"q"] * LONG),
        "topics.tsv": "1\tpump\x00\n2\t\u202e\n3\t((((\n4\tNOT NOT\n\t\n5".encode() + b"\xff\xfe\n",
        "same.tsv": b"1\tpump\n" * 1000,
        "qrels.txt": b"1 0 a#b 1\n1 0 a#b nan\n1 0\n" + b"1 0 x 99999999999999999999\n" * 100,
        "broken.run": b"1 Q0 a#b 1 inf x\n1 Q0 a#b 2 nan x\n1 Q0 c -1 1e999 x\n\0\n",
        "deep.json": deep_list.encode(),
        "deep.jsonl": (deep_list + "\n" + '{"id": "a", "passages": ' + deep_list + "\n").encode(),
        "odd.jsonl": "\n".join(map(json.dumps, odd)).encode(),
        "long.jsonl": (line + "\n").encode() * 20,
        "number.jsonl": b'{"id": "n", "passages": ["x"], "metadata": {"year": ' + b"9" * 5000 + b"}}\n",
        "deep.xml": b"<a>" * 50_000,
        "bomb.xml": b'<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><a>' + b"&c;" * 10_000 + b"</a>",
        "attributes.xml": b"<article><p " + b" ".join(b'a%d="x"' % number for number in range(20_000)) + b">x</p></article>",
        "deep.html": b"<div><b>" * 20_000,
        "deep.md": b"> " * 20_000 + b"\n" + b"* " * 20_000 + b"\n" + b"[" * 20_000,
        "anchors.md": b"---\n" + b"a: &a [x, x]\n" + b"".join(b"b%d: &b%d [*a, *a]\n" % (n, n) for n in range(900)) + b"---\ntext\n",
        "deep.toml": b"a = " + b"[" * 50_000,
        "keys.toml": b".".join([b"a"] * 20_000) + b" = 1\n",
        "recipe.toml": b'model = "bm25(k1=1e999)"\nk = 99999999999999999999999\nfilter = ["\\u0000"]\n',
        "experiment.toml": b'title = "x"\nmeasures = ["nDCG@0"]\n[collection]\ndocuments = ["\\u0000", "/dev/zero"]\n[topics]\nfile = ""\n',
        "bomb.jsonl.gz": gzip.compress(b"\0" * (64 << 20)),
        "cut.jsonl.gz": gzip.compress(line.encode() * 100)[:-20],
        "names.zip": _zip(),
    }


def _zip() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("../../up.txt", "/absolute.txt", "a" * 4000 + ".txt", "con.txt", "x\n\x1b.txt", "inner.zip", "same.txt"):
            archive.writestr(name, "pump " * 1000)
    return data.getvalue()
