"""The version of the CMake project, which every other place must repeat."""

import re

import pando_kv
from pandoctl import Pandoctl
from pandod_process import REPOSITORY, binary

PROJECT = (REPOSITORY / "CMakeLists.txt").read_text()
(VERSION,) = re.findall(r"^project\(pando VERSION (\d+\.\d+\.\d+) ", PROJECT, re.M)
# The tag of Pando's own images in a manifest, a command, or a kustomization.
IMAGE_TAG = re.compile(
    r"/pando(?:-example)?(?::|(?:\n +newName: .*)?\n +newTag: )(\d[\w.]*)"
)


def test_pandod_and_pandoctl_tell_it(pandod):
    ctl = Pandoctl(pandod.address)
    assert ctl("version", "-o", "json").json() == {
        "pandoctl": VERSION,
        "pandod": VERSION,
    }
    with pando_kv.Client(pandod.address) as client:
        assert client.stats().version == VERSION


def test_the_python_packages_have_it():
    assert pando_kv.__version__ == VERSION
    server = (REPOSITORY / "deploy/wheel/src/pando_server/__init__.py").read_text()
    assert f'__version__ = "{VERSION}"' in server
    client = (REPOSITORY / "clients/python/pyproject.toml").read_text()
    assert f'server = ["pando-server=={VERSION}"]' in client


def test_what_is_installed_has_it(prefix):
    cmake = prefix / "lib" / "cmake" / "pando" / "pandoConfigVersion.cmake"
    assert f'set(PACKAGE_VERSION "{VERSION}")' in cmake.read_text()
    pc = prefix / "lib" / "pkgconfig" / "pando-client.pc"
    assert f"\nVersion: {VERSION}\n" in pc.read_text()


def test_packages_have_it():
    config = (binary().parents[1] / "CPackConfig.cmake").read_text()
    assert f'set(CPACK_PACKAGE_VERSION "{VERSION}")' in config


def test_the_changelog_begins_with_it():
    text = (REPOSITORY / "CHANGELOG.md").read_text()
    assert re.search(r"^## \[(.*?)\]", text, re.MULTILINE).group(1) == VERSION


def test_images_are_tagged_with_it():
    deploy = REPOSITORY / "deploy"
    files = [
        REPOSITORY / "docs" / "kubernetes.md",
        deploy / "docker" / "Dockerfile",
        *(deploy / "kubernetes").rglob("*.yaml"),
    ]
    tags = {file: IMAGE_TAG.findall(file.read_text()) for file in files}
    assert sum(map(len, tags.values())) > 10
    assert {file for file in files if set(tags[file]) - {VERSION}} == set()
