"""Every error that Blindfit raises, in one tree.

Errors carry objects (names, numbers, steps), never secrets and never a peer's payload. What crosses the wire is the
class and its public fields (parties/wire/error_codes.py), never an exception's text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

Told = Literal["public", "own", "charged"]

NO_MEMORY = "there is not enough memory"


class BlindfitWarning(UserWarning):
    """The root of all warnings. The message states what may be wrong with a fit, a score or a job, and the next step.

    Example:
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error", blindfit.BlindfitWarning)  # every warning stops the program
        ...     blindfit.WALRClassifier(epsilon=0.01).fit(X, y)
        Traceback (most recent call last):
        blindfit.algorithms.estimators.cautions.NoisyModelWarning: at epsilon 0.01 ...
    """


class BlindfitError(Exception):
    """The root of all errors: a message states the fault, and a hint, if the error has one, states what to do next.

    `str(error)` has both, in one line: "message (hint)". A place that shows the hint by itself, or that sends an error
    to another party, takes `message`.

    Attributes:
        told: readers of the error. A "public" error follows from the job and from public facts, so every party and the
            coordinator may read it. An "own" error may depend on a party's data, so only the party's own operator reads
            it; the others learn that the party cannot take part. A "charged" error is about a release that a budget has
            paid for.
        message: str, the fault.
        hint: str, the next step; empty if the message names it.

    Example:
        >>> try:
        ...     blindfit.run("job.toml", privacy={"epsilon": 3.0}, progress=False)
        ... except blindfit.BlindfitError as error:
        ...     print(error.message)
        ...     print(error.hint)
        meter refuses the job: privacy.epsilon: 3 is more than its max_epsilon = 2
        lower privacy.epsilon, or have meter's operator raise policy.max_epsilon
    """

    told: ClassVar[Told] = "own"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    @property
    def message(self) -> str:
        """The fault, without the hint."""
        return str(self.args[0])

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what restores the error after a worker process; its class takes other arguments than its message."""
        return _restore, (type(self), self.args), self.__dict__


def _restore(kind: type[BlindfitError], args: tuple[Any, ...]) -> BlindfitError:
    return kind.__new__(kind, *args)


def forget_frames(error: BaseException) -> None:
    """Keep an error's text; forget its causes and the variables of every function that it passed through."""
    error.__traceback__ = error.__context__ = error.__cause__ = None


class ConfigError(BlindfitError):
    """A job, a party's file or an option is wrong. The message names the file and the field: correct it there.

    Example:
        >>> blindfit.Job("job.toml", privacy={"epsilon": -1})
        Traceback (most recent call last):
        blindfit.algorithms.errors.ConfigError: job.toml: privacy.epsilon: must be above 0, not -1
    """


class DataError(BlindfitError):
    """Data are wrong. The message names the source, and the row and the column if it knows them: correct the data.

    Example:
        >>> blindfit.load_model("missing.json")
        Traceback (most recent call last):
        blindfit.algorithms.errors.DataError: missing.json cannot be read: ...
    """


class RangeError(BlindfitError):
    """A number lies outside the range in which the result would be right. The message names the number and its range.

    Example:
        >>> blindfit.WALRClassifier(norm_bound=1e300).fit(X, y)
        Traceback (most recent call last):
        blindfit.algorithms.errors.RangeError: norm_bound = 1e+300 ...
    """


class CannotTakePart(BlindfitError):
    """A party cannot do its part, for reasons of its own."""

    told = "public"

    def __init__(self, party: str) -> None:
        super().__init__(f"{party} cannot take part; its operator knows why", hint=f"the log of {party} has the reason")
        self.party = party


class ComputeFailed(BlindfitError):
    """This party's own workers did not do their tasks: they died, were out of reach, or took too long."""

    def __init__(self, *, backend: str, reason: str, failed: int = 0, tasks: int = 0, hint: str = "") -> None:
        undone = f"{failed} of {tasks} tasks were not done: " if tasks else ""
        super().__init__(f"[compute] {backend}: {undone}{reason}", hint=hint)
        self.backend, self.reason, self.failed, self.tasks = backend, reason, failed, tasks


# --- a protocol went wrong --------------------------------------------------------------------


class ProtocolError(BlindfitError):
    """A protocol cannot go on. The session ends and no result of it is kept; correct the cause and run the job again.

    Attributes:
        session: str, name of the session; empty if the error has none.
        step: str, step of the protocol at which it ended; empty if the error has none.

    Example:
        >>> try:
        ...     raise blindfit.ProtocolError("the parties disagree", session="fit-1", step="align")
        ... except blindfit.ProtocolError as error:
        ...     error.session, error.step
        ('fit-1', 'align')
    """

    told = "public"

    def __init__(self, message: str, *, session: str = "", step: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.session, self.step = session, step


class LocalProtocolError(ProtocolError):
    """Our own mistake: a step called out of turn, a message of the wrong class."""


class SessionUnknown(ProtocolError):
    """A call names a session that this party has not been proposed, or in which the caller has no part."""


class PeerError(ProtocolError):
    """A peer broke the protocol."""

    def __init__(self, message: str, *, culprit: str, session: str = "", step: str = "", hint: str = "") -> None:
        super().__init__(message, session=session, step=step, hint=hint)
        self.culprit = culprit


class MalformedMessage(PeerError):
    """A peer's message has a wrong shape, length, range or encoding. Compare the versions of both parties' Blindfit.

    Attributes:
        culprit: str, name of the party that sent the message.
        field: str, name of the wrong field.
        reason: str, the mistake in it.

    Example:
        >>> raise blindfit.MalformedMessage(culprit="meter", field="sums", reason="has 3 numbers, not 4")
        Traceback (most recent call last):
        blindfit.algorithms.errors.MalformedMessage: meter sent a malformed message: sums: has 3 numbers, not 4
    """

    def __init__(self, *, culprit: str, field: str, reason: str, session: str = "", step: str = "") -> None:
        super().__init__(
            f"{culprit} sent a malformed message: {field}: {reason}",
            culprit=culprit,
            session=session,
            step=step,
        )
        self.field, self.reason = field, reason


class UnexpectedStep(PeerError):
    """A message arrived that the protocol does not expect now."""

    def __init__(self, *, culprit: str, expected: str, got: str, session: str = "", step: str = "") -> None:
        super().__init__(
            f"{culprit} sent {got} where {expected} was expected", culprit=culprit, session=session, step=step
        )
        self.expected, self.got = expected, got


class HandshakeMismatch(PeerError):
    """Two parties do not agree on a public parameter."""

    def __init__(self, *, culprit: str, field: str, ours: str, theirs: str, session: str = "") -> None:
        super().__init__(
            f"{culprit} disagrees on {field}: ours is {ours}, theirs is {theirs}",
            culprit=culprit,
            session=session,
            step="handshake",
            hint="both parties must run the same version of Blindfit, and have been proposed the same job",
        )
        self.field, self.ours, self.theirs = field, ours, theirs


class PeerAborted(PeerError):
    """A peer ended the session and gave the reason as a code."""

    def __init__(self, *, culprit: str, code: str, session: str = "", step: str = "", lost: str = "") -> None:
        """
        Args:
            lost: the party of the session that the culprit blames for the end; empty: it blames nobody.
        """
        super().__init__(
            f"{culprit} ended the session: {code}"
            + (f" at step {step}" if step else "")
            + (f": it lost {lost}" if lost and lost != culprit else ""),
            culprit=culprit,
            session=session,
            step=step,
            hint=f"the log of {lost or culprit} has the reason"
            + ("; its operator has cancelled it, or stopped its process" if code == "CANCELLED" else ""),
        )
        self.code, self.lost = code, lost


class MacCheckFailed(ProtocolError):
    """The opened values do not fit their MACs: a party, or the dealer, did not send what it should. The results are
    dropped, and no MAC key is used again.
    """

    def __init__(self, *, session: str = "") -> None:
        super().__init__(
            "the opened values do not fit their MACs: a data party or the key node departed from the protocol; "
            "nothing was revealed and nothing is kept",
            session=session,
            step="MAC check",
            hint="the check cannot identify the party: compare what runs at each party before you try again",
        )


class SharesDoNotFit(ProtocolError):
    """The shares of a model that the parties kept do not belong together."""

    def __init__(self, *, session: str = "") -> None:
        super().__init__(
            "the data parties' shares of the model do not fit together: one of them used other shares than it kept "
            "after the training; nothing was revealed",
            session=session,
            step="kept shares",
            hint="the check cannot identify the party: has a party restored a backup? The model is as good as before",
        )


class ScoresOutOfRange(ProtocolError):
    """Scores or weights in shares left the range in which results are right."""

    def __init__(self, *, epoch: int, session: str = "", point: int = 0, fold: int = 0) -> None:
        """
        Args:
            point, fold: grid point and fold of a selection, counted from 1; 0 in the final training.
        """
        inside = f" of grid point {point}, fold {fold}" if point else ""
        lower = "remove this point from select.grid, " if point else ""
        super().__init__(
            f"scores or weights grew out of range in epoch {epoch}{inside}: the model would be wrong",
            session=session,
            step="range test",
            hint=lower
            + 'lower falcon.learning_rate, raise falcon.l2, or, for a logistic model, set falcon.waves = "wide"',
        )
        self.epoch, self.point, self.fold = epoch, point, fold


# --- privacy ------------------------------------------------------------------------------------


class PrivacyError(BlindfitError):
    """A release was refused to keep a privacy promise, because of a budget, a policy or the request.

    Nothing was released. The message names the limit, and the hint names the next step.

    Example:
        >>> try:
        ...     blindfit.run("job.toml", privacy={"epsilon": 3.0}, progress=False)
        ... except blindfit.PrivacyError as error:
        ...     type(error).__name__
        'PolicyRefused'
    """

    told = "public"


class BudgetExhausted(PrivacyError):
    """The release would pass the population's budget. Lower its epsilon, or have the budget raised.

    Attributes:
        population: str, name of the people who share the budget, or of a `PrivacyBudget`.
        spent: float, epsilon of all earlier releases together.
        budget: float, epsilon that may be spent.
        requested: float, epsilon of the release that was refused.

    Example:
        >>> with blindfit.PrivacyBudget(epsilon=1.0):
        ...     first = blindfit.WALRClassifier(epsilon=0.9).fit(X, y)
        ...     second = blindfit.WALRClassifier(epsilon=0.9, release="second").fit(X, y)
        Traceback (most recent call last):
        blindfit.algorithms.errors.BudgetExhausted: the budget of this notebook would be passed: ...
    """

    def __init__(
        self,
        *,
        population: str,
        spent: float,
        budget: float,
        requested: float,
        hint: str = "lower privacy.epsilon; `blindfit ledger PARTY.TOML` at that party shows what was spent",
    ) -> None:
        super().__init__(
            f"the budget of {population} would be passed: epsilon {spent:.4g} of {budget:.4g} is spent, "
            f"and a release of epsilon {requested:.4g} does not fit",
            hint=hint,
        )
        self.population, self.spent, self.budget, self.requested = population, spent, budget, requested


class UnsupportedEvent(PrivacyError):
    """The accountant cannot bound this kind of release."""


class RequestConflict(PrivacyError):
    """A request id was used before with other content."""


class LedgerBehind(PrivacyError):
    """A signed receipt proves an entry that this ledger lacks: the ledger was restored from a backup, or replaced.

    Nothing was released. The operator of the ledger acknowledges the loss with `blindfit ledger`; the lost releases are
    then charged again.

    Attributes:
        population: str, name of the people whose ledger it is.
        ledger_position: int, number of entries that the ledger has.
        receipt_position: int, number of the entry that the receipt proves.

    Example:
        >>> raise blindfit.LedgerBehind(population="people", ledger_position=3, receipt_position=5)
        Traceback (most recent call last):
        blindfit.algorithms.errors.LedgerBehind: a signed receipt proves entry 5 of the ledger of people, ...
    """

    def __init__(self, *, population: str, ledger_position: int, receipt_position: int) -> None:
        super().__init__(
            f"a signed receipt proves entry {receipt_position} of the ledger of {population}, which this ledger "
            f"({ledger_position} entries) does not have: it was restored or replaced, so nothing is released",
            hint="its operator must run `blindfit ledger PARTY.TOML --acknowledge REASON`, which charges what was lost "
            "again",
        )
        self.population = population
        self.ledger_position, self.receipt_position = ledger_position, receipt_position


class LedgerUnavailable(PrivacyError):
    """The party's database could not be used, so this step released nothing and charged nothing."""


class TooFewRows(PrivacyError):
    """A request has fewer rows than the party's policy asks for."""

    def __init__(self, *, rows: int, least: int) -> None:
        super().__init__(f"{rows} rows are fewer than the least that this party's policy asks for, {least}")
        self.rows, self.least = rows, least


class CannotAnswer(PrivacyError):
    """The reason depends on the party's private data, so only its operator's log has it."""

    def __init__(self, *, party: str) -> None:
        super().__init__(
            f"{party} cannot answer this request; its operator knows why",
            hint=f"compare with {party} which rows may be asked for, or ask its operator: the log of {party} has the "
            "reason",
        )
        self.party = party


#: Field that a refusal concerns -> what to do. For a field that is not here, the reason states it.
WHAT_TO_DO = {
    # of a policy
    "protocol": "have {party}'s operator add it to policy.systems",
    "privacy.epsilon": "lower privacy.epsilon, or have {party}'s operator raise policy.max_epsilon",
    "privacy.delta": "lower privacy.delta, or have {party}'s operator raise policy.max_delta",
    "unsafe": "have {party}'s operator add it to policy.unsafe, or do without it in the job",
    "seed": "remove seed from the job, or have {party}'s operator set policy.accept_seed = true",
    "models_per_row": "have {party}'s operator raise models_per_row of the dataset, if its rows hold enough",
    "max_failed_uploads": "wait for a day, or have {party}'s operator raise policy.max_failed_uploads",
    "uploads": "have {party}'s operator start the account again "
    "(`blindfit ledger PARTY.TOML --reset-account DATASET --reason TEXT`)",
    # of what the party is or has
    "dataset": "correct parties.{party}.dataset in the job, or have {party}'s operator add it to its [datasets]",
    "role": "correct parties.{party}.role in the job",
    "parties": "correct [parties] in the job",
    "evaluate.session": "name a training whose model {party} still has, or train again",
    "evaluate.scores": "name a prediction that {party} has made with that model, or predict again",
    "predict.session": "name a training whose model {party} still has, or train again",
    "peers": "have the operator of {party} add it to [peers], with its role",
}


class PolicyRefused(PrivacyError):
    """A party does not take part in this job, because its policy, role or data do not fit it.

    Change the job, or have the party's operator change the file of the party; the hint names the option.

    Attributes:
        party: str, name of the party.
        field: str, option of the job or of the policy that does not fit.
        reason: str, the party's reason.

    Example:
        >>> blindfit.run("job.toml", privacy={"epsilon": 3.0}, progress=False)
        Traceback (most recent call last):
        blindfit.algorithms.errors.PolicyRefused: meter refuses the job: privacy.epsilon: ...
    """

    def __init__(self, *, party: str, field: str, reason: str) -> None:
        what_to_do = WHAT_TO_DO.get(field, "")
        super().__init__(f"{party} refuses the job: {field}: {reason}", hint=what_to_do.format(party=party))
        self.party, self.field, self.reason = party, field, reason


# --- transport ----------------------------------------------------------------------------------


class TransportError(BlindfitError):
    """A party or server could not be reached, or the connection failed.

    Attributes:
        peer: str, name of the party or server.
        step: str, step of the protocol, or method of the service, at which it failed; empty if the error has none.

    Example:
        >>> identity = blindfit.load_identity("shop/certificate.pem", "shop/key.pem", "shop/authority.pem")
        >>> client = blindfit.MeasurementClient(identity, "meter", "localhost:1", reconnect_s=0.1)
        >>> try:
        ...     wait_for(client.describe("visits"))  # in a notebook: await client.describe("visits")
        ... except blindfit.TransportError as error:
        ...     error.peer
        'meter'
    """

    told = "public"

    def __init__(self, message: str, *, peer: str, step: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.peer, self.step = peer, step


WAITED_IN_VAIN = {  # what is known of the party that all others wait for -> the fault, and what to do
    "silent": (
        "{peer} does not answer",
        "look at {peer}: its process may be stopped, its machine asleep, or its network down",
    ),
    "still": (
        "the process of {peer} stood still for {still_s:.0f} s",
        "look at {peer}: its process was stopped, its machine slept, or it had too much to do",
    ),
    "working": ("{peer} still works on its step", "a larger timeouts.step_s waits longer"),
    "waiting": ("{peer} itself waits for another party", "the logs of all parties show which party waits for which"),
}


class PeerTimeout(TransportError):
    """A party did not do its step before the deadline. Look at that party, or raise `timeouts.step_s` in the job.

    Attributes:
        peer: str, name of the last party in the chain of waits, as far as the waiting party knows.
        timeout_s: float, the deadline in seconds.
        through: tuple of str, names of the parties between the waiting party and `peer`; each waits for the next.
        found: str, state of `peer`: "silent", "still", "working" or "waiting"; empty if its state is not known.
        still_s: float, seconds for which the process of `peer` stood still.

    Example:
        >>> raise blindfit.PeerTimeout(peer="meter", step="aggregate", timeout_s=120.0)
        Traceback (most recent call last):
        blindfit.algorithms.errors.PeerTimeout: waited 120 s for meter at step aggregate
    """

    def __init__(
        self,
        *,
        peer: str,
        step: str,
        timeout_s: float,
        through: Sequence[str] = (),
        found: str = "",
        still_s: float = 0.0,
        by: str = "",
    ) -> None:
        wrong, hint = (text.format(peer=peer, still_s=still_s) for text in WAITED_IN_VAIN.get(found, ("", "")))
        first, *others = [*through, peer]
        waited = f"{f'{by} ' if by else ''}waited {timeout_s:g} s for {first}"
        waited += "".join(f", which waits for {other}" for other in others) + f" at step {step}"
        super().__init__(f"{wrong}: {waited}" if wrong else waited, peer=peer, step=step, hint=hint)
        self.timeout_s, self.through, self.found, self.still_s = timeout_s, tuple(through), found, still_s


class PeerUnreachable(TransportError):
    """No connection to a party or server. Start it, and check its address and the network.

    Attributes:
        peer: str, name of the party or server.
        address: str, "host:port".

    Example:
        >>> identity = blindfit.load_identity("shop/certificate.pem", "shop/key.pem", "shop/authority.pem")
        >>> client = blindfit.MeasurementClient(identity, "meter", "localhost:1", reconnect_s=0.1)
        >>> wait_for(client.describe("visits"))  # in a notebook: await client.describe("visits")
        Traceback (most recent call last):
        blindfit.algorithms.errors.PeerUnreachable: cannot reach meter at localhost:1 at step Describe: ...
    """

    def __init__(self, *, peer: str, address: str, step: str, reason: str = "") -> None:
        super().__init__(
            f"cannot reach {peer} at {address} at step {step}" + (f": {reason}" if reason else ""),
            peer=peer,
            step=step,
            hint=f"start `blindfit party` at {peer}, and let this machine connect to {address}",
        )
        self.address = address


class CutOff(TransportError):
    """A party reaches none of the others, and is the party that all others miss.

    Attributes:
        peer: the party itself.
    """

    def __init__(self, *, peer: str, step: str) -> None:
        super().__init__(
            f"{peer} is cut off: it reaches no other party at step {step}",
            peer=peer,
            step=step,
            hint=f"look at the network of {peer}",
        )


class PeerUnauthenticated(TransportError):
    """A certificate is missing, of another authority, expired, revoked or another party's.

    Renew the certificate, or correct the name, the address or the authority.

    Attributes:
        peer: str, name of the party or server.
        reason: str, the fault of the certificate or of the connection.

    Example:
        >>> raise blindfit.PeerUnauthenticated(peer="meter", reason="its certificate expired on 2026-01-31")
        Traceback (most recent call last):
        blindfit.algorithms.errors.PeerUnauthenticated: the connection with meter is not authenticated: ...
    """

    def __init__(self, *, peer: str, reason: str, step: str = "connect") -> None:
        super().__init__(f"the connection with {peer} is not authenticated: {reason}", peer=peer, step=step)
        self.reason = reason


class CallNotAllowed(TransportError):
    """An authenticated party called a method that its name may not call."""

    def __init__(self, *, peer: str, method: str) -> None:
        super().__init__(f"{peer} does not allow this party to call {method}", peer=peer, step=method)
        self.method = method


class LimitExceeded(TransportError):
    """A message, stream or queue is larger than the limit."""

    def __init__(self, *, peer: str, step: str, limit: str) -> None:
        super().__init__(f"a limit was passed with {peer} at step {step}: {limit}", peer=peer, step=step)
        self.limit = limit


class DuplicateId(DataError):
    """A request names an id twice; `position` is the later row of the request, counted from 1."""

    told = "public"

    def __init__(self, position: int) -> None:
        super().__init__(
            f"row {position} of the request has an id that the request has used before",
            hint="each id may be used once in a request: remove duplicate ids",
        )
        self.position = position


class UnknownId(DataError):
    """A request names ids that the table does not have: `count` of them, the first at row `position`."""

    told = "public"

    def __init__(self, position: int, count: int) -> None:
        super().__init__(
            f"row {position} of the request has an id that the table of labels does not have ({count} in all)",
            hint="send only ids that the table has; or, if the table has no person column, have its operator set "
            'unknown_rows = "zero" for the dataset, which counts such ids as label 0',
        )
        self.position, self.count = position, count


def root_party(error: BlindfitError) -> str:
    """Return the party that an error blames for the end of a session; "": the party that has the error.

    The error may rest on other parties' claims.
    """
    if isinstance(error, PeerAborted):
        return error.lost or error.culprit
    return error.peer if isinstance(error, PeerTimeout | PeerUnreachable | PeerUnauthenticated | CutOff) else ""


def where(error: BaseException) -> str:
    """Return the last four places that an exception passed through, as FILE:LINE, innermost last."""
    trace, places = error.__traceback__, []
    while trace is not None:
        places.append(f"{trace.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " > ".join(places[-4:])
