module x402buyer

go 1.20

require (
	github.com/decred/dcrd/dcrec/secp256k1/v4 v4.3.0
	golang.org/x/crypto v0.31.0
)
