"""Writes the pages: `python -m turnline.api_docs [OUT]`; OUT is `docs/api` unless given.

Needs grpcio-tools, of the version in 3rdparty/python, for the comments of the .proto files.
"""

import sys
from pathlib import Path

from turnline.api_docs.pages import OUT, pages

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
