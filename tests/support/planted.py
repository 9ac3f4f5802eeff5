"""Collections in which it is known whether the document of a passage should count."""

from __future__ import annotations

from perikope.document.tree import Document, TreeBuilder


def misleading_documents(pairs: int = 30) -> list[Document]:
    """Pairs of documents, in which the words of a query are all over the wrong document of its pair.

    The right document has one passage of two sentences, from which queries are taken. The rest of this passage has
    three of the six words of the query, which is more than any other passage. The wrong document has all six.
    """
    documents = []
    for i in range(pairs):
        word = [f"k{i}x{j}" for j in range(6)]
        right = TreeBuilder(f"right{i}")
        right.passage(f"{' '.join(word).capitalize()}. {' '.join(word[:3]).capitalize()} f{i}a f{i}b f{i}c.")
        wrong = TreeBuilder(f"wrong{i}")
        wrong.passage(f"{word[0]} {word[1]} f{i}d f{i}e f{i}f")
        for j in range(2, 6):
            wrong.passage(f"{word[j]} g{i}x{j} h{i}x{j} i{i}x{j}")
        documents += [right.build(), wrong.build()]
    return documents


def named_documents(count: int = 30) -> list[Document]:
    """Documents that have the same passages but for a name, which their first passage has.

    The sentences that become queries have the name too, so the document must count to find the right passage.
    """
    documents = []
    for i in range(count):
        name = f"n{i}a n{i}b"
        builder = TreeBuilder(f"d{i}")
        builder.passage(f"{name} n{i}c n{i}d")
        for topic in ("pump", "valve", "rotor"):
            common = f"{topic} {topic}seal {topic}shaft {topic}bearing"
            builder.passage(f"N{i}a n{i}b {common}. {common.capitalize()} n{i}a {topic}casing.")
        documents.append(builder.build())
    return documents
