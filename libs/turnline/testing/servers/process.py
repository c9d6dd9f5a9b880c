"""What fixtures do with the ports and the process of their server."""

import ctypes
import os
import signal
import socket
import subprocess
import sys

_SET_DEATH_SIGNAL = 1
_PRCTL = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def free_ports(count: int) -> list[int]:
    """Give ports nobody listens on; all are held open until the last is chosen."""
    held = [socket.socket() for _ in range(count)]
    try:
        for probe in held:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in held]
    finally:
        for probe in held:
            probe.close()


def end_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends, by whatever.

    For `preexec_fn` of what a test's main thread starts.  Elsewhere than on Linux it does nothing.
    """
    if _PRCTL is not None:
        _PRCTL(_SET_DEATH_SIGNAL, signal.SIGKILL)


def freeze(process: subprocess.Popen[bytes]) -> None:
    """Stop a child where it is, with its sockets open (SIGSTOP); return when it stands still."""
    process.send_signal(signal.SIGSTOP)
    # The signal is on its way; until it arrives the server still answers.
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


def end(process: subprocess.Popen[bytes], how: signal.Signals, *, within: float) -> None:
    """End a child, frozen or not, by a signal; kill it after `within` seconds."""
    process.send_signal(how)
    # A frozen one hears of nothing else.
    process.send_signal(signal.SIGCONT)
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
