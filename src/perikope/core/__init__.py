"""What everything else stands on: errors, names, parameters, files."""
