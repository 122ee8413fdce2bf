package main

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strings"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"golang.org/x/crypto/sha3"
)

// Domain is the EIP-712 domain of a token.
type Domain struct {
	Name              string `json:"name"`
	Version           string `json:"version"`
	ChainID           int64  `json:"chainId"`
	VerifyingContract string `json:"verifyingContract"`
}

// Authorization is what a payer signs (EIP-3009). Amounts and times are decimal strings, as in the payment's JSON.
type Authorization struct {
	From        string `json:"from"`
	To          string `json:"to"`
	Value       string `json:"value"`
	ValidAfter  string `json:"validAfter"`
	ValidBefore string `json:"validBefore"`
	Nonce       string `json:"nonce"`
}

const (
	domainType        = "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
	authorizationType = "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
)

// Digest is the hash of an authorization that is signed, by EIP-712.
func (a Authorization) Digest(domain Domain) ([]byte, error) {
	var w words
	separator := keccak256(
		keccak256([]byte(domainType)),
		keccak256([]byte(domain.Name)),
		keccak256([]byte(domain.Version)),
		big.NewInt(domain.ChainID).FillBytes(make([]byte, 32)),
		w.hex(domain.VerifyingContract, 20),
	)
	message := keccak256(
		keccak256([]byte(authorizationType)),
		w.hex(a.From, 20),
		w.hex(a.To, 20),
		w.decimal(a.Value),
		w.decimal(a.ValidAfter),
		w.decimal(a.ValidBefore),
		w.hex(a.Nonce, 32),
	)
	return keccak256([]byte("\x19\x01"), separator, message), w.err
}

// Sign gives the 65 bytes that the token takes: r, s in the lower half, and v of 27 or 28.
func (a Authorization) Sign(domain Domain, key *secp256k1.PrivateKey) (string, error) {
	digest, err := a.Digest(domain)
	if err != nil {
		return "", err
	}
	compact := ecdsa.SignCompact(key, digest, false) // v comes first
	return "0x" + hex.EncodeToString(append(compact[1:], compact[0])), nil
}

// ParseKey reads a private key: 0x and 64 digits.
func ParseKey(text string) (*secp256k1.PrivateKey, error) {
	bytes, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
	if err != nil || len(bytes) != 32 {
		return nil, fmt.Errorf("a private key is 0x and 64 hexadecimal digits")
	}
	return secp256k1.PrivKeyFromBytes(bytes), nil
}

// Address is the account of a key.
func Address(key *secp256k1.PrivateKey) string {
	return "0x" + hex.EncodeToString(keccak256(key.PubKey().SerializeUncompressed()[1:])[12:])
}

func keccak256(parts ...[]byte) []byte {
	hash := sha3.NewLegacyKeccak256()
	for _, part := range parts {
		hash.Write(part)
	}
	return hash.Sum(nil)
}

// words makes ABI words of 32 bytes, and keeps the first error.
type words struct{ err error }

func (w *words) hex(text string, size int) []byte {
	bytes, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
	if err != nil || len(bytes) != size {
		return w.fail("%q is not %d bytes in hexadecimal", text, size)
	}
	return append(make([]byte, 32-size), bytes...)
}

func (w *words) decimal(text string) []byte {
	number, ok := new(big.Int).SetString(text, 10)
	if !ok || number.Sign() < 0 || number.BitLen() > 256 {
		return w.fail("%q is not a uint256", text)
	}
	return number.FillBytes(make([]byte, 32))
}

func (w *words) fail(format string, args ...interface{}) []byte {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
	return make([]byte, 32)
}
