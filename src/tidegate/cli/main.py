"""The command ``tidegate``: the root, and how errors reach the person who typed it.

Bad input is one line on standard error and exit status 2; another failure that Tidegate knows is one line
and exit status 1; a traceback means a fault of Tidegate's own.
"""

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from tidegate import __version__
from tidegate.cli import (
    access,
    bench,
    controller,
    demo,
    device,
    explain,
    fleet,
    gateway,
    jobs,
    ledger,
    maintainer,
    mode,
    node,
    operate,
    plan,
    recover,
    reproduce,
    rules,
    simulate,
    table,
    up,
)
from tidegate.model.errors import TidegateError, UserError

EXIT_FAILED, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 1, 2, 130

# Plain help: the same text on a terminal, in a pipe and in a log.
app = typer.Typer(
    name="tidegate",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="bench")(bench.bench)
app.command(name="up")(up.up)
app.command(name="simulate")(simulate.run)
app.command(name="reproduce")(reproduce.reproduce)
app.command(name="demo")(demo.demo)
app.command(name="gateway")(gateway.run)
app.command(name="controller")(controller.run)
app.command(name="node")(node.run)
app.command(name="maintainer")(maintainer.run)
app.command(name="fleet")(fleet.run)
app.command(name="status")(operate.status)
app.command(name="move")(operate.move)
app.command(name="recover")(recover.recover)
app.command(name="jobs")(jobs.jobs)
app.command(name="explain")(explain.explain)
app.command(name="plan")(plan.plan)
app.command(name="apply")(plan.apply)
app.command(name="mode")(mode.mode)
app.command(name="freeze")(mode.freeze)
app.command(name="release")(mode.release)
app.add_typer(access.app, name="access")
app.add_typer(device.app, name="device")
app.add_typer(ledger.app, name="ledger")
app.add_typer(rules.app, name="rules")
app.add_typer(table.app, name="table")

# The root of all mistakes in arguments, whichever copy of click typer is built on.
_ArgumentsError = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tidegate {__version__}")
        raise typer.Exit


@app.callback()
def tidegate(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Keeps an IoT platform standing when its devices flood it.

    \b
    Examples:
      tidegate demo
      tidegate up --nodes 2
      tidegate status
      tidegate device add pump-1
      tidegate ledger check --json
      tidegate simulate examples/scenarios/flood.yaml
      tidegate reproduce gotin-table1 --quick
      tidegate bench pipeline
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status; nothing but a fault of Tidegate's own is raised."""
    try:
        given = list(sys.argv[1:] if arguments is None else arguments)
        _check_text(given)
        status = app(args=given, prog_name="tidegate", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except UserError as error:
        return _fail(str(error), EXIT_BAD_INPUT)
    except TidegateError as error:
        return _fail(str(error), EXIT_FAILED)
    except _ArgumentsError as error:  # type: ignore[misc]
        return _refuse(error)
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes standard output once more at its end: let that go nowhere.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED


def _check_text(arguments: Sequence[str]) -> None:
    """What could neither be printed nor stored."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UserError(f"The argument {argument!a:.80} is no text in UTF-8: use other characters.") from None


def _refuse(error: BaseException) -> int:
    """A mistake in the arguments: what it is, and where help is."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "tidegate"
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    if not text:
        return EXIT_BAD_INPUT
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(text, err=True)
        return EXIT_BAD_INPUT
    return _fail(f"{text.rstrip('.')}. Try '{command} --help'.", EXIT_BAD_INPUT)


def _fail(message: str, status: int) -> int:
    with contextlib.suppress(OSError):
        print(f"tidegate: {' '.join(message.split())}", file=sys.stderr)  # noqa: T201
    return status


def main() -> None:
    sys.exit(run())


if __name__ == "__main__":
    main()
