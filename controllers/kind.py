"""What a reconciler must know of a kind of custom resource: a value, made of functions.

The type variables: M is the model of the object, C the context of one reconcile, D what contexts are made with, R what
is remembered of each object from one reconcile to the next.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from apis.decoding import decode_json
from apis.model import Model
from apis.problem import InvalidField, Problem
from controllers.conditions import ConditionValue
from controllers.stages import Attempt
from controllers.status_pacing import ALL_ALIKE, StatusFields
from controllers.validity import Validity
from kube.objects import Json, Object
from kube.reading import Readings
from kube.resources import Resource
from member.outcome import Outcome, Refused


class Context(Protocol):
    """What every context of a reconcile has.

    `owner` is the object as cached, or as a stage has written it since; `outcomes` is what the stages answered so far.
    """

    owner: Object
    outcomes: dict[str, Outcome]


M = TypeVar("M", bound=Model)
C = TypeVar("C", bound=Context)
D = TypeVar("D")
R = TypeVar("R")


class InvalidSpec(Exception):
    """Raised when nothing can be done for an object until its spec is corrected; carries every problem."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[M, C, D, R]):
    """One kind.

    `name` is that of its controller in logs and metrics. `defaults` fills in what a spec leaves open, in memory alone;
    `problems` is what is wrong with it then, judged by caches as well; `noted` gives the same dependencies noting what
    is read of them, so that what was found valid is not judged again on the same: without, it is each time. `run` has
    the stages answer, one after another, into the context's `outcomes`. `status` is the context's working copy of the
    status, `conditions` what its conditions become; `others_conditions` are those that somebody else decides, such as a
    Job's: they take the place of all others in the stored status, which stay where it is None. `update_times`:
    conditions carry a `lastUpdateTime`. `slow` names the servers of the object that did not answer soon. `tell` logs
    what a new status, the second, says that the one before did not, once it is written.
    `hold` marks a context that is made of an earlier spec, since the present one is not valid, or of that one where no
    other is known: then nothing but what is gone is made again, if `remakes`. `last_written` is the earlier spec,
    labels and annotations where this process has seen none, as what was made of them tells. `finalize` does what must
    be done for a deleted object, as cached, before it goes, and removes the finalizer that keeps it; it raises what
    stages may raise. `status_fields`: which fields of the status are written
    at once, and which can wait. Of a spec that is not valid, a kind without `hold` says no more than that.
    """

    name: str
    resource: Resource
    model: type[M]
    memory: Callable[[], R]
    context: Callable[[Object, M, D, R], C]
    run: Callable[[C, Attempt[C]], None]
    status: Callable[[C], Model]
    conditions: Callable[[C, datetime], Mapping[str, ConditionValue]]
    defaults: Callable[[M], M] = lambda model: model
    problems: Callable[[M, D], Sequence[Problem]] = lambda _model, _deps: ()
    noted: Callable[[D, Readings], D] | None = None
    others_conditions: Callable[[C], Sequence[Json] | None] = lambda _ctx: None
    slow: Callable[[C], Collection[str]] = lambda _ctx: ()
    update_times: bool = False
    tell: Callable[[Json, Json], None] = lambda _old, _new: None
    hold: Callable[[C, Object, Refused, bool], None] | None = None
    last_written: Callable[[Object, D], Json | None] = lambda _owner, _deps: None
    finalize: Callable[[Object, D], None] | None = None
    status_fields: StatusFields = ALL_ALIKE

    def read(self, owner: Object, deps: D, validity: Validity | None = None) -> M:
        """The object with its defaults; `validity` is what is known of it. Raises InvalidSpec."""
        try:
            model = self.defaults(decode_json(owner.raw, self.model))
        except InvalidField as error:
            raise InvalidSpec(error.problems) from error
        if problems := self._problems_of(owner, model, deps, validity):
            raise InvalidSpec(problems)
        return model

    def _problems_of(self, owner: Object, model: M, deps: D, validity: Validity | None) -> Sequence[Problem]:
        noted = self.noted
        if noted is None or validity is None:
            return self.problems(model, deps)
        return validity.problems(owner, lambda readings: self.problems(model, noted(deps, readings)))

    def read_unchecked(self, owner: Object) -> M | None:
        """The object with its defaults, valid or not, if its spec can be read."""
        try:
            return self.defaults(decode_json(owner.raw, self.model))
        except InvalidField:
            return None
