"""The IO container: takes requests, or frames of a WebSocket API, and brings answers."""

from turnline.aws import ECSIOHandler

runner = ECSIOHandler.run

if __name__ == "__main__":
    runner()
