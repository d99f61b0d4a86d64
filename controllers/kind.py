"""The description of a kind of custom resource for the reconciler: a dataclass of functions.

Type variables: M is the model of the object, C the context of one reconcile, D the dependencies of contexts, R the
memory of each object between reconciles.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from apis.decoding import decode_json
from apis.model import Model
from apis.problem import InvalidField, Problem
from controllers.conditions import ConditionValue
from controllers.executor import Executor
from controllers.stages import Steps
from controllers.status_pacing import ALL_ALIKE, StatusFields
from controllers.validity import Validity
from kube.objects import Json, Object
from kube.reading import Readings
from kube.resources import Resource
from member.outcome import Outcome, Refused


class Context(Protocol):
    """The attributes of every context of a reconcile.

    `owner` is the cached object, or what a stage has written since; `outcomes` holds the outcomes of finished stages.
    """

    owner: Object
    outcomes: dict[str, Outcome]


M = TypeVar("M", bound=Model)
C = TypeVar("C", bound=Context)
D = TypeVar("D")
R = TypeVar("R")


class InvalidSpec(Exception):
    """Raised if the spec of an object is invalid; carries every problem."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[M, C, D, R]):
    """One kind.

    - `name`: the name of the controller in logs and metrics.
    - `defaults`: sets the defaults of a spec, in memory only.
    - `mistakes`: returns what is wrong with a spec with its defaults by itself.
    - `problems`: returns what is wrong with a spec without mistakes, given what runs; reads caches.
    - `noted`: returns dependencies that record the values read through them, so that a valid spec is judged again only
      after one of these values has changed. Without it, the spec is judged in every reconcile.
    - `facts`: returns what `mistakes` and `problems` read of the object besides its metadata, comparable.
    - `rechecks`: True if a spec is judged although nothing has changed, for tests.
    - `run`: yields the stages, one after another, and puts the outcome that each gets into the context.
    - `status`: returns the context's working copy of the status; `conditions` returns its new conditions.
    - `others_conditions`: returns conditions that another controller decides, e.g. of a Job. They replace all
      other conditions in the stored status; with None, the stored ones stay.
    - `update_times`: True if conditions have a `lastUpdateTime`.
    - `slow`: returns the servers of the object that did not answer in time.
    - `log_news`: logs what is new in a status after a write; takes the old status and the new one.
    - `hold`: marks a context while the spec is invalid. The context has the last valid spec or, if none is known, the
      invalid one; the last argument, `remakes`, is True if missing objects are recreated. Without `hold`, the operator
      only reports the invalid spec.
    - `last_written`: returns the last spec, labels and annotations that were applied, as the objects created from them
      show, for a process that has not seen a valid spec.
    - `finalize`: cleans up for a deleted object and removes the finalizer; raises what stages may raise.
    - `status_fields`: decides which fields of the status are written at once and which can wait.
    - `executor`: returns the executor of the stages' actions; without it, the runtime's performs them.
    """

    name: str
    resource: Resource
    model: type[M]
    memory: Callable[[], R]
    context: Callable[[Object, M, D, R], C]
    run: Callable[[C], Steps[C]]
    status: Callable[[C], Model]
    conditions: Callable[[C, datetime], Mapping[str, ConditionValue]]
    defaults: Callable[[M], M] = lambda model: model
    mistakes: Callable[[M], Sequence[Problem]] = lambda _model: ()
    problems: Callable[[M, D], Sequence[Problem]] = lambda _model, _deps: ()
    noted: Callable[[D, Readings], D] | None = None
    facts: Callable[[M], object] = lambda model: model
    rechecks: Callable[[D], bool] = lambda _deps: False
    others_conditions: Callable[[C], Sequence[Json] | None] = lambda _ctx: None
    slow: Callable[[C], Collection[str]] = lambda _ctx: ()
    update_times: bool = False
    log_news: Callable[[Json, Json], None] = lambda _old, _new: None
    hold: Callable[[C, Object, Refused, bool], None] | None = None
    last_written: Callable[[Object, D], Json | None] = lambda _owner, _deps: None
    finalize: Callable[[Object, D], None] | None = None
    status_fields: StatusFields = ALL_ALIKE
    executor: Callable[[D], Executor] | None = None

    def read(self, owner: Object, deps: D, validity: Validity | None = None) -> M:
        """The object with its defaults; `validity` remembers an earlier judgement of its spec. Raises InvalidSpec."""
        is_checked = validity is not None and validity.knows(owner)
        try:
            model = self.defaults(decode_json(owner.raw, self.model, is_checked=is_checked))
        except InvalidField as error:
            raise InvalidSpec(error.problems) from error
        if problems := self._problems_of(owner, model, deps, validity):
            raise InvalidSpec(problems)
        return model

    def _problems_of(self, owner: Object, model: M, deps: D, validity: Validity | None) -> Sequence[Problem]:
        noted = self.noted
        if noted is None or validity is None:
            return self.mistakes(model) or self.problems(model, deps)
        return validity.problems(
            owner,
            self.facts(model),
            lambda readings: self.mistakes(model) or self.problems(model, noted(deps, readings)),
            rechecks=self.rechecks(deps),
        )

    def read_unchecked(self, owner: Object) -> M | None:
        """The object with its defaults, valid or not; None if its spec cannot be decoded."""
        try:
            return self.defaults(decode_json(owner.raw, self.model))
        except InvalidField:
            return None
