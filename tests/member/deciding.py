"""Decisions in tests: driven to their conclusion as the operator does."""

from typing import TypeVar

from controllers.database_actions import executor_of
from kube.actions import Decision
from member.context import ClusterContext

T = TypeVar("T")


def concluded(ctx: ClusterContext, decision: Decision[T]) -> T:
    """The conclusion of a decision, after its actions. Raises what the decision raises."""
    return executor_of(ctx.deps).conclude(decision)
