"""The other half of the IO container: takes answers, keeps them, or pushes them to sockets."""

from turnline.aws import ECSOutputConsumer

runner = ECSOutputConsumer.run

if __name__ == "__main__":
    runner()
