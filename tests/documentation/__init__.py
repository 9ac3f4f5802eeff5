"""The commands and programs that the documentation prints, run as they are printed."""
