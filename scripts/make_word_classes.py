"""Writes src/perikope/data/word_classes.txt: which characters make words, as ranges, from this Python's Unicode tables.

The table is shipped, not computed at start: it would cost 0.2 s, and the same index must cut words the same way under
every Python. Running this again with a newer Unicode is a new `ANALYSIS_VERSION`.
"""

import sys
import unicodedata
from pathlib import Path

OTHER, LETTER, EXTENDER, SINGLE = range(4)
UNSPACED = [  # scripts written without spaces: one word a character
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF),  # Thai, Lao, Myanmar, Khmer
    (0x3005, 0x3007), (0x3041, 0x309F), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),  # Hiragana, Han
]  # fmt: skip
INVISIBLE = {0x00AD, 0x200C, 0x200D, 0x2060, 0xFEFF}  # soft hyphen and joiners: inside a word, no part of its term


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
