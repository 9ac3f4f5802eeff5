"""Write recipes to files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perikope.core.errors import UsageError
from perikope.core.files import replacing
from perikope.search.options import RECIPE, SearchOptions, options_on


def recipe_text(title: str, options: SearchOptions, source: str) -> str:
    """The text of a TOML file with a recipe; `source` says where the values of the model come from.

    `fetch`, `documents` and `model` are always written, so that the recipe keeps its meaning if defaults change.
    """
    changed = {name: value for name, value in options.plain().items() if name in options_on(RECIPE)}
    search = {"fetch": options.fetch, "documents": options.documents, **changed, "model": options.model}
    lines = [f"title = {toml_value(title)}", "", "[search]", *(f"{name} = {toml_value(value)}" for name, value in search.items())]
    return "\n".join([*lines, "", "[sources]", f"model = {toml_value(source)}", ""])


def check_target(path: Path, what: str, suffix: str) -> None:
    """Raise `UsageError` if a file cannot be written to `path`, so that long work does not fail at its end.

    `what` is the content of the file, with its article ("a recipe"), and `suffix` the required end of its name.
    """
    if path.suffix != suffix:
        raise UsageError(f"the file of {what} must have a name that ends in {suffix}, not {path.name!r}")
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {path}: there is no folder {path.parent}; create the folder first")
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder; give the path of a file")


def save_recipe(path: Path, text: str) -> None:
    """Write the text of a recipe to a file, after checking that the recipe is valid."""
    from perikope.core.configuration import SUFFIX
    from perikope.search.recipes import parse_recipe

    check_target(path, "a recipe", SUFFIX)
    parse_recipe(path.stem, text, str(path))
    with replacing(path) as file:
        file.write(text)


def toml_value(value: object) -> str:
    """A value in the notation of TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple, frozenset)):
        return "[" + ", ".join(toml_value(one) for one in value) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_value(str(key))} = {toml_value(one)}" for key, one in value.items()) + " }"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one >= " " and one != "\x7f" else f"\\u{ord(one):04x}" for one in escaped) + '"'
