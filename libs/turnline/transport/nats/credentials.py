"""What a connection shows the server, read from the files that the settings name.

Every file is looked into before the first connection: nats-py would say of a seed that is none no
more than that the server can't be reached.
"""

import ssl
from pathlib import Path
from typing import Any

import nkeys

from turnline.errors import ConfigurationError
from turnline.transport.nats.options import ServerOptions

_JWT_MARK = "-----BEGIN NATS USER JWT-----"
_SEED_MARK = "-----BEGIN USER NKEY SEED-----"


def credentials_of(options: ServerOptions) -> dict[str, Any]:
    """Give the arguments of nats-py's `connect` that say who we are.

    Raises:
        ConfigurationError: a file can't be read or holds something else, naming its setting.
    """
    given: dict[str, Any] = {}
    if options.wants_tls:
        given["tls"] = tls_context(options)
    if options.credentials_file is not None:
        _check_credentials(options.credentials_file)
        given["user_credentials"] = str(options.credentials_file)
    if options.nkey_seed_file is not None:
        _check_seed(_read("nkey_seed_file", options.nkey_seed_file), "nkey_seed_file")
        given["nkeys_seed"] = str(options.nkey_seed_file)
    return given


def tls_context(options: ServerOptions) -> ssl.SSLContext:
    """Make the context for TLS connections; reads the files.

    Raises:
        ConfigurationError: a file can't be read or used, naming its setting.
    """
    authority, certificate, key = options.tls_ca_file, options.tls_cert_file, options.tls_key_file
    try:
        context = ssl.create_default_context(cafile=authority)
    except (OSError, ssl.SSLError) as error:
        raise _unusable("tls_ca_file", _words(error)) from error
    if certificate is not None:
        try:
            context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            raise _unusable("tls_cert_file", _words(error)) from error
    return context


def _check_credentials(path: Path) -> None:
    text = _read("credentials_file", path)
    if _JWT_MARK not in text or _SEED_MARK not in text:
        raise _unusable("credentials_file", "it holds no user JWT and seed as `nsc` writes them")
    _check_seed(text.partition(_SEED_MARK)[2].strip().partition("\n")[0], "credentials_file")


def _check_seed(text: str, setting: str) -> None:
    try:
        nkeys.from_seed(bytearray(text.strip().encode())).wipe()
    except (nkeys.NkeysError, ValueError) as error:
        # The error may quote the text.
        raise _unusable(setting, "it holds no nkey seed of a user") from error


def _read(setting: str, path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(setting, _words(error)) from error


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


def _unusable(setting: str, reason: str) -> ConfigurationError:
    return ConfigurationError(
        [f"execution.queues.nats.{setting}: can't be used ({reason}); name a readable file"]
    )
