"""One file per scenario. Importing this package registers all of them."""

import importlib
import pkgutil

MODULES = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
