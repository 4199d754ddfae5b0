"""Set-up of the demo's tests: they import its modules and use one BLAS thread."""

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "demo"))
