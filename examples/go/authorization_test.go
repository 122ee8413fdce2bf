package main

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The digests and signatures of the kit's vectors, to the byte.
func TestVectors(t *testing.T) {
	path := os.Getenv("X402_VECTORS")
	if path == "" {
		path = "../../fixtures/signature-vectors.json"
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			Name, Digest, PrivateKey, Signature string
			Domain                              Domain
			Message                             Authorization
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	signed := 0
	for _, vector := range file.Vectors {
		digest, err := vector.Message.Digest(vector.Domain)
		if err != nil || "0x"+hex.EncodeToString(digest) != vector.Digest {
			t.Errorf("%s: digest %x, %v", vector.Name, digest, err)
		}
		// The others are signatures as they should not be, or of a key that is not published.
		if !strings.HasPrefix(vector.Name, "a payment on ") {
			continue
		}
		signed++
		key, err := ParseKey(vector.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		if address := Address(key); !strings.EqualFold(address, vector.Message.From) {
			t.Errorf("%s: address %s", vector.Name, address)
		}
		if signature, err := vector.Message.Sign(vector.Domain, key); err != nil || signature != vector.Signature {
			t.Errorf("%s: signature %s, %v", vector.Name, signature, err)
		}
	}
	t.Logf("%d digests and %d signatures are as they should be", len(file.Vectors), signed)
}
