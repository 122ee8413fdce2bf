"""Signs x402 payments (scheme "exact" on EVM networks) with nothing but Python's own library.

It shows what is signed, and lets an example run without installing anything. It is slow, and nothing in it is made to
resist attacks that measure time: in production sign with a library, such as eth-account:

    Account.sign_typed_data(private_key, domain, types, message)
"""

import hashlib
import hmac

# --- Keccak-256, which is not the SHA3-256 of hashlib: the padding differs ---

ROTATIONS = [[0, 36, 3, 41, 18], [1, 44, 10, 45, 2], [62, 6, 43, 15, 61], [28, 55, 25, 21, 56], [27, 20, 39, 8, 14]]
MASK = (1 << 64) - 1


def rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & MASK if by else value


def round_constants():
    """The 24 constants of Keccak's last step, by its shift register."""
    register = 1
    for _ in range(24):
        constant = 0
        for bit in range(7):
            if register & 1:
                constant |= 1 << ((1 << bit) - 1)
            register <<= 1
            if register & 0x100:
                register ^= 0x171
        yield constant


CONSTANTS = list(round_constants())


def permute(a: list) -> list:
    for constant in CONSTANTS:
        c = [a[x][0] ^ a[x][1] ^ a[x][2] ^ a[x][3] ^ a[x][4] for x in range(5)]
        d = [c[x - 1] ^ rotate(c[(x + 1) % 5], 1) for x in range(5)]
        b = [[0] * 5 for _ in range(5)]
        for x in range(5):
            for y in range(5):
                b[y][(2 * x + 3 * y) % 5] = rotate(a[x][y] ^ d[x], ROTATIONS[x][y])
        a = [[b[x][y] ^ (~b[(x + 1) % 5][y] & b[(x + 2) % 5][y]) for y in range(5)] for x in range(5)]
        a[0][0] ^= constant
    return a


def keccak256(data: bytes) -> bytes:
    rate = 136
    padded = bytearray(data + b"\x01" + bytes(-(len(data) + 1) % rate))
    padded[-1] |= 0x80
    state = [[0] * 5 for _ in range(5)]
    for start in range(0, len(padded), rate):
        for lane in range(rate // 8):
            word = padded[start + 8 * lane : start + 8 * lane + 8]
            state[lane % 5][lane // 5] ^= int.from_bytes(word, "little")
        state = permute(state)
    return b"".join(state[lane % 5][lane // 5].to_bytes(8, "little") for lane in range(4))


# --- secp256k1, with the secret number of each signature made by RFC 6979 ---

P = 2**256 - 2**32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)


def add(a, b):
    if a is None or b is None:
        return a or b
    if a[0] == b[0] and (a[1] + b[1]) % P == 0:
        return None
    if a == b:
        slope = 3 * a[0] * a[0] * pow(2 * a[1], -1, P)
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, P)
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def multiply(point, by: int):
    result = None
    while by:
        if by & 1:
            result = add(result, point)
        point, by = add(point, point), by >> 1
    return result


def address_of(private_key: str) -> str:
    """The account of a key: the last 20 bytes of its public key's hash."""
    x, y = multiply(G, int(private_key, 16))
    return "0x" + keccak256(x.to_bytes(32, "big") + y.to_bytes(32, "big"))[12:].hex()


def secret_numbers(key: bytes, digest: bytes):
    """RFC 6979, 3.2, with SHA-256."""
    k, v = bytes(32), b"\x01" * 32
    seed = key + (int.from_bytes(digest, "big") % N).to_bytes(32, "big")
    for end in (b"\x00", b"\x01"):
        k = hmac.digest(k, v + end + seed, hashlib.sha256)
        v = hmac.digest(k, v, hashlib.sha256)
    while True:
        v = hmac.digest(k, v, hashlib.sha256)
        yield int.from_bytes(v, "big")
        k = hmac.digest(k, v + b"\x00", hashlib.sha256)
        v = hmac.digest(k, v, hashlib.sha256)


def sign_digest(digest: bytes, private_key: bytes) -> str:
    """65 bytes as USDC takes them: r, s in the lower half, and v 27 or 28."""
    d, z = int.from_bytes(private_key, "big"), int.from_bytes(digest, "big")
    for k in secret_numbers(private_key, digest):
        if not 0 < k < N:
            continue
        x, y = multiply(G, k)
        r = x % N
        s = pow(k, -1, N) * (z + r * d) % N
        if r == 0 or s == 0:
            continue
        odd = y & 1
        if s > N // 2:
            s, odd = N - s, 1 - odd
        return f"0x{r:064x}{s:064x}{27 + odd:02x}"
    raise AssertionError("there is always another number")


# --- EIP-712: what a payer signs ---

DOMAIN = "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
AUTHORIZATION = (
    "TransferWithAuthorization(address from,address to,uint256 value,"
    "uint256 validAfter,uint256 validBefore,bytes32 nonce)"
)


def word(value) -> bytes:
    """An integer, or hexadecimal of at most 32 bytes, as one ABI word."""
    return (int(value, 16) if isinstance(value, str) else value).to_bytes(32, "big")


def authorization_digest(domain: dict, message: dict) -> bytes:
    separator = keccak256(
        keccak256(DOMAIN.encode())
        + keccak256(domain["name"].encode())
        + keccak256(domain["version"].encode())
        + word(domain["chainId"])
        + word(domain["verifyingContract"])
    )
    struct = keccak256(
        keccak256(AUTHORIZATION.encode())
        + word(message["from"])
        + word(message["to"])
        + word(int(message["value"]))
        + word(int(message["validAfter"]))
        + word(int(message["validBefore"]))
        + word(message["nonce"])
    )
    return keccak256(b"\x19\x01" + separator + struct)


def sign_authorization(domain: dict, message: dict, private_key: str) -> str:
    return sign_digest(authorization_digest(domain, message), bytes.fromhex(private_key[2:]))
