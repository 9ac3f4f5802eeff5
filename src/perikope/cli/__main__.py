"""`python -m perikope.cli`."""

from perikope.cli import main

main()
