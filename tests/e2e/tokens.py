"""Tokens of users, as an identity provider would make them."""

import time

import jwt

SECRET = "a secret of these tests, longer than a hash"


def token_for(user: str, *, seconds: float = 600) -> str:
    """Make a token of a user that is good for so many seconds."""
    claims = {"userId": user, "exp": time.time() + seconds}
    return jwt.encode(claims, SECRET, algorithm="HS256")
