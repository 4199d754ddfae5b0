"""The Dockerfile, as far as tests can check it without a build."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from pandod_process import REPOSITORY

DOCKERFILE = REPOSITORY / "deploy" / "docker" / "Dockerfile"
TEXT = DOCKERFILE.read_text()
# A build on a machine uses these packages, but the image does not need them.
NOT_IN_THE_IMAGE = {
    "pkgconf",
    "python3",
    "python3-dev",
    "python3-venv",
}


def instructions(name: str, text: str = TEXT) -> list[str]:
    return re.findall(rf"^{name} (.*)$", text, re.MULTILINE)


def installed(text: str) -> set[str]:
    """Returns the packages of the first list of apt-get install."""
    (first, *_) = re.findall(r"apt-get install [^\n]*\\\n((?: {6}\S+ \\\n)+)", text)
    return set(re.findall(r"^ +(\S+) \\$", first, re.MULTILINE))


def of_setup() -> set[str]:
    return set((REPOSITORY / "tools/setup/build.packages").read_text().split())


def test_hadolint_finds_nothing():
    # pip installed hadolint beside the Python that runs the tests.
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert hadolint, "hadolint is not installed"
    engine = DOCKERFILE.with_name("engine.Dockerfile")
    subprocess.run([hadolint, DOCKERFILE, engine], check=True)


def test_images_of_engines_get_the_wheels_that_are_packaged():
    folder = DOCKERFILE.parent
    text = (folder / "engine.Dockerfile").read_text()
    assert "source=build/packages" in text
    assert "/wheels/pando_kv-*.whl /wheels/pando_server-*.whl" in text
    ignored = (folder / "engine.Dockerfile.dockerignore").read_text().split()
    assert ignored == ["*", "!build/packages/*.whl"]
    version = re.search(
        r"newName: registry.example.com/vllm-with-pando\n    newTag: (\S+)",
        (REPOSITORY / "deploy/kubernetes/overlays/vllm/kustomization.yaml").read_text(),
    )[1]
    assert f"ENGINE=vllm/vllm-openai:v{version}\n" in text


def test_it_installs_what_the_build_needs():
    # The Dockerfile uses curl to get the key of CUDA's packages.
    differing = (installed(TEXT) - {"curl"}) ^ (of_setup() - NOT_IN_THE_IMAGE)
    assert not differing, "must be in the Dockerfile, or in NOT_IN_THE_IMAGE above"


def test_bases_are_pinned():
    stages = set(re.findall(r" AS (\S+)", TEXT))
    for base in re.findall(r"^FROM (\S+)", TEXT, re.MULTILINE):
        is_pinned = re.fullmatch(r"debian:\d+\.\d+-slim@sha256:[0-9a-f]{64}", base)
        assert is_pinned or base in stages | {"scratch", "cuda-${CUDA}"}, base


def test_images_hold_the_root_alone_and_run_as_its_user():
    for image in TEXT.split("FROM scratch")[1:]:
        assert "COPY --from=build /root-of-image /\n" in image
        assert instructions("USER", image) == ["65532:65532"]
        assert not instructions("RUN", image)
    assert "\nuser=65532\n" in (DOCKERFILE.parent / "make_root.sh").read_text()


def test_health_is_asked_of_pandoctl_without_a_shell():
    (health,) = re.findall(r"HEALTHCHECK .*CMD (.*)", TEXT)
    assert health == '["/usr/bin/pandoctl", "health"]'


def test_what_is_built_is_what_the_images_need():
    assert "--target pandod pando-keeper pando-mover pandoctl " in TEXT
    assert instructions("ENTRYPOINT") == [
        '["/usr/bin/example_worker"]',
        '["/usr/bin/pando-keeper", "/usr/bin/pandod"]',
    ]


def test_images_say_what_they_are():
    version = re.search(
        r"^project\(pando VERSION (\S+)",
        (REPOSITORY / "CMakeLists.txt").read_text(),
        re.MULTILINE,
    )[1]
    for image in TEXT.split("FROM scratch")[1:]:
        labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="(.*?)"', image))
        assert labels.keys() == {"title", "description", "version", "licenses"}
        assert labels["version"] == version
        assert labels["licenses"] == "Apache-2.0"
