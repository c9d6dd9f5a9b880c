"""Loads the settings of a process from its environment, `.env` and YAML, or says all that is wrong.

Highest first: `AK_` variables, `.env` in the working directory, the YAML file, defaults.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from turnline.config import env_source, layers
from turnline.config.env_source import Variable
from turnline.config.faults import describe_faults
from turnline.config.secret_files import substitute
from turnline.config.settings import Settings
from turnline.config.yaml_source import read_yaml
from turnline.errors import ConfigurationError

DEFAULT_FILE = "config.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Settings, and where each one was written.

    Attributes:
        settings: checked and frozen.
        origins: dotted key to `env AK_...`, `.env:LINE` or `config.yaml:LINE`; keys that are
            not in it have their default (`origin`).
        secret_keys: dotted keys whose value came from a secret's file and must not be shown.
        pod_ip: address at which other pods reach this one (`AK_POD_IP`); empty when not set.
    """

    settings: Settings
    origins: Mapping[str, str] = field(default_factory=dict)
    secret_keys: frozenset[str] = frozenset()
    pod_ip: str = ""

    def origin(self, key: str) -> str:
        """Where a dotted key was written; `default` when nowhere."""
        return self.origins.get(key, "default")


def load_settings(*, environ: Mapping[str, str], cwd: Path, path: Path | None = None) -> Loaded:
    """Read all sources and check the result.

    Args:
        environ: the process's environment.
        cwd: the working directory: holds `.env` and `config.yaml`, both optional.
        path: a YAML file to read instead; overrides `AK_CONFIG_PATH_OVERRIDE`.  Must exist.

    Raises:
        ConfigurationError: lists every fault of every source.
    """
    faults: list[str] = []
    environment = env_source.environment_variables(environ)
    dotenv = _read_dotenv(cwd, faults)
    controls = [*environment, *dotenv]
    leaves = layers.overlay(
        [
            _read_yaml(cwd, path, controls, faults),
            _read_variables(dotenv, faults),
            _read_variables(environment, faults),
        ]
    )
    secrets = env_source.control(controls, env_source.SECRETS_PATH)
    revealed, problems = substitute(leaves, directory=cwd / secrets if secrets else None)
    faults += problems
    settings = _check(revealed, faults)
    if faults or settings is None:
        raise ConfigurationError(faults)
    return Loaded(
        settings=settings,
        origins=MappingProxyType({".".join(key): leaf.origin for key, leaf in leaves.items()}),
        secret_keys=frozenset(".".join(key) for key, leaf in revealed.items() if leaf.secret),
        pod_ip=env_source.control(controls, env_source.POD_IP),
    )


def _check(leaves: layers.Layer, faults: list[str]) -> Settings | None:
    try:
        return Settings.model_validate(layers.build(leaves))
    except ValidationError as error:
        faults += describe_faults(error, leaves)
        return None


def _read_variables(variables: list[Variable], faults: list[str]) -> layers.Layer:
    leaves, problems = env_source.read_variables(variables)
    faults += problems
    return leaves


def _read_dotenv(cwd: Path, faults: list[str]) -> list[Variable]:
    text = _read(cwd / ".env", name=".env", must_exist=False, faults=faults)
    variables, problems = env_source.dotenv_variables(text)
    faults += problems
    return variables


def _read_yaml(
    cwd: Path, path: Path | None, controls: list[Variable], faults: list[str]
) -> layers.Layer:
    override = str(path or env_source.control(controls, env_source.CONFIG_PATH))
    name = override or DEFAULT_FILE
    text = _read(cwd / name, name=name, must_exist=bool(override), faults=faults)
    leaves, problems = read_yaml(text, name=name)
    faults += problems
    return leaves


def _read(file: Path, *, name: str, must_exist: bool, faults: list[str]) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        if must_exist:
            faults.append(f"{name}: the file does not exist; correct the path or create it")
    except OSError as error:
        faults.append(f"{name}: cannot be read: {error.strerror}; make it a readable file")
    except UnicodeDecodeError:
        faults.append(f"{name}: is no UTF-8 text; save it as UTF-8")
    return ""
