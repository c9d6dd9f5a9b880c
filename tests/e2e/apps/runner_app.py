"""An application that starts the runner alone."""

from turnline.pipeline import AgentRunner

if __name__ == "__main__":
    AgentRunner.run()
