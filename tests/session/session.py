"""Runs a session of the program `tables` in a terminal of 100 columns, and compares what it shows.

usage: session.py FOLDER_OF_THE_PROGRAM CONNECTION_STRING [--write]

session.txt has the commands, after `$ `, and what they show. `…` stands for any text in a line, and `[exit 1]` for an exit code.
The answer to a question is in its line. Afterwards the commands of `PRINTING` and `WRITING` run with `--output json` in a pipe, and
Python reads what they print. With --write, session.txt gets what the commands show.
"""

import fcntl
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

HERE = pathlib.Path(__file__).parent
SIZE = struct.pack("HHHH", 24, 100, 0, 0)
QUESTION = "[y/N] "

# Commands that print what the session has left, with the number of lines in JSON.
PRINTING = [
    ("ls", 3),
    ("query Employees --partition Sales", 2),
    ("query Employees --scan --take 1", 1),
    ("get Employees Sales 000001", 1),
    ("schema Employees", 5),
    ("outbox list Employees", 0),
    ("query Employees --partition Sales --count", 1),
    ("sas Employees --permissions r --for 1h", 1),
]

# Commands that end with a summary, with the number of entities in it.
WRITING = [
    ("put Employees --upsert", 1),
    ("export again.jsonl --table Employees", 3),
    ("import again.jsonl", 3),
    ("rm Employees --partition Sales --dry-run", 2),
    ("rm Employees Service 000003", 1),
]
INPUT = b'{"PartitionKey":"Sales","RowKey":"000001","Age":38}'


def read_session():
    """The commands with what they show."""
    steps = []
    for line in (HERE / "session.txt").read_text().splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        elif steps:
            steps[-1][1].append(line)
    return steps


def run(command, answer, environment, folder):
    """What a command shows in a terminal, and its exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe("bash", ["bash", "-c", command], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, SIZE)
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the end of a terminal on Linux
            break
        if not piece:
            break
        shown += piece
        if answer and shown.endswith(QUESTION.encode()):
            os.write(terminal, answer.encode() + b"\n")
            answer = None
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return shown.decode(), os.waitstatus_to_exitcode(status)


def lines_of(shown, code):
    """The lines that stay on the screen."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    lines = [line.split("\r")[-1].rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines + ([f"[exit {code}]"] if code else [])


def without_variables(line):
    """A line of session.txt, without times and tokens."""
    line = re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "…", line)
    line = re.sub(r"in \d+\.\d s$", "in … s", line)
    line = re.sub(r'W/"datetime.*', "…", line)
    return re.sub(r"--continue \S+", "--continue …", line)


def matches(expected, found):
    pattern = ".*".join(re.escape(part) for part in expected.split("…"))
    return re.fullmatch(pattern, found) is not None


def check(step, found):
    command, expected = step
    is_equal = len(expected) == len(found) and all(map(matches, expected, found))
    if not is_equal:
        sys.exit("\n".join([f"FAILED: {command}", "expected:", *expected, "found:", *found]))


def in_a_terminal(environment, folder, is_written):
    """Runs the session."""
    written = []
    for command, expected in read_session():
        answers = [line.partition(QUESTION)[2] for line in expected if QUESTION in line]
        shown, code = run(command, answers[0] if answers else None, environment, folder)
        found = lines_of(shown, code)
        written += ["$ " + command, *map(without_variables, found)]
        if not is_written:
            check((command, expected), found)
    if is_written:
        (HERE / "session.txt").write_text("\n".join(written) + "\n")
    print(f"{len(read_session())} commands in a terminal")


def in_a_pipe(environment, folder):
    """Reads what commands print as lines of JSON."""
    for command, count in PRINTING:
        words = ["tables", *command.split(), "--output", "json"]
        done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, check=True)
        read = [json.loads(line) for line in done.stdout.decode().splitlines()]
        if len(read) != count or not all(isinstance(line, dict) for line in read):
            sys.exit(f"FAILED: {command} printed {len(read)} lines and not {count}: {read}")
    for command, count in WRITING:
        words = ["tables", *command.split(), "--output", "json"]
        done = subprocess.run(words, env=environment, cwd=folder, input=INPUT, capture_output=True, check=True)
        summary = json.loads(done.stderr.decode().splitlines()[-1])
        if done.stdout or summary["entities"] != count or summary["error"] is not None:
            sys.exit(f"FAILED: {command} ended with {summary}")
    print(f"{len(PRINTING) + len(WRITING)} commands in a pipe")


def main():
    programs, connection_string, *others = sys.argv[1:]
    environment = {
        "AZURE_STORAGE_CONNECTION_STRING": connection_string,
        "LANG": "C.UTF-8",
        "PATH": f"{pathlib.Path(programs).resolve()}:{os.environ['PATH']}",
        "TERM": "xterm",
    }
    with tempfile.TemporaryDirectory() as folder:
        in_a_terminal(environment, folder, "--write" in others)
        in_a_pipe(environment, folder)


main()
