"""Nothing in the package unpickles: `test_doors.py` reads the source; here Python is asked while all of it runs."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.small_run import environment

TRAIN_AND_TRANSLATE = """
import sys
from pathlib import Path

from tests.faults import small_run
from transduce.translator import Translator

folder, unpickled = Path(sys.argv[1]), []


def listen(event, arguments):
    if event == "pickle.find_class":
        unpickled.append(arguments)


sys.addaudithook(listen)

corpus = small_run.write_text(folder / "corpus")
for steps in (4, 6):
    small_run.train(corpus, folder / "run", settings={"training.steps": steps})
Translator.load(folder / "run", threads=1).translate("Das Haus ist alt.")
print("unpickled", unpickled)

import pickle
pickle.loads(pickle.dumps(Path("x")))
print("seen", len(unpickled) > 0)
"""


@pytest.mark.slow
def test_training_resuming_and_translating_unpickle_nothing(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", TRAIN_AND_TRANSLATE, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "unpickled []" in result.stdout
    assert "seen True" in result.stdout, "the hook itself does not work"
