// Package secp256k1 stands in for github.com/decred/dcrd/dcrec/secp256k1/v4 where that cannot be had: what
// examples/go uses of it, done by Node.
package secp256k1

import (
	"encoding/hex"
	"os"
	"os/exec"
)

type PrivateKey struct{ bytes []byte }

type PublicKey struct{ bytes []byte }

func PrivKeyFromBytes(bytes []byte) *PrivateKey { return &PrivateKey{bytes} }

func (k *PrivateKey) Serialize() []byte { return k.bytes }

func (k *PrivateKey) PubKey() *PublicKey { return &PublicKey{Ask("public", k.bytes)} }

func (k *PublicKey) SerializeUncompressed() []byte { return k.bytes }

func Ask(operation string, values ...[]byte) []byte {
	args := []string{os.Getenv("TEST_SECP256K1"), operation}
	for _, value := range values {
		args = append(args, hex.EncodeToString(value))
	}
	output, err := exec.Command(os.Getenv("TEST_NODE"), args...).Output()
	if err != nil {
		panic(err)
	}
	bytes, err := hex.DecodeString(string(output))
	if err != nil {
		panic(err)
	}
	return bytes
}
