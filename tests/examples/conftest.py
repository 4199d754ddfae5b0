"""Makes the demo's modules importable; one BLAS thread, as in the demo."""

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "demo"))
