"""Which documents have the highest sums over the query's postings? Exact, window by window of 65,536 documents.

A term adds `Σ_j coefficient_j · table_j[frequency, class of the document's length]` to each document that holds it. Terms come in a
fixed order, rare ones first, so that sums have the same last bit whatever was skipped. While a document that holds none of the terms
so far could still be among the best, all postings of the next term are added to an array. Once none could, only the documents that
still can be are looked up in the lists of the remaining, frequent terms, and fewer after each. Documents chosen by a filter are
looked up from the start where they are few.
"""

from __future__ import annotations

import numpy as np

from perikope.core.arrays import Bytes, Floats, Integers, Unsigned16
from perikope.kernels.dictionary import read
from perikope.kernels.jit import kernel

WINDOW = 1 << 16
SOUND, DAMAGED, FULL = 0, 1, 2
SLACK = 1e-9
"""Relative room for rounding where a sum of upper bounds is compared with a threshold."""

_SPARSE = 16
"""With fewer postings than a window's documents by this factor, the lists are walked again and not the whole window."""
_BLOCK = 64
_SAMPLE = 1024
_FEW = 8
"""Documents are looked up one by one in lists that are longer than they are many by this factor."""


@kernel
def rare_frequencies(frequencies: Bytes, first: Integers, end: Integers, rows: int) -> tuple[Integers, Integers]:
    """The postings of each term whose frequency has no row in the tables, and where each term's begin among them."""
    limit = np.uint8(rows)
    places = np.empty(64, np.int64)
    of_term = np.zeros(first.size + 1, np.int64)
    count = 0
    for term in range(first.size):
        at = first[term]
        while at < end[term]:
            stop = min(at + 1024, end[term])
            some = np.uint8(0)
            for i in range(at, stop):  # without a branch, so that many are compared at once
                some |= np.uint8(frequencies[i] >= limit)
            if some:
                if count + 1024 > places.size:
                    larger = np.empty(2 * places.size + 1024, np.int64)
                    larger[:count] = places[:count]
                    places = larger
                for i in range(at, stop):
                    if frequencies[i] >= rows:
                        places[count] = i
                        count += 1
            at = stop
        of_term[term + 1] = count
    return places[:count].copy(), of_term


@kernel
def _lower(values: Integers, low: int, high: int, wanted: int) -> int:
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _add_one(
    documents: Unsigned16, frequencies: Bytes,
    coefficient: float, table: Floats, classes: Unsigned16, sums: Floats,
) -> None:  # fmt: skip
    """Add a list whose frequencies all have rows, for a model with one table: the loop where most of the time goes."""
    for i in range(documents.size):
        document = documents[i]
        sums[document] += coefficient * table[frequencies[i], classes[document]]


@kernel
def _add_allowed(
    documents: Unsigned16, frequencies: Bytes,
    coefficient: float, table: Floats, classes: Unsigned16, sums: Floats, allowed: Bytes,
) -> None:  # fmt: skip
    """The same for allowed documents only, which pays where they are few."""
    for i in range(documents.size):
        document = documents[i]
        if allowed[document]:
            sums[document] += coefficient * table[frequencies[i], classes[document]]


@kernel
def _value(
    frequency: int, place: int, length_class: int, term: int, coefficients: Floats, tables: Floats, layer: int,
    rows: int, rare_at: Integers, rare: Floats,
) -> float:  # fmt: skip
    """What one posting adds."""
    value = 0.0
    if frequency >= rows:
        at = _lower(rare_at, 0, rare_at.size, place)
        if at < rare_at.size and rare_at[at] == place:
            for j in range(coefficients.shape[1]):
                value += coefficients[term, j] * rare[j, at]
    else:
        for j in range(coefficients.shape[1]):
            value += coefficients[term, j] * tables[layer + j, frequency, length_class]
    return value


@kernel
def _shrink(documents: Integers, scores: Floats, count: int, k: int) -> tuple[int, float]:
    """Keep the best k and all that tie with the last of them; returns how many that are and the lowest score."""
    threshold = np.partition(scores[:count], count - k)[count - k]
    kept = 0
    for i in range(count):
        if scores[i] >= threshold:
            documents[kept] = documents[i]
            scores[kept] = scores[i]
            kept += 1
    return kept, threshold


@kernel
def _reaching(sums: Floats, cut: float) -> int:
    """How many of the sums reach the cut; without a branch, so that many are compared at once."""
    found = 0
    for i in range(sums.size):
        found += sums[i] >= cut
    return found


@kernel
def _permitted(allowed: Bytes) -> int:
    """How many of the bytes are 1, the others being 0; so many at a time as fit a byte, which is several times faster."""
    found = 0
    whole = allowed.size - allowed.size % _BLOCK
    for first in range(0, whole, _BLOCK):
        block = allowed[first : first + _BLOCK]
        some = np.uint8(0)
        for i in range(_BLOCK):
            some += block[i]
        found += some
    for i in range(whole, allowed.size):
        found += allowed[i]
    return found


@kernel
def _choose(allowed: Bytes, chosen: Integers) -> int:
    """The allowed documents, in order."""
    found = 0
    for first in range(0, allowed.size, _BLOCK):
        block = allowed[first : first + _BLOCK]
        if _permitted(block):
            for i in range(block.size):
                if block[i] != 0:
                    chosen[found] = first + i
                    found += 1
    return found


@kernel
def _beyond(documents: Unsigned16, count: int) -> bool:
    """Whether a posting is not one of the window's documents: what it would add to is not emptied."""
    limit = np.uint16(count)
    some = np.uint8(0)
    for i in range(documents.size):
        some |= np.uint8(documents[i] >= limit)
    return some != 0


@kernel
def _highest(sums: Floats, k: int, count: int, allowed: Bytes, base: int) -> float:
    """The k-th highest of the sums of allowed documents, or 0 where there are not as many."""
    best = np.empty(2 * k + 2 * _BLOCK)
    held = 0
    threshold = 5e-324
    for first in range(0, count, _BLOCK):
        if _reaching(sums[first : first + _BLOCK], threshold):
            for i in range(first, min(first + _BLOCK, count)):
                if sums[i] >= threshold and (allowed.size == 0 or allowed[base + i] != 0):
                    best[held] = sums[i]
                    held += 1
            if held > 2 * k + _BLOCK:
                best[:k] = np.partition(best[:held], held - k)[held - k :]
                held = k
                threshold = best[:k].min()
    return np.partition(best[:held], held - k)[held - k] if held >= k else 0.0


@kernel
def _threshold(sums: Floats, k: int, count: int, allowed: Bytes, base: int) -> float:
    """A value that at least k of the sums of allowed documents reach, near the highest one that is so; 0 where there are not as many.

    For large k it is guessed from a sample and then tried: finding the k-th highest takes longer than adding up a short query.
    """
    if k <= _BLOCK or count <= 2 * _SAMPLE:
        return _highest(sums, k, count, allowed, base)
    step = count // _SAMPLE
    sample = np.empty(2 * _SAMPLE)
    held = 0
    for i in range(0, count, step):
        if allowed.size == 0 or allowed[base + i] != 0:
            sample[held] = sums[i]
            held += 1
    expected = k / step
    place = np.int64(expected + 2 * np.sqrt(expected)) + 1
    while place < held:
        value = np.partition(sample[:held], held - place)[held - place]
        if value <= 0.0:
            return 0.0
        found = (
            _reaching(sums[:count], value) if allowed.size == 0 else _reaching_allowed(sums[:count], value, allowed[base : base + count])
        )
        if found >= k:
            return value
        place *= 2
    return 0.0


@kernel
def _reaching_allowed(sums: Floats, cut: float, allowed: Bytes) -> int:
    found = 0
    for i in range(sums.size):
        found += (sums[i] >= cut) & (allowed[i] != 0)
    return found


@kernel
def _take_window(
    sums: Floats, seen: Bytes, positive: bool, cut: float, count: int, allowed: Bytes, base: int,
    chosen: Integers, values: Floats,
) -> int:  # fmt: skip
    """The documents of a window whose sum reaches the cut, in order; leaves the sums empty."""
    found = 0
    for first in range(0, count, _BLOCK):
        if _reaching(sums[first : first + _BLOCK], cut):
            for i in range(first, min(first + _BLOCK, count)):
                if sums[i] >= cut and (positive or seen[i] != 0) and (allowed.size == 0 or allowed[base + i] != 0):
                    chosen[found] = i
                    values[found] = sums[i]
                    found += 1
    sums[:count] = 0.0
    if not positive:
        seen[:count] = 0
    return found


@kernel
def _take_lists(
    documents: Unsigned16, first: Integers, end: Integers, lists: int,
    sums: Floats, seen: Bytes, positive: bool, cut: float, allowed: Bytes, base: int,
    chosen: Integers, values: Floats,
) -> int:  # fmt: skip
    """The same, by walking the first lists again: for windows of which little was touched."""
    found = 0
    for at in range(lists):
        for i in range(first[at], end[at]):
            document = np.int64(documents[i])
            here = sums[document] > 0 if positive else seen[document] != 0
            if here:
                if sums[document] >= cut and (allowed.size == 0 or allowed[base + document] != 0):
                    chosen[found] = document
                    values[found] = sums[document]
                    found += 1
                sums[document] = 0.0
                seen[document] = 0
    order = np.argsort(chosen[:found])
    chosen[:found] = chosen[:found][order]
    values[:found] = values[:found][order]
    return found


@kernel
def _look_up(
    documents: Unsigned16, frequencies: Bytes, first: int, end: int, term: int,
    coefficients: Floats, tables: Floats, layer: int,
    rows: int, rare_at: Integers, rare: Floats, classes: Unsigned16,
    chosen: Integers, values: Floats, hit: Bytes, count: int,
) -> None:  # fmt: skip
    """Add a list to chosen documents only; both are in order, and each search goes on where the last one ended."""
    at = first
    i = 0
    while i < count and at < end:
        wanted = chosen[i]
        step_size = 1
        low = at
        while at + step_size < end and documents[at + step_size] < wanted:
            low = at + step_size
            step_size *= 2
        high = min(at + step_size, end)
        while low < high:
            middle = (low + high) // 2
            if documents[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        at = low
        if at < end and documents[at] == wanted:
            values[i] += _value(
                np.int64(frequencies[at]), at, np.int64(classes[wanted]), term, coefficients, tables, layer, rows, rare_at, rare
            )  # fmt: skip
            hit[i] = 1
            i += 1
        elif at < end and (end - at) * _FEW < count - i:
            # Few postings against many documents: step over the documents instead.
            low, high = i, count
            while low < high:
                middle = (low + high) // 2
                if chosen[middle] < documents[at]:
                    low = middle + 1
                else:
                    high = middle
            i = low
        else:
            i += 1


@kernel
def best_of_segment(
    documents: Unsigned16, frequencies: Bytes, window_number: Unsigned16,
    first_posting: Bytes, posting_size: int, first_window: Integers, end_window: Integers,
    coefficients: Floats, bound: Floats, tables: Floats, layer_of_term: Integers,
    rows: int, rare_at: Integers, rare: Floats,
    classes: Unsigned16, background: Floats, length_class: Unsigned16,
    positive: bool, allowed: Bytes, segment_documents: int, base: int, k: int,
    sums: Floats, seen: Bytes, chosen: Integers, values: Floats, hit: Bytes,
    best: Integers, best_score: Floats, held: int, threshold: float,
) -> tuple[int, float, int]:  # fmt: skip
    """Add the best documents of a segment to the best so far: how many there are then, the threshold, and `SOUND`, `DAMAGED` or `FULL`.

    Where so many tie that there is no room for them, the documents of this segment are taken out again and the caller makes more room.

    `tables` has layers, frequencies and classes of documents; a term uses as many layers as it has coefficients, from its own on.
    `bound` is the most that a term can add. Frequencies from `rows` on have no place in the tables: `rare` has what would stand
    there, by the rising numbers of the postings `rare_at`. `background` is what a document has besides, by the class of its length.
    `positive`: nothing that a term adds is negative and there is no background, so that sums only grow and bounds hold. `classes`
    covers whole windows. `sums` and `seen` are empty before and after. `threshold` is the score that a document must reach to count;
    ties with it are kept.
    """
    terms = first_window.size
    cursor = first_window.copy()
    first = np.empty(terms, np.int64)
    end = np.empty(terms, np.int64)
    term_of_list = np.empty(terms, np.int64)
    remaining = np.empty(terms + 1)
    state = SOUND
    last = -1
    while True:
        number = WINDOW
        for term in range(terms):
            if cursor[term] < end_window[term]:
                number = min(number, np.int64(window_number[cursor[term]]))
        if number == WINDOW:
            break
        window_base = number * WINDOW
        if number <= last or window_base >= segment_documents:
            state = DAMAGED
            break
        last = number
        count = min(segment_documents - window_base, WINDOW)
        lists = 0
        postings = 0
        for term in range(terms):
            if cursor[term] < end_window[term] and window_number[cursor[term]] == number:
                first[lists] = read(first_posting, posting_size, cursor[term])
                end[lists] = read(first_posting, posting_size, cursor[term] + 1)
                term_of_list[lists] = term
                postings += end[lists] - first[lists]
                if count < WINDOW and _beyond(documents[first[lists] : end[lists]], count):
                    return held, threshold, DAMAGED
                cursor[term] += 1
                lists += 1
        remaining[lists] = 0.0
        for at in range(lists - 1, -1, -1):
            remaining[at] = remaining[at + 1] + bound[term_of_list[at]]
        own = classes[window_base : window_base + WINDOW]

        candidates = -1
        switch = 0
        selective = False
        if allowed.size:
            permitted = _permitted(allowed[window_base : window_base + count])
            if permitted == 0:
                continue
            selective = permitted * _FEW < count
            if permitted * lists * _FEW < postings:
                candidates = _choose(allowed[window_base : window_base + count], chosen)
                values[:candidates] = 0.0
                hit[:candidates] = 0

        if candidates < 0:
            tried = False
            added = 0
            next_look = 1
            while switch < lists:
                left = postings - added
                # A look at the whole window takes a tenth of the time that as many postings take: so often at most, and only for as much.
                if positive and added >= next_look and 4 * left > count:
                    if threshold <= 0.0 and not tried and 3 * remaining[switch] < remaining[0] and k < count:
                        # Sums only grow: the k-th best so far is a threshold already.
                        tried = True
                        threshold = _threshold(sums, k, count, allowed, window_base)
                    cut = threshold * (1 - SLACK) - remaining[switch]
                    if cut > 0.0:
                        possible = added
                        if added * _SPARSE >= count:
                            possible = _reaching(sums[:count], cut)
                            next_look = added + count
                        if possible * (lists - switch) * _FEW < left:
                            break
                term = term_of_list[switch]
                layer = layer_of_term[term]
                exact = True
                if rare_at.size:
                    at = _lower(rare_at, 0, rare_at.size, first[switch])
                    exact = at == rare_at.size or rare_at[at] >= end[switch]
                if exact and positive and coefficients.shape[1] == 1:
                    inside = slice(first[switch], end[switch])
                    if selective:
                        _add_allowed(
                            documents[inside], frequencies[inside], coefficients[term, 0], tables[layer], own, sums,
                            allowed[window_base : window_base + count],
                        )  # fmt: skip
                    else:
                        _add_one(documents[inside], frequencies[inside], coefficients[term, 0], tables[layer], own, sums)
                else:
                    for i in range(first[switch], end[switch]):
                        document = documents[i]
                        sums[document] += _value(
                            np.int64(frequencies[i]), i, np.int64(own[document]), term, coefficients, tables, layer,
                            rows, rare_at, rare,
                        )  # fmt: skip
                        seen[document] = not positive
                added += end[switch] - first[switch]
                switch += 1
            if positive and held < k and 2 * k < added and added > 1024:
                threshold = max(threshold, _threshold(sums, k, count, allowed, window_base))
            cut = threshold * (1 - SLACK) - remaining[switch] if positive else -np.inf
            if positive and cut <= 0.0:
                cut = 5e-324  # whatever was touched
            if added * _SPARSE < count:
                candidates = _take_lists(documents, first, end, switch, sums, seen, positive, cut, allowed, window_base, chosen, values)
            else:
                candidates = _take_window(sums, seen, positive, cut, count, allowed, window_base, chosen, values)
            hit[:candidates] = 1

        for at in range(switch, lists):
            term = term_of_list[at]
            if positive and threshold > 0.0:
                cut = threshold * (1 - SLACK) - remaining[at]
                kept = 0
                for i in range(candidates):
                    if values[i] >= cut:
                        chosen[kept] = chosen[i]
                        values[kept] = values[i]
                        hit[kept] = hit[i]
                        kept += 1
                candidates = kept
            _look_up(
                documents, frequencies, first[at], end[at], term, coefficients, tables, layer_of_term[term],
                rows, rare_at, rare, own, chosen, values, hit, candidates,
            )  # fmt: skip

        for i in range(candidates):
            if hit[i] == 0:
                continue
            score = values[i]
            if background.size:
                score += background[length_class[window_base + chosen[i]]]
            if score < threshold:
                continue
            if held == best.size:
                if held > k:
                    held, threshold = _shrink(best, best_score, held, k)
                if 2 * held > best.size:
                    kept = 0
                    for j in range(held):
                        if best[j] < base:
                            best[kept] = best[j]
                            best_score[kept] = best_score[j]
                            kept += 1
                    return kept, threshold, FULL
                if score < threshold:
                    continue
            best[held] = base + window_base + chosen[i]
            best_score[held] = score
            held += 1
        if held > k:
            held, threshold = _shrink(best, best_score, held, k)
        elif held == k:
            threshold = max(threshold, best_score[:held].min())
    return held, threshold, state
