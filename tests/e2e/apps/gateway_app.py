"""An application that starts the gateway alone."""

from turnline.auth import JwtValidator
from turnline.pipeline import WebSocketGateway

if __name__ == "__main__":
    WebSocketGateway.run(auth_validator=JwtValidator(secret="a secret of these tests, and long"))
