package tests

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"sync/atomic"
	"testing"
	"time"

	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	turnline "turnline.dev/client"
	turnlinev1 "turnline.dev/client/turnline/v1"
)

// ended is one way in which a server ends a call, of tests/contract/proto/statuses.json.
type ended struct {
	Name   string
	Status struct {
		Number  codes.Code
		Message string
	}
	Trailer string
	Error   told
	Tries   int32
}

// told is what a caller is told of an error; seconds in RetryAfter.
type told struct {
	Code       string
	Message    string
	Field      string
	StatusCode int     `json:"status_code"`
	Retryable  bool    `json:"retryable"`
	RetryAfter float64 `json:"retry_after"`
	RequestID  string  `json:"request_id"`
}

func statuses(t *testing.T) map[string]ended {
	t.Helper()
	raw, err := os.ReadFile(env(t, "TURNLINE_STATUSES"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []ended
	if err := json.Unmarshal(raw, &rows); err != nil || len(rows) < 30 {
		t.Fatal(len(rows), err)
	}
	named := map[string]ended{}
	for _, row := range rows {
		named[row.Name] = row
	}
	return named
}

func (e ended) err(t *testing.T) error {
	t.Helper()
	if e.Trailer == "" {
		return status.Error(e.Status.Number, e.Status.Message)
	}
	raw, err := hex.DecodeString(e.Trailer)
	if err != nil {
		t.Fatal(err)
	}
	var whole rpc.Status
	if err := proto.Unmarshal(raw, &whole); err != nil {
		t.Fatal(err)
	}
	return status.FromProto(&whole).Err()
}

func tellsOf(t *testing.T, err error) told {
	t.Helper()
	failed := refused(t, err)
	return told{
		failed.Code, failed.Message, failed.Field, failed.StatusCode,
		failed.Retryable, failed.RetryAfter.Seconds(), failed.RequestID,
	}
}

// scripted is a server that ends calls by refuse, while that is not nil, and counts them.
type scripted struct {
	turnlinev1.UnimplementedChatServiceServer
	asked  atomic.Int32
	refuse func(asked int32) error
	// pending is how many answers say that there is no end yet.
	pending int32
}

func (s *scripted) next() (int32, error) {
	asked := s.asked.Add(1)
	if s.refuse == nil {
		return asked, nil
	}
	return asked, s.refuse(asked)
}

func theEnd() *turnlinev1.TurnEnd {
	return &turnlinev1.TurnEnd{
		Outcome: &turnlinev1.TurnEnd_Reply{Reply: &turnlinev1.ChatReply{Result: "x"}},
	}
}

func (s *scripted) Chat(
	context.Context, *turnlinev1.ChatServiceChatRequest,
) (*turnlinev1.ChatServiceChatResponse, error) {
	_, err := s.next()
	return &turnlinev1.ChatServiceChatResponse{End: theEnd()}, err
}

func (s *scripted) Submit(
	_ context.Context, request *turnlinev1.SubmitRequest,
) (*turnlinev1.SubmitResponse, error) {
	_, err := s.next()
	return &turnlinev1.SubmitResponse{RequestId: request.GetRequestId()}, err
}

func (s *scripted) Cancel(
	context.Context, *turnlinev1.CancelRequest,
) (*turnlinev1.CancelResponse, error) {
	_, err := s.next()
	return &turnlinev1.CancelResponse{}, err
}

func (s *scripted) GetReply(
	context.Context, *turnlinev1.GetReplyRequest,
) (*turnlinev1.GetReplyResponse, error) {
	asked, err := s.next()
	if asked <= s.pending {
		waits := &turnlinev1.GetReplyResponse_Pending{Pending: &turnlinev1.PendingTurn{}}
		return &turnlinev1.GetReplyResponse{State: waits}, err
	}
	return &turnlinev1.GetReplyResponse{State: &turnlinev1.GetReplyResponse_End{End: theEnd()}}, err
}

func (s *scripted) StreamChat(
	_ *turnlinev1.StreamChatRequest, stream grpc.ServerStreamingServer[turnlinev1.StreamChatResponse],
) error {
	if _, err := s.next(); err != nil {
		return err
	}
	end := &turnlinev1.StreamChatResponse_End{End: theEnd()}
	return stream.Send(&turnlinev1.StreamChatResponse{Item: end})
}

var threeTries = turnline.Options{MaxTries: 3, Backoff: 10 * time.Millisecond}

func named(t *testing.T, id string) turnline.Turn {
	t.Helper()
	made := turn(t, "echo", "hi")
	made.RequestID = id
	return made
}

func TestACallThatAStatusEndsTellsItAndIsMadeAsOftenAsItMay(t *testing.T) {
	for name, row := range statuses(t) {
		t.Run(name, func(t *testing.T) {
			refusal := row.err(t)
			server := &scripted{refuse: func(int32) error { return refusal }}
			_, err := servingFor(t, server, threeTries).Submit(soon(t), named(t, "r1"))

			if got := tellsOf(t, err); got != row.Error || server.asked.Load() != row.Tries {
				t.Fatalf("%+v\n%+v\n%d", got, row.Error, server.asked.Load())
			}
		})
	}
}

func TestAStreamThatAStatusEndsDoesTheSame(t *testing.T) {
	for name, row := range statuses(t) {
		if name == "reply_not_ready" {
			continue // streams go on after it
		}
		t.Run(name, func(t *testing.T) {
			refusal := row.err(t)
			server := &scripted{refuse: func(int32) error { return refusal }}
			events := servingFor(t, server, threeTries).Stream(soon(t), named(t, "r1"))
			_, err := read(events, nothing)

			if got := tellsOf(t, err); got != row.Error || server.asked.Load() != row.Tries {
				t.Fatalf("%+v\n%+v\n%d", got, row.Error, server.asked.Load())
			}
		})
	}
}

func TestAReaderWhoIsSentAwayForTheSilenceComesBackAsOftenAsItTakes(t *testing.T) {
	away := statuses(t)["reply_not_ready"].err(t)
	server := &scripted{refuse: func(asked int32) error {
		if asked < 8 {
			return away
		}
		return nil
	}}
	all, err := read(servingFor(t, server, threeTries).Stream(soon(t), named(t, "r1")), nothing)

	if err != nil || all.end.GetReply().GetResult() != "x" || server.asked.Load() != 8 {
		t.Fatal(all, err, server.asked.Load())
	}
}

func TestAReplyIsAskedForAgainWithAPauseWhileTheServerWaitsLess(t *testing.T) {
	server, began := &scripted{pending: 3}, time.Now()
	end, err := servingFor(t, server, threeTries).Reply(soon(t), "r1", within)

	if err != nil || end.GetReply().GetResult() != "x" || server.asked.Load() != 4 {
		t.Fatal(end, err, server.asked.Load())
	}
	if waited := time.Since(began); waited < 600*time.Millisecond {
		t.Fatal(waited)
	}
}

func TestAReplyIsNotWaitedForLongerThanWasAskedNorBeyondTheDeadline(t *testing.T) {
	server := &scripted{pending: 1 << 30}
	client := servingFor(t, server, threeTries)
	// With a pause of 0.2 s between two.
	if end, err := client.Reply(soon(t), "r1", 500*time.Millisecond); end != nil || err != nil || server.asked.Load() > 3 {
		t.Fatal(end, err, server.asked.Load())
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if end, err := client.Reply(ctx, "r1", within); end != nil || err != nil {
		t.Fatal(end, err)
	}
}

func TestCallersComeBackSomeTimeAfterThePauseTheyWereAskedFor(t *testing.T) {
	away := statuses(t)["draining_for_long"].err(t)
	server := &scripted{refuse: func(asked int32) error {
		if asked == 1 {
			return away
		}
		return nil
	}}
	began := time.Now()
	client := servingFor(t, server, turnline.Options{Backoff: 400 * time.Millisecond})
	if _, err := client.Submit(soon(t), named(t, "r1")); err != nil {
		t.Fatal(err)
	}

	// 0.4 s as asked, and half of a half of that at least.
	if waited := time.Since(began); waited < 500*time.Millisecond {
		t.Fatal(waited)
	}
}

// askingFor is a refusal of a server that asks for a pause.
func askingFor(t *testing.T, pause time.Duration) error {
	t.Helper()
	failure := &turnlinev1.Failure{
		Code: "busy", Retry: turnlinev1.RetryHint_RETRY_HINT_AFTER, RetryAfter: durationpb.New(pause),
	}
	made, err := status.New(codes.Unavailable, "busy").WithDetails(failure)
	if err != nil {
		t.Fatal(err)
	}
	return made.Err()
}

func TestAPauseBehindTheDeadlineIsNotWaitedFor(t *testing.T) {
	long := askingFor(t, 10*within)
	server := &scripted{refuse: func(int32) error { return long }}
	ctx := soon(t)
	_, err := serving(t, server).Submit(ctx, named(t, "r1"))

	if refused(t, err).Code != "busy" || ctx.Err() != nil || server.asked.Load() != 1 {
		t.Fatal(err, ctx.Err(), server.asked.Load())
	}
}

func TestACallWithoutADeadlineHasTheClients(t *testing.T) {
	long := askingFor(t, time.Hour)
	server := &scripted{refuse: func(int32) error { return long }}
	for _, timeout := range []time.Duration{0, within} {
		client := servingFor(t, server, turnline.Options{Timeout: timeout})
		_, err := client.Submit(t.Context(), named(t, "r1"))
		if refused(t, err).Code != "busy" {
			t.Fatal(err)
		}
		_, err = read(client.Stream(t.Context(), named(t, "r1")), nothing)
		if refused(t, err).Code != "busy" {
			t.Fatal(err)
		}
	}
}

func TestAClosedClientRefusesAndAsksNobody(t *testing.T) {
	server := &scripted{}
	client := serving(t, server)
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	_, chat := client.Chat(soon(t), named(t, "r1"))
	_, submit := client.Submit(soon(t), named(t, "r1"))
	_, reply := client.Reply(soon(t), "r1", 0)
	_, cancel := client.Cancel(soon(t), "r1")
	_, stream := read(client.Stream(soon(t), named(t, "r1")), nothing)
	_, resume := read(client.Resume(soon(t), "r1", nil), nothing)

	for _, err := range []error{chat, submit, reply, cancel, stream, resume} {
		if failed := refused(t, err); failed.Code != "cancelled" || failed.Retryable {
			t.Fatal(failed)
		}
	}
	if asked := server.asked.Load(); asked != 0 {
		t.Fatal(asked)
	}
}

func TestAClientThatIsClosedBetweenTwoTriesMakesNoOther(t *testing.T) {
	long, asked := askingFor(t, within/2), make(chan struct{}, 9)
	server := &scripted{refuse: func(int32) error {
		asked <- struct{}{}
		return long
	}}
	client := serving(t, server)
	go func() {
		<-asked
		// The refusal is on its way; when it is there, the pause begins.  Earlier shows nothing.
		time.Sleep(500 * time.Millisecond)
		_ = client.Close()
	}()
	began := time.Now()
	_, err := client.Submit(soon(t), named(t, "r1"))

	waited := time.Since(began)
	if refused(t, err).Code != "cancelled" || server.asked.Load() != 1 || waited > within/4 {
		t.Fatal(err, server.asked.Load(), waited)
	}
}

func TestATokenIsNotSentElsewhereWithoutTLS(t *testing.T) {
	token := turnline.Options{Token: turnline.StaticToken("t")}
	for _, target := range []string{
		"example.org:443", "10.0.0.1:8001", "[2001:db8::1]:8001", "dns:///example.org:1",
		"127.0.0.1.example.org:1", "localhost.example.org:1",
	} {
		if made, err := turnline.New(target, token); made != nil || err == nil {
			t.Fatal(target)
		}
		allowed := token
		allowed.AllowPlaintextToken = true
		if err := client(t, target, allowed).Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, target := range []string{
		"localhost:1", "127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "dns:///localhost:1", "unix:/tmp/x",
	} {
		if err := client(t, target, token).Close(); err != nil {
			t.Fatal(err)
		}
	}
}
