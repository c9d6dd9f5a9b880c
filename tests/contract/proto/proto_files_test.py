"""The .proto files pass buf's lint, break no one, and are what the committed Python is made of."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).absolute().parents[3]
PROTO = ROOT / "proto"
BASELINE = ROOT / "tests/contract/proto/baseline/v1.binpb"


def buf(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    beside_python = Path(sys.prefix) / "bin" / "buf"
    program = str(beside_python) if beside_python.exists() else shutil.which("buf")
    assert program, "buf comes with the buf-bin package"
    return subprocess.run(
        [program, *arguments],
        env={"HOME": str(home), "BUF_CACHE_DIR": str(home), "PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def breaking(home: Path, protos: Path) -> subprocess.CompletedProcess[str]:
    return buf(home, "breaking", str(protos), "--against", str(BASELINE))


@pytest.fixture
def changed_protos(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROTO, tmp_path / "proto"))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_proto_files_pass_lint(tmp_path: Path) -> None:
    run = buf(tmp_path, "lint", str(PROTO))

    assert run.returncode == 0, run.stdout + run.stderr


def test_the_proto_files_are_formatted(tmp_path: Path) -> None:
    run = buf(tmp_path, "format", "--diff", "--exit-code", str(PROTO))

    assert run.returncode == 0, run.stdout + run.stderr


def test_lint_refuses_a_field_without_a_comment(tmp_path: Path, changed_protos: Path) -> None:
    edit(
        changed_protos / "turnline/v1/push.proto",
        "  // The authenticated user; never empty.\n",
        "",
    )

    assert "user_id" in buf(tmp_path, "lint", str(changed_protos)).stdout


def test_the_proto_files_break_no_one_since_the_last_release(tmp_path: Path) -> None:
    run = breaking(tmp_path, PROTO)

    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("envelope.proto", "  string user_id = 4;\n", ""),
        ("envelope.proto", "string user_id = 4;", "string user_id = 18;"),
        ("envelope.proto", "uint32 attempt = 12;", "string attempt = 12;"),
        ("envelope.proto", "string scope = 3;", "string tenant = 3;"),
        ("chunk.proto", "  EVENT_TYPE_CUSTOM = 16;\n", ""),
        ("chat_service.proto", "  rpc Cancel(CancelRequest) returns (CancelResponse);\n", ""),
    ],
)
def test_a_change_that_breaks_someone_is_seen(
    tmp_path: Path, changed_protos: Path, file: str, old: str, new: str
) -> None:
    edit(changed_protos / "turnline/v1" / file, old, new)

    run = breaking(tmp_path, changed_protos)

    assert run.returncode != 0
    assert file in run.stdout


def test_an_added_field_breaks_no_one(tmp_path: Path, changed_protos: Path) -> None:
    edit(
        changed_protos / "turnline/v1/envelope.proto",
        "  string user_id = 4;\n",
        "  string user_id = 4;\n  string added = 18;\n",
    )

    assert breaking(tmp_path, changed_protos).returncode == 0


def test_the_committed_python_is_made_of_the_proto_files(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "build-support/proto"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    committed = ROOT / "gen/python"
    assert generated_files(tmp_path) == generated_files(committed)


def generated_files(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in root.rglob("*_pb2*.py*")
        if path.suffix in (".py", ".pyi")
    }
