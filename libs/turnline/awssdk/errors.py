"""What AWS and its client say when something fails, sorted into five kinds in one place.

Texts name no address, no account and no secret: they may reach a log or a client.  What AWS wrote
is kept apart in `detail`, for operators.
"""

import asyncio
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import aiohttp  # pants: no-infer-dep
from botocore import exceptions as botocore  # pants: no-infer-dep
from botocore.parsers import ResponseParserError  # pants: no-infer-dep

from turnline.errors import ConfigurationError

# Everything the client raises.  A TimeoutError is also an OSError.
FAILURES = (
    botocore.BotoCoreError,
    botocore.ClientError,
    ResponseParserError,
    aiohttp.ClientError,
    asyncio.TimeoutError,
    OSError,
)

_PAUSE_SECONDS = 1.0
_PAUSE_HEADERS = ("retry-after", "x-amz-retry-after")

# https://docs.aws.amazon.com/general/latest/gr/api-retries.html and the errors that SQS and
# DynamoDB list; "Throttl" in a code needs no row.
_THROTTLED = frozenset(
    {
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "SlowDown",
        "TooManyRequestsException",
    }
)
_PASSING = frozenset({"InternalError", "InternalFailure", "InternalServerError", "RequestTimeout"})
_MISSING = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "NonExistentQueue",
        "QueueDoesNotExist",
        "ResourceNotFoundException",
        "TableNotFoundException",
    }
)
_CREDENTIALS = "give AWS credentials that work: a role, or AWS_ACCESS_KEY_ID and its secret"
_CLOCK = "set this machine's clock, or renew its AWS credentials"
_POLICY = "allow the action in the role's policy, the resource's policy and the key's policy"
# Code -> what to do about it.
_DENIED: Mapping[str, str] = {
    "AccessDenied": _POLICY,
    "AccessDeniedException": _POLICY,
    "AuthFailure": _CREDENTIALS,
    "ExpiredToken": _CREDENTIALS,
    "ExpiredTokenException": _CREDENTIALS,
    "IncompleteSignature": _CREDENTIALS,
    "InvalidAccessKeyId": _CREDENTIALS,
    "InvalidClientTokenId": _CREDENTIALS,
    "InvalidSecurity": "use an https:// address",
    "InvalidSignatureException": _CLOCK,
    "KMS.AccessDeniedException": _POLICY,
    "KMS.DisabledException": "enable the KMS key of the resource",
    "KMS.InvalidStateException": "enable the KMS key of the resource",
    "KMS.NotFoundException": "name a KMS key that exists",
    "KmsAccessDenied": _POLICY,
    "KmsDisabled": "enable the KMS key of the resource",
    "KmsInvalidState": "enable the KMS key of the resource",
    "KmsNotFound": "name a KMS key that exists",
    "MissingAuthenticationToken": _CREDENTIALS,
    "OptInRequired": "subscribe the AWS account to the service",
    "RequestExpired": _CLOCK,
    "SignatureDoesNotMatch": _CREDENTIALS,
    "UnrecognizedClientException": _CREDENTIALS,
}
# Errors of the client that no retry mends -> what to do about them.
_SET_UP: tuple[tuple[type[Exception], str], ...] = (
    (botocore.NoRegionError, "set the region, or AWS_REGION"),
    (botocore.InvalidRegionError, "set a region that exists"),
    (botocore.UnknownEndpointError, "set a region that has the service"),
    (botocore.NoCredentialsError, _CREDENTIALS),
    (botocore.PartialCredentialsError, _CREDENTIALS),
    (botocore.CredentialRetrievalError, _CREDENTIALS),
    (botocore.TokenRetrievalError, _CREDENTIALS),
    (botocore.NoAuthTokenError, _CREDENTIALS),
    (botocore.ProfileNotFound, "set AWS_PROFILE to a profile that exists, or unset it"),
    (botocore.ConfigParseError, "mend the AWS configuration file"),
)


class AwsFault(StrEnum):
    """What kind of failure it is, and so what to do.

    UNAVAILABLE: no answer, or one of 5xx; the call may have had its effect.  THROTTLED: refused for
    now, without effect.  DENIED: credentials, permission or set-up; an operator has to act.
    MISSING: no such queue or table.  OTHER: anything else; `code` says what.
    """

    UNAVAILABLE = "unavailable"
    THROTTLED = "throttled"
    DENIED = "denied"
    MISSING = "missing"
    OTHER = "other"


class AwsError(Exception):
    """A call on AWS failed.

    Attributes:
        fault: the kind.
        code: AWS's code, without the service's prefix, or the name of the client's error.
        pause: seconds to wait before the call may be made again; 0 when waiting does not help.
        remedy: what an operator can do, a clause; empty when nothing is known.
        detail: what AWS wrote; may name accounts and resources.  For operators only.
        reasons: of a cancelled DynamoDB transaction: what AWS says of each item, in order.
    """

    def __init__(
        self,
        fault: AwsFault,
        code: str,
        *,
        pause: float = 0.0,
        remedy: str = "",
        detail: str = "",
        reasons: tuple[Mapping[str, Any], ...] = (),
    ) -> None:
        super().__init__(f"AWS: {fault.value} ({code})")
        self.fault = fault
        self.code = code
        self.pause = pause
        self.remedy = remedy
        self.detail = detail
        self.reasons = reasons

    @property
    def passes(self) -> bool:
        """Whether waiting may help."""
        return self.fault in (AwsFault.UNAVAILABLE, AwsFault.THROTTLED)


def sorted_error(error: Exception) -> AwsError:
    """Sort what the client raised (one of `FAILURES`)."""
    if isinstance(error, botocore.ClientError):
        return _answered(error)
    code = type(error).__name__
    for kind, remedy in _SET_UP:
        if isinstance(error, kind):
            return AwsError(AwsFault.DENIED, code, remedy=remedy, detail=str(error))
    if isinstance(error, botocore.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        remedy = "trust the authority of the server's certificate (AWS_CA_BUNDLE)"
        return AwsError(AwsFault.DENIED, code, remedy=remedy, detail=str(error))
    if isinstance(error, botocore.BotoCoreError) and not isinstance(
        error, botocore.ConnectionError | botocore.HTTPClientError | botocore.IncompleteReadError
    ):
        return AwsError(AwsFault.OTHER, code, detail=str(error))
    return AwsError(AwsFault.UNAVAILABLE, code, pause=_PAUSE_SECONDS, detail=str(error))


def refusal(error: AwsError, *, doing: str, setting: str) -> ConfigurationError:
    """Give the fault of a start-up that AWS refused.

    Args:
        doing: what was tried, such as "read the attributes of the input queue".
        setting: dotted name of the setting to look at.
    """
    fix = error.remedy or "see what AWS says"
    said = f" (AWS says: {error.detail})" if error.detail else ""
    return ConfigurationError([f"{setting}: can't {doing}: {error.code}; {fix}{said}"])


def _answered(error: botocore.ClientError) -> AwsError:
    told = error.response.get("Error", {})
    meta: Mapping[str, Any] = error.response.get("ResponseMetadata", {})
    code, detail = str(told.get("Code", "Unknown")), str(told.get("Message", ""))
    code = code.rpartition("#")[2]
    status = int(meta.get("HTTPStatusCode", 0))
    if "Throttl" in code or code in _THROTTLED or status == 429:
        return AwsError(AwsFault.THROTTLED, code, pause=_asked_pause(meta), detail=detail)
    if code in _MISSING:
        return AwsError(AwsFault.MISSING, code, detail=detail)
    if code in _DENIED:
        return AwsError(AwsFault.DENIED, code, remedy=_DENIED[code], detail=detail)
    if status >= 500 or code in _PASSING:
        return AwsError(AwsFault.UNAVAILABLE, code, pause=_asked_pause(meta), detail=detail)
    reasons: Any = error.response.get("CancellationReasons", ())
    return AwsError(AwsFault.OTHER, code, detail=detail, reasons=tuple(reasons))


def _asked_pause(meta: Mapping[str, Any]) -> float:
    headers: Mapping[str, str] = meta.get("HTTPHeaders", {})
    for name in _PAUSE_HEADERS:
        asked = headers.get(name, "")
        if asked.isdecimal():
            # The second is AWS's own, in milliseconds.
            return float(asked) / (1000.0 if name.startswith("x-") else 1.0)
    return _PAUSE_SECONDS
