"""Write src/perikope/data/word_classes.txt, ranges of characters with their classes, from this Python's Unicode tables.

    python scripts/make_word_classes.py

The tokenizer uses the classes to split text into words. The file is part of the package for two reasons: computing
the classes takes 0.2 s at start, and an index must have the same words under every version of Python. Increase
`ANALYSIS_VERSION` after running this program with a newer version of Unicode.
"""

import sys
import unicodedata
from pathlib import Path

OTHER, LETTER, EXTENDER, SINGLE = range(4)
UNSPACED = [  # scripts written without spaces between words: each character becomes a word
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF),  # Thai and Lao, Myanmar, Khmer
    (0x3005, 0x3007), (0x3041, 0x309F), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),  # Hiragana, Han
]  # fmt: skip
INVISIBLE = {0x00AD, 0x200C, 0x200D, 0x2060, 0xFEFF}  # soft hyphen and joiners: allowed inside a word, removed from its term


def word_class(point: int) -> int:
    category = unicodedata.category(chr(point))
    if category[0] == "M" or point in INVISIBLE:
        return EXTENDER
    if category[0] not in "LN":
        return OTHER
    return SINGLE if any(low <= point <= high for low, high in UNSPACED) else LETTER


def main() -> None:
    lines = [f"# Unicode {unicodedata.unidata_version}; first character of each range and its class (see scripts/make_word_classes.py)"]
    previous = OTHER
    for point in range(sys.maxunicode + 1):
        current = word_class(point)
        if current != previous:
            lines.append(f"{point:x} {current}")
            previous = current
    target = Path(__file__).parents[1] / "src/perikope/data/word_classes.txt"
    target.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
