// Package turnline is a client of Turnline's ChatService (gRPC).
//
// Each turn is named by a request id.  The client makes one where the caller gives none, so that a
// call which was cut off can be repeated: the server attaches to the turn or replays its end, and
// never runs it twice.  Errors are of type *Error, whatever went wrong.
package turnline

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	turnlinev1 "turnline.dev/client/turnline/v1"
)

const (
	defaultMaxTries = 5
	defaultBackoff  = 200 * time.Millisecond
	defaultTimeout  = 5 * time.Minute
	maxBackoff      = 5 * time.Second
	// A connection that brings nothing for so long is tried, and given up after as long again.
	silence = 20 * time.Second
	// A server may wait less for a turn's end than it is asked to.
	askAgain = 200 * time.Millisecond
	// Answers may be larger than the 4 MiB that gRPC takes by itself.
	maxMessageBytes = 64 << 20
)

// Options say how a client connects; the zero value is plain text, without a token.
type Options struct {
	// TLS is how to connect over TLS; nil means plain text.
	TLS *tls.Config
	// Token is asked before every try; nil sends no token.  What it gives is never logged.
	Token func(context.Context) (string, error)
	// AllowPlaintextToken sends the token without TLS to a host that is not this one, where
	// everybody on the way can read it; without it New refuses to.
	AllowPlaintextToken bool
	// Timeout bounds a call with all its tries where its context has no deadline; 0 means 5
	// minutes, less has no limit.
	Timeout time.Duration
	// MaxTries bounds the tries of a call, and those of a stream between two events; 0 means 5.
	MaxTries int
	// Backoff is the pause before the second try, doubled with each further one, up to 5 seconds,
	// with jitter; 0 means 200 ms.  A longer pause that the server asks for is kept.
	Backoff time.Duration
}

// StaticToken is a Token that does not change.
func StaticToken(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

// Turn is one user message.
type Turn struct {
	// SessionID names the session; never empty.
	SessionID string
	// RequestID names the turn; empty has one made.  Used again with the same request it attaches.
	RequestID string
	// Request is what to run; never nil.
	Request *turnlinev1.ChatRequest
}

// Client talks to one server; safe for concurrent use.
type Client struct {
	options    Options
	connection *grpc.ClientConn
	service    turnlinev1.ChatServiceClient
	// closed is done when the client is.
	closed context.Context
	close  context.CancelFunc
}

// New makes a client of the server at target, `host:port`; it connects with the first call.
// A token without TLS is refused, see Options.AllowPlaintextToken.
func New(target string, options Options) (*Client, error) {
	if options.Token != nil && options.TLS == nil && !options.AllowPlaintextToken && !loopback(target) {
		return nil, fmt.Errorf("turnline: a token without TLS to %q: set TLS, or AllowPlaintextToken", target)
	}
	if options.MaxTries == 0 {
		options.MaxTries = defaultMaxTries
	}
	if options.Backoff == 0 {
		options.Backoff = defaultBackoff
	}
	if options.Timeout == 0 {
		options.Timeout = defaultTimeout
	}
	secured := insecure.NewCredentials()
	if options.TLS != nil {
		secured = credentials.NewTLS(options.TLS)
	}
	reconnect := backoff.Config{BaseDelay: options.Backoff, Multiplier: 2, Jitter: 0.2, MaxDelay: maxBackoff}
	connection, err := grpc.NewClient(
		target,
		grpc.WithTransportCredentials(secured),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: silence}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: silence, Timeout: silence}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)),
	)
	if err != nil {
		return nil, err
	}
	closed, end := context.WithCancel(context.Background())
	return &Client{options, connection, turnlinev1.NewChatServiceClient(connection), closed, end}, nil
}

// Close ends the connection; what still runs on it, or is asked of it later, is `cancelled`.
func (c *Client) Close() error {
	c.close()
	return c.connection.Close()
}

// Chat runs a turn and waits for its answer.  A turn that outlives ctx goes on; Reply has its end.
func (c *Client) Chat(ctx context.Context, turn Turn) (*turnlinev1.TurnEnd, error) {
	request := &turnlinev1.ChatServiceChatRequest{
		SessionId: turn.SessionID, RequestId: named(turn), Request: turn.Request,
	}
	answer, err := call(ctx, c, request.RequestId, request, c.service.Chat)
	return answer.GetEnd(), err
}

// Submit admits a turn, whose end Reply has, and whose events Resume.
func (c *Client) Submit(ctx context.Context, turn Turn) (Admitted, error) {
	request := &turnlinev1.SubmitRequest{
		SessionId: turn.SessionID, RequestId: named(turn), Request: turn.Request,
	}
	answer, err := call(ctx, c, request.RequestId, request, c.service.Submit)
	return Admitted{answer}, err
}

// Reply gives the answer of a turn, or nil while it has none; a turn that failed is an error.
// It waits as long as wait says, and asks a server that waits less again.
func (c *Client) Reply(
	ctx context.Context, requestID string, wait time.Duration,
) (*turnlinev1.TurnEnd, error) {
	ctx, leave := c.bounded(ctx)
	defer leave()
	until := time.Now().Add(wait)
	for {
		left := durationpb.New(max(time.Until(until), 0))
		request := &turnlinev1.GetReplyRequest{RequestId: requestID, Wait: left}
		answer, err := call(ctx, c, requestID, request, c.service.GetReply)
		if err != nil {
			return nil, err
		}
		if failure := answer.GetEnd().GetFailure(); failure != nil {
			return nil, ofFailure(failure, answer.GetEnd().GetStatusCode(), requestID)
		}
		if end := answer.GetEnd(); end != nil || time.Until(until) <= askAgain || endsWithin(ctx, askAgain) {
			return end, nil
		}
		if failed := c.pause(ctx, askAgain, requestID); failed != nil {
			return nil, failed
		}
	}
}

// Cancel stops a turn, queued or running, and says which it was, or that it had ended.
func (c *Client) Cancel(ctx context.Context, requestID string) (turnlinev1.TurnState, error) {
	request := &turnlinev1.CancelRequest{RequestId: requestID}
	answer, err := call(ctx, c, requestID, request, c.service.Cancel)
	return answer.GetState(), err
}

func named(turn Turn) string {
	if turn.RequestID != "" {
		return turn.RequestID
	}
	return rand.Text()
}

// bounded gives a context that has a deadline.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, is := ctx.Deadline(); is || c.options.Timeout < 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.options.Timeout)
}

// call makes a unary call, again if it failed and may be repeated.
func call[Request, Answer any](
	ctx context.Context,
	client *Client,
	requestID string,
	request *Request,
	method func(context.Context, *Request, ...grpc.CallOption) (*Answer, error),
) (*Answer, error) {
	ctx, leave := client.bounded(ctx)
	defer leave()
	for tries := 1; ; tries++ {
		answer, err := try(ctx, client, request, method)
		if err == nil {
			return answer, nil
		}
		if failed := client.again(ctx, tries, ofError(ctx, err, requestID)); failed != nil {
			return nil, failed
		}
	}
}

func try[Request, Answer any](
	ctx context.Context,
	client *Client,
	request *Request,
	method func(context.Context, *Request, ...grpc.CallOption) (*Answer, error),
) (*Answer, error) {
	signed, err := client.signed(ctx)
	if err != nil {
		return nil, err
	}
	return method(signed, request)
}

// signed adds the token to the metadata of a call.
func (c *Client) signed(ctx context.Context) (context.Context, error) {
	if c.options.Token == nil {
		return ctx, nil
	}
	token, err := c.options.Token(ctx)
	if err != nil {
		return nil, &Error{Code: "unauthenticated", Message: "there is no token", cause: err}
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), nil
}
