"""From token to identity, whatever the validator does."""

import asyncio
import threading
from typing import Any

import pytest
from typing_extensions import override

from turnline.auth import AuthValidator, Context, Identity, ValidationResult, authenticate
from turnline.errors import UnauthenticatedError
from turnline.telemetry import captured_logs

TOKEN = "hunter2-token"


class Always(AuthValidator):
    """Gives one verdict, and remembers what it was asked."""

    def __init__(self, result: object) -> None:
        self.result = result
        self.asked: list[tuple[str, Context | None, int]] = []

    @override
    def validate(self, token: str, context: Context | None = None) -> Any:
        self.asked.append((token, context, threading.get_ident()))
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


class AlwaysAsync(Always):
    """The same as a coroutine."""

    @override
    async def validate(self, token: str, context: Context | None = None) -> Any:
        return super().validate(token, context)


KINDS = pytest.mark.parametrize("kind", [Always, AlwaysAsync])


def accepted(**claims: object) -> ValidationResult:
    return ValidationResult(True, claims)


async def refusal(
    validator: AuthValidator, token: str | None = TOKEN, *, timeout: float = 30
) -> str:
    with pytest.raises(UnauthenticatedError) as caught:
        await authenticate(validator, token, timeout=timeout)
    return caught.value.message


@KINDS
async def test_an_accepted_token_gives_the_identity_its_claims_name(kind: type[Always]) -> None:
    validator = kind(accepted(userId="u1", role="admin", exp=1_700_000_000))

    identity = await authenticate(validator, f" {TOKEN} ", {"surface": "rest"})

    assert identity == Identity(
        user_id="u1",
        claims={"userId": "u1", "role": "admin", "exp": 1_700_000_000},
        expires_at=1_700_000_000.0,
    )
    assert [asked[:2] for asked in validator.asked] == [(TOKEN, {"surface": "rest"})]


async def test_a_plain_method_runs_in_a_thread_and_a_coroutine_on_the_loop() -> None:
    plain, coroutine = Always(accepted(userId="u")), AlwaysAsync(accepted(userId="u"))

    await authenticate(plain, TOKEN)
    await authenticate(coroutine, TOKEN)

    assert plain.asked[0][2] != threading.get_ident()
    assert coroutine.asked[0][2] == threading.get_ident()


async def test_a_plain_method_may_return_an_awaitable() -> None:
    async def verdict() -> ValidationResult:
        return accepted(userId="u")

    assert (await authenticate(Always(verdict()), TOKEN)).user_id == "u"


@pytest.mark.parametrize("token", [None, "", "  "])
async def test_without_a_token_the_validator_is_not_asked(token: str | None) -> None:
    validator = Always(accepted(userId="u"))

    assert await refusal(validator, token) == "Authentication token is required"
    assert validator.asked == []


@KINDS
async def test_a_refusal_shows_the_validators_text_or_a_general_one(kind: type[Always]) -> None:
    silent = kind(ValidationResult(is_valid=False))
    telling = kind(ValidationResult(is_valid=False, error_msg="No such tenant"))

    assert await refusal(silent) == "Authentication failed"
    assert await refusal(telling) == "No such tenant"


async def test_a_refusal_that_quotes_the_token_is_shown_without_it() -> None:
    validator = Always(ValidationResult(False, {}, f"bad token {TOKEN}"))

    assert await refusal(validator, f" {TOKEN}") == "bad token [token]"


@pytest.mark.parametrize("claims", [{}, {"sub": "u"}, {"userId": None}, {"userId": ""}])
async def test_an_accepted_token_must_name_its_user(claims: dict[str, object]) -> None:
    validator = Always(ValidationResult(is_valid=True, claims=claims))

    assert await refusal(validator) == "'userId' claim is required in token"


@pytest.mark.parametrize("user_id", [5, ["u"], "a\nb", "x" * 257, "  ", "\ud800"])
async def test_a_user_id_that_can_be_no_id_is_refused(user_id: object) -> None:
    message = await refusal(Always(accepted(userId=user_id)))

    assert message.startswith("'userId' claim ")


@KINDS
async def test_what_a_validator_raises_is_a_refusal_and_a_log_line_without_the_token(
    kind: type[Always],
) -> None:
    with captured_logs() as lines:
        message = await refusal(kind(KeyError(TOKEN)))

    assert message == "Authentication failed"
    assert [line["event"] for line in lines] == ["auth.validator_failed"]
    assert str(lines[0]["reason"]).startswith("KeyError in validate, line ")
    assert TOKEN not in str(lines)


async def test_the_cause_of_a_refusal_is_hidden_from_tracebacks() -> None:
    with pytest.raises(UnauthenticatedError) as caught:
        await authenticate(Always(KeyError(TOKEN)), TOKEN)

    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("result", [None, True, {"userId": "u"}])
async def test_a_verdict_of_another_kind_is_a_refusal(result: object) -> None:
    with captured_logs() as lines:
        assert await refusal(Always(result)) == "Authentication failed"

    assert "no ValidationResult" in str(lines[0]["reason"])


async def test_a_coroutine_past_its_deadline_is_cancelled_and_the_caller_refused() -> None:
    class Hung(AuthValidator):
        cancelled = False

        @override
        async def validate(self, token: str, context: Context | None = None) -> ValidationResult:
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled = True
            raise AssertionError

    validator = Hung()
    with captured_logs() as lines:
        assert await refusal(validator, timeout=0.01) == "Authentication failed"

    assert validator.cancelled
    assert lines[0]["reason"] == "TimeoutError"


async def test_a_hung_plain_method_refuses_its_caller_and_does_not_block_the_loop() -> None:
    release = threading.Event()

    class Hung(AuthValidator):
        @override
        def validate(self, token: str, context: Context | None = None) -> ValidationResult:
            release.wait()
            return accepted(userId="late")

    try:
        assert await refusal(Hung(), timeout=0.01) == "Authentication failed"
    finally:
        release.set()


async def test_a_cancelled_caller_stays_cancelled() -> None:
    asked = asyncio.Event()

    class Slow(AuthValidator):
        @override
        async def validate(self, token: str, context: Context | None = None) -> ValidationResult:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(authenticate(Slow(), TOKEN))
        await asked.wait()
        task.cancel()

    assert task.cancelled()


@pytest.mark.parametrize(
    ("result", "expires_at"),
    [
        (ValidationResult(True, {"userId": "u", "exp": 5}), 5.0),
        (ValidationResult(True, {"userId": "u", "exp": 5}, expires_at=9.0), 9.0),
        (ValidationResult(True, {"userId": "u"}), None),
        (ValidationResult(True, {"userId": "u", "exp": "5"}), None),
        (ValidationResult(True, {"userId": "u", "exp": True}), None),
        (ValidationResult(True, {"userId": "u", "exp": float("nan")}), None),
        (ValidationResult(True, {"userId": "u", "exp": 10**400}), None),
    ],
)
async def test_a_token_expires_when_the_validator_or_its_exp_claim_says(
    result: ValidationResult, expires_at: float | None
) -> None:
    assert (await authenticate(Always(result), TOKEN)).expires_at == expires_at
