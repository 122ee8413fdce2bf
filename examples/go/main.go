// Buys once what is at X402_URL, and prints it. `x402-kit judge client` starts it with these variables.
package main

import (
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"strconv"
	"time"
)

func main() {
	goods, err := buy(os.Getenv("X402_URL"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(string(goods))
}

// The waits before a payment is sent again.
var waits = []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}

// buy signs one authorization, and sends it again, as it is, while no goods come: a token moves for an authorization
// once, however often it is sent. To sign another one is to pay twice.
func buy(url string) ([]byte, error) {
	maxAmount, ok := new(big.Int).SetString(os.Getenv("X402_MAX_AMOUNT"), 10)
	if !ok {
		return nil, fmt.Errorf("X402_MAX_AMOUNT is the most that may be paid, in the token's smallest unit")
	}
	key, err := ParseKey(os.Getenv("X402_PRIVATE_KEY"))
	if err != nil {
		return nil, err
	}
	limits := Limits{os.Getenv("X402_CAIP2"), os.Getenv("X402_NETWORK"), os.Getenv("X402_ASSET"), maxAmount}

	first := get(url, payment{})
	if first.err != nil || first.status != http.StatusPaymentRequired {
		return first.goods()
	}
	asked, err := readChallenge(first.header, first.body)
	if err != nil {
		return nil, err
	}
	signed, err := pay(asked, limits, key)
	if err != nil {
		return nil, err
	}
	last := get(url, signed)
	for _, wait := range waits {
		if _, err := last.goods(); err == nil {
			break
		}
		time.Sleep(last.retryAfter(wait))
		last = get(url, signed)
	}
	goods, err := last.goods()
	if err != nil {
		until := signed.validBefore.UTC().Format(time.RFC3339)
		return nil, fmt.Errorf("%w\nNot bought yet; it can still be taken until %s", err, until)
	}
	return goods, nil
}

type answer struct {
	status int
	header http.Header
	body   []byte
	err    error
}

var client = http.Client{
	Timeout: 5 * time.Second,
	// Within the shop alone: a payment is for nobody else.
	CheckRedirect: func(request *http.Request, via []*http.Request) error {
		if from := via[0].URL; request.URL.Host != from.Host || request.URL.Scheme != from.Scheme || len(via) > 4 {
			return http.ErrUseLastResponse
		}
		return nil
	},
}

func get(url string, paid payment) answer {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return answer{err: err}
	}
	if paid.name != "" {
		request.Header.Set(paid.name, paid.value)
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, body, err}
}

func (a answer) goods() ([]byte, error) {
	if a.err != nil {
		return nil, a.err
	}
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("the shop answers %d: %s", a.status, a.body)
	}
	return a.body, nil
}

// retryAfter is how long the shop asks to wait, within reason.
func (a answer) retryAfter(least time.Duration) time.Duration {
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	if asked := time.Duration(seconds) * time.Second; err == nil && asked > least && asked <= 5*time.Second {
		return asked
	}
	return least
}
