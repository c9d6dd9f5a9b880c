// Package tests holds the client against real servers; clients/testing/rig.py says which.
package tests

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	turnline "turnline.dev/client"
	turnlinev1 "turnline.dev/client/turnline/v1"
)

// within bounds a test's wait for something that should come soon.
const within = 60 * time.Second

var ofOneTry = turnline.Options{MaxTries: 1}

func env(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set", name)
	}
	return value
}

func client(t *testing.T, target string, options turnline.Options) *turnline.Client {
	t.Helper()
	made, err := turnline.New(target, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	return made
}

// open is a client of the server that wants no token.
func open(t *testing.T) *turnline.Client {
	t.Helper()
	return client(t, env(t, "TURNLINE_OPEN"), turnline.Options{})
}

// strict is a client of the server with TLS and tokens.
func strict(t *testing.T, token string, maxTries int) *turnline.Client {
	t.Helper()
	if token == "" {
		return strictly(t, nil, maxTries)
	}
	return strictly(t, turnline.StaticToken(token), maxTries)
}

// strictly is the same with a token that is asked for before each try.
func strictly(
	t *testing.T, token func(context.Context) (string, error), maxTries int,
) *turnline.Client {
	t.Helper()
	pem, err := os.ReadFile(env(t, "TURNLINE_STRICT_CA"))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	options := turnline.Options{
		TLS: &tls.Config{RootCAs: trusted}, Token: token, MaxTries: maxTries,
	}
	return client(t, env(t, "TURNLINE_STRICT"), options)
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	return ctx
}

// turn is one for an agent, in a session of the test's own.
func turn(t *testing.T, agent, prompt string) turnline.Turn {
	t.Helper()
	return turnline.Turn{
		SessionID: t.Name(),
		Request:   &turnlinev1.ChatRequest{Agent: agent, Prompt: prompt},
	}
}

// gate is a file that the agent `hold` waits for.
type gate string

func newGate(t *testing.T) gate {
	t.Helper()
	folder, err := os.MkdirTemp(env(t, "TURNLINE_FOLDER"), "")
	if err != nil {
		t.Fatal(err)
	}
	made := gate(filepath.Join(folder, "open"))
	t.Cleanup(func() { made.open(t) })
	return made
}

// step is the file that a step of the agent `steps` waits for.
func (g gate) step(number int) gate {
	return gate(fmt.Sprintf("%s.%d", g, number))
}

func (g gate) open(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(string(g), nil, 0o600); err != nil {
		// Not Fatal: others than the test's own goroutine open gates too.
		t.Error(err)
	}
}

// answer is what a call gave that another goroutine made.
type answer struct {
	end *turnlinev1.TurnEnd
	err error
}

// refused is the error of a call, which must be one of the client's.
func refused(t *testing.T, err error) *turnline.Error {
	t.Helper()
	made, is := errors.AsType[*turnline.Error](err)
	if !is {
		t.Fatalf("not an error of the client: %v", err)
	}
	return made
}

// admitted waits until the server knows a turn.
func admitted(t *testing.T, client *turnline.Client, requestID string) {
	t.Helper()
	ctx := soon(t)
	for ctx.Err() == nil {
		if _, err := client.Reply(ctx, requestID, 0); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s was not admitted", requestID)
}

// counted is a token, and a counter of the tries it was asked for.
func counted(token string, then func(tries int32)) func(context.Context) (string, error) {
	var tries atomic.Int32
	return func(context.Context) (string, error) {
		then(tries.Add(1))
		return token, nil
	}
}

// admittedByStream asks for a turn's stream and leaves as soon as the turn is on its way.
func admittedByStream(t *testing.T, client *turnline.Client, turn turnline.Turn) string {
	t.Helper()
	for event, err := range client.Stream(soon(t), turn) {
		if err != nil {
			t.Fatal(err)
		}
		if admitted, is := event.(turnline.Admitted); is {
			return admitted.GetRequestId()
		}
	}
	t.Fatal("the turn was not admitted")
	return ""
}

// seen is what a stream brought; in kinds a text stands for itself, other chunks are left out.
type seen struct {
	kinds []string
	text  string
	end   *turnlinev1.TurnEnd
	first turnline.Chunk
	id    string
}

// read reads a stream to its end; on is called for each text.
func read(events iter.Seq2[turnline.Event, error], on func(turnline.Chunk)) (seen, error) {
	var all seen
	for event, err := range events {
		if err != nil {
			return all, err
		}
		switch event := event.(type) {
		case turnline.Admitted:
			all.kinds, all.id = append(all.kinds, "admitted"), event.GetRequestId()
		case turnline.Chunk:
			if all.first.Chunk == nil {
				all.first = event
			}
			if event.Text() != "" {
				all.kinds, all.text = append(all.kinds, event.Text()), all.text+event.Text()
				on(event)
			}
		case turnline.Restart:
			all.kinds, all.text = append(all.kinds, "restart"), ""
		case turnline.End:
			all.kinds, all.end = append(all.kinds, "end"), event.TurnEnd
		}
	}
	return all, nil
}

func nothing(turnline.Chunk) {}
