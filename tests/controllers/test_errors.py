"""The fate of a key, found inside exception groups and wrappers."""

import pytest

from controllers.errors import IgnoreError, RequeueError, find_requeue, is_ignorable, sentence

WAIT = RequeueError("Waiting", "waiting for PD cluster running")
IGNORE = IgnoreError("pod was deleted on purpose")


def caused(cause: Exception) -> Exception:
    """An error raised `from` another."""
    error = RuntimeError("stage failed")
    error.__cause__ = cause
    return error


def in_the_course_of(context: Exception) -> Exception:
    """An error that came up while another was handled."""
    error = RuntimeError("status was not written")
    error.__context__ = context
    return error


def hidden(context: Exception) -> Exception:
    """An error raised `from None`."""
    error = in_the_course_of(context)
    error.__suppress_context__ = True
    return error


@pytest.mark.parametrize(
    "error",
    [
        WAIT,
        caused(WAIT),
        in_the_course_of(WAIT),
        caused(in_the_course_of(WAIT)),
        ExceptionGroup("stages", [ValueError("bad"), caused(WAIT)]),
        caused(ExceptionGroup("stages", [ExceptionGroup("inner", [WAIT])])),
    ],
)
@pytest.mark.rule("MET-11")
def test_finds_a_requeue_error_among_causes_and_groups(error: Exception) -> None:
    assert WAIT is find_requeue(error)


@pytest.mark.parametrize("error", [ValueError("bad"), IGNORE, hidden(WAIT), ExceptionGroup("stages", [IGNORE])])
def test_other_errors_are_no_requeue(error: Exception) -> None:
    assert find_requeue(error) is None


def test_of_several_requeues_the_earliest_counts() -> None:
    soon, late, whenever = (
        RequeueError("Waiting", "a", after=5),
        RequeueError("Waiting", "b", after=30),
        RequeueError("Waiting", "c"),
    )
    assert soon is find_requeue(ExceptionGroup("stages", [whenever, late, soon]))


def test_a_circle_of_causes_is_walked_once() -> None:
    error = ValueError("bad")
    error.__cause__ = caused(error)

    assert find_requeue(error) is None
    assert not is_ignorable(error)


@pytest.mark.parametrize("error", [IGNORE, caused(IGNORE), ExceptionGroup("stages", [IGNORE, caused(IGNORE)])])
@pytest.mark.rule("1.3")
def test_an_ignore_error_is_seen_through_wrappers(error: Exception) -> None:
    assert is_ignorable(error)


@pytest.mark.parametrize("error", [in_the_course_of(IGNORE), ExceptionGroup("stages", [IGNORE, ValueError("bad")])])
@pytest.mark.rule("1.3")
def test_a_failure_beside_an_ignore_error_is_not_lost(error: Exception) -> None:
    assert not is_ignorable(error)


def test_a_sentence_names_every_member_of_a_group() -> None:
    group = ExceptionGroup("stages", [WAIT, ExceptionGroup("inner", [ValueError("bad"), KeyError()])])
    assert "waiting for PD cluster running; bad; KeyError" == sentence(group)
