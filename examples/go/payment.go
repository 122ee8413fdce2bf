package main

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
)

// In seconds, however long the shop asks for: until then the shop can take the payment.
const longestValidity = 600

// Limits say what may be paid.
type Limits struct {
	// The chain as both versions of the protocol name it: "eip155:8453" and "base".
	CAIP2, V1Network string
	Asset            string
	// In the token's smallest unit.
	MaxAmount *big.Int
}

// challenge is what a shop answers with 402, in version 1 (body) or 2 (header PAYMENT-REQUIRED).
type challenge struct {
	X402Version int               `json:"x402Version"`
	Resource    json.RawMessage   `json:"resource,omitempty"`
	Extensions  json.RawMessage   `json:"extensions,omitempty"`
	Accepts     []json.RawMessage `json:"accepts"`
}

// terms are those parts of an entry of accepts that are read; the entry itself is sent back as it came.
type terms struct {
	Scheme            string `json:"scheme"`
	Network           string `json:"network"`
	Asset             string `json:"asset"`
	PayTo             string `json:"payTo"`
	Amount            string `json:"amount"`
	MaxAmountRequired string `json:"maxAmountRequired"` // version 1's name for the amount
	MaxTimeoutSeconds int64  `json:"maxTimeoutSeconds"`
	Extra             struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"extra"`
}

// signedPayload is the same in both versions.
type signedPayload struct {
	Signature     string        `json:"signature"`
	Authorization Authorization `json:"authorization"`
}

func readChallenge(header http.Header, body []byte) (challenge, error) {
	var asked challenge
	if encoded := header.Get("PAYMENT-REQUIRED"); encoded != "" {
		decoded, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return asked, fmt.Errorf("PAYMENT-REQUIRED cannot be read: %w", err)
		}
		body = decoded
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return asked, fmt.Errorf("the shop's terms cannot be read: %w", err)
	}
	if asked.X402Version != 1 && asked.X402Version != 2 {
		return asked, fmt.Errorf("the shop speaks version %d of x402", asked.X402Version)
	}
	return asked, nil
}

// choose gives the first entry that may be paid.
func (asked challenge) choose(limits Limits) (json.RawMessage, terms, error) {
	for _, entry := range asked.Accepts {
		var one terms
		if json.Unmarshal(entry, &one) != nil {
			continue
		}
		network := limits.CAIP2
		if asked.X402Version == 1 {
			network, one.Amount = limits.V1Network, one.MaxAmountRequired
		}
		amount, ok := new(big.Int).SetString(one.Amount, 10)
		if ok && amount.Cmp(limits.MaxAmount) <= 0 &&
			one.Scheme == "exact" && one.Network == network && strings.EqualFold(one.Asset, limits.Asset) {
			return entry, one, nil
		}
	}
	return nil, terms{}, errors.New("the shop asks for nothing that may be paid")
}

// payment is the header that carries a payment. The shop can take it until validBefore.
type payment struct {
	name, value string
	validBefore time.Time
}

// pay signs one authorization for what the shop asks.
func pay(asked challenge, limits Limits, key *secp256k1.PrivateKey) (payment, error) {
	accepted, one, err := asked.choose(limits)
	if err != nil {
		return payment{}, err
	}
	chainID, err := strconv.ParseInt(strings.TrimPrefix(limits.CAIP2, "eip155:"), 10, 64)
	if err != nil {
		return payment{}, fmt.Errorf("%q is no EVM network: %w", limits.CAIP2, err)
	}
	nonce := make([]byte, 32)
	if _, err := rand.Read(nonce); err != nil {
		return payment{}, err
	}
	validity := one.MaxTimeoutSeconds
	if validity > longestValidity {
		validity = longestValidity
	}
	validBefore := time.Now().Unix() + validity
	payload := signedPayload{Authorization: Authorization{
		From:        Address(key),
		To:          one.PayTo,
		Value:       one.Amount,
		ValidAfter:  "0",
		ValidBefore: strconv.FormatInt(validBefore, 10),
		Nonce:       "0x" + hex.EncodeToString(nonce),
	}}
	payload.Signature, err = payload.Authorization.Sign(Domain{one.Extra.Name, one.Extra.Version, chainID, one.Asset}, key)
	if err != nil {
		return payment{}, err
	}
	name := "PAYMENT-SIGNATURE"
	content := map[string]interface{}{"x402Version": asked.X402Version, "payload": payload}
	if asked.X402Version == 1 {
		name, content["scheme"], content["network"] = "X-PAYMENT", one.Scheme, one.Network
	} else {
		content["accepted"] = accepted
		if asked.Resource != nil {
			content["resource"] = asked.Resource
		}
		if asked.Extensions != nil {
			content["extensions"] = asked.Extensions
		}
	}
	encoded, err := json.Marshal(content)
	return payment{name, base64.StdEncoding.EncodeToString(encoded), time.Unix(validBefore, 0)}, err
}
