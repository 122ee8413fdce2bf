// Package ecdsa stands in for github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa.
package ecdsa

import "github.com/decred/dcrd/dcrec/secp256k1/v4"

func SignCompact(key *secp256k1.PrivateKey, hash []byte, isCompressedKey bool) []byte {
	signature := secp256k1.Ask("sign", key.Serialize(), hash)
	v := 27 + signature[64]
	if isCompressedKey {
		v += 4
	}
	return append([]byte{v}, signature[:64]...)
}
