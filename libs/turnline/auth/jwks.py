"""The public keys of an identity provider, fetched from its JWKS URL in a thread and kept."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from jwt import PyJWK, PyJWKClient
from jwt.exceptions import PyJWTError

from turnline.config.auth import is_safe_key_url
from turnline.errors import ConfigurationError
from turnline.telemetry import get_logger

_log = get_logger("auth")


class KeysUnavailableError(Exception):
    """The provider does not answer, and no keys of it are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JwksOptions:
    """How keys are fetched and how long they serve.

    Attributes:
        timeout: seconds a fetch may take.
        lifespan: seconds after which keys are fetched again.
        max_stale: seconds after their fetch for which keys serve while the provider is down.
        min_interval: seconds between two fetches, however many unknown key ids arrive.
        allow_http: take http from other machines than this one; whoever can answer in that
            host's name can then forge any token.
    """

    timeout: float = 5.0
    lifespan: float = 300.0
    max_stale: float = 3600.0
    min_interval: float = 10.0
    allow_http: bool = False


class Jwks:
    """Keys by their id.  Serves one event loop."""

    def __init__(
        self,
        url: str,
        options: JwksOptions | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Remember where the keys are; the first `find` fetches them.

        Raises:
            ConfigurationError: the URL is not https (nor http on this machine).
        """
        self._options = options or JwksOptions()
        permitted = self._options.allow_http and url.startswith("http://")
        if not permitted and not is_safe_key_url(url):
            raise ConfigurationError(
                ["Jwks: the URL must be https; JwksOptions(allow_http=True) permits http"]
            )
        self._client = PyJWKClient(url, cache_jwk_set=False, timeout=self._options.timeout)
        self._monotonic = monotonic
        self._fetching = asyncio.Lock()
        self._keys: Mapping[str, PyJWK] = {}
        self._fetched_at = -math.inf
        self._tried_at = -math.inf

    async def find(self, key_id: str) -> PyJWK | None:
        """Return a key; None if the provider has none of that id.

        Fetches first if the id is unknown or the keys are old, and a fetch is allowed again.
        Callers who have a usable key do not wait for somebody else's fetch.

        Raises:
            KeysUnavailableError: see there.
        """
        usable = key_id in self._keys and self._age() <= self._options.max_stale
        fetching = self._fetching.locked()
        if (fetching and not usable) or (not fetching and self._wants_fetch(key_id)):
            async with self._fetching:
                if self._wants_fetch(key_id):
                    await self._fetch()
        if self._age() > self._options.max_stale:
            raise KeysUnavailableError
        return self._keys.get(key_id)

    def _age(self) -> float:
        return self._monotonic() - self._fetched_at

    def _wants_fetch(self, key_id: str) -> bool:
        needed = key_id not in self._keys or self._age() > self._options.lifespan
        return needed and self._monotonic() - self._tried_at >= self._options.min_interval

    async def _fetch(self) -> None:
        self._tried_at = self._monotonic()
        try:
            async with asyncio.timeout(self._options.timeout):
                keys = await asyncio.to_thread(self._client.get_signing_keys)
        except (PyJWTError, OSError, ValueError) as error:
            _log.warning("dependency.unavailable", dependency="jwks", reason=type(error).__name__)
            return
        self._keys = {key.key_id: key for key in keys if key.key_id}
        self._fetched_at = self._monotonic()
