"""The whole pipeline in one process; agents must be registered before."""

from turnline.pipeline.entry import IOHandler


def main() -> None:
    """Serve until told to stop."""
    IOHandler.run()


if __name__ == "__main__":
    main()
