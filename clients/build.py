"""Makes a client package: `build LANGUAGE FOLDER`, with go, java, python or typescript.

Prints where the package is.  Needs the language's own tools and their package index; what it takes
from there is pinned, and hashed where the language has a way to.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from clients import build_go, build_java, build_python, build_typescript
from clients.building import main

PACKAGES: Mapping[str, Callable[[Path], Path]] = MappingProxyType(
    {
        "go": build_go.package,
        "java": build_java.package,
        "python": build_python.package,
        "typescript": build_typescript.package,
    }
)


if __name__ == "__main__":
    sys.exit(main(PACKAGES, sys.argv[1:], str(__doc__)))
