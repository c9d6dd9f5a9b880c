"""The docs agent: finds the section that answers, goes on when asked, and says when it cannot."""

from pathlib import Path

import pytest

from docs_agent.agent import BUNDLED, Library, Section, docs, library, sections_of
from turnline.agent import Reply, Turn
from turnline.protocol import ChatEvent, EventType, TurnRecord


@pytest.fixture(autouse=True)
def bundled_docs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNLINE_DOCS", str(BUNDLED))
    library.cache_clear()


class Chat:
    """Asks one question after another in one session."""

    def __init__(self) -> None:
        self.history: list[TurnRecord] = []
        self.state: dict[str, object] = {}
        self.deltas: list[str] = []

    async def ask(self, prompt: str) -> Reply:
        turn = Turn(
            request_id=f"r{len(self.history)}",
            session_id="s1",
            prompt=prompt,
            history=tuple(self.history),
            state=self.state,
        )
        items = [item async for item in docs.run(turn)]
        self.deltas = [
            item.content
            for item in items
            if isinstance(item, ChatEvent) and item.type is EventType.TEXT_DELTA
        ]
        reply = items[-1]
        assert isinstance(reply, Reply)
        self.history.append(
            TurnRecord(
                request_id=turn.request_id, prompt=prompt, reply=reply.text, agent="docs", at=0.0
            )
        )
        return reply


@pytest.mark.parametrize(
    ("question", "section"),
    [
        ("What is Turnline?", "overview.md, “What Turnline is”"),
        ("What happens when a runner dies?", "guarantees.md, “What happens when a runner dies”"),
        ("How do I resume a stream?", "client-modes.md, “How to resume a stream”"),
        ("How are dead letters redriven?", "guarantees.md, “Dead letters”"),
        ("Which client modes are there?", "client-modes.md, “Which client modes there are”"),
        ("how can I cancel a turn", "client-modes.md, “How to cancel a turn”"),
        ("Does it work with LangGraph?", "agents.md, “LangGraph”"),
        (
            "Which environment variables set the mode?",
            "configuration.md, “Where settings come from”",
        ),
        ("On which port does it listen?", "configuration.md, “Port and address”"),
        ("What is done on SIGTERM?", "guarantees.md, “Shutdown and drain”"),
        ("Can a person approve a tool call?", "agents.md, “Waiting for a person's approval”"),
        (
            "What if I send the same request twice?",
            "client-modes.md, “Sending the same request twice”",
        ),
        ("are turns of a session run in order?", "guarantees.md, “Order within a session”"),
    ],
)
async def test_a_question_is_answered_from_the_section_about_it(
    question: str, section: str
) -> None:
    reply = await Chat().ask(question)

    assert reply.text.startswith(f"From {section}:")
    assert reply.extra["sources"][0] == section


async def test_the_answer_quotes_the_whole_section_and_streams_it() -> None:
    chat = Chat()

    reply = await chat.ask("How do I resume a stream?")

    [section] = [
        s for s in sections_of(BUNDLED / "client-modes.md", "x") if s.heading.startswith("How to r")
    ]
    assert section.text in reply.text
    assert "".join(chat.deltas) == reply.text
    assert len(chat.deltas) > 50


@pytest.mark.parametrize(
    "question", ["What is the capital of France?", "How do I bake sourdough bread?"]
)
async def test_what_the_documentation_does_not_say_is_not_made_up(question: str) -> None:
    reply = await Chat().ask(question)

    assert reply.text.startswith("I found nothing in Turnline's documentation about:")
    assert "sources" not in reply.extra


async def test_tell_me_more_goes_on_with_the_question_before() -> None:
    chat = Chat()
    first = await chat.ask("How are dead letters redriven?")

    second = await chat.ask("Tell me more")

    assert second.text.startswith("From ")
    assert second.extra["sources"][0] != first.extra["sources"][0]


async def test_more_comes_to_an_end() -> None:
    chat = Chat()
    reply = await chat.ask("How do I resume a stream?")

    answers = []
    while reply.extra:
        answers.append(reply.text)
        reply = await chat.ask("more please")

    assert reply.text.startswith("I found nothing more")
    assert len(set(answers)) == len(answers) > 1


async def test_a_new_question_starts_afresh() -> None:
    chat = Chat()
    first = await chat.ask("How do I resume a stream?")
    await chat.ask("more")

    again = await chat.ask("How do I resume a stream?")

    assert again.text == first.text


async def test_more_of_nothing_asks_for_a_question() -> None:
    assert (await Chat().ask("tell me more")).text.startswith("Ask me about Turnline")


@pytest.mark.parametrize("prompt", ['"', "'", "NEAR(", "heading:x OR *", "a" * 10_000, "\0"])
async def test_no_prompt_breaks_the_search(prompt: str) -> None:
    assert (await Chat().ask(prompt)).text


def test_a_hash_inside_a_code_block_is_no_heading(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("# One\n\n```sh\n# a comment\n```\n\n## Two\n\ntext\n", encoding="utf-8")

    sections = list(sections_of(file, "a.md"))

    assert sections == [
        Section("a.md", "One", "```sh\n# a comment\n```"),
        Section("a.md", "Two", "text"),
    ]


def test_a_heading_weighs_more_than_the_text_below_it() -> None:
    library = Library(
        [Section("a.md", "Other", "leases " * 3), Section("a.md", "Leases", "other words here")]
    )

    assert library.find(["lease"])[0].heading == "Leases"


async def test_a_folder_of_ones_own_can_be_read_instead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "own.md").write_text("# Zebras\n\nstripes\n", encoding="utf-8")
    monkeypatch.setenv("TURNLINE_DOCS", str(tmp_path))
    library.cache_clear()

    reply = await Chat().ask("zebras?")

    assert reply.text == "From extra/own.md, “Zebras”:\n\nstripes"
