"""Damage by accident and by attackers: a mutation takes bytes and a random source, and returns other bytes."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Sequence

from lxml import etree

Mutation = Callable[[bytes, random.Random, Sequence[bytes]], bytes]

MOST = 200_000
"""Bytes: a reader must not be slow on a small file."""

_TAG = re.compile(rb"<[^<>]{0,200}>")
_NUMBER = re.compile(rb"[0-9]+")
_WORD = re.compile(rb"[A-Za-z]+")
INSERTED = [
    b'&alpha;', b'&nosuch;', b'&#0;', b'&#x1F;', b'&#xD800;', b'&#99999999999;', b'&amp;', b'&', b'<', b'>', b'<!--', b'-->',
    b'<![CDATA[', b']]>', b"<?xml version='1.0'?>", b'<?', b'?>', b'<!DOCTYPE a [', b']>', b"<!ENTITY a 'b'>", b'\xef\xbb\xbf',
    b'\xff\xfe', b'\x00', b'\x0c', b'\x85', b'\xe2\x80\xa8', b'\xed\xa0\x80', b'\xf0\x9d\x84\x9e', b'\xcc\x81', b'\xc4\xb0', b'\xd9\xa3',
    b'\xc2\xb2', b'\xc2\xa0', b'\r', b'\n\n', b'\t', b'"', b"'", b'\\', b'\\ud800', b'{', b'}', b'[', b']', b'(', b')', b',', b':', b'#',
    b'@3', b'/', b'..', b'*', b'|', b'~', b'=', b'!=', b'-', b'1e999', b'NaN', b'-1', b'null', b'true', b' AND ', b' NOT ', b' NEAR/3 ',
    b' OR ', b"encoding='utf-16'", b" xmlns:x='u'", b'<x:y/>', b" id='@3'", b" id=''", b" id='a b'", b" lang='xx'", b" num='0'", b'```',
    b'<script>', b'<table>', b'<svg>', b'<template>',
]  # fmt: skip


def _flip(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    damaged = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    return bytes(damaged)


def _truncate(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] if chance.random() < 0.7 else data[at:]


def _delete(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.choice((1, 3, 10, 100, 1000)) :]


def _repeat(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    start = chance.randrange(len(data))
    piece = data[start : start + chance.choice((1, 3, 10, 100))]
    return data[:start] + piece * min(chance.choice((2, 3, 50, 5000)), MOST // (len(piece) or 1)) + data[start:]


def _insert(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(INSERTED) * chance.choice((1, 1, 1, 2, 300)) + data[at:]


def _splice(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    other = chance.choice(others)
    start, at = chance.randrange(len(other) + 1), chance.randrange(len(data) + 1)
    return data[:at] + other[start : start + chance.choice((10, 100, 2000))] + data[at + chance.choice((0, 0, 50)) :]


def _join(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    return data + chance.choice((b"", b"\n", b"\xef\xbb\xbf")) + chance.choice(others)


def _tags(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    matches = list(_TAG.finditer(data))
    if not matches:
        return _insert(data, chance, others)
    one, two = chance.choice(matches), chance.choice(matches)
    match chance.randrange(5):
        case 0:  # a tag twice
            return data[: one.end()] + one[0] + data[one.end() :]
        case 1:  # a tag less
            return data[: one.start()] + data[one.end() :]
        case 2:  # another tag in its place
            return data[: one.start()] + two[0] + data[one.end() :]
        case 3:  # what stands between two tags once more
            start, end = sorted((one.start(), two.end()))
            return data[:end] + data[start:end] + data[end:]
        case _:  # what stands between two tags less
            start, end = sorted((one.start(), two.end()))
            return data[:start] + data[end:]


def _renamed(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """One name for another, in all places: the file stays well-formed, but means something else."""
    names = sorted({match[0] for match in re.finditer(rb"(?<=<)[A-Za-z][A-Za-z0-9-]*", data)})
    if len(names) < 2:
        return _words(data, chance, others)
    one, two = chance.sample(names, 2)
    return re.sub(rb"(</?)" + re.escape(one) + rb"(?=[\s/>])", lambda match: match[1] + two, data)


def _words(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    matches = list(_WORD.finditer(data))
    if not matches:
        return _insert(data, chance, others)
    one, two = chance.choice(matches), chance.choice(matches)
    return data[: one.start()] + chance.choice((two[0], one[0].swapcase(), b"", one[0] * 40)) + data[one.end() :]


def _numbers(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    matches = list(_NUMBER.finditer(data))
    if not matches:
        return _insert(data, chance, others)
    one = chance.choice(matches)
    other = (b"0", b"00", b"-1", b"1.5", b"9" * 19, b"9" * 5000, b"1e400", b"\xd9\xa3", b"\xc2\xb2", b"", b"0x10", b"inf")
    return data[: one.start()] + chance.choice(other) + data[one.end() :]


def _elements(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Elements moved, doubled, emptied and nested: the file stays well-formed, and readers get beyond the parser."""
    parser = etree.XMLParser(recover=True, resolve_entities=False, load_dtd=False, no_network=True)
    if b"\0" in data or (root := etree.fromstring(data.strip() or b"<a/>", parser)) is None:
        return _tags(data, chance, others)
    for _ in range(chance.choice((1, 2, 5, 20))):
        elements = list(root.iter(etree.Element))
        one, two = chance.choice(elements), chance.choice(elements)
        match chance.randrange(7):
            case 0 if len(elements) < 2000:
                two.insert(chance.randrange(len(two) + 1), copy.deepcopy(one))
            case 1 if one.getparent() is not None:
                one.getparent().remove(one)
            case 2:
                one.text, one.tail = two.text, one.text
            case 3:
                if ":" not in str(two.tag):
                    one.tag = two.tag
            case 4:
                for name in (name for name in one.keys() if ":" not in name):  # noqa: SIM118
                    one.set(
                        name, chance.choice(("", "0", "@3", "a b", two.get(name) or "x", "9" * 30, "\u0663", "claim-1", "EN", "20010230"))
                    )
            case 5:
                one.text = one.tail = None
            case _ if one is not root:
                one.tail = (one.tail or "") + chance.choice(
                    ("1.", " [0001] ", "claim 1", "\u0130\u0301", "FIG. 99999999999999999999", "\n", "12/345,678")
                )
    try:
        return etree.tostring(root)
    except (etree.Error, ValueError):  # a name that cannot be written
        return _tags(data, chance, others)


MUTATIONS: Sequence[Mutation] = (
    _flip, _truncate, _delete, _repeat, _insert, _splice, _join, _tags, _renamed, _words, _numbers, _elements, _elements, _elements,
)  # fmt: skip


def mutated(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """The bytes after one mutation or several."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        data = chance.choice(MUTATIONS)(data or b" ", chance, others)[:MOST]
    return data
