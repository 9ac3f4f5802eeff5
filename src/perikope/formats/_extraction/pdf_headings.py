"""Headings of a PDF without tags: by its outline (bookmarks) if it has one, otherwise by fonts and numbers."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perikope.formats._extraction.blocks import FileBlock, union
from perikope.formats._extraction.pdf_blocks import PageBlock
from perikope.formats._extraction.pdf_lines import joined_lines
from perikope.formats._extraction.pdf_terms import labels_of, terms_of
from perikope.formats._extraction.pdf_text import Font

LONGEST = 200
"""Characters of the longest text that is taken for a heading."""
TITLE_PAGE = 500
"""Characters of the longest title page: a first page with a title and little else has no headings."""
LONGEST_LISTED = 120
"""Characters of the longest line in a table of contents."""
_NUMBER = re.compile(
    r"(?:(?:chapter|section|part|appendix|kapitel|teil)\s+)?((?:\d{1,3}|[A-Z])(?:\.\d{1,3})*)[.:]?(?:\s+|$)", re.IGNORECASE
)
_CHAPTER = re.compile(
    r"(?:chapter|part|appendix|kapitel|teil|anhang|chapitre|partie|annexe)\s+(?:\d{1,3}|[A-Z]|[IVXLC]+)[.:]?"
    r"|(?:chapter )?(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen)",
    re.IGNORECASE,
)
_CONTENTS = re.compile(
    r"(?:table of )?contents:?|inhalt(?:sverzeichnis)?|table des matières|list of (?:figures|tables)|index", re.IGNORECASE
)
_DATE = re.compile(r"\d{1,2}\.?\s+\w+,?\s+\d{4}|\d{1,4}([./-])\s?\d{1,2}\1\s?\d{1,4}")
_TO_PAGE = re.compile(r".*\D\s\d{1,4}$|.*\s[ivxlc]{1,6}$")

Style = tuple[float, bool]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the outline of a PDF."""

    title: str
    level: int
    page: int
    top: float = 0.0
    """Height on the page, in points from below; 0 if it is not known."""


def with_headings(drafts: Sequence[PageBlock], body: Font, outline: Sequence[Entry]) -> tuple[str, list[FileBlock]]:
    """The title of a document, and its blocks with headings recognised."""
    drafts = _with_chapters_joined(list(drafts))
    candidates = {number for number, draft in enumerate(drafts) if _may_be_heading(draft, body)}
    candidates -= terms_of(drafts, candidates, body) | labels_of(drafts, candidates, body)
    listed = _listed(drafts, outline, candidates)
    if outline and len(listed) >= 0.6 * len(outline):
        levels = _by_outline(drafts, candidates, listed)
    else:
        levels = _by_style(drafts, candidates, body)
    title, levels = _title(drafts, levels, body)
    blocks = [
        replace(draft.block, kind="heading", level=levels[number]) if levels.get(number) else draft.block
        for number, draft in enumerate(drafts)
    ]
    if title:
        blocks = [block for number, block in enumerate(blocks) if levels.get(number) != 0]
    return title, without_contents(blocks)


def _may_be_heading(draft: PageBlock, body: Font) -> bool:
    text, font = draft.block.text, draft.font
    if draft.block.kind == "code":
        # A heading may be the name of a file or of a command.
        return draft.lines == 1 and font.size > 1.15 * body.size and len(text) <= LONGEST
    if draft.block.kind not in ("p", "li") or len(text) > LONGEST or draft.lines > 3 or not re.search(r"[^\W\d_]{2}", text):
        return False
    is_large = font.size > 1.08 * body.size
    if not is_large and not (font.bold and not body.bold and font.size > 0.9 * body.size):
        return False
    if draft.block.kind == "li" and not (_NUMBER.match(text) and (is_large or font.bold)):
        return False
    return not text.endswith((",", ";")) and (is_large or not text.endswith((".", ":")))


def _with_chapters_joined(drafts: list[PageBlock]) -> list[PageBlock]:
    """`Chapter 3` and the title below it are one heading."""
    kept: list[PageBlock] = []
    for draft in drafts:
        last = kept[-1] if kept else None
        if (
            last is not None
            and _CHAPTER.fullmatch(last.block.text)
            and draft.block.kind == "p"
            and draft.block.page == last.block.page
            and draft.font.size >= last.font.size - 0.6
            and len(draft.block.text) < LONGEST
        ):
            text = joined_lines((last.block.text, draft.block.text))
            block = replace(draft.block, text=text, box=union(last.block.box, draft.block.box))
            kept[-1] = replace(draft, block=block)
        else:
            kept.append(draft)
    return kept


def plain(text: str) -> str:
    """A text for comparison: letters and digits only, without the number of a section."""
    text = re.sub(
        r"^(?:(?:chapter|appendix|part|section)\s+)?(?:[\dA-Z]{1,3}(?:\.\d+)*[.:]?|[IVXLC]+\.)\s+", "", text.strip(), flags=re.IGNORECASE
    )
    return re.sub(r"[\W_]+", "", text).casefold()


def _listed(drafts: Sequence[PageBlock], outline: Sequence[Entry], candidates: set[int]) -> dict[int, int]:
    """The levels of the blocks that entries of the outline name, by number of the block.

    An entry whose text is not on its page, as of signs that the outline cannot hold, names the block at its height.
    """
    by_page: defaultdict[int, list[int]] = defaultdict(list)
    for number, draft in enumerate(drafts):
        if draft.block.kind in ("p", "li", "caption") or (draft.block.kind == "code" and draft.lines == 1):
            by_page[draft.block.page].append(number)
    levels: dict[int, int] = {}
    for entry in outline:
        wanted = plain(entry.title)
        pages = (entry.page, entry.page + 1, entry.page - 1) if entry.page else tuple(by_page)
        found = None
        for page in pages:
            near = [number for number in by_page.get(page, ()) if number not in levels]
            exact = [number for number in near if plain(drafts[number].block.text) == wanted]
            close = [
                number
                for number in near
                if wanted and plain(drafts[number].block.text).startswith(wanted) and _is_short(drafts[number], wanted)
            ]
            if exact or close:
                found = (exact or close)[0]
                break
        if found is None and entry.top:
            near = [number for number in by_page.get(entry.page, ()) if number not in levels and _is_at(drafts[number], entry.top)]
            found = next((number for number in near if number in candidates or drafts[number].font.bold), None)
        if found is not None:
            levels[found] = entry.level
    return levels


def _is_at(draft: PageBlock, top: float) -> bool:
    """Whether a short block is at the height that a viewer shows for an entry, or a little below."""
    box = draft.block.box
    is_short = len(draft.block.text) <= LONGEST and draft.lines <= 3
    return is_short and box is not None and -0.5 * draft.font.size < top - box[3] < 2.5 * draft.font.size


def _is_short(draft: PageBlock, wanted: str) -> bool:
    return len(plain(draft.block.text)) <= len(wanted) + 12


def _by_outline(drafts: Sequence[PageBlock], candidates: set[int], listed: Mapping[int, int]) -> dict[int, int]:
    """Levels by the outline; other candidates have the level of the listed headings in the same style."""
    styles: defaultdict[Style, Counter[int]] = defaultdict(Counter)
    for number, level in listed.items():
        styles[_style(drafts[number].font)][level] += 1
    levels = dict(listed)
    body_like = {style for style, counts in styles.items() if counts.total() < 2}
    for number in candidates - levels.keys():
        style = _style(drafts[number].font)
        if style in styles and style not in body_like:
            levels[number] = styles[style].most_common(1)[0][0]
    return levels


def _style(font: Font) -> Style:
    return round(font.size * 2) / 2, font.bold


def _by_style(drafts: Sequence[PageBlock], candidates: set[int], body: Font) -> dict[int, int]:
    """Levels by font size and weight, and by numbers such as 2.1 where headings have them."""
    numbers = {number: _depth(drafts[number].block.text) for number in candidates}
    numbered = {number: depth for number, depth in numbers.items() if depth}
    counts = Counter(_style(drafts[number].font) for number in candidates)
    first_page = min((draft.block.page for draft in drafts), default=1)
    styles = sorted((style for style in counts if not _is_title_style(style, drafts, candidates, first_page)), reverse=True)
    levels_of_style = {style: rank for rank, style in enumerate(styles, 1)}
    if len(numbered) >= 0.5 * len(candidates) and len(numbered) >= 3:
        depths: defaultdict[Style, Counter[int]] = defaultdict(Counter)
        for number, depth in numbered.items():
            depths[_style(drafts[number].font)][depth] += 1
        known = {style: found.most_common(1)[0][0] for style, found in depths.items()}
        for style in styles:
            if style not in known:
                larger = [level for other, level in known.items() if other > style]
                known[style] = max(larger) + 1 if larger else 1
        levels_of_style = known
    levels = {}
    for number in sorted(candidates):
        style = _style(drafts[number].font)
        levels[number] = (
            numbered[number]
            if number in numbered and len(numbered) >= 3 and _agrees(numbered[number], levels_of_style.get(style))
            else levels_of_style.get(style, 1)
        )
    return levels


def _agrees(depth: int, level: int | None) -> bool:
    return level is None or abs(depth - level) <= 1


def _depth(text: str) -> int:
    number = _NUMBER.match(text)
    if not number:
        return 0
    label = number.group(1)
    if _DATE.fullmatch(text):
        return 0
    if label.isalpha() and not _CHAPTER.match(text) and "." not in text[:3]:
        return 0
    return label.count(".") + 1


def _is_title_style(style: Style, drafts: Sequence[PageBlock], candidates: set[int], first_page: int) -> bool:
    """Whether only the first heading of the document has this style, and all others are smaller."""
    having = [number for number in candidates if _style(drafts[number].font) == style]
    largest = max((_style(drafts[number].font)[0] for number in candidates), default=0.0)
    return len(having) == 1 and having[0] == min(candidates) and style[0] == largest and drafts[having[0]].block.page == first_page


def _title(drafts: Sequence[PageBlock], levels: dict[int, int], body: Font) -> tuple[str, dict[int, int]]:
    """The title on the first page, and the levels without it; names and dates below the title are no headings.

    The title has level 0 in the result.
    """
    if not drafts:
        return "", levels
    first_page = drafts[0].block.page
    on_first = [number for number, draft in enumerate(drafts) if draft.block.page == first_page]
    large = [number for number in on_first[:6] if drafts[number].font.size > 1.15 * body.size and _may_be_title(drafts[number].block)]
    if not large:
        return "", levels
    title = max(large, key=lambda number: (drafts[number].font.size, -number))
    style = _style(drafts[title].font)
    same = [number for number in levels if number != title and _style(drafts[number].font) >= style]
    is_title_page = _is_title_page(drafts, on_first, {number for number in levels if number != title})
    if (
        (same and not is_title_page)
        or len(drafts[title].block.text) > LONGEST
        or (title in levels and len(levels) == 1 and len(on_first) < 3)
    ):
        return "", levels
    kept = {number: level for number, level in levels.items() if number > title}
    kept[title] = 0
    if is_title_page:
        return drafts[title].block.text, {n: level for n, level in kept.items() if n == title or drafts[n].block.page > first_page}
    numbered = sum(_depth(drafts[number].block.text) > 0 for number in kept)
    is_numbered = numbered >= 3 and numbered > 0.5 * len(kept)
    end = next((number for number in range(title + 1, len(drafts)) if _is_text(drafts[number], first_page)), len(drafts))
    later = Counter(_style(drafts[number].font) for number in kept if number > end)
    for number in range(title + 1, end):
        draft = drafts[number]
        looks_like_others = later[_style(draft.font)] or (draft.font.bold and not drafts[title].font.bold)
        if _is_elsewhere(draft, [drafts[other] for other in kept if other > end]):
            looks_like_others = False
        if number in kept and (_depth(draft.block.text) or (looks_like_others and not is_numbered)):
            break
        kept.pop(number, None)
    return drafts[title].block.text, kept


def _is_elsewhere(draft: PageBlock, later: Sequence[PageBlock]) -> bool:
    """Whether all later headings in the same style begin at one edge, and a block does not: it is centred."""
    same = [other for other in later if _style(other.font) == _style(draft.font)]
    lefts = [other.block.box[0] for other in (*same, draft) if other.block.box]
    return len(lefts) > 2 and max(lefts[:-1]) - min(lefts[:-1]) < 3 and abs(lefts[-1] - lefts[0]) > 2 * draft.font.size


def _is_text(draft: PageBlock, first_page: int) -> bool:
    """Whether a block is no longer one of the names, dates and addresses below a title."""
    text = draft.block.text
    is_sentence = len(text) > 100 or (len(text) > 30 and text.endswith((".", ":", "?")))
    return draft.block.page != first_page or is_sentence or bool(re.fullmatch(r"abstract|contents|summary", text, re.IGNORECASE))


def _may_be_title(block: FileBlock) -> bool:
    return block.kind == "p" and not _CONTENTS.fullmatch(block.text.strip())


def _is_title_page(drafts: Sequence[PageBlock], on_first: Sequence[int], others: set[int]) -> bool:
    """Whether the first page has little text and no numbered heading, and other pages follow."""
    length = sum(len(drafts[number].block.text) for number in on_first)
    has_number = any(_depth(drafts[number].block.text) for number in on_first if number in others)
    return drafts[-1].block.page > drafts[on_first[0]].block.page and length < TITLE_PAGE and not has_number


def _is_listed(block: FileBlock) -> bool:
    """Whether a block may be a line of a table of contents."""
    return bool(_TO_PAGE.fullmatch(block.text)) or block.kind == "table" or not block.text.strip(" |")


def _goes_on(blocks: Sequence[FileBlock], number: int) -> bool:
    """Whether a short line inside a table of contents is followed by others that have page numbers."""
    following = blocks[number + 1 : number + 4]
    is_short = len(blocks[number].text) < LONGEST_LISTED and all(len(block.text) < LONGEST_LISTED for block in following)
    return is_short and sum(bool(_TO_PAGE.fullmatch(block.text)) for block in following) >= 2


def without_contents(blocks: Sequence[FileBlock]) -> list[FileBlock]:
    """The blocks without tables of contents: a heading such as `Contents`, and lines below it that end in a number."""
    kept: list[FileBlock] = []
    number = 0
    while number < len(blocks):
        block = blocks[number]
        end = number + 1
        if _CONTENTS.fullmatch(block.text.strip()):
            while end < len(blocks) and (_is_listed(blocks[end]) or _goes_on(blocks, end)):
                end += 1
            if end - number > 2 or (end < len(blocks) and blocks[end].kind == "heading"):
                number = end
                continue
        kept.append(block)
        number += 1
    return kept
