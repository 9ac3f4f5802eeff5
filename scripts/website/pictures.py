"""Pictures of the page in the colours of the site: `NAME-light.png` is followed by `NAME-dark.png`, if it exists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.transforms import SphinxTransform

if TYPE_CHECKING:
    from sphinx.application import Sphinx

LIGHT, DARK = "-light.png", "-dark.png"


class PicturesForBothThemes(SphinxTransform):
    """Put the dark picture beside each light one. Furo shows the one of the theme."""

    default_priority = 5

    def apply(self, **_: Any) -> None:
        """Add the dark pictures of one page."""
        folder = (Path(self.env.srcdir) / self.env.current_document.docname).parent
        for light in list(self.document.findall(nodes.image)):
            uri = light["uri"].removesuffix(LIGHT) + DARK
            if light["uri"].endswith(LIGHT) and (folder / uri).is_file():
                dark = light.deepcopy()
                dark["uri"] = uri
                dark["classes"].append("only-dark")
                light["classes"].append("only-light")
                light.parent.insert(light.parent.index(light) + 1, dark)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_transform(PicturesForBothThemes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
