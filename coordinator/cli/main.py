"""The command line. An error is one line and a hint, never a traceback.

The start of the process imports only signatures; a command imports its work when it is called.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from blindfit.algorithms.errors import NO_MEMORY, BlindfitError, ConfigError, where
from blindfit.coordinator.cli import attack as attack_
from blindfit.coordinator.cli import auditing, certs, inspecting, operating, simulating, training
from blindfit.coordinator.cli import version as version_
from blindfit.coordinator.cli.examples import add_examples
from blindfit.coordinator.terminal.exit_codes import ExitCode
from blindfit.coordinator.terminal.json_output import App, Call, error_line
from blindfit.coordinator.terminal.stopped import Stopped


class Commands(TyperGroup):
    """All commands. An old name of a command is refused with its new name."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # click's classes or typer's own, by typer's version
        found = super().get_command(ctx, cmd_name)
        if found is None:
            from blindfit.parties import renamed

            if cmd_name in renamed.COMMANDS:
                raise ConfigError(f"`blindfit {cmd_name}` is now `blindfit {renamed.COMMANDS[cmd_name]}`")
        return found


app = App(
    name="blindfit",
    cls=Commands,
    help="Fit one model to data of several organisations without pooling the data. Each report states who learns what.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def _about(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=version_.show)
    ] = False,
) -> None:
    pass


auditing.app.command(rich_help_panel=auditing.PANEL)(attack_.attack)
for group in (training, simulating, inspecting, operating, auditing):
    add_examples(group.app)
    app.add_typer(group.app)
add_examples(certs.app, "certs ")
app.add_typer(certs.app, name="certs", rich_help_panel=operating.PANEL)


def main(command: Sequence[str] | None = None) -> None:
    """Run one command and exit.

    Args:
        command: command line that starts a party's process; None means `python -m blindfit`.
    """
    _print_somewhere()
    call = Call(command)
    end = functools.partial(_end, call)
    try:
        app(obj=call)
    except Stopped as stopped:
        end("Stopped", str(stopped), stopped.hint, ExitCode.STOPPED, word="stopped")
    except BlindfitError as error:
        end(
            type(error).__name__,
            error.message,
            error.hint,
            ExitCode.WRONG_INPUT if isinstance(error, ConfigError) else ExitCode.FAILED,
        )
    except MemoryError:
        end(
            "MemoryError",
            NO_MEMORY,
            "run it on a machine with more memory, or with fewer rows or workers",
            ExitCode.FAILED,
        )
    except Exception as error:
        from blindfit.coordinator.job.out_dir import explain_refusal

        if isinstance(error, OSError) and (reason := explain_refusal(error)):
            end("OSError", reason, "check the path, the file's owner and the free space on the disk", ExitCode.FAILED)
        if os.environ.get("BLINDFIT_TRACEBACK"):
            raise
        end(
            type(error).__name__,
            f"a bug in Blindfit: {type(error).__name__} at {where(error)}",
            "set BLINDFIT_TRACEBACK=1 to see all of it, and please report it",
            ExitCode.BUG,
        )
    except KeyboardInterrupt:
        end("Stopped", "no job was running between parties", "", ExitCode.STOPPED, word="stopped")


def _print_somewhere() -> None:
    """Open descriptors 0 to 2 if they are closed (`>&-`), so that no later file takes the number of standard output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def _end(call: Call, kind: str, what: str, hint: str, status: int, word: str = "error") -> NoReturn:
    if call.as_json:
        sys.stderr.write(error_line(kind, what, hint, status))
        raise SystemExit(status) from None
    from rich.markup import escape

    from blindfit.algorithms.texts import printable
    from blindfit.coordinator.terminal.terminal import terminal

    errors = terminal(stderr=True)
    errors.print(f"[bold red]{word}:[/] {escape(printable(what))}", highlight=False, soft_wrap=True)
    if hint:
        errors.print(f"[dim]hint:[/] {escape(printable(hint))}", highlight=False, soft_wrap=True)
    raise SystemExit(status) from None
