"""docs/security.md: its certificates let a client in, and cannot sign others."""

import re
import subprocess

from metrics_page import free_address
from pando_kv import Client, Tls
from pandod_process import REPOSITORY, serving

TEXT = (REPOSITORY / "docs" / "security.md").read_text()
(COMMANDS,) = re.findall(
    r"^```bash\n(openssl .*?)^```$", TEXT, re.MULTILINE | re.DOTALL
)


def test_a_client_with_these_certificates_is_served(tmp_path):
    commands = COMMANDS.replace("pando.example", "localhost")
    subprocess.run(["bash", "-ec", commands], cwd=tmp_path, check=True)
    ca, tcp = tmp_path / "ca.crt", free_address().replace("127.0.0.1", "localhost")
    me = Tls(ca=ca, certificate=tmp_path / "me.crt", key=tmp_path / "me.key")
    with (
        serving(
            tmp_path,
            tcp=tcp,
            tls_certificate=tmp_path / "tls.crt",
            tls_key=tmp_path / "tls.key",
            tls_client_ca=ca,
        ),
        Client(tcp, tls=me) as client,
    ):
        assert client.stats().sessions == 1
    for name in ("tls.crt", "me.crt"):
        shown = ["openssl", "x509", "-in", name, "-noout", "-ext", "basicConstraints"]
        said = subprocess.check_output(shown, cwd=tmp_path, text=True)
        assert "CA:FALSE" in said
