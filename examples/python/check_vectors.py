"""Checks the signer against fixtures/signature-vectors.json, to the byte."""

import json
from pathlib import Path

from signer import authorization_digest, sign_authorization

vectors = json.loads((Path(__file__).parent / "../../fixtures/signature-vectors.json").read_text())["vectors"]
signed = 0
for vector in vectors:
    digest = "0x" + authorization_digest(vector["domain"], vector["message"]).hex()
    assert digest == vector["digest"], vector["name"]
    # The others are signatures as they should not be, or of a key that is not published.
    if vector["name"].startswith("a payment on "):
        signature = sign_authorization(vector["domain"], vector["message"], vector["privateKey"])
        assert signature == vector["signature"], vector["name"]
        signed += 1
print(f"{len(vectors)} digests and {signed} signatures are as they should be")
