"""What AWS says, and the five kinds it is sorted into."""

import aiohttp  # pants: no-infer-dep
import pytest
from botocore import exceptions as botocore  # pants: no-infer-dep

from turnline.awssdk.errors import AwsError, AwsFault, refusal, sorted_error


def _said(code: str, status: int = 400, **headers: str) -> AwsError:
    return sorted_error(
        botocore.ClientError(
            {
                "Error": {"Code": code, "Message": "arn:aws:sqs:eu-west-1:123456789012:q"},
                "ResponseMetadata": {  # type: ignore[typeddict-item]  # what is read of it
                    "HTTPStatusCode": status,
                    "HTTPHeaders": headers,
                },
            },
            "SendMessage",
        )
    )


@pytest.mark.parametrize(
    ("code", "status", "fault"),
    [
        ("ThrottlingException", 400, AwsFault.THROTTLED),
        ("RequestThrottled", 403, AwsFault.THROTTLED),
        ("KMS.ThrottlingException", 400, AwsFault.THROTTLED),
        ("ProvisionedThroughputExceededException", 400, AwsFault.THROTTLED),
        ("Unknown", 429, AwsFault.THROTTLED),
        ("AccessDenied", 403, AwsFault.DENIED),
        ("AccessDeniedException", 400, AwsFault.DENIED),
        ("ExpiredToken", 403, AwsFault.DENIED),
        ("ExpiredTokenException", 400, AwsFault.DENIED),
        ("KmsDisabled", 400, AwsFault.DENIED),
        ("AWS.SimpleQueueService.NonExistentQueue", 400, AwsFault.MISSING),
        ("com.amazonaws.dynamodb.v20120810#ResourceNotFoundException", 400, AwsFault.MISSING),
        ("InternalServerError", 500, AwsFault.UNAVAILABLE),
        ("ServiceUnavailable", 503, AwsFault.UNAVAILABLE),
        ("RequestTimeout", 408, AwsFault.UNAVAILABLE),
        ("OverLimit", 403, AwsFault.OTHER),
        ("ConditionalCheckFailedException", 400, AwsFault.OTHER),
    ],
)
def test_an_answer_of_aws_is_of_one_kind(code: str, status: int, fault: AwsFault) -> None:
    assert _said(code, status).fault is fault


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (botocore.EndpointConnectionError(endpoint_url="http://q"), AwsFault.UNAVAILABLE),
        (botocore.ConnectTimeoutError(endpoint_url="http://q"), AwsFault.UNAVAILABLE),
        (botocore.ReadTimeoutError(endpoint_url="http://q"), AwsFault.UNAVAILABLE),
        (botocore.ConnectionClosedError(endpoint_url="http://q"), AwsFault.UNAVAILABLE),
        (aiohttp.ServerDisconnectedError(), AwsFault.UNAVAILABLE),
        (TimeoutError(), AwsFault.UNAVAILABLE),
        (ConnectionResetError(), AwsFault.UNAVAILABLE),
        (botocore.NoCredentialsError(), AwsFault.DENIED),
        (botocore.NoRegionError(), AwsFault.DENIED),
        (botocore.ProfileNotFound(profile="p"), AwsFault.DENIED),
        (botocore.ParamValidationError(report="x"), AwsFault.OTHER),
    ],
)
def test_a_failure_of_the_client_is_of_one_kind(error: Exception, fault: AwsFault) -> None:
    assert sorted_error(error).fault is fault


def test_a_certificate_nobody_trusts_is_a_matter_of_the_settings() -> None:
    broken = botocore.SSLError(
        endpoint_url="https://q", error=OSError("[SSL: CERTIFICATE_VERIFY_FAILED]")
    )
    reset = botocore.SSLError(endpoint_url="https://q", error=OSError("EOF"))

    assert "AWS_CA_BUNDLE" in sorted_error(broken).remedy
    assert sorted_error(reset).fault is AwsFault.UNAVAILABLE


def test_texts_name_neither_address_nor_account() -> None:
    unreachable = sorted_error(botocore.EndpointConnectionError(endpoint_url="http://secret-host"))

    assert "secret-host" not in str(unreachable)
    assert "123456789012" not in str(_said("AccessDenied", 403))


def test_a_pause_is_the_one_asked_for_or_a_second() -> None:
    assert _said("Throttling", 503, **{"retry-after": "7"}).pause == 7.0
    assert _said("Throttling", 503, **{"x-amz-retry-after": "1500"}).pause == 1.5
    assert _said("Throttling", 503).pause == 1.0
    assert _said("AccessDenied", 403).pause == 0.0


def test_a_cancelled_transaction_keeps_its_reasons() -> None:
    answer = {
        "Error": {"Code": "TransactionCanceledException", "Message": "cancelled"},
        "CancellationReasons": [{"Code": "None"}, {"Code": "ConditionalCheckFailed"}],
    }
    error = sorted_error(botocore.ClientError(answer, "TransactWriteItems"))  # type: ignore[arg-type]  # as it comes

    assert [reason["Code"] for reason in error.reasons] == ["None", "ConditionalCheckFailed"]


def test_a_refused_start_up_names_setting_and_fix() -> None:
    faults = refusal(
        _said("AccessDenied", 403), doing="read the queue", setting="execution.queues.input.url"
    ).faults

    assert len(faults) == 1
    assert faults[0].startswith("execution.queues.input.url: can't read the queue: AccessDenied")
    assert "allow the action" in faults[0]
