"""`python -m perikope`."""

from perikope.cli import main

if __name__ == "__main__":
    main()
