"""Makes docs/board.png, the picture of the board in the documents: `python -m testbed.tools.board_picture [OUT]`.

It needs Chromium. The board is that of the checkout's own ledger.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path

from .browser import Browser

ROOT = Path(__file__).resolve().parents[1]
SIZE = (1180, 960)
COLOURS = 128


def main(arguments: list[str]) -> int:
    out = Path(arguments[0]) if arguments else ROOT / "docs/board.png"
    with tempfile.TemporaryDirectory() as folder:
        board = Path(folder) / "board"
        subprocess.run([ROOT / "testbed", "report", "-o", board], check=True, stdout=subprocess.DEVNULL)
        with Browser(*SIZE) as browser:
            browser.prefer("light")
            browser.open(board / "index.html")
            out.write_bytes(smaller(browser.picture(SIZE[1])))
    return 0


def smaller(picture: bytes) -> bytes:
    """The picture with few colours."""
    from PIL import Image  # comes with matplotlib

    made = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(
        made, "PNG", optimize=True
    )
    return made.getvalue()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
