"""The foundation of the package: errors, names, parameters, options and files."""
