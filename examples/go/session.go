package main

// Tests against `x402-kit mock`, each with a facilitator of its own. A file to copy: it needs the standard library alone.
//
//	session, err := NewSession("http://127.0.0.1:4402")
//	defer session.Close()
//	err = session.Scenario("settle.insufficient_funds", 1)
//	payment, err := session.Payment(map[string]any{"payer": "funded", "amount": "0.01"})
//	request.Header.Set(payment.Header.Name, payment.Header.Value)

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Session is a facilitator of its own within a running mock.
type Session struct {
	// URL is what the shop under test calls its facilitator; APIKey is to be sent to it.
	URL    string
	APIKey string
	base   string
}

// SignedPayment is what the mock signs: bodies for a facilitator, and the header that buys at a shop.
type SignedPayment struct {
	Body       json.RawMessage `json:"body"`
	SettleBody json.RawMessage `json:"settleBody"`
	Header     struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"header"`
	Payer   string `json:"payer"`
	Network string `json:"network"`
}

// Call is a request that the facilitator got, with its answer.
type Call struct {
	Operation string          `json:"operation"`
	Scenario  string          `json:"scenario"`
	Request   json.RawMessage `json:"request"`
	Payment   json.RawMessage `json:"payment"`
	Answer    json.RawMessage `json:"answer"`
}

// NewSession makes a session of the mock at an origin, such as http://127.0.0.1:4402.
func NewSession(origin string) (*Session, error) {
	var made struct {
		ID          string `json:"id"`
		Facilitator struct {
			URL string `json:"url"`
		} `json:"facilitator"`
		Organization struct {
			APIKey string `json:"apiKey"`
		} `json:"organization"`
	}
	if err := control("POST", origin+"/__sessions", struct{}{}, &made); err != nil {
		return nil, err
	}
	return &Session{made.Facilitator.URL, made.Organization.APIKey, origin + "/__sessions/" + made.ID}, nil
}

// Scenario chooses the outcome of the next so many requests of its operation.
func (session *Session) Scenario(name string, times int) error {
	return control("POST", session.base+"/__scenario", map[string]any{"name": name, "times": times}, nil)
}

// Payment has a payment signed. The order may have payer, network, amount, x402Version, method, broken and so on.
func (session *Session) Payment(order map[string]any) (SignedPayment, error) {
	var payment SignedPayment
	err := control("POST", session.base+"/__payment", order, &payment)
	return payment, err
}

// Calls gives what was asked of this facilitator, oldest first.
func (session *Session) Calls() ([]Call, error) {
	var calls []Call
	err := control("GET", session.base+"/__calls", nil, &calls)
	return calls, err
}

// AdvanceTime moves the time forward, so that payments expire.
func (session *Session) AdvanceTime(seconds int) error {
	return control("POST", session.base+"/__advance-time", map[string]any{"seconds": seconds}, nil)
}

// Close ends the session.
func (session *Session) Close() error {
	return control("DELETE", session.base, nil, nil)
}

var controlClient = http.Client{Timeout: 30 * time.Second}

func control(method, url string, body, into any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, url, sent)
	if err != nil {
		return err
	}
	response, err := controlClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d %s", method, url, response.StatusCode, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
