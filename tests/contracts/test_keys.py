"""The reference of configuration files is what their declarations say."""

import pytest

from perikope.core.configuration import Table, inner_table
from perikope.core.options import declared
from tests.support.programs import program

MAKE_KEYS = program("make_keys.py")


def tables(keys: type[Table]):
    yield keys
    for key_option in declared(keys).values():
        if (inner := inner_table(key_option)) is not None:
            yield from tables(inner[1])


def test_the_page_is_what_the_program_writes():
    assert MAKE_KEYS.PAGE.read_text("utf-8") == MAKE_KEYS.page(), "run python scripts/make_keys.py"


@pytest.mark.parametrize("keys", [table for _, _, keys in MAKE_KEYS.FILES for table in tables(keys)])
def test_every_key_has_a_sentence_and_every_table_a_docstring(keys):
    assert (keys.__doc__ or "").strip().endswith(".")
    for key_option in declared(keys).values():
        assert key_option.help.endswith("."), key_option.name
        assert key_option.help[0].isupper() or key_option.help[0] == "`", key_option.name
