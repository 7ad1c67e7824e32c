"""`python -m testbed`: the testbed command."""

from .cli.start import run

if __name__ == "__main__":
    run()
