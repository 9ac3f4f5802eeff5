"""Names and lines of runs that kernels write, beside what Python writes."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perikope.core.errors import UsageError
from perikope.core.name_lines import NameLines
from perikope.evaluation.io.run_lines import falling_by_kernel, lines_of_ranking
from perikope.evaluation.io.scores import falling_array
from perikope.kernels.gather import number_column
from perikope.kernels.names import rows_of_spans, write_lines

scores = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.integers(0, 1 << 24).map(lambda n: float(np.float32(n / 1024))),  # many are in the middle of two numbers of nine digits
    st.integers(-45, 38).map(lambda power: float(np.float32(10.0**power))),
)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | scores, max_size=20), st.booleans())
def test_falling_scores_are_those_of_python(values, ordered):
    exact = np.array(sorted(values, reverse=True) if ordered else values, np.float64)
    try:
        expected = falling_array(exact)
    except UsageError:
        with pytest.raises(UsageError):
            falling_by_kernel(exact)
    else:
        found = falling_by_kernel(exact)
        assert found.view(np.int32).tolist() == expected.view(np.int32).tolist()


@pytest.mark.parametrize("values", [[np.nan, 1.0], [np.inf], [1.0, -np.inf], [-3.4028234663852886e38] * 2])
def test_scores_that_cannot_be_written_are_refused(values):
    with pytest.raises(UsageError):
        falling_by_kernel(np.array(values))


@given(st.lists(scores, max_size=20))
@example([0.0, -0.0, 1e-4, 9.9999999e-5, 999999999.5, 99999999.95, 1e9, 1e8, 3.4028234663852886e38, 1.401298464324817e-45])
@example([-1.04556404e-30, 1.11475471e33, 1.47743187e-13])  # too near to the middle of two numbers
def test_lines_are_those_of_python(values):
    values = np.array(values, np.float32)
    names = [f"d{number}#é" for number in range(len(values))]
    ranked = enumerate(zip(names, values.tolist(), strict=True), 1)
    expected = "".join(f"q% Q0 {name} {rank} {score:.9g} tag\n" for rank, (name, score) in ranked)
    assert lines_of_ranking("q%", NameLines.of(names), values, "tag") == expected


def test_usual_scores_are_written_by_the_kernel():
    values = (np.random.default_rng(1).random(10_000) * 60).astype(np.float32)
    names = NameLines.of(["d"] * values.size)
    text, certain = write_lines(np.frombuffer(b"q ", np.uint8), names.text, names.ends, values, np.frombuffer(b"\n", np.uint8))
    assert certain
    assert text.tobytes().decode() == "".join(f"q d {rank} {score:.9g}\n" for rank, score in enumerate(values.tolist(), 1))


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=4), st.sampled_from([np.uint8, np.uint16, np.uint32]))
def test_rows_of_spans(held, dtype):
    column = np.array([span for spans in held for span in spans], dtype)
    ends = np.cumsum([len(spans) for spans in held])
    first, counts = ends - [len(spans) for spans in held], np.full(len(held), 8)
    wanted = [(document, span) for document in range(len(held)) for span in range(8)]
    documents, spans = np.array(wanted).T.copy()
    found = rows_of_spans(number_column(column), first, ends, counts, documents, spans)
    row_of = {(document, span): int(first[document]) + i for document, spans in enumerate(held) for i, span in enumerate(spans)}
    assert found.tolist() == [row_of.get(pair, -1) for pair in wanted]
