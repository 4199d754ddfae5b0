"""Certificates for tests, made with openssl."""

import subprocess
from pathlib import Path

from pando_kv import Tls


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """A certificate authority whose files are in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.certificate = folder / "ca.crt"
        self._key = folder / "ca.key"
        _openssl(
            *("req", "-x509", "-nodes", "-newkey", "ec", "-days", 2),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=authority"),
            *("-keyout", self._key, "-out", self.certificate),
        )

    def sign(self, name: str) -> Tls:
        """Signs a certificate for the name, localhost and 127.0.0.1."""
        key, certificate = self._folder / f"{name}.key", self._folder / f"{name}.crt"
        request = self._folder / f"{name}.csr"
        _openssl(
            *("req", "-nodes", "-newkey", "ec", "-subj", f"/CN={name}"),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-keyout", key, "-out", request),
        )
        names = self._folder / f"{name}.ext"
        names.write_text(f"subjectAltName=DNS:{name},DNS:localhost,IP:127.0.0.1\n")
        _openssl(
            *("x509", "-req", "-in", request, "-days", 2, "-extfile", names),
            *("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial"),
            *("-out", certificate),
        )
        return Tls(ca=self.certificate, certificate=certificate, key=key)
