"""Progress that shows nothing."""

import pytest

from transduce.progress import Progress, Silent


def test_silent_progress_says_nothing_and_hides_no_fault(capfd: pytest.CaptureFixture[str]) -> None:
    progress: Progress = Silent()
    with progress.stage("train", total=3, unit="steps") as stage:
        stage.advance()
        stage.advance(2)
        stage.describe("loss 4.2")
        with progress.stage("validate"):
            progress.note("a note")
            progress.warn("a warning")
    with pytest.raises(ZeroDivisionError), progress.stage("train"):
        raise ZeroDivisionError
    assert capfd.readouterr() == ("", "")
