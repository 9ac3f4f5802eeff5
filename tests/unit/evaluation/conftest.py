"""A small collection with topics and judgements in files, the same every time."""

import json
import random

import pytest

from perikope.evaluation.experiment.plan import protocol_names, protocol_text

WORDS = ["pump", "rotor", "magnet", "seal", "shaft", "valve", "motor", "blade", "casing", "bearing", "filter", "coil"]


def write_collection(folder, documents=14, topics=25):
    """Documents of three sections, topics of two or three words, and passages with most of the words as relevant."""
    chance = random.Random(7)
    passages = {}
    with open(folder / "documents.jsonl", "w") as file:
        for number in range(documents):
            sections = []
            for section in range(3):
                title = " ".join(chance.choices(WORDS, k=2))
                texts = [" ".join(chance.choices(WORDS, k=chance.randint(4, 14))) for _ in range(chance.randint(2, 5))]
                marked = [{"id": f"s{section}p{i}", "tag": "p", "text": text, "marks": [["b", 0, 4]]} for i, text in enumerate(texts)]
                part = "description" if section else "abstract"
                sections.append({"title": title, "tag": "sec", "part": part, "passages": marked})
                passages |= {f"d{number}#s{section}p{i}": f"{title} {text}" for i, text in enumerate(texts)}
            file.write(json.dumps({"id": f"d{number}", "title": " ".join(chance.choices(WORDS, k=2)), "sections": sections}) + "\n")
    queries = {f"q{number}": chance.sample(WORDS, chance.randint(2, 3)) for number in range(topics)}
    (folder / "topics.tsv").write_text("".join(f"{qid}\t{' '.join(words)}\n" for qid, words in queries.items()))
    with open(folder / "qrels.txt", "w") as file:
        for qid, words in queries.items():
            held = {name: sum(text.split().count(word) > 0 for word in words) + chance.random() for name, text in passages.items()}
            for grade, name in enumerate(sorted(held, key=held.get)[-3:]):
                file.write(f"{qid} 0 {name} {grade}\n")
    return folder


@pytest.fixture
def files(tmp_path):
    return write_collection(tmp_path)


PLAN = """
title = "A small experiment"
measures = ["nDCG@10", "MAP(D)"]
k = 50

[collection]
documents = ["documents.jsonl"]

[topics]
file = "topics.tsv"
judgements = "qrels.txt"

[training]
folds = 3

[sweep]
documents = [4, 100]

[[systems]]
name = "bm25"
model = "bm25"

[[systems]]
name = "section"
model = "qsf_section(alpha=[0.2,0.6,0.9],beta=[0.1,0.5])"
tune = true

[[systems]]
name = "learned"
model = "learned"
learn = "fusion"

[[systems]]
name = "fused"
model = "fuse"
of = ["bm25", "section"]
"""


@pytest.fixture
def plan_file(files):
    path = files / "experiment.toml"
    path.write_text(PLAN)
    return path


def lexical_protocols():
    """The protocols that need no other kind of system."""
    return [name for name in protocol_names() if not protocol_text(name).startswith("kind")]
