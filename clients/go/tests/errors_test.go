package tests

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	turnline "turnline.dev/client"
)

func TestTheRightTokenOverTLSIsAnswered(t *testing.T) {
	end, err := strict(t, env(t, "TURNLINE_TOKEN"), 1).Chat(soon(t), turn(t, "echo", "hi"))

	if err != nil || end.GetReply().GetResult() != "hi " {
		t.Fatal(end, err)
	}
}

func TestWithoutAGoodTokenACallerIsUnauthenticatedAndTheTokenIsInNoMessage(t *testing.T) {
	for _, token := range []string{"", "a-secret-of-mine"} {
		_, err := strict(t, token, 1).Chat(soon(t), turn(t, "echo", "hi"))

		failed := refused(t, err)
		if failed.Code != "unauthenticated" || failed.Retryable || strings.Contains(err.Error(), "a-secret-of-mine") {
			t.Fatal(failed)
		}
	}
}

func TestATokenThatCannotBeHadIsTheErrorsCause(t *testing.T) {
	cause := errors.New("the provider is away")
	options := turnline.Options{Token: func(context.Context) (string, error) { return "", cause }}
	_, err := client(t, env(t, "TURNLINE_OPEN"), options).Chat(soon(t), turn(t, "echo", "hi"))

	if refused(t, err).Code != "unauthenticated" || !errors.Is(err, cause) {
		t.Fatal(err)
	}
}

func TestAnotherUsersTurnIsNotFound(t *testing.T) {
	submitted, err := strict(t, env(t, "TURNLINE_TOKEN"), 1).Submit(soon(t), turn(t, "echo", "hi"))
	if err != nil {
		t.Fatal(err)
	}

	_, err = strict(t, env(t, "TURNLINE_OTHER_TOKEN"), 1).Reply(soon(t), submitted.GetRequestId(), 0)
	if refused(t, err).Code != "not_found" {
		t.Fatal(err)
	}
}

func TestAnInvalidRequestNamesItsField(t *testing.T) {
	unnamed := turn(t, "echo", "hi")
	unnamed.SessionID = ""
	_, err := open(t).Chat(soon(t), unnamed)

	if failed := refused(t, err); failed.Code != "invalid_request" || failed.Field != "session_id" {
		t.Fatal(failed)
	}
}

func TestAnUnknownAgentIsRefused(t *testing.T) {
	_, err := open(t).Submit(soon(t), turn(t, "nobody", "hi"))

	if refused(t, err).Code != "unknown_agent" {
		t.Fatal(err)
	}
}

func TestWhatNobodyAdmittedIsNotFound(t *testing.T) {
	client := open(t)
	_, reply := client.Reply(soon(t), "nobody", 0)
	_, cancel := client.Cancel(soon(t), "nobody")
	_, resume := read(client.Resume(soon(t), "nobody", nil), nothing)

	for _, err := range []error{reply, cancel, resume} {
		if failed := refused(t, err); failed.Code != "not_found" || failed.RequestID != "nobody" {
			t.Fatal(err)
		}
	}
}

func TestAnIDWithAnotherRequestIsRefused(t *testing.T) {
	client, one, two := open(t), turn(t, "echo", "one"), turn(t, "echo", "two")
	one.RequestID, two.RequestID = t.Name(), t.Name()
	_, err := client.Chat(soon(t), one)
	if err != nil {
		t.Fatal(err)
	}

	_, err = client.Chat(soon(t), two)
	if refused(t, err).Code != "request_id_reused" {
		t.Fatal(err)
	}
}

func TestATooLargeRequestIsRefusedAndNotTriedAgain(t *testing.T) {
	large := turn(t, "echo", strings.Repeat("x", 200_000))
	_, err := strict(t, env(t, "TURNLINE_TOKEN"), 5).Chat(soon(t), large)

	if failed := refused(t, err); failed.Code != "resource_exhausted" || failed.Retryable {
		t.Fatal(failed)
	}
}

func TestAFullSessionSaysWhenToComeBackAndIsTriedAgain(t *testing.T) {
	gate, token := newGate(t), env(t, "TURNLINE_TOKEN")
	impatient := strict(t, token, 1)
	for range 2 {
		if _, err := impatient.Submit(soon(t), turn(t, "hold", string(gate))); err != nil {
			t.Fatal(err)
		}
	}

	_, err := impatient.Submit(soon(t), turn(t, "hold", string(gate)))
	failed := refused(t, err)
	if failed.Code != "session_queue_full" || !failed.Retryable || failed.RetryAfter <= 0 {
		t.Fatal(failed)
	}

	// Asked for a token once more, it was refused before.
	patient := strictly(t, counted(token, func(tries int32) {
		if tries == 2 {
			gate.open(t)
		}
	}), 1000)
	began := time.Now()
	if _, err = patient.Submit(soon(t), turn(t, "hold", string(gate))); err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(began); waited < failed.RetryAfter {
		t.Fatalf("came back after %s, not %s", waited, failed.RetryAfter)
	}
}

func TestAnAgentThatFailsIsAnErrorInEveryMode(t *testing.T) {
	client, broken := open(t), turn(t, "broken", "go")
	broken.RequestID = t.Name()
	_, chat := client.Chat(soon(t), broken)
	_, reply := client.Reply(soon(t), t.Name(), 0)
	_, stream := read(client.Stream(soon(t), broken), nothing)

	for _, err := range []error{chat, reply, stream} {
		failed := refused(t, err)
		if failed.Code != "agent_failed" || failed.Retryable || failed.RequestID != t.Name() {
			t.Fatal(failed)
		}
		if strings.Contains(err.Error(), "secret-of-the-agent") {
			t.Fatal(err)
		}
	}
}

func TestAnAgentsRefusalHasItsWords(t *testing.T) {
	_, err := open(t).Chat(soon(t), turn(t, "refusing", "you"))

	if refused(t, err).Message != "no credit for you" {
		t.Fatal(err)
	}
}

func TestACallersDeadlineEndsItsWaitAndNotItsTurn(t *testing.T) {
	client, gate := open(t), newGate(t)
	held := turn(t, "hold", string(gate))
	held.RequestID = t.Name()
	if _, err := client.Submit(soon(t), held); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := client.Chat(ctx, held)

	failed := refused(t, err)
	if failed.Code != "deadline_exceeded" || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(failed)
	}
	gate.open(t)
	end, err := client.Reply(soon(t), failed.RequestID, within)
	if err != nil || end.GetReply().GetResult() != "holding done" {
		t.Fatal(end, err)
	}
}

func TestACallerWhoIsCancelledIsToldSo(t *testing.T) {
	gate := newGate(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := read(open(t).Stream(ctx, turn(t, "hold", string(gate))), func(turnline.Chunk) { cancel() })

	if refused(t, err).Code != "cancelled" || !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestAClientThatIsClosedEndsWhatRunsOnIt(t *testing.T) {
	gate, proxy := newGate(t), newProxy(t, env(t, "TURNLINE_OPEN"))
	client := client(t, proxy.address(), turnline.Options{})
	_, err := read(client.Stream(soon(t), turn(t, "hold", string(gate))), func(turnline.Chunk) { _ = client.Close() })

	if refused(t, err).Code != "cancelled" || proxy.connections() != 1 {
		t.Fatal(err, proxy.connections())
	}
}

func TestATurnPastItsDeadlineIsCutOff(t *testing.T) {
	client, gate := strict(t, env(t, "TURNLINE_TOKEN"), 5), newGate(t)
	_, err := client.Chat(soon(t), turn(t, "hold", string(gate)))

	if refused(t, err).Code != "turn_deadline_exceeded" {
		t.Fatal(err)
	}
}

func TestChunksThatAreNoLongerKeptAreAnErrorAndTheReplyIsWhole(t *testing.T) {
	client, words := strict(t, env(t, "TURNLINE_TOKEN"), 5), strings.Repeat("word ", 500)
	id := admittedByStream(t, client, turn(t, "echo", words))
	end, err := client.Reply(soon(t), id, within)
	if err != nil || end.GetReply().GetResult() != words {
		t.Fatal(end, err)
	}

	_, err = read(client.Resume(soon(t), id, nil), nothing)
	if failed := refused(t, err); failed.Code != turnline.CodeStreamGap || failed.RequestID != id {
		t.Fatal(failed)
	}
}

func TestAServerThatIsNotThereIsUnavailable(t *testing.T) {
	away := newProxy(t, "127.0.0.1:1")
	var tried int32
	options := turnline.Options{MaxTries: 3, Backoff: time.Millisecond}
	options.Token = counted("t", func(tries int32) { tried = tries })
	_, err := client(t, away.address(), options).Chat(soon(t), turn(t, "echo", "hi"))

	if failed := refused(t, err); failed.Code != "unavailable" || !failed.Retryable || tried != 3 {
		t.Fatal(failed, tried)
	}
}

func TestAServerThatDrainsSendsItsCallersElsewhere(t *testing.T) {
	client, gate := client(t, env(t, "TURNLINE_DRAINING"), ofOneTry), newGate(t)
	held := turn(t, "hold", string(gate))
	held.RequestID = t.Name()
	ctx, waiting := soon(t), make(chan error, 1)
	go func() {
		_, err := client.Chat(ctx, held)
		waiting <- err
	}()
	admitted(t, client, held.RequestID)
	pid, err := strconv.Atoi(env(t, "TURNLINE_DRAINING_PID"))
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}

	failed := refused(t, <-waiting)
	if failed.Code != "draining" || failed.RetryAfter != time.Second || failed.RequestID != held.RequestID {
		t.Fatal(failed)
	}
}
