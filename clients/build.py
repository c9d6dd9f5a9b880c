"""Makes a client package: `build LANGUAGE FOLDER`, with go, java, python or typescript.

Prints where the package is.  Needs the language's own tools and their package index; what it takes
from there is pinned, and hashed where the language has a way to.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from clients import build_go, build_java, build_python, build_typescript
from clients.building import BuildError

PACKAGES: Mapping[str, Callable[[Path], Path]] = MappingProxyType(
    {
        "go": build_go.package,
        "java": build_java.package,
        "python": build_python.package,
        "typescript": build_typescript.package,
    }
)


def main(arguments: Sequence[str]) -> int:
    """Build what the arguments say; 2: they say nothing that can be built."""
    match arguments:
        case [language, folder] if language in PACKAGES:
            try:
                print(PACKAGES[language](Path(folder).absolute()))
            except BuildError as error:
                print(error, file=sys.stderr)
                return 1
            return 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
