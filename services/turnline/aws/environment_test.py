"""One Lambda execution environment."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from turnline.aws.environment import AtInit, Environment, EnvironmentLostError, Event, Invocation
from turnline.errors import ConfigurationError


class Remaining:
    """An invocation with so many seconds left."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self._seconds * 1000)


@asynccontextmanager
async def open_counter() -> AsyncIterator[Invocation]:
    seen: list[Event] = []

    async def invoke(event: Event, seconds: float) -> Any:  # noqa: ANN401 - any JSON
        seen.append(event)
        return {"count": len(seen), "seconds": seconds, "thread": threading.get_ident()}

    yield invoke


def test_invocations_share_what_is_open_and_one_loop() -> None:
    environment = Environment(open_counter)
    answers = [environment.invoke({}, Remaining(3.0)) for _ in range(2)]

    assert [answer["count"] for answer in answers] == [1, 2]
    assert answers[0]["thread"] == answers[1]["thread"] != threading.get_ident()
    assert answers[0]["seconds"] == 3.0


def test_what_keeps_it_from_opening_is_raised_where_it_is_made() -> None:
    @asynccontextmanager
    async def opening() -> AsyncIterator[Invocation]:
        faults = ["a: is wrong", "b: is wrong"]
        if faults:
            raise ConfigurationError(faults)
        async with open_counter() as invocation:
            yield invocation

    with pytest.raises(ConfigurationError) as raised:
        Environment(opening)

    assert raised.value.faults == ("a: is wrong", "b: is wrong")


def test_an_invocations_error_is_raised_to_the_runtime_and_the_next_is_answered() -> None:
    @asynccontextmanager
    async def opening() -> AsyncIterator[Invocation]:
        async def invoke(event: Event, _: float) -> Any:  # noqa: ANN401 - any JSON
            if "bad" in event:
                raise KeyError("Records")
            return "fine"

        yield invoke

    environment = Environment(opening)
    with pytest.raises(KeyError):
        environment.invoke({"bad": 1}, Remaining(1.0))

    assert environment.invoke({}, Remaining(1.0)) == "fine"


def test_work_in_the_background_goes_on_between_invocations() -> None:
    @asynccontextmanager
    async def opening() -> AsyncIterator[Invocation]:
        done = asyncio.Event()

        async def invoke(_: Event, seconds: float) -> Any:  # noqa: ANN401 - any JSON
            async with asyncio.timeout(seconds):
                await done.wait()
            return "done"

        async def work() -> None:
            await asyncio.sleep(0)
            done.set()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(work())
            yield invoke

    assert Environment(opening).invoke({}, Remaining(5.0)) == "done"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_loop_that_ended_ends_the_process_instead_of_waiting_for_ever() -> None:
    broken = threading.Event()

    @asynccontextmanager
    async def opening() -> AsyncIterator[Invocation]:
        breaks = asyncio.Event()

        async def invoke(_: Event, _seconds: float) -> Any:  # noqa: ANN401 - any JSON
            breaks.set()

        async def work() -> None:
            await breaks.wait()
            broken.set()
            raise SystemExit

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(work())
            yield invoke

    environment = Environment(opening)
    environment.invoke({}, Remaining(5.0))
    assert broken.wait(5.0)
    environment.join(5.0)

    with pytest.raises(EnvironmentLostError):
        environment.invoke({}, Remaining(5.0))


def test_a_handler_is_opened_when_it_is_first_read_and_once_for_its_class() -> None:
    opened: list[type] = []

    class Entry:
        @staticmethod
        def opening_of(owner: type) -> Any:  # noqa: ANN401 - an opening
            opened.append(owner)
            return open_counter

        handle = AtInit(lambda owner: owner.opening_of(owner))

    class Other(Entry):
        pass

    assert opened == []
    handlers = [Entry.handle, Entry.handle, Other.handle]

    assert opened == [Entry, Other]
    assert [handler({}, Remaining(1.0))["count"] for handler in handlers] == [1, 2, 1]
